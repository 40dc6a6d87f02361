"""Measures the models of a folder against ``jax.jit`` on the same GPU, in the same process, one after the other."""

import argparse
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import xgpu
from xgpu.errors import XgpuError
from xgpu.runtime.jax_backend import gpu_device
from xgpu.tools import kernel_timing

_TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
_PROFILED_CALLS = 3


def load_module(path: Path) -> Any:
    """Return the module that a file of models is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def models(folder: Path, size: str, dtype: Any) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield the programs of every module in a folder, named ``module.program``, each with its arguments.

    A module has ``examples(size, dtype)``, which returns programs and arguments by name; ``size`` is tiny or full.
    """
    for path in sorted(folder.glob("*.py")):
        for name, (function, arguments) in load_module(path).examples(size, dtype).items():
            yield f"{path.stem}.{name}", function, arguments


def kernel_times(function: Callable[..., Any], arguments: Sequence[Any]) -> Counter[str]:
    """Return the seconds that each kernel of a call takes on the GPU, by name, as JAX's profiler sees them."""
    found: Counter[str] = Counter()
    for event in kernel_timing.kernel_events(function, arguments, _PROFILED_CALLS):
        found[event.name] += event.duration_ns / 1e9 / _PROFILED_CALLS
    return found


def _profile(name: str, which: str, times: Counter[str], count: int) -> str:
    total = sum(times.values())
    lines = [f"{name}, {which}: {total * 1e6:.0f} us in kernels, the longest of {len(times)}:"]
    lines += [f"{seconds * 1e6:12.1f} us  {kernel}" for kernel, seconds in times.most_common(count)]
    return "\n".join(lines)


def _first_call(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    start = time.perf_counter()
    kernel_timing.wait(function(*arguments))
    return time.perf_counter() - start


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmark_models", description=__doc__)
    parser.add_argument("words", nargs="*", help="run only programs whose name contains one of these")
    parser.add_argument(
        "--models", type=Path, default=Path("examples/models"), metavar="FOLDER", help="examples/models"
    )
    parser.add_argument("--size", choices=("tiny", "full"), default="full", help="full if left out")
    parser.add_argument("--type", choices=tuple(_TYPES), default="bf16", help="of the activations; bf16 if left out")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="measurements of each; 5")
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="name the N longest kernels of each")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per program: milliseconds per call of both, XLA's time over ours, and the first calls' seconds.

    Ours is made first, and has what XLA measures of libraries to choose among them, which its own then knows.
    Returns 1 without a GPU, and if there is no such program.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not any(arguments.models.glob("*.py")):
        parser.error(f"--models: expected a folder of Python modules, got {str(arguments.models)!r}")
    try:
        print(f"device: {gpu_device().device_kind}, {arguments.type}")
    except XgpuError as error:
        print(f"benchmark_models: error: {error}", file=sys.stderr)
        return 1
    print(f"{'':20}{'xgpu ms':>10}{'XLA ms':>10}{'ratio':>8}{'first':>10}{'XLA first':>10}")
    count = 0
    for name, function, given in models(arguments.models, arguments.size, _TYPES[arguments.type]):
        if arguments.words and not any(word in name for word in arguments.words):
            continue
        count += 1
        ours, theirs = xgpu.jit(function), jax.jit(function)
        first = [_first_call(each, given) for each in (ours, theirs)]
        speeds = kernel_timing.compare(ours, theirs, given, arguments.repeats)
        print(
            f"{name:20}{speeds.ours * 1e3:10.3f}{speeds.theirs * 1e3:10.3f}{speeds.ratio:8.3f}"
            f"{first[0]:10.1f}{first[1]:10.1f}",
            flush=True,
        )
        if arguments.profile:
            for which, each in (("xgpu", ours), ("XLA", theirs)):
                print(_profile(name, which, kernel_times(each, given), arguments.profile), flush=True)
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())

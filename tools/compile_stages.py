"""Prints what each stage of compiling whole programs takes: ``python -m xgpu.tools.compile_stages --layers 2,4,8``.

The programs are files, or training steps of GPT-2 with numbers of layers, which are not in a loop. Times are seconds of
processor time of one process and of XLA's importer, to PTX of every kernel. The tests only count what the stages look
at: times depend on the machine, and on what else it does.
"""

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.compiler import emit_program, plan_program
from xgpu.errors import XgpuError
from xgpu.frontend.load import load_source, read_text
from xgpu.options import Options
from xgpu.tools.benchmark_models import load_module

STAGES = ("frontend", "plan", "emit", "kernels")
"""The stages measured: to level ``stablehlo``, to ``fusions``, to ``emitted``, and from there to PTX."""
_MODELS = Path("examples/models")
_HEAD = f"{'':32}{'lines':>8}{'kernels':>9}{'launches':>10}{''.join(f'{stage:>10}' for stage in STAGES)}"


def layers_of_gpt2(folder: Path, counts: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield names and StableHLO text of training steps of GPT-2 with so many layers, of little width."""
    gpt2: Any = load_module(folder / "gpt2.py")
    for count in counts:
        config = replace(gpt2.TINY, layers=count)
        state = jax.eval_shape(lambda config=config: gpt2.initialize_training(gpt2.initialize(config)))
        tokens = jax.eval_shape(partial(jnp.zeros, (config.batch, config.positions + 1), jnp.int32))
        step = jax.jit(partial(gpt2.train_step, config, gpt2.Adam()))
        yield f"GPT-2, {count} layers, trained", step.lower(state, tokens).as_text()


def row(name: str, text: str, source: str) -> str:
    """Return a line of the table for the program ``source``, whose text is ``text``."""
    times: list[float] = []
    target, options = device(DEFAULT_DEVICE), Options()
    loaded = _timed(times, lambda: load_source(source))
    planned = _timed(times, lambda: plan_program(loaded.module, target, options)["fusions"])
    program = _timed(times, lambda: emit_program(planned, target, options, []))
    _timed(times, lambda: [kernel.ptx for kernel in program.kernels])
    seconds = "".join(f"{each:10.2f}" for each in times)
    counts = f"{len(text.splitlines()):8}{len(program.kernels):9}{len(program.launches):10}"
    return f"{name[:31]:32}{counts}{seconds}"


def _timed[T](times: list[float], stage: Callable[[], T]) -> T:
    start = _processor_seconds()
    made = stage()
    times.append(_processor_seconds() - start)
    return made


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per program; 1 if one could not be compiled."""
    parser = argparse.ArgumentParser("compile_stages", description="Measure the stages of compiling whole programs.")
    parser.add_argument("files", nargs="*", help="HLO or StableHLO text")
    parser.add_argument("--layers", default="", metavar="N,...", help="training steps of GPT-2 with so many layers")
    parser.add_argument(
        "--models", type=Path, default=_MODELS, metavar="FOLDER", help="where gpt2.py is; examples/models"
    )
    options = parser.parse_args(argv)
    # Kernels that were kept would not be compiled.
    os.environ["XGPU_CACHE"] = "off"
    programs = [(Path(file).stem, read_text(Path(file)), file) for file in options.files]
    layers = [int(count) for count in options.layers.split(",") if count]
    programs += [(name, text, text) for name, text in layers_of_gpt2(options.models, layers)]
    failed = False
    print(_HEAD)
    for name, text, source in programs:
        try:
            print(row(name, text, source), flush=True)
        except XgpuError as error:
            failed = True
            print(f"{name[:31]:32}{error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Measures kernels against ``jax.jit`` on the same GPU, in the same process, one after the other."""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import xgpu
from xgpu.errors import XgpuError
from xgpu.runtime.jax_backend import gpu_device

_CALLS = 20
"""Calls in one measurement: enough that the kernels queue up and the launches cost nothing."""


@dataclass(frozen=True)
class Benchmark:
    """A function, and the shapes and types of its arguments."""

    name: str
    function: Callable[..., Any]
    specs: tuple[tuple[tuple[int, ...], Any], ...]

    def arguments(self) -> list[jax.Array]:
        """Return random arguments on the GPU."""
        keys = jax.random.split(jax.random.key(0), len(self.specs))
        return [
            jax.random.normal(key, shape, jnp.float32).astype(dtype)
            for key, (shape, dtype) in zip(keys, self.specs, strict=True)
        ]


def _benchmarks() -> list[Benchmark]:
    square, odd = (16384, 16384), (16381, 16381)
    f32, bf16 = jnp.float32, jnp.bfloat16
    gelu = jax.nn.gelu
    return [
        Benchmark("gelu(x+y) f32 1 GiB", lambda x, y: gelu(x + y), ((square, f32),) * 2),
        Benchmark("gelu(x+y) f32 odd sizes", lambda x, y: gelu(x + y), ((odd, f32),) * 2),
        Benchmark("gelu(x+y) bf16", lambda x, y: gelu(x + y), ((square, bf16),) * 2),
        Benchmark("x*2 f32", lambda x: x * 2, ((square, f32),)),
        Benchmark("x*2 bf16", lambda x: x * 2, ((square, bf16),)),
        Benchmark("exp f32", jnp.exp, ((square, f32),)),
        Benchmark("x + bias, odd rows", lambda x, b: x + b, ((odd, f32), ((16381,), f32))),
        Benchmark("concatenate f32", lambda x, y: jnp.concatenate([x, y]), (((8192, 16384), f32),) * 2),
        Benchmark("pad f32", lambda x: jnp.pad(x, ((1, 1), (4, 4))), ((square, f32),)),
        Benchmark("bf16 to f32", lambda x: x.astype(f32), ((square, bf16),)),
    ]


def _wait(results: Any) -> Any:
    return jax.block_until_ready(results)  # type: ignore[no-untyped-call]


def seconds_per_call(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Return the time of a call when calls follow each other without a pause."""
    start = time.perf_counter()
    _wait([function(*arguments) for _ in range(_CALLS)])
    return (time.perf_counter() - start) / _CALLS


def compare_speed(benchmark: Benchmark, repeats: int) -> tuple[float, float, float]:
    """Return the medians of xgpu's and XLA's seconds per call, measured alternately, and the useful bytes."""
    arguments = benchmark.arguments()
    ours, theirs = jax.jit(xgpu.jit(benchmark.function)), jax.jit(benchmark.function)
    samples: tuple[list[float], list[float]] = ([], [])
    result = _wait(ours(*arguments))
    _wait(theirs(*arguments))
    useful = float(sum(array.nbytes for array in jax.tree.leaves((arguments, result))))
    del result
    for _ in range(repeats):
        for function, times in zip((ours, theirs), samples, strict=True):
            times.append(seconds_per_call(function, arguments))
    return statistics.median(samples[0]), statistics.median(samples[1]), useful


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per benchmark: the speed of both in TB/s of useful bytes, and ours over XLA's."""
    parser = argparse.ArgumentParser("benchmark", description=__doc__)
    parser.add_argument("words", nargs="*", help="run only benchmarks whose name contains one of these")
    parser.add_argument("--repeats", type=int, default=9, help="measurements of each; 9 if left out")
    arguments = parser.parse_args(argv)
    try:
        print(f"device: {gpu_device().device_kind}")
    except XgpuError as error:
        print(f"benchmark: error: {error}", file=sys.stderr)
        return 1
    print(f"{'':28}{'xgpu TB/s':>10}{'XLA TB/s':>10}{'ratio':>8}")
    for benchmark in _benchmarks():
        if arguments.words and not any(word in benchmark.name for word in arguments.words):
            continue
        ours, theirs, useful = compare_speed(benchmark, arguments.repeats)
        print(f"{benchmark.name:28}{useful / ours / 1e12:10.2f}{useful / theirs / 1e12:10.2f}{theirs / ours:8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Prints how long compilations to PTX take, and how much code they make: ``python -m xgpu.tools.compile_time``.

The programs are the functions that are expanded into the most operations, on 8, 4 and 2 elements a thread, and a fusion
of twenty operations. Times are processor time in a warm process, from StableHLO text on. The tests bound the lines of
code only: times depend on the machine, and on what else it does.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.interface.api import Compiled

LEVELS = ("lowered", "llvm", "ptx")
"""Levels at which lines are counted: before functions are expanded, after that, and after LLVM."""
_UNARY = ("bessel_i1e", "digamma", "erf_inv", "lgamma")
_BINARY = ("polygamma", "pow", "zeta")
_HOST_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class TimedProgram:
    """A JAX function and the specifications of its arguments."""

    name: str
    function: Callable[..., Any]
    specs: tuple[str, ...]

    def compile(self) -> Compiled:
        """Compile again, as far as PTX."""
        program = xgpu.compile(self.stablehlo)
        program.ir("ptx")
        return program

    @cached_property
    def stablehlo(self) -> str:
        """The function as StableHLO text."""
        return xgpu.compile(self.function, *self.specs).ir("stablehlo")


def twenty_operations(x: Any, y: Any, bias: Any) -> Any:
    """Return what twenty StableHLO operations make, constants and broadcasts not counted; four are like tanh."""
    h = x * y + bias
    h = h * jax.lax.logistic(h) - jnp.tanh(y)
    h = jnp.where(h > x, jnp.exp(h), h / x)
    h = jnp.maximum(h, y) + jnp.minimum(h, x) * y
    return (jnp.sqrt(h) - x).astype(jnp.bfloat16)


def programs() -> Iterator[TimedProgram]:
    """Yield what is measured."""
    yield TimedProgram("twenty operations", twenty_operations, ("f32[2048,1024]", "f32[2048,1024]", "f32[1024]"))
    for name in sorted((*_UNARY, *_BINARY)):
        for element in ("bf16", "f32", "f64"):
            specs = (f"{element}[1048576]",) * (2 if name in _BINARY else 1)
            yield TimedProgram(f"{name} {element}", getattr(jax.lax, name), specs)


def lines(program: Compiled) -> list[int]:
    """Return how many lines of code a program is at each of `LEVELS`."""
    return [len(program.ir(level).splitlines()) for level in LEVELS]


def milliseconds(call: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """Return the median time of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times) * 1e3


def _host_milliseconds(repeats: int) -> float:
    """Return how long the host executor takes for ``gelu(x + y)`` of 2^24 f32."""
    compiled = xgpu.compile(lambda x, y: jax.nn.gelu(x + y), *[f"f32[{_HOST_ELEMENTS}]"] * 2)
    values = np.linspace(-4, 4, _HOST_ELEMENTS, dtype=np.float32)
    return milliseconds(lambda: compiled.run(values, values), repeats, time.perf_counter)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per program, and the host executor's time for a large one."""
    parser = argparse.ArgumentParser("compile_time", description="Measure compilations to PTX.")
    parser.add_argument("words", nargs="*", help="measure only programs whose name contains one of these")
    parser.add_argument("--repeats", type=int, default=5, help="compilations of each; 5 if left out")
    options = parser.parse_args(argv)
    # Kernels that were kept would not be compiled.
    os.environ["XGPU_CACHE"] = "off"
    print(f"{'':20}{''.join(f'{level:>9}' for level in LEVELS)}{'ms':>9}")
    for program in programs():
        if not options.words or any(word in program.name for word in options.words):
            counts = "".join(f"{count:9}" for count in lines(program.compile()))
            spent = milliseconds(program.compile, options.repeats, time.process_time)
            print(f"{program.name:20}{counts}{spent:9.0f}", flush=True)
    if not options.words:
        print(f"the host executor runs gelu(x + y) of 2^24 f32 in {_host_milliseconds(options.repeats):.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

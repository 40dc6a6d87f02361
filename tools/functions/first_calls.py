"""Prints what first calls consist of: ``python -m xgpu.tools.functions.first_calls NAMES``.

Those of ``xgpu.jit`` stand beside those of ``jax.jit``. The functions are those of ``benchmark_functions``. Each is
measured in a process of its own under either, since XLA keeps what it finds out about products and convolutions. The
process has run another function before, or with ``--cold`` none: what xgpu imports when it is first needed then counts
too. A first call lowers the function (for xgpu all stages to PTX, or to what the CPU's
kernels are made from), has XLA compile what was lowered, and runs it, for which a GPU's driver loads the kernels.
Seconds are those of a clock, as other processes compile too.
"""

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax

import xgpu
from xgpu.tools.benchmark_functions import arguments_of, cases

STEPS = ("lower", "compile", "run")


@dataclass(frozen=True)
class FirstCall:
    """Seconds of each of `STEPS`."""

    lower: float
    compile: float
    run: float

    @property
    def seconds(self) -> float:
        """The seconds that the whole call took."""
        return self.lower + self.compile + self.run


def first_call(jitted: Any, arguments: Sequence[Any]) -> FirstCall:
    """Call a function for the first time, step by step."""
    times = [time.perf_counter()]
    lowered = jitted.lower(*arguments)
    times.append(time.perf_counter())
    compiled = lowered.compile()
    times.append(time.perf_counter())
    jax.block_until_ready(compiled(*arguments))  # type: ignore[no-untyped-call]
    times.append(time.perf_counter())
    return FirstCall(*(after - before for before, after in pairwise(times)))


def measure(name: str, is_cold: bool, is_ours: bool) -> FirstCall:
    """Return the first call of a function under ``xgpu.jit``, or ``jax.jit``."""
    function, specs = cases()[name]
    arguments = arguments_of(specs)
    jit: Any = xgpu.jit if is_ours else jax.jit
    if not is_cold:
        jit(lambda x: (x * 2).sum())(jax.numpy.ones(1000))
    return first_call(jit(function), arguments)


def _alone(name: str, is_cold: bool, is_ours: bool) -> FirstCall:
    # A pool's processes are started anew, not forked: JAX has threads.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, name, is_cold, is_ours).result()


def _row(name: str, theirs: FirstCall, ours: FirstCall) -> str:
    steps = "".join(f"{getattr(each, step):9.2f}" for each in (theirs, ours) for step in STEPS)
    return f"{name[:31]:32}{steps}{theirs.seconds:9.2f}{ours.seconds:9.2f}{ours.seconds / theirs.seconds:7.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per function and the geometric mean of the ratios; return 1 if one failed."""
    parser = argparse.ArgumentParser("first_calls", description="Measure first calls under jax.jit and xgpu.jit.")
    parser.add_argument("names", nargs="*", help="parts of names of functions (default: all)")
    parser.add_argument("--cold", action="store_true", help="measure the first function that a process compiles")
    options = parser.parse_args(arguments)
    names = [name for name in cases() if not options.names or any(part in name for part in options.names)]
    heads = [f"{who}{step}" for who in ("jax ", "") for step in STEPS]
    print(f"{'':32}{''.join(f'{head.strip():>9.9}' for head in heads)}{'jax.jit':>9}{'xgpu.jit':>9}{'ratio':>7}")
    ratios, failed = [], 0
    for name in names:
        try:
            theirs, ours = (_alone(name, options.cold, is_ours) for is_ours in (False, True))
        except Exception as error:
            failed += 1
            print(f"{name[:31]:32}{type(error).__name__}: {str(error).partition(chr(10))[0]}", flush=True)
            continue
        ratios.append(ours.seconds / theirs.seconds)
        print(_row(name, theirs, ours), flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))
    print(f"{len(names)} functions: geometric mean {mean:.2f}, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

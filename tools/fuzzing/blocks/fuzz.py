"""Compiles random kernels written on tiles, runs them with the sanitizer, and compares with XLA on the CPU."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from xgpu.tools.fuzzing.blocks import group_programs, programs
from xgpu.tools.fuzzing.worker import Worker, WorkerDied

_SECONDS_PER_CASE = 120


def main(argv: Sequence[str] | None = None, worker: Worker | None = None) -> int:
    """Run the cases of consecutive seeds; print a line per failure. Returns 1 if there was one.

    They run in ``worker``, which stays, or in one of their own.
    """
    arguments = _parser().parse_args(argv)
    # For the worker, which reads them when it loads JAX: no log of XLA's, and no GPU where none is used.
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    if arguments.on != "gpu":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    start, failures = time.perf_counter(), 0
    seeds = range(arguments.seed, arguments.seed + arguments.cases)
    with nullcontext(worker) if worker else new_worker() as worker:
        for seed in seeds:
            try:
                failure = worker.call(failure_of_seed, seed, arguments.on, arguments.groups)
            except WorkerDied as death:
                failure = str(death)
            if failure is not None:
                failures += 1
                print(f"FAIL seed {seed}: {failure}", flush=True)
    print(f"{len(seeds) - failures} of {len(seeds)} kernels agree, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


def new_worker() -> Worker:
    """Return a worker with the time and the memory that cases may take."""
    return Worker(_SECONDS_PER_CASE, memory=8 << 30)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fuzz_blocks", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, metavar="N", help="how many kernels to try; 100 if left out")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first kernel; the next has S + 1")
    where = "where the kernels run; host if left out; ptx compiles to PTX and runs nothing"
    parser.add_argument("--on", choices=("host", "gpu", "ptx"), default="host", help=where)
    groups = "draw products of tiles that warp groups multiply, and more steps"
    parser.add_argument("--groups", action="store_true", help=groups)
    return parser


def failure_of_seed(seed: int, on: str = "host", groups: bool = False) -> str | None:
    """Return what is wrong with the kernel of a seed, or None."""
    import xgpu

    try:
        program = (group_programs if groups else programs).generate(seed)
        compiled = xgpu.compile(program.text)
        if on == "ptx":
            compiled.ir("ptx")
            return None
        found = compiled.run(*program.arguments, on=on, sanitize=on == "host")
        for number, (result, wanted) in enumerate(zip(found, compiled.reference(*program.arguments), strict=True)):
            if not np.array_equal(result, wanted, equal_nan=True):
                return f"output {number}: {_example(np.asarray(result), np.asarray(wanted))}"
    except Exception as error:
        # Whatever it is, it is a finding, and the cases after it are still to be checked.
        known = isinstance(error, xgpu.XgpuError)
        return f"{type(error).__name__}: {error if known else traceback.format_exc()}"
    return None


def _example(found: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", wanted: object) -> str:
    """Return the first elements that differ."""
    expected = np.asarray(wanted)
    places = np.argwhere(found != expected)
    first = [f"{at.tolist()}: {found[tuple(at)]} for {expected[tuple(at)]}" for at in places[:3]]
    return f"{len(places)} of {found.size} elements differ: {', '.join(first)}"


if __name__ == "__main__":
    sys.exit(main())

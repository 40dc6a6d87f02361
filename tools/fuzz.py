"""Compiles random StableHLO graphs, runs them, and compares the results with XLA on the CPU."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext

from xgpu.tools.fuzzing.check import Failure, Variant, failure_of, failure_of_seed
from xgpu.tools.fuzzing.generate import generate
from xgpu.tools.fuzzing.graph import Graph
from xgpu.tools.fuzzing.minimize import minimize
from xgpu.tools.fuzzing.worker import Worker, WorkerDied

_SECONDS_PER_CASE = 120
_SECONDS_TO_MINIMIZE = 120


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
            failure = _in_worker(worker, failure_of_seed, seed, arguments.on)
            if failure is None:
                continue
            failures += 1
            print(f"FAIL seed {seed} ({Variant.of_seed(seed)}): {failure.kind}: {failure.message}", flush=True)
            if arguments.minimize:
                _print_minimal(worker, seed, failure, arguments.on)
    seconds = time.perf_counter() - start
    print(f"{len(seeds) - failures} of {len(seeds)} graphs agree, {seconds:.0f} s")
    return 1 if failures else 0


def new_worker() -> Worker:
    """Return a worker with the time and the memory that cases may take."""
    return Worker(_SECONDS_PER_CASE, memory=8 << 30)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, metavar="N", help="how many graphs to try; 100 if left out")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first graph; the next has S + 1")
    where = (
        "where the graphs run; host if left out; ptx compiles to PTX and runs nothing; sanitized is the host, where "
    )
    where += "each access of programs that are all kernels is checked"
    parser.add_argument("--on", choices=("host", "gpu", "ptx", "sanitized"), default="host", help=where)
    parser.add_argument("--minimize", action="store_true", help="print a minimal graph for each failure")
    return parser


def _in_worker(worker: Worker, check: object, *arguments: object) -> Failure | None:
    try:
        failure: Failure | None = worker.call(check, *arguments)  # type: ignore[arg-type]
        return failure
    except WorkerDied as death:
        return Failure(str(death), str(death))


def _print_minimal(worker: Worker, seed: int, failure: Failure, on: str) -> None:
    def fails(graph: Graph, variant: Variant) -> bool:
        found = _in_worker(worker, failure_of, graph, variant, on)
        return found is not None and found.kind == failure.kind

    graph, variant = minimize(generate(seed), Variant.of_seed(seed), fails, _SECONDS_TO_MINIMIZE)
    found = _in_worker(worker, failure_of, graph, variant, on)
    print(f"minimal ({variant}): {found.message if found else 'does not fail again'}\n{graph.text()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

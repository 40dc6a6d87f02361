"""Measures functions of JAX's libraries, and programs as people write them, under ``xgpu.jit`` and ``jax.jit``.

Each runs in a process that is ended when a time limit is over, and on the device that JAX has. The table is sorted by
the ratio of the times of a call, ``jax.jit`` over ``xgpu.jit``.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax
import numpy as np

import xgpu
from xgpu.dtypes import parse_spec
from xgpu.tools.functions.library import Case, library
from xgpu.tools.functions.simulated import simulated
from xgpu.tools.functions.written import written


@dataclass(frozen=True)
class Measurement:
    """Seconds of a call and of the first one, of xgpu.jit and of jax.jit, and the largest relative difference."""

    name: str
    ours: float = math.inf
    theirs: float = math.nan
    first_ours: float = math.nan
    first_theirs: float = math.nan
    difference: float = math.nan
    failure: str = ""

    @property
    def ratio(self) -> float:
        """The speedup of xgpu.jit."""
        return self.theirs / self.ours


def cases() -> dict[str, Case]:
    """Return all functions by name."""
    return {**library(), **written(), **simulated()}


def _ready(values: Any) -> Any:
    """Wait for arrays to be computed, and return them."""
    return jax.block_until_ready(values)  # type: ignore[no-untyped-call]


def arguments_of(specs: Sequence[str]) -> list[Any]:
    """Return random arrays, or keys, for specifications."""
    drawn: list[Any] = []
    generator = np.random.default_rng(0)
    for spec in specs:
        if spec == "key":
            drawn.append(jax.random.key(1))
            continue
        dtype, shape = parse_spec(spec)
        numbers = generator.integers(0, 1000, shape) if dtype.is_integer else generator.standard_normal(shape)
        drawn.append(jax.numpy.asarray(numbers, dtype.numpy))
    return _ready(drawn)


def measure(name: str, seconds: float) -> Measurement:
    """Measure one function; each compiled one runs for about so many ``seconds``, in turns."""
    function, specs = cases()[name]
    arguments = arguments_of(specs)
    theirs, ours = jax.jit(function), xgpu.jit(function)
    start = time.perf_counter()
    expected = _ready(theirs(*arguments))
    middle = time.perf_counter()
    found = _ready(ours(*arguments))
    end = time.perf_counter()
    best: dict[Callable[..., Any], float] = {theirs: math.inf, ours: math.inf}
    for _ in range(5):
        for each in best:
            best[each] = min(best[each], _time(each, arguments, seconds / 5))
    return Measurement(name, best[ours], best[theirs], end - middle, middle - start, _difference(found, expected))


def _time(function: Callable[..., Any], arguments: Sequence[Any], seconds: float) -> float:
    """Return the seconds of a call, of as many as fit: they are queued, as a training loop queues its steps."""
    start = time.perf_counter()
    _ready(function(*arguments))
    count = max(1, min(200, int(seconds / (time.perf_counter() - start))))
    start = time.perf_counter()
    for _ in range(count):
        result = function(*arguments)
    _ready(result)
    return (time.perf_counter() - start) / count


def _difference(found: Any, expected: Any) -> float:
    """Return the largest difference between two results, relative to the largest element of each array."""
    worst = 0.0
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if jax.numpy.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        left, right = (np.asarray(each).astype(np.complex128) for each in (a, b))
        with np.errstate(invalid="ignore"):
            apart = np.abs(left - right)
        apart = np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0, apart)
        finite = np.abs(right[np.isfinite(right)])
        if apart.size:
            worst = max(
                worst, float(np.max(np.nan_to_num(apart, nan=np.inf))) / max(1e-30, float(finite.max(initial=0)))
            )
    return worst


def _serve(connection: Connection, seconds: float) -> None:
    """Measure what is asked for until nothing is."""
    while name := connection.recv():
        try:
            connection.send(measure(name, seconds))
        except Exception as error:
            connection.send(Measurement(name, failure=f"{type(error).__name__}: {error}".splitlines()[0][:200]))


def measure_all(names: Sequence[str], seconds: float, limit: float, budget: float) -> list[Measurement]:
    """Measure functions one after the other; one that takes longer than ``limit`` seconds is ended.

    After ``budget`` seconds in all no other is started.
    """
    end = time.perf_counter() + budget
    context = multiprocessing.get_context("spawn")
    process, connection = None, None
    found = []
    for name in names:
        if time.perf_counter() > end:
            break
        if process is None or connection is None:
            connection, other = context.Pipe()
            process = context.Process(target=_serve, args=(other, seconds), daemon=True)
            process.start()
            other.close()
        connection.send(name)
        try:
            result = connection.recv() if connection.poll(limit) else Measurement(name, failure=f"over {limit:g} s")
        except EOFError:
            result = Measurement(name, failure="the process ended")
        if result.failure.startswith(("over", "the process")):
            process.kill()
            process = None
        found.append(result)
        print(_row(result), flush=True)
    return found


def _row(each: Measurement) -> str:
    if each.failure:
        return f"{each.name:36} {each.failure}"
    first = each.first_ours / each.first_theirs
    return (
        f"{each.name:36} {each.ours * 1e6:10.1f} {each.theirs * 1e6:10.1f} {each.ratio:7.2f} "
        f"{each.first_ours:7.2f} {first:6.2f} {each.difference:9.2g}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a function failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of functions (default: all)")
    parser.add_argument("--seconds", type=float, default=0.3, help="time to run each compiled function")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a function is given up")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no other is started")
    parser.add_argument("--json", type=Path, help="write all figures to a file")
    options = parser.parse_args(arguments)
    names = [name for name in cases() if not options.names or any(part in name for part in options.names)]
    found = measure_all(names, options.seconds, options.limit, options.budget)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))
    print(f"\n{'function':36} {'xgpu us':>10} {'jax us':>10} {'ratio':>7} {'first s':>7} {'ratio':>6} {'error':>9}")
    good = [each for each in found if not each.failure]
    for each in sorted(good, key=lambda each: each.ratio)[:40]:
        print(_row(each))
    for each in found:
        if each.failure:
            print(_row(each))
    mean = math.exp(sum(math.log(each.ratio) for each in good) / max(1, len(good)))
    below = sum(each.ratio < 0.9 for each in good)
    print(f"{len(found)} functions: geometric mean {mean:.3f}, {below} below 0.9, {len(found) - len(good)} failed")
    return 1 if len(good) < len(found) else 0


if __name__ == "__main__":
    sys.exit(main())

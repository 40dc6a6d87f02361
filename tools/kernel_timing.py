"""Times two functions on the same arguments, one after the other, on a GPU."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

_CALLS = 20
"""Calls in one measurement: enough that the kernels queue up and the launches cost nothing."""


@dataclass(frozen=True)
class Speeds:
    """Medians of the seconds per call of our function and of theirs, and the useful bytes of a call."""

    ours: float
    theirs: float
    useful: float

    @property
    def ratio(self) -> float:
        """Our speed over theirs."""
        return self.theirs / self.ours

    def line(self, name: str) -> str:
        """Return a line of a table: both speeds in TB/s of useful bytes, and ours over theirs."""
        ours, theirs = (self.useful / each / 1e12 for each in (self.ours, self.theirs))
        return f"{name:28}{ours:10.2f}{theirs:10.2f}{self.ratio:8.3f}"


HEAD = f"{'':28}{'xgpu TB/s':>10}{'XLA TB/s':>10}{'ratio':>8}"
"""The head of a table of such lines."""


def wait(results: Any) -> Any:
    """Return the results, computed."""
    return jax.block_until_ready(results)  # type: ignore[no-untyped-call]


def seconds_per_call(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Return the time of a call when calls follow each other without a pause."""
    start = time.perf_counter()
    wait([function(*arguments) for _ in range(_CALLS)])
    return (time.perf_counter() - start) / _CALLS


def compare(ours: Callable[..., Any], theirs: Callable[..., Any], arguments: Sequence[Any], repeats: int = 9) -> Speeds:
    """Measure both functions ``repeats`` times, alternately, after a first call of each, which compiles it."""
    samples: tuple[list[float], list[float]] = ([], [])
    result = wait(ours(*arguments))
    wait(theirs(*arguments))
    useful = float(sum(array.nbytes for array in jax.tree.leaves((arguments, result))))
    del result
    for _ in range(repeats):
        for function, times in zip((ours, theirs), samples, strict=True):
            times.append(seconds_per_call(function, arguments))
    return Speeds(statistics.median(samples[0]), statistics.median(samples[1]), useful)

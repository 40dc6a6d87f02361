"""Times functions on a GPU: two on the same arguments, one after the other, by the clock; and kernels by CUPTI."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

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


def kernel_events(function: Callable[..., Any], arguments: Sequence[Any], calls: int) -> list[Any]:
    """Return what runs on GPUs in some calls, in order: events with ``name``, ``start_ns`` and ``duration_ns``.

    They are those of CUPTI, by JAX's profiler: kernels, and copies of memory if there are any.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(calls):
                wait(function(*arguments))
        traces = [ProfileData.from_file(str(path)) for path in Path(folder).rglob("*.xplane.pb")]
        events = [
            event
            for trace in traces
            for plane in trace.planes
            if plane.name.startswith("/device:GPU")
            for line in plane.lines
            if line.name.startswith("Stream")
            for event in line.events
        ]
    return sorted(events, key=lambda event: event.start_ns)


def kernel_seconds(function: Callable[..., Any], arguments: Sequence[Any], calls: int = _CALLS) -> list[float]:
    """Return the seconds that the kernels of each call take together; none if no kernel is seen.

    Where calls do not have equally many kernels, it is one time, their mean.
    """
    events = kernel_events(function, arguments, calls)
    if not events:
        return []
    each, rest = divmod(len(events), calls)
    if rest:
        return [sum(event.duration_ns for event in events) / calls / 1e9]
    parts = (events[first : first + each] for first in range(0, len(events), each))
    return [sum(event.duration_ns for event in part) / 1e9 for part in parts]

"""The sectors of memory that the accesses of warps touch, computed from the map of their positions.

Memory and caches move sectors of 32 bytes: what a warp does not use of those that its lanes touch moves in vain, unless
another access uses it soon. (Source: NVIDIA's guides to tuning and profiling call an access coalesced that touches no
more sectors than its bytes fill.)
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from xgpu.indexing.indexing_map import IndexingMap
from xgpu.target_machine import WARP_SIZE

SECTOR_BYTES = 32
_SECTOR_BITS = 8 * SECTOR_BYTES


@dataclass(frozen=True)
class Touched:
    """The sectors that accesses touch, and the fewest that hold the elements that they read or write."""

    sectors: int
    least: int


def sectors(positions: IndexingMap, element_bits: int) -> Touched:
    """Return what the warps of the first block touch in memory.

    ``positions`` maps (thread, ...)[steps..., element] to an element's position in an array that starts with a sector,
    all dimensions but the thread's at their lowest. What a warp reads or writes in a step, its threads' runs along the
    last symbol together, is one access.
    """
    (thread, *others), symbols = positions.dims, positions.symbols
    ranges = (thread, *symbols)
    axes = np.meshgrid(*(np.arange(each.lower, each.upper + 1) for each in ranges), indexing="ij")
    threads, *steps = (axis.ravel() for axis in axes)
    dims: list[Any] = [threads, *(interval.lower for interval in others)]
    points: list[Any] = steps
    inside = np.ones(threads.size, dtype=bool)
    for expr, interval in positions.constraints:
        value = np.asarray(expr.evaluate(dims, points))
        inside &= (value >= interval.lower) & (value <= interval.upper)
    access = threads // WARP_SIZE
    for step, interval in zip(steps[:-1], symbols[:-1], strict=True):
        access = access * interval.size + step - interval.lower
    first = np.broadcast_to(positions.results[0].evaluate(dims, points), threads.size) * element_bits
    # The elements of each access, each once: its number and the first bit of the element.
    number, start = np.unique(np.stack([access[inside], first[inside]]), axis=1)
    ends = [np.stack([number, (start + last) // _SECTOR_BITS]) for last in (0, element_bits - 1)]
    touched = np.unique(np.concatenate(ends, axis=1), axis=1).shape[1]
    filled = np.unique(number, return_counts=True)[1] * element_bits
    return Touched(touched, int((-(-filled // _SECTOR_BITS)).sum()))


def overfetch(run_bits: int) -> float:
    """Return how many bits are touched for each that is used, where runs of so many bits lie one after the other.

    Each run is read apart from its neighbours, and on average of all that there are.
    """
    return (run_bits + _SECTOR_BITS - math.gcd(run_bits, _SECTOR_BITS)) / run_bits


def fills_sectors(run_bits: int) -> bool:
    """Whether accesses of runs of so many bits use more than half of what they touch: all runs of a sector or more."""
    return run_bits > 0 and overfetch(run_bits) < 2

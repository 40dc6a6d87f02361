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


@dataclass(frozen=True)
class Touched:
    """How many sectors accesses touch, and how many the elements that they read or write would fill at least."""

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
    axes = np.meshgrid(*(np.arange(each.lower, each.upper + 1) for each in ranges), indexing="ij", sparse=True)
    dims: list[Any] = [axes[0], *(interval.lower for interval in others)]
    shape = tuple(interval.size for interval in ranges)

    def values(expr: Any) -> Any:
        return np.broadcast_to(np.asarray(expr.evaluate(dims, axes[1:])), shape)

    inside = np.ones(shape, dtype=bool)
    for expr, interval in positions.constraints:
        inside &= (values(expr) >= interval.lower) & (values(expr) <= interval.upper)
    steps = shape[1:-1]
    step = np.broadcast_to(np.arange(math.prod(steps)).reshape(1, *steps, *[1] * (len(shape) - 1 - len(steps))), shape)
    access = (np.broadcast_to(axes[0], shape) // WARP_SIZE * math.prod(steps) + step)[inside]
    first = values(positions.results[0])[inside] * element_bits
    bits = np.unique(np.stack([access, first]), axis=1)
    filled = np.bincount(bits[0] - bits[0].min(initial=0)) * element_bits if bits.size else np.zeros(0, np.int64)
    ends = [np.stack([bits[0], (bits[1] + last) // (8 * SECTOR_BYTES)]) for last in (0, element_bits - 1)]
    touched = np.unique(np.concatenate(ends, axis=1), axis=1).shape[1]
    return Touched(touched, int((-(-filled // (8 * SECTOR_BYTES))).sum()))


def overfetch(run_bits: int) -> float:
    """Return how many bits are touched for each that is used, where runs of so many bits lie one after the other.

    Each run is read apart from its neighbours, and on average of all that there are.
    """
    sector = 8 * SECTOR_BYTES
    return (run_bits + sector - math.gcd(run_bits, sector)) / run_bits


def fills_sectors(run_bits: int) -> bool:
    """Whether accesses of runs of so many bits use more than half of what they touch: all runs of a sector or more."""
    return run_bits > 0 and overfetch(run_bits) < 2

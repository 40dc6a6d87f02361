"""The sectors of memory that the accesses of warps touch, computed from the map of their positions.

Memory and caches move sectors of 32 bytes: what a warp does not use of those that its lanes touch moves in vain, unless
another access uses it soon. (Source: NVIDIA's guides to tuning and profiling call an access coalesced that touches no
more sectors than its bytes fill.)
"""

import math
from typing import Any

import numpy as np

from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

SECTOR_BYTES = 32
_SECTOR_BITS = 8 * SECTOR_BYTES
_SECTORS_OF_LINE = 4
LINE_BYTES = _SECTORS_OF_LINE * SECTOR_BYTES
LINE_BITS = 8 * LINE_BYTES
_BANK_BITS = 32
_BANKS = LINE_BITS // _BANK_BITS


@dataclass(frozen=True)
class Touched:
    """The sectors that accesses touch, and the fewest that hold the elements that they read or write."""

    sectors: int
    least: int


def sectors(positions: IndexingMap, element_bits: int, together: int = 1) -> Touched:
    """Return what the warps of the first block touch in memory.

    ``positions`` maps (thread, ...)[steps..., element] to an element's position in an array that starts with a sector,
    all dimensions but the thread's at their lowest. What a warp reads or writes in a step, its threads' runs along the
    last symbol together, or along the last ``together``, is one access.
    """
    dims, points, inside = _of_first_block(positions)
    access = dims[0] // WARP_SIZE
    steps = list(zip(points, positions.symbols, strict=True))[: len(points) - together]
    for step, interval in steps:
        access = access * interval.size + step - interval.lower
    first = np.broadcast_to(positions.results[0].evaluate(dims, points), inside.size) * element_bits
    # The elements of each access, each once: its number and the first bit of the element.
    number, start = _distinct(access[inside], first[inside])
    ends = [(start + last) // _SECTOR_BITS for last in (0, element_bits - 1)]
    touched, _ = _distinct(np.concatenate([number, number]), np.concatenate(ends))
    filled = np.bincount(number) * element_bits
    return Touched(touched.size, int((-(-filled // _SECTOR_BITS)).sum()))


def elements(positions: IndexingMap) -> int:
    """Return how many elements the threads of the first block access, each counted as often as it is."""
    if not positions.constraints:
        return math.prod(each.size for each in (positions.dims[0], *positions.symbols))
    return int(_of_first_block(positions)[2].sum())


def are_runs(positions: IndexingMap) -> bool:
    """Whether in the first block the elements of the last symbol are neighbours, the first at a multiple of them."""
    dims, points, _ = _of_first_block(positions)
    length = positions.symbols[-1].size
    found = np.broadcast_to(positions.results[0].evaluate(dims, points), points[-1].size).reshape(-1, length)
    return bool((found[:, 0] % length == 0).all() and (np.diff(found, axis=1) == 1).all())


def _of_first_block(positions: IndexingMap) -> tuple[list[Any], list[Any], np.ndarray[Any, Any]]:
    """Return the values of all variables for the first block's threads and steps, and which of them are inside."""
    (thread, *others), symbols = positions.dims, positions.symbols
    axes = np.meshgrid(*(np.arange(each.lower, each.upper + 1) for each in (thread, *symbols)), indexing="ij")
    threads, *steps = (axis.ravel() for axis in axes)
    dims: list[Any] = [threads, *(interval.lower for interval in others)]
    points: list[Any] = steps
    inside = np.ones(threads.size, dtype=bool)
    for expr, interval in positions.constraints:
        value = np.asarray(expr.evaluate(dims, points))
        inside &= (value >= interval.lower) & (value <= interval.upper)
    return dims, points, inside


def _distinct(numbers: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Return the pairs of a number from 0 and a value, each once, by number."""
    if not values.size:
        return numbers, values
    lowest = int(values.min())
    span = int(values.max()) - lowest + 1
    if (int(numbers.max()) + 1) * span < 1 << 62:
        # One number for a pair sorts ten times as fast.
        keys = np.unique(numbers * span + (values - lowest))
        return keys // span, keys % span + lowest
    found = np.unique(np.stack([numbers, values]), axis=1)
    return found[0], found[1]


def overfetch(run_bits: int) -> float:
    """Return how many bits are touched for each that is used, where runs of so many bits lie one after the other.

    Each run is read apart from its neighbours, and on average of all that there are.
    """
    return (run_bits + _SECTOR_BITS - math.gcd(run_bits, _SECTOR_BITS)) / run_bits


def fills_sectors(run_bits: int) -> bool:
    """Whether accesses of runs of so many bits use more than half of the bytes they touch: runs of a sector or more."""
    return run_bits > 0 and overfetch(run_bits) < 2


def passes(starts: np.ndarray[Any, Any], element_bits: int) -> float:
    """Return how many passes through the first-level cache requests of warps take.

    ``starts`` has for each request, which is a row, the element that each lane's access of up to 16 bytes starts with,
    or -1 where a lane has none. A pass serves four sectors, of one line; a line less is counted, as neighbours that do
    not start with one are in two, and take a quarter of a pass more.
    """
    has_access = starts >= 0
    found = 1.0 * has_access.any(axis=1)
    sectors_, lines = (
        _distinct_of_rows(np.where(has_access, starts * element_bits // bits, -1)) for bits in (_SECTOR_BITS, LINE_BITS)
    )
    return float(np.maximum(found, np.maximum(sectors_ / _SECTORS_OF_LINE, lines - 1)).sum())


def bank_passes(starts: np.ndarray[Any, Any], element_bits: int, access_bits: int) -> float:
    """Return how many passes through the banks of the first-level cache requests of warps take, if it has the lines.

    ``starts`` is that of `passes`, its rows whole warps; each lane reads ``access_bits``. Lanes that read as many bytes
    as a line has are served at a time, a quarter of a warp if each reads 16, though they read the same; what lies in
    the same bank in different lines is read one after the other. (Measured: see the tests.)
    """
    lanes = max(1, min(WARP_SIZE, LINE_BITS // max(access_bits, _BANK_BITS)))
    served = starts.reshape(-1, lanes)
    has_access = served >= 0
    words = np.sort(np.where(has_access, served * element_bits // _BANK_BITS, -1), axis=1)
    is_new = np.diff(words, axis=1, prepend=-1) > 0
    conflicts = np.zeros((len(served), _BANKS), int)
    rows = np.broadcast_to(np.arange(len(served))[:, None], words.shape)
    np.add.at(conflicts, (rows[is_new], words[is_new] % _BANKS), 1)
    return float(np.maximum(has_access.any(axis=1), conflicts.max(axis=1)).sum())


def _distinct_of_rows(numbers: np.ndarray[Any, Any]) -> Any:
    """Return how many different numbers from 0 each row has."""
    ordered = np.sort(numbers, axis=1)
    is_new = np.diff(ordered, axis=1, prepend=-1) > 0
    return is_new.sum(axis=1)

"""The run of consecutive elements that a thread computes: as long as an access, but for what its loads take then.

A run is one access of an array that is read at the same indices, or of neighbours that start at a multiple of it. What
is read with a stride or from unaligned neighbours is one load for each element, and the longer the run, the further
apart are the elements that the lanes of a warp load together: the first-level cache takes longer for the same loads.
Elements whose code has branches take shorter runs, too.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.costs.occupancy import seconds_of_blocks
from xgpu.costs.sectors import SECTOR_BYTES, passes
from xgpu.device import Device
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Shape, identity_map, shape_of
from xgpu.indexing.affine import linearize
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import dtype_of
from xgpu.target_machine import WARP_SIZE

type Access = tuple[ir.Value, IndexingMap]
"""An array, and the map from an element that is computed to those of the array that it reads, or that it is."""
type _Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

_SECTOR_BITS = 8 * SECTOR_BYTES
_ACCESS_BITS = 128
"""Bits of the widest access."""
_SAMPLE = (8, 4)
"""Elements that are looked at of those which an element is computed from: along the last dimension, and any other."""
_MOST_POINTS = 1 << 20
"""Positions that are looked at, of all arrays together: with more, the longest run is kept."""
GAIN = 0.85
"""Share of the time of the usual division among threads that another takes to be chosen: something is left out."""
_WAITS = 2
"""Times as long as a load from memory that a thread takes at least, which begins, loads and stores."""
_INDEX_INSTRUCTIONS = 40
"""Instructions of a thread, about, that are the same for all elements of its run."""


def run_by_loads(
    accesses: Iterable[Access],
    shape: Shape,
    longest: int,
    element_bytes: float,
    code: int,
    target: Device,
    is_whole: bool = False,
) -> int:
    """Return how many consecutive elements of an array of ``shape`` a thread computes: ``longest``, or fewer.

    Thread after thread takes a run, each a power of two. An element reads and writes ``accesses``, takes ``code``
    instructions, and memory moves ``element_bytes`` for it. ``is_whole``: a run is all that a thread computes.
    ``target`` is the device, or the multiprocessors of it that have blocks.
    """
    own, found = identity_map(shape), dict.fromkeys(accesses)
    if longest == 1 or math.prod(shape) < WARP_SIZE * longest or all(map_ == own for _, map_ in found):
        return longest
    read = [(value, map_) for value, map_ in found if all(each.size for each in map_.symbols)]
    if WARP_SIZE * longest * sum(math.prod(_sampled_sizes(map_)) for _, map_ in read) > _MOST_POINTS:
        return longest
    loads = _by_array(read)
    moved = seconds_of_blocks(element_bytes, target.sm_count, target)
    waiting = is_whole * _waiting(target)

    def seconds(run: int) -> tuple[float, float]:
        """Return how long an element takes, and without loads."""
        taken = sum([times * _passes(each, shape, longest, run) for times, each in loads])
        taken /= WARP_SIZE * run * target.sm_count * target.clock
        others = max((code + _INDEX_INSTRUCTIONS / run) / target.issue_rate, waiting / run, moved)
        return max(taken, others), others

    best, (least, others) = longest, seconds(longest)
    for run in (longest >> shift for shift in range(1, longest.bit_length())):
        if others >= GAIN * least:
            break
        if (shorter := seconds(run)[0]) < GAIN * least:
            best, least = run, shorter
    return best


def alike_along(
    results: Sequence[ir.Value], operations: Sequence[ir.Operation], longest: int
) -> dict[ir.Operation, None]:
    """Return those of ``operations`` that compute one element for all of a run, up to ``longest`` along a row.

    What only regions of operations read is left out.
    """
    shape = shape_of(results[0])
    if not shape or shape[-1] % longest:
        return {}
    # The dimensions of each value along which its elements differ within a run.
    differ: dict[ir.Value, set[int]] = {result: {len(shape) - 1} for result in results}
    alike: dict[ir.Operation, None] = {}
    for op in reversed(operations):
        along = [differ[result] for result in op.results if result in differ]
        if along and not any(along):
            alike[op] = None
        if along:
            for operand, found in _read_along(op, set().union(*along)):
                differ.setdefault(operand, set()).update(found)
    return alike


def _read_along(op: ir.Operation, along: set[int]) -> Iterator[tuple[ir.Value, set[int]]]:
    """Yield the operands of ``op``, with the dimensions along which what is read differs where the result does."""
    if not along or op.name not in OPERATIONS:
        yield from ((operand, set(range(len(shape_of(operand)))) if along else set()) for operand in op.operands)
        return
    for access in accesses(op):
        # Where it is read is known at run time: it may differ along any.
        differ = [bool(access.runtime) or not along.isdisjoint(each.variables()[0]) for each in access.map.results]
        yield op.operands[access.operand], {number for number, differs in enumerate(differ) if differs}


def run_by_branches(longest: int, element_bytes: float, code: int, target: Device) -> int:
    """Return how many consecutive elements a thread computes if their code has branches: ``longest``, or fewer.

    A branch keeps the elements of a thread from being computed beside each other, while each has registers all the time
    and so leaves room for fewer threads, which wait for each other's results. So a run is as short as can be without
    waiting longer for loads than the code of ``code`` instructions takes.
    """
    waiting = _waiting(target)
    for run in (1 << shift for shift in range(longest.bit_length())):
        taken = (code + _INDEX_INSTRUCTIONS / run) / target.issue_rate
        if max(waiting / run, element_bytes / target.memory_bandwidth) <= taken:
            return run
    return longest


def _waiting(target: Device) -> float:
    """Return how long a thread takes at least, divided by how many run at a time."""
    return _WAITS * target.memory_latency / target.resident_threads


def bytes_in_vain(accesses: Iterable[Access], shape: Shape, columns: int) -> tuple[float, float]:
    """Return how many bytes of sectors a warp touches in vain for an element of rows of which it takes ``columns``.

    The rows are along the last dimension of ``shape``; the first number is for warps that take one row each, the second
    for warps that take the same columns of all. What is touched several times counts once. 0 where there are fewer
    elements, or too many to look at.
    """
    count, rows = columns * shape[-1], shape[-1]
    read = [(value, map_) for value, map_ in dict.fromkeys(accesses) if all(each.size for each in map_.symbols)]
    points = count * sum(math.prod(_sampled_sizes(map_)) for _, map_ in read)
    if count > math.prod(shape) or points > _MOST_POINTS:
        return 0.0, 0.0
    apart = together = 0.0
    for times, loads in _by_array(read):
        found = [_sample(map_, loads.shape, shape, count).reshape(columns, rows, -1) for map_ in loads.maps]
        positions = np.concatenate(found, axis=2)
        apart += times * sum(_in_vain(positions[:, row], loads.bits) for row in range(rows))
        together += times * _in_vain(positions, loads.bits)
    return apart / 8 / count, together / 8 / count


def _in_vain(positions: _Numbers, bits: int) -> int:
    """Return the bits of the sectors that hold any of these positions, less those of the elements there."""
    found = np.unique(positions)
    found = found[found >= 0]
    return max(0, np.unique(found * bits // _SECTOR_BITS).size * _SECTOR_BITS - found.size * bits)


@dataclass(frozen=True)
class _Loads:
    """The loads from an array of ``shape``, whose elements have so many ``bits``, by the maps of its reads."""

    shape: Shape
    bits: int
    maps: tuple[IndexingMap, ...]


def _by_array(read: Sequence[Access]) -> list[tuple[float, _Loads]]:
    """Return what is read of each array, with as many times as there are elements for each that is looked at."""
    maps: dict[tuple[ir.Value, float], list[IndexingMap]] = {}
    for value, map_ in read:
        times = math.prod(each.size for each in map_.symbols) / math.prod(_sampled_sizes(map_))
        maps.setdefault((value, times), []).append(map_)
    return [
        (times, _Loads(shape_of(value), dtype_of(value).storage_bits, tuple(found)))
        for (value, times), found in maps.items()
    ]


@lru_cache(maxsize=16)
def _sample(map_: IndexingMap, array: Shape, shape: Shape, count: int) -> _Numbers:
    """Return the positions in an array that ``count`` elements in the middle are computed from, -1 for none.

    By the element, then by the variables of the map, of which a few are sampled. They are kept for the next runs.
    """
    sizes = _sampled_sizes(map_)
    first = math.prod(shape) // 2 // count * count
    axes = [
        np.arange(first, first + count),
        *(each.lower + np.arange(n) for each, n in zip(map_.symbols, sizes, strict=True)),
    ]
    element, *others = np.meshgrid(*axes, indexing="ij")
    symbols: list[Any] = others
    dims: list[Any] = list(np.unravel_index(element, shape))
    indices = [np.broadcast_to(each.evaluate(dims, symbols), element.shape) for each in map_.results]
    inside = np.ones(element.shape, dtype=bool)
    for index, size in zip(indices, array, strict=True):
        inside &= (index >= 0) & (index < size)
    for expr, interval in map_.constraints:
        found = np.asarray(expr.evaluate(dims, symbols))
        inside &= (found >= interval.lower) & (found <= interval.upper)
    position = np.broadcast_to(linearize(map_.results, array).evaluate(dims, symbols), element.shape)
    return np.where(inside, position, -1).reshape(count, -1)


def _sampled_sizes(map_: IndexingMap) -> list[int]:
    """Return how many values are looked at of each variable of a map."""
    last = len(map_.symbols) - 1
    return [min(each.size, _SAMPLE[number != last]) for number, each in enumerate(map_.symbols)]


@lru_cache(maxsize=4096)
def _passes(loads: _Loads, shape: Shape, longest: int, run: int) -> float:
    """Return the passes through the first-level cache that a warp takes whose lanes load for ``run`` elements each.

    The elements are those of an array of ``shape``; the same are sampled for all runs up to ``longest``. A thread loads
    an element once, whatever it computes from it. Kernels of one program mostly read in a few ways.
    """
    requests: dict[bytes, _Numbers] = {}
    for map_ in loads.maps:
        positions = _sample(map_, loads.shape, shape, WARP_SIZE * longest)
        lanes = positions[: WARP_SIZE * run].reshape(WARP_SIZE, -1)
        requests.update((each.tobytes(), each) for each in _requests(lanes, loads.bits))
    return passes(np.array(list(requests.values())), loads.bits)


def _requests(lanes: _Numbers, bits: int) -> _Numbers:
    """Return requests that load the positions of each lane, each as a row of the lanes' first elements.

    As wide as what a lane loads are aligned neighbours.
    """
    ordered = np.sort(lanes, axis=1)
    ordered = ordered[:, np.append(True, (np.diff(ordered, axis=1) != 0).any(axis=0))]
    width = max(1, _ACCESS_BITS // bits)
    while ordered.shape[1] % width or not _are_accesses(ordered.reshape(WARP_SIZE, -1, width)):
        width //= 2
    return ordered[:, ::width].T


def _are_accesses(groups: _Numbers) -> bool:
    """Whether the elements of each group, along the last dimension, are neighbours that start at a multiple of them."""
    first, width = groups[..., :1], groups.shape[-1]
    is_none = (groups == -1).all(axis=-1, keepdims=True)
    return bool(((groups == first + np.arange(width)) & (first % width == 0) | is_none).all())

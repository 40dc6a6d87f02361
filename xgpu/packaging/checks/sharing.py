"""Whether threads of a block meet in shared memory, and read what none wrote.

They meet where one writes an element that another accesses, and no barrier is between. Accesses of one phase, of all
iterations of loops, are put side by side: for each of their points which thread accesses which element. Conditions that
say less than that are left out, and so are blocks, as each has shared memory of its own.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from xgpu import ir
from xgpu.dialects.attributes import int_of
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.affine import AffineExpr, constant, dim, linearize
from xgpu.indexing.bijection import reached
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.packaging.checks.accesses import ElementAccess, Point
from xgpu.structure import defining_op, producer
from xgpu.target_machine import WARP_SIZE

ATOMIC = "xgpu.atomic_rmw"
"""An update that no other one of its kind comes between."""
_LOOPS = ("xgpu.loop", "scf.for", "scf.while")
_AT_RUN_TIME = "which element of shared memory is accessed depends on values known at run time only"
_MEETING = "threads may access one element of shared memory with no barrier between, one of them writing"
_REUSED = "arrays in the same shared memory may be accessed with no barrier between"
_UNWRITTEN = "elements of shared memory may be read that nothing wrote before a barrier"
_STRAY = "not all threads may reach a barrier"
_MANY = "the maps of accesses to shared memory have too many points to be decided"


def is_shared(access: ElementAccess) -> bool:
    """Whether an access is one to memory that all threads of a block have."""
    made = defining_op(access.array)
    return made is not None and made.name == "xgpu.allocate_shared"


def meetings(accesses: Sequence[ElementAccess], barriers_are_met: bool) -> Iterator[str]:
    """Yield why accesses to shared memory might be races."""
    if any(each.updates for each in accesses) and not barriers_are_met:
        yield _STRAY
    phases: dict[tuple[object, int], list[ElementAccess]] = {}
    turns: dict[tuple[object, int], list[ElementAccess]] = {}
    for each in accesses:
        for phase in each.phases:
            phases.setdefault((each.array, phase), []).append(each)
        for turn in each.turns:
            turns.setdefault((each.array, turn), []).append(each)
    # Two warps meet only at barriers of the block, two threads of one at its own, too.
    for parts, threads in ((phases, WARP_SIZE), (turns, 1)):
        for together in (each for part in parts.values() for each in _of_one_block(part)):
            if any(each.updates for each in together) and (reason := _meeting(together, threads)):
                yield reason
    for array, other in _overlapping(accesses):
        if any(each == array and (other, phase) in phases for each, phase in phases):
            yield _REUSED


def unwritten(accesses: Sequence[ElementAccess]) -> Iterator[str]:
    """Yield why elements of shared memory might be read that nothing wrote before, in the same iteration.

    That is another thread in an earlier phase, or the thread that reads. ``accesses`` are in the order of the program.
    What an array holds is lost where one in the same memory is written.
    """
    overlapping = set(_overlapping(accesses))
    for number, read in enumerate(accesses):
        if read.updates and read.op.name != ATOMIC:
            continue
        others = [
            place for place, each in enumerate(accesses) if (each.array, read.array) in overlapping and each.updates
        ]
        writes = [
            each
            for place, each in enumerate(accesses[:number])
            if each.updates and each.array == read.array
            if each.is_plain and each.is_certain and each.point.is_known
            if not any(place < other < number or _comes_between(accesses[other], each, read) for other in others)
        ]
        earlier = [each for each in writes if each.turns.isdisjoint(read.turns)]
        try:
            if not _are_written(read, earlier, by_itself=False) and not _are_written(read, writes, by_itself=True):
                yield _UNWRITTEN
        except ValueError:
            yield _MANY


def _overlapping(accesses: Sequence[ElementAccess]) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield the pairs of different arrays that have bytes in common, each in both orders."""
    spans = {array: span for array in dict.fromkeys(each.array for each in accesses) if (span := _span(array))}
    for array, (first, end) in spans.items():
        for other, (begin, last) in spans.items():
            if other != array and first < last and begin < end:
                yield array, other


def _span(array: ir.Value) -> tuple[int, int] | None:
    """Return the bytes of shared memory that an array takes, the first and the end, if it says where they are."""
    offset = producer(array).attributes.get("offset")
    if offset is None:
        return None
    type_ = ir.RankedTensorType(array.type)
    element = max(1, dtype_of_element(type_.element_type).storage_bits // 8)
    return int_of(offset), int_of(offset) + math.prod(type_.shape) * element


def _comes_between(update: ElementAccess, write: ElementAccess, read: ElementAccess) -> bool:
    """Whether an update is in a loop around a read that a write is not in: before the read of the next turn."""
    around_read, around_write = _loops(read.op), _loops(write.op)
    return any(loop in around_read and loop not in around_write for loop in _loops(update.op))


def _loops(op: ir.Operation) -> list[ir.Operation]:
    around = []
    while (parent := op.parent) is not None:
        op = parent.operation
        around += [op] * (op.name in _LOOPS)
    return around


def _are_written(read: ElementAccess, writes: Sequence[ElementAccess], by_itself: bool) -> bool:
    """Whether writes reach all elements that are read: for each block and each iteration of loops around both.

    ``by_itself``: those of the thread that reads.
    """
    if not read.point.is_known:
        read = _of_all(read)
    element = _key(read, by_itself)
    around = set(read.point.numbers) - {read.point.numbers[each] for each in read.point.threads}
    maps = [replace(each.point.map, results=(_key(each, by_itself),)) for each in writes]
    used = [_numbers(map_, each.point) for map_, each in zip(maps, writes, strict=True)]
    used.append(_numbers_of(element, read.point))
    ranges = dict(zip(read.point.numbers, read.point.map.dims, strict=True))
    shared = {number: ranges[number] for number in sorted(around & set[int]().union(*used[:-1]))}
    needed = set(shared) | used[-1] | {read.point.numbers[each] for each in read.point.threads}
    needed |= {number for number, interval in ranges.items() if interval.is_point}
    kept = [pair for pair in read.point.map.constraints if _numbers_of(pair[0], read.point) <= needed]
    wanted = _keys(replace(read.point.map, results=(element,), constraints=tuple(kept)), read.point, shared)
    found = [_keys(map_, each.point, shared) for map_, each in zip(maps, writes, strict=True)]
    return bool(np.isin(wanted, np.concatenate(found)).all()) if found else not wanted.size


def _key(access: ElementAccess, by_thread: bool) -> AffineExpr:
    """Return a number of the element that is accessed, or of it and the thread."""
    element = linearize(access.point.map.results, access.shape)
    return _thread_of(access.point) * math.prod(access.shape) + element if by_thread else element


def _thread_of(point: Point) -> AffineExpr:
    """Return the number of the thread in its block."""
    thread: AffineExpr = constant(0)
    for number in sorted(point.threads, reverse=True):
        thread = thread * point.map.dims[number].size + dim(number)
    return thread


def _of_all(access: ElementAccess) -> ElementAccess:
    """Return an access to all elements, for one to an element that is known at run time only."""
    point = access.point
    rank = len(point.map.dims)
    dims = (*point.map.dims, *(Interval(0, size - 1) for size in access.shape))
    results = tuple(dim(rank + number) for number in range(len(access.shape)))
    # Variables that no other access has.
    numbers = (*point.numbers, *(-1 - number for number in range(len(access.shape))))
    return replace(access, point=replace(point, map=replace(point.map, dims=dims, results=results), numbers=numbers))


def _numbers_of(expr: AffineExpr, point: Point) -> set[int]:
    return {point.numbers[each] for each in expr.variables()[0]}


def _numbers(map_: IndexingMap, point: Point) -> set[int]:
    """Return the variables on which results and domain of a map depend, also by a range that constraints narrow."""
    simple = map_.simplify()
    exprs = (*simple.results, *(expr for expr, _ in simple.constraints))
    ranges = zip(point.numbers, map_.dims, simple.dims, strict=True)
    narrowed = {number for number, before, after in ranges if before != after}
    return narrowed.union(*(_numbers_of(each, point) for each in exprs))


def _keys(map_: IndexingMap, point: Point, shared: Mapping[int, Interval]) -> npt.NDArray[np.int64]:
    """Return a number for each element reached and each value of some variables, which may also be free."""
    dims, places = list(map_.dims), {number: place for place, number in enumerate(point.numbers)}
    (key,) = map_.results
    for number, interval in shared.items():
        if number not in places:
            places[number] = len(dims)
            dims.append(interval)
        key = key * interval.size + dim(places[number]) - interval.lower
    whole = replace(map_, dims=tuple(dims), results=(key,)).simplify().remove_unused_dims()[0]
    return np.unique(reached(whole)[0])


def _of_one_block(accesses: Sequence[ElementAccess]) -> Iterator[list[ElementAccess]]:
    """Yield the accesses that one block may make: for each of their branches those in no other branch of an operation.

    Two accesses of one block are together at least once.
    """
    for branches in dict.fromkeys(each.branches for each in accesses):
        taken = dict(branches)
        yield [each for each in accesses if all(taken.get(op, number) == number for op, number in each.branches)]


def _meeting(accesses: Sequence[ElementAccess], threads: int) -> str | None:
    """Return why accesses to one array, in one phase, may be a race of groups of ``threads``; None if they are none."""
    if all(each.op.name == ATOMIC for each in accesses):
        return None
    if combining := [each.op.name for each in accesses if not each.is_plain]:
        return f"{combining[0]} combines values in shared memory"
    if any(not each.point.is_known for each in accesses):
        return _AT_RUN_TIME
    try:
        pairs = [_threads_and_elements(each, threads) for each in accesses]
    except ValueError:
        return _MANY
    # A row says that a thread accesses an element.
    each, counts = np.unique(np.unique(np.concatenate(pairs, axis=1), axis=1)[1], return_counts=True)
    written = np.concatenate([pair[1] for pair, access in zip(pairs, accesses, strict=True) if access.updates])
    return _MEETING if np.isin(each[counts > 1], written).any() else None


def _threads_and_elements(access: ElementAccess, threads: int) -> npt.NDArray[np.int64]:
    """Return which group of so many threads accesses which element, at least: each pair is a column."""
    point, map_ = access.point, access.point.map
    element = linearize(map_.results, access.shape)
    needed = set(point.threads) | element.variables()[0]
    if needed & point.blocks:
        raise ValueError("blocks use other elements of their memory")
    constraints = [pair for pair in map_.constraints if pair[0].variables()[0] <= needed]
    results = (_thread_of(point) // threads, element)
    return reached(replace(map_, results=results, constraints=tuple(constraints)).remove_unused_dims()[0])

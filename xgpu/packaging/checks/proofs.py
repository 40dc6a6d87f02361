"""Proofs about a kernel from its accesses: bounds, elements written exactly once, and no races."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.indexing.bijection import ENUMERATION_LIMIT
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.packaging.checks.accesses import ElementAccess, Found, Point, accesses_of, functions_of
from xgpu.packaging.checks.intervals import result_intervals
from xgpu.packaging.checks.sharing import ATOMIC, is_shared, meetings, unwritten
from xgpu.records import dataclass


@dataclass(frozen=True)
class Proof:
    """The outcome for a kernel; each list says why something is not proved, and is empty if it is.

    ``bounds``: no access out of bounds. ``written``: every element of every output is written exactly once. ``races``:
    no two threads access one element, one of them writing, with no barrier between. ``unwritten``: no element of shared
    memory is read that was not written.
    """

    kernel: str
    bounds: tuple[str, ...]
    written: tuple[str, ...]
    races: tuple[str, ...]
    unwritten: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all is proved."""
        return not (self.bounds or self.written or self.races or self.unwritten)


def unknown(kernel: str, reason: str) -> Proof:
    """Return that nothing is proved of a kernel, and why."""
    return Proof(kernel, (reason,), (reason,), (reason,), (reason,))


def prove(name: str, emitted: ir.Module, aliases: Sequence[int]) -> Proof:
    """Return what is proved of the kernel ``name`` of a module of level ``emitted``.

    ``aliases`` has for each output the input that it updates in place, or -1.
    """
    functions = dict(functions_of(emitted))
    entry = functions[name]
    found = accesses_of(entry, functions)
    if found.strange:
        return unknown(name, f"it has {_listed(found.strange)}, of which maps say nothing")
    inputs = attributes.int_of(entry.attributes[attributes.INPUTS])
    arguments = list(entry.regions[0].blocks[0].arguments)
    outputs = arguments[inputs:]
    once = list(_once(found, outputs, aliases))
    written = tuple(reason for _, reason in once)
    races = tuple(_races(found, arguments, inputs, [number for number, _ in once], aliases))
    shared = [each for each in found.accesses if is_shared(each)]
    return Proof(name, tuple(_bounds(found)), written, races, tuple(dict.fromkeys(unwritten(shared))))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(set(names)))


def _bounds(found: Found) -> Iterator[str]:
    """Yield a line for each operation whose accesses are not known to be in bounds, or whose map may not hold."""
    reasons = []
    for access in found.accesses:
        needed = tuple(Interval(0, size - 1) for size in access.shape)
        if not _is_inside(access.point, needed):
            what = "depends on values known at run time only" if not access.point.is_known else "may be out of bounds"
            reasons.append(f"an index of {access.op.name} of {list(access.shape)} {what}")
    for claim in found.claims:
        if not _is_inside(claim.point, claim.needed):
            reasons.append(f"operands of {claim.op.name} may be outside the domain of its map")
    yield from dict.fromkeys(reasons)


def _is_inside(point: Point, needed: Sequence[Interval]) -> bool:
    """Whether the results are known to be in these intervals: by reasoning, or by all points where there are few."""
    ranges = result_intervals(point.map)
    inside = [interval.contains_interval(each) for interval, each in zip(needed, ranges, strict=True)]
    open_ = [number for number, is_inside in enumerate(inside) if not is_inside]
    return all(_are_all_inside(point.map, number, needed[number]) for number in open_)


def _are_all_inside(map_: IndexingMap, result: int, needed: Interval) -> bool:
    one = replace(map_, results=(map_.results[result] - needed.lower,)).simplify()
    # How often an index is reached is not asked.
    one, _ = one.remove_unused_dims()
    if Interval(0, needed.size - 1).contains_interval(one.result_ranges()[0]):
        return True
    if max(one.box_size(), needed.size) > ENUMERATION_LIMIT:
        return False
    try:
        return not one.coverage((needed.size,)).outside
    except ValueError:
        return False


def _once(found: Found, outputs: Sequence[ir.Value], aliases: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Yield each output whose elements are not known to be written exactly once, and why."""
    for number, output in enumerate(outputs):
        if number >= len(aliases):
            yield number, f"output {number} is memory of the launch, which blocks exchange messages in"
        elif aliases[number] >= 0:
            yield number, f"output {number} is an update in place"
        else:
            writes = [each for each in found.accesses if each.updates and each.array == output]
            if reason := _not_once(writes, _shape(output)):
                yield number, f"output {number}: {reason}"


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


def _not_once(writes: Sequence[ElementAccess], shape: tuple[int, ...]) -> str | None:
    """Return why it is not known that writes reach each element once, None if it is."""
    if any(not each.is_plain for each in writes):
        return f"{_listed([each.op.name for each in writes])} combines values"
    if any(not each.is_certain for each in writes):
        return "some writes are under conditions"
    if any(not each.point.is_known for each in writes):
        return "where it is written depends on values known at run time only"
    if len(writes) == 1:
        decided = writes[0].point.map.is_bijection(shape)
        if decided is None:
            return "the map of its write has too many points to be decided"
        return None if decided else "some elements are written never, or more than once"
    return _not_once_together([each.point.map for each in writes], shape)


def _not_once_together(maps: Sequence[IndexingMap], shape: tuple[int, ...]) -> str | None:
    if not maps:
        return "nothing writes it" if math.prod(shape) else None
    if sum(each.box_size() for each in maps) > ENUMERATION_LIMIT:
        return "the maps of its writes have too many points to be decided"
    try:
        covered = [each.coverage(shape) for each in maps]
    except ValueError:
        return "the maps of its writes have too large numbers to be decided"
    counts = np.sum([each.counts for each in covered], axis=0)
    is_exact = not any(each.outside for each in covered) and bool((counts == 1).all())
    return None if is_exact else "some elements are written never, or more than once"


def _races(
    found: Found, arguments: Sequence[ir.Value], inputs: int, not_once: Sequence[int], aliases: Sequence[int]
) -> Iterator[str]:
    """Yield why threads might race: only memory that is written can have races, and not by atomic updates alone."""
    outputs = arguments[inputs:]
    updates = [
        [each for each in found.accesses if each.updates and each.array == outputs[number]] for number in not_once
    ]
    if any(not each or any(one.op.name != ATOMIC for one in each) for each in updates):
        yield "what is not known to be written once may be written by several threads"
    updated = [arguments[each] for each in aliases if each >= 0]
    if any(not each.updates and each.array in outputs for each in found.accesses):
        yield "an output is read too"
    if any(not each.updates and each.array in updated for each in found.accesses):
        yield "an argument is read that is updated in place"
    if any(each.updates and each.array in arguments and each.array not in outputs for each in found.accesses):
        yield "memory that is no output is written"
    yield from dict.fromkeys(meetings([each for each in found.accesses if is_shared(each)], found.barriers_are_met))

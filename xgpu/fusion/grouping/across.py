"""Transposes that kernels would read or write across: neighbouring threads take elements that lie apart in memory.

Only where a kernel is built around a transpose does a tile move it. Everywhere else, such as where a pad, a repeat or a
scan reads what is transposed, each thread would touch a sector for an element. So another kernel, which has a tile,
moves it, if those sectors take longer than to store an array, to read it again, and to launch one more kernel. Where
dimensions are too short for a tile, one kernel reads across instead of several.
"""

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.analysis.heroes import terms_of
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.root_indices import Stored
from xgpu.analysis.transposes import moves_rows, needs_tile, transpose_of
from xgpu.costs.sectors import SECTOR_BYTES, overfetch
from xgpu.costs.time import launch_bytes
from xgpu.costs.values import byte_size, elements
from xgpu.device import Device
from xgpu.fusion.grouping.families import Candidate, Families
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.affine import linearize
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, is_argument

_TRANSPOSE = "stablehlo.transpose"
_MOST_READS = 256
"""Reads of one kernel that are looked through on the way to transposes, and from there to memory."""
_RUN = 512
"""Neighbouring elements that a block computes at least, whose sectors its first-level cache shares."""
_RUNS = 16
"""Such runs, from all over what a kernel computes, that stand for all."""
_GOLDEN_RATIO = (5**0.5 - 1) / 2
"""The distance of such runs, as a part of all: no period of what is read has it."""
_MOST_POINTS = 64
"""Elements that are read for one, such as those of a window, of which the sectors are counted together."""

_ACROSS = "kernels would read {:,} bytes more to read it across, without a tile, than to store and read it takes"

type _Read = tuple[ir.Value, IndexingMap]
"""A value, and the map from what a kernel walks to the elements that it reads of it."""


def read_across(
    operations: Sequence[ir.Operation], grouping: Grouping, families: Families, target: Device
) -> dict[ir.Value, Reason]:
    """Return what kernels are to wait for, made of transposes among ``operations``, with the reasons."""
    moved = (op for op in operations if op.name == _TRANSPOSE and not grouping.is_stored(op.results[0]))
    transposes = {op.results[0]: op for op in moved if _is_apart(op, grouping, target)}
    if not transposes:
        return {}
    behind = _behind(operations, transposes, grouping)
    saved: dict[ir.Value, float] = {}
    walked: dict[ir.Value, set[ir.Value]] = {}
    for group in grouping.groups:
        kernel = _Kernel(group, grouping, behind)
        found = list(kernel.across(transposes, families))
        reads = [kernel.reads_behind(transposes[value], map_) for value, map_, _ in found]
        # What several transposes of a kernel are computed from is read once for all.
        shared = Counter(read for each in reads for read in each)
        for (value, map_, start), each in zip(found, reads, strict=True):
            across = sum(_bytes_touched(*read) / shared[read] for read in each)
            saved[value] = saved.get(value, 0) + across - _bytes_touched(value, map_)
            walked.setdefault(value, set()).add(start)
    reasons: dict[ir.Value, Reason] = {}
    for value, bytes_ in saved.items():
        if (more := bytes_ - _bytes_of_kernel(transposes[value], target)) > 0:
            # What all of them make of it at once is stored in its place, if it is no larger.
            (first, *others) = walked[value]
            is_instead = not others and byte_size(first) <= byte_size(value)
            reasons[first if is_instead else value] = Reason(_ACROSS, (round(more),))
    return reasons


def reads_apart(hero: ir.Operation, op: ir.Operation, target: Device) -> bool:
    """Whether threads that make neighbours of ``op``, a transpose, would read what ``hero`` does apart, at a cost.

    Each of them reads all that an element of the hero is made from. A tile moves the one element later.
    """
    transpose = transpose_of(op) if op.name == _TRANSPOSE else None
    if transpose is None:
        return False
    read = byte_size(hero.results[0]) * terms_of(hero)
    more = overfetch(transpose.group * dtype_of(op.results[0]).storage_bits) - 1
    return more * read > launch_bytes(target)


def is_made_across(
    op: ir.Operation, placed: IndexingMap, others: Sequence[ir.Value], stored: Stored, target: Device
) -> bool:
    """Whether threads that share a hero would write or read apart for ``op``, which follows it, at a cost.

    That is a transpose, or reads one among ``others``, what it is computed from beside the hero. ``placed`` maps the
    order in which they go over the hero to the indices of the result.
    """
    (result,) = op.results
    if _is_worth_a_tile(op, target):
        return _bytes_touched(result, placed) - byte_size(result) > _bytes_to_move(result, target)
    for transpose in (found for value in others if (found := _transpose_behind(value, stored, target)) is not None):
        (operand,), (access,) = transpose.operands, accesses(transpose)
        more = _bytes_touched(operand, placed.compose(access.map)) - byte_size(operand)
        if more > _bytes_to_move(operand, target):
            return True
    return False


def _transpose_behind(value: ir.Value, stored: Stored, target: Device) -> ir.Operation | None:
    """Return a transpose that is worth a tile from which a kernel would compute ``value``, element by element."""
    pending, seen = [value], {value}
    while pending and len(seen) <= _MOST_READS:
        op = defining_op(each := pending.pop())
        if op is None or stored(each):
            continue
        if _is_worth_a_tile(op, target):
            return op
        if op.name in OPERATIONS and access_kind(op) == "elementwise":
            new = set(op.operands) - seen
            seen |= new
            pending += new
    return None


def _is_worth_a_tile(op: ir.Operation, target: Device) -> bool:
    """Whether a tile moves ``op``, a transpose, and reading each element across once takes longer than that."""
    transpose = transpose_of(op) if op.name == _TRANSPOSE else None
    if transpose is None:
        return False
    (result,) = op.results
    bits = dtype_of(result).storage_bits
    return needs_tile(transpose, bits, bits) and SECTOR_BYTES * elements(result) > _bytes_to_move(result, target)


def _is_apart(op: ir.Operation, grouping: Grouping, target: Device) -> bool:
    """Whether a kernel may move a transpose by a tile, or without one what is in memory: then it reads nothing else."""
    if _is_worth_a_tile(op, target):
        return True
    (operand,), (result,), transpose = op.operands, op.results, transpose_of(op)
    is_in_memory = is_argument(operand) or grouping.is_stored(operand)
    if transpose is None or transpose.rows == transpose.columns or not is_in_memory:
        return False
    is_large = SECTOR_BYTES * elements(result) > _bytes_to_move(result, target)
    return is_large and not moves_rows(transpose, dtype_of(result).storage_bits)


def _bytes_of_kernel(op: ir.Operation, target: Device) -> float:
    """Return what a kernel takes for a transpose, in bytes: with a tile, or without one if that has no use for it."""
    (operand,), (result,), (access,) = op.operands, op.results, accesses(op)
    if _is_worth_a_tile(op, target):
        return _bytes_to_move(result, target)
    return launch_bytes(target) + byte_size(result) + _bytes_touched(operand, access.map)


def _bytes_to_move(value: ir.Value, target: Device) -> float:
    """Return what it takes to move a value by a tile of one more kernel, in bytes: to read it and to store it."""
    return launch_bytes(target) + 2 * byte_size(value)


def _behind(operations: Sequence[ir.Operation], values: Iterable[ir.Value], grouping: Grouping) -> set[ir.Value]:
    """Return the values that kernels compute from some of ``values``, these included."""
    found = set(values)
    for op in operations:
        if any(operand in found and not grouping.is_stored(operand) for operand in op.operands):
            found.update(op.results)
    return found


@dataclass(frozen=True, eq=False)
class _Kernel:
    """The kernel of a ``group``, which reads transposes for values ``behind`` them alone."""

    group: Group
    grouping: Grouping
    behind: set[ir.Value]

    def across(
        self, transposes: Container[ir.Value], families: Families
    ) -> Iterator[tuple[ir.Value, IndexingMap, ir.Value]]:
        """Yield the reads of ``transposes`` by a kernel without tiles, each with what could be stored instead.

        That is the operand of a hero that is computed from them at its own indices, else the transpose itself.
        """
        pending = [(*read, read if is_operand else None) for read, is_operand in self._walked()]
        pending = [each for each in pending if each[0] in self.behind]
        if not pending or self._has_tile(families):
            return
        seen = {(value, map_) for value, map_, _ in pending}
        while pending and len(seen) <= _MOST_READS:
            value, map_, start = pending.pop()
            if value in transposes:
                yield value, map_, start[0] if start is not None and map_ == start[1] else value
                continue
            new = [each for each in self._reads(value, map_) if each[0] in self.behind and each not in seen]
            seen.update(new)
            pending += [(*each, start) for each in new]

    def reads_behind(self, op: ir.Operation, map_: IndexingMap) -> set[_Read]:
        """Return what the kernel reads from memory for the result of a transpose at ``map_``."""
        (operand,), (access,) = op.operands, accesses(op)
        return set(self._from_memory(operand, map_.compose(access.map).simplify()))

    def _has_tile(self, families: Families) -> bool:
        """Whether blocks compute tiles, so that what one reads across for a row it reads again for the next."""
        if self.group.heroes:
            return False
        _, match = families.matched(Candidate(self.group.roots, self._is_stored))
        return any(hero.name == _TRANSPOSE for hero in match.heroes)

    def _walked(self) -> Iterator[tuple[_Read, bool]]:
        """Yield the values whose elements neighbouring threads compute, and where those are that they walk.

        The second says whether it is an operand of a hero, which another kernel may store.
        """
        group, family = self.group, self.group.kind.family
        if not family.is_cooperative:
            yield from (((root, identity_map(shape_of(root))), False) for root in group.roots)
        elif family.walk is not None:
            walk = family.walk(group.heroes[0]).simplify()
            for hero in group.heroes:
                yield from (((operand, walk), True) for operand in list(hero.operands)[: len(hero.results)])
            for root in group.roots:
                yield (root, walk.compose(group.forms[root].forward).simplify()), False
        else:
            # Rows or columns: neighbours along the last dimension in either case.
            heroes = (hero for hero in group.heroes if hero.name == REDUCE)
            operands = (operand for hero in heroes for operand in list(hero.operands)[: len(hero.results)])
            yield from (((operand, identity_map(shape_of(operand))), False) for operand in operands)

    def _is_stored(self, value: ir.Value) -> bool:
        return self.grouping.stored_before(value, self.group.level)

    def _reads(self, value: ir.Value, map_: IndexingMap) -> Iterator[_Read]:
        """Yield what an element of a value is computed from, if it is known where that is."""
        op, group = defining_op(value), self.group
        if op is None or self._is_stored(value) or op.name not in OPERATIONS:
            return
        if op in group.heroes and group.kind.family.is_cooperative:
            return
        for access in accesses(op):
            if not access.runtime and not (read := map_.compose(access.map).simplify()).is_empty():
                yield op.operands[access.operand], read

    def _from_memory(self, value: ir.Value, map_: IndexingMap) -> list[_Read]:
        """Return the reads of arrays in memory for a value."""
        pending, seen, found = [(value, map_)], {(value, map_)}, list[_Read]()
        while pending and len(seen) <= _MOST_READS:
            read = pending.pop()
            if self._is_stored(read[0]):
                found.append(read)
                continue
            new = [each for each in self._reads(*read) if each not in seen]
            seen.update(new)
            pending += new
        return found


def _bytes_touched(array: ir.Value, map_: IndexingMap) -> float:
    """Return the bytes of the sectors of ``array`` that blocks touch together, which walk the map's dimensions."""
    sizes = [each.size for each in map_.dims]
    count = math.prod(sizes)
    if not count or map_.is_empty():
        return 0.0
    run = min(_RUN, count)
    starts = (np.arange(_RUNS) * _GOLDEN_RATIO % 1 * (count - run + 1)).astype(np.int64)
    places = np.unravel_index(starts[:, None] + np.arange(run), sizes or [1])
    dims: list[Any] = [place[:, :, None] + each.lower for place, each in zip(places, map_.dims, strict=False)]
    symbols = _points(map_.symbols)
    inside = np.ones((_RUNS, run, max([1, *(each.size for each in symbols)])), dtype=bool)
    for expr, interval in map_.constraints:
        value = np.asarray(expr.evaluate(dims, symbols))
        inside &= (value >= interval.lower) & (value <= interval.upper)
    position = np.broadcast_to(linearize(map_.results, shape_of(array)).evaluate(dims, symbols), inside.shape)
    sectors = position * dtype_of(array).storage_bits // (8 * SECTOR_BYTES)
    touched = sum(np.unique(each[own]).size for each, own in zip(sectors, inside, strict=True))
    return touched * SECTOR_BYTES * count / (_RUNS * run)


def _points(symbols: Sequence[Interval]) -> list[Any]:
    """Return the values of symbols for all of their points, or the lowest ones if there are many: a lower bound."""
    if math.prod(each.size for each in symbols) > _MOST_POINTS:
        return [np.array([each.lower]) for each in symbols]
    axes = np.meshgrid(*(np.arange(each.lower, each.upper + 1) for each in symbols), indexing="ij")
    return [axis.ravel() for axis in axes]

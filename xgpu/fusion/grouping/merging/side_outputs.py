"""Arrays stored while they are reduced: the kernel of a reduction stores its operands, or values of the same inputs.

A loop of its own would read its inputs a second time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.root_indices import MOST_ROOTS, Stored, at_root_indices, moves_elements
from xgpu.costs.occupancy import seconds_of_blocks
from xgpu.costs.time import seconds_to_move
from xgpu.costs.values import byte_size, elements
from xgpu.device import Device
from xgpu.fusion.fallback import VIEWS
from xgpu.fusion.grouping.decisions import Decision, apart, merged
from xgpu.fusion.grouping.families import Families
from xgpu.fusion.grouping.groups import PACKED, TOO_MANY_ROOTS, Group, Grouping
from xgpu.fusion.grouping.merging.delayed_updates import values_read
from xgpu.fusion.grouping.merging.short_reductions import shared_reductions
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.reasons import Reason
from xgpu.structure import backward_slice, is_argument, producer

_FEW_BLOCKS = "the reduction's {:,} blocks would take {:.1f} us for what the loop moves, and the loop takes {:.1f} us"
_LATE = Reason("the reduction also reads what is stored no earlier than what the loop stores")
_NEIGHBOURS = Reason("the reduction also reads what the loop stores at other indices, and would compute it again there")
_SAME_READS = Reason("the reduction reads the same elements at the same indices")


def merge_side_outputs(grouping: Grouping, families: Families, target: Device) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with loops merged into reductions of arrays of the same size, where both read one array.

    A reduction of what a loop stores for others, such as operations that XLA computes, is one of the next level: it
    is merged with the loop if it can do without all else that is made at the loop's level.
    A reduction to few numbers has few blocks: they must not take longer for what the loop moves than the loop does. A
    loop of short reductions becomes such a kernel where another loop is merged into it.
    """
    merges = _Merges(grouping, families, target)
    for group in grouping.groups:
        if not group.heroes:
            merges.take(group)
    return replace(grouping, begun=tuple(merges.new.values())), merges.decisions


class _Merges:
    """The groups as far as loops are merged into reductions, and why others are not."""

    def __init__(self, grouping: Grouping, families: Families, target: Device):
        self._grouping, self._target = grouping, target
        self.decisions: list[Decision] = []
        self.new = {group: group for group in grouping.groups}
        self._shared: dict[Group, Group] = {}
        self._reductions: dict[tuple[int, int], list[Group]] = {}
        # Each loop is walked for short reductions: what has none must not take the time.
        has_short = any(
            families.shared_kind_of(op) is not None for group in grouping.groups[:1] for op in _block_of(group)
        )
        for group in grouping.groups:
            reductions: Group | None = group
            if not group.kind.family.stores_beside:
                reductions = shared_reductions(group, families, self._stored(group.level)) if has_short else None
            if reductions is not None:
                self._shared[group] = reductions
                self._reductions.setdefault((group.level, _elements_reduced(reductions)), []).append(group)

    def _stored(self, level: int) -> Stored:
        return partial(self._grouping.stored_before, level=level)

    def take(self, group: Group) -> None:
        """Merge a loop into the first reduction that reads what it does, if there is one."""
        if self.new.get(group) is not group:
            return
        size = elements(group.roots[0])
        for reduction in self._reductions.get((group.level, size), ()):
            if (
                reduction in self.new
                and reduction is not group
                and self._merge(group, reduction, self._shared[reduction])
            ):
                return
        for reduction in self._reductions.get((group.level + 1, size), ()):
            if self._merge_with_reader(group, reduction):
                return

    def _merge(self, group: Group, reduction: Group, reductions: Group) -> bool:
        """Let the kernel of ``reduction``, which has these ``reductions``, store what a loop of its level does."""
        pair = group.roots[0], reductions.heroes[0].results[0]
        roots = (*self.new[reduction].roots, *group.roots)
        too_many = len(roots) > MOST_ROOTS
        stored = self._stored(group.level)
        refusal = TOO_MANY_ROOTS if too_many else _refusal(group.roots, reductions, stored, self._target)
        if refusal is not None:
            self.decisions.append(apart(*pair, refusal))
            return False
        self.new[reduction] = replace(reductions, roots=roots)
        del self.new[group]
        self.decisions.append(merged(*pair, _SAME_READS))
        return True

    def _merge_with_reader(self, group: Group, reduction: Group) -> bool:
        """Let a reduction of what a loop stores, and of nothing else that is made as late, compute that by itself."""
        if self.new.get(reduction) is not reduction or not reduction.kind.family.stores_beside:
            return False
        read, stored = values_read(reduction, self._grouping), self._stored(group.level)
        if read.isdisjoint(group.roots):
            return False
        if not all(value in group.roots or stored(value) for value in read):
            self.decisions.append(apart(group.roots[0], reduction.heroes[0].results[0], _LATE))
            return False
        if _reads_elsewhere(reduction, group.roots, stored):
            self.decisions.append(apart(group.roots[0], reduction.heroes[0].results[0], _NEIGHBOURS))
            return False
        moved = replace(reduction, level=group.level)
        if not self._merge(group, reduction, moved):
            return False
        key = _elements_reduced(reduction)
        self._shared[reduction] = moved
        self._reductions[group.level + 1, key].remove(reduction)
        self._reductions.setdefault((group.level, key), []).append(reduction)
        return True


def _block_of(group: Group) -> Iterator[ir.Operation]:
    """Yield the operations of the block that a group's are in."""
    return (op.operation for op in producer(group.roots[0]).block.operations)


def _refusal(roots: Sequence[ir.Value], reduction: Group, stored: Stored, target: Device) -> Reason | None:
    """Return why the kernel of ``reduction`` does not store ``roots`` too; None if it does, as it reads their inputs.

    Shared inputs are arrays that both read at the same indices, or elements that both gather from the same places.
    """
    if any(is_packed(root) for root in roots):
        return PACKED
    ops = list(at_root_indices(roots, stored, behind_bitcasts=True))
    if any(map(moves_elements, ops)):
        return Reason("the loop moves elements to other indices than the reduction reads")
    computed = set(backward_slice(roots, stored))
    if not computed.isdisjoint(reduction.heroes):
        return Reason("the loop computes the short reductions for its own elements")
    read = [value for hero in reduction.heroes for value in list(hero.operands)[: len(hero.results)]]
    if shape_of(roots[0]) != shape_of(read[0]) and _reads_rows(computed, elements(roots[0]), stored):
        return Reason("the loop reads what was made of rows, which are others than those of the reduction")
    others = list(at_root_indices(read, stored, behind_bitcasts=True))
    if any(access_kind(op) in ("indexing", "piecewise") and op.name not in VIEWS for op in {*ops} & {*others}):
        return None
    own = _inputs(roots, ops, stored)
    shared = own & _inputs(read, others, stored)
    if not shared:
        return Reason("they read no array at the same indices")
    blocks = max(elements(hero.results[0]) for hero in reduction.heroes)
    more, moved = (sum(map(byte_size, values)) for values in ({*roots, *own} - shared, {*roots, *own}))
    together, alone = seconds_of_blocks(more, blocks, target), seconds_to_move(moved, target)
    return Reason(_FEW_BLOCKS, (blocks, together * 1e6, alone * 1e6)) if together > alone else None


def _reads_elsewhere(reduction: Group, roots: Sequence[ir.Value], stored: Stored) -> bool:
    """Whether a reduction reads some of what a loop stores at other indices than those of its own elements."""

    def is_stored(value: ir.Value) -> bool:
        return value in roots or stored(value)

    read = [value for hero in reduction.heroes for value in list(hero.operands)[: len(hero.results)]]
    own = set(at_root_indices(read, is_stored, behind_bitcasts=True))
    for op in backward_slice(read, is_stored):
        if any(value in roots for value in op.operands) and (op not in own or not _is_at_own_indices(op, roots)):
            return True
    return False


def _is_at_own_indices(op: ir.Operation, values: Sequence[ir.Value]) -> bool:
    """Whether an operation reads those of some values that it reads at the indices of its result."""
    if is_bitcast(op):
        return True
    same = identity_map(shape_of(op.results[0]))
    return all(access.map == same for access in accesses(op) if op.operands[access.operand] in values)


def _reads_rows(ops: Iterable[ir.Operation], size: int, stored: Stored) -> bool:
    """Whether an array of ``size`` elements is computed from results of a kernel that has one for each of some."""
    values = {value for op in ops for value in op.operands}
    return any(not is_argument(value) and stored(value) and 1 < elements(value) < size for value in values)


def _inputs(roots: Sequence[ir.Value], ops: Sequence[ir.Operation], stored: Stored) -> set[ir.Value]:
    """Return the arrays in memory that are read at the roots' own places, by ``ops`` or as roots."""
    values = set(roots)
    for op in ops:
        if is_bitcast(op):
            values |= {*op.operands}
        elif access_kind(op) == "elementwise":
            same = identity_map(shape_of(op.results[0]))
            values |= {op.operands[access.operand] for access in accesses(op) if access.map == same}
    return {value for value in values if is_argument(value) or stored(value)}


def _elements_reduced(reduction: Group) -> int:
    return elements(reduction.heroes[0].operands[0])

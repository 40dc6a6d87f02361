"""Merges row programs: reductions of the same rows that depend on each other, and their consumers, in one kernel.

Softmax reduces its rows twice and walks them once more; the threads that have a row can hold it all along. A program
starts as the kernel of a reduction of rows, and takes in consumers: more reductions of the same shape, and loops over
the same elements, if each element needs the reductions of its own row only. A loop's arrays may be of another shape, as
after a group norm, which reshapes what it normalised. A program may run later than its first reduction could, to wait
for other inputs of its loops, such as the scales that a network computes beside the norm.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.heroes import Form, follow, is_packed
from xgpu.analysis.in_place import updated_operands
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.analysis.root_indices import MOST_ROOTS
from xgpu.costs.registers import longest_row
from xgpu.device import Device
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.grouping.decisions import Decision, Verdict, apart, merged
from xgpu.fusion.grouping.families import KernelFamily, Kind
from xgpu.fusion.grouping.groups import PACKED, TOO_MANY_ROOTS, Group, Grouping, Levels
from xgpu.fusion.grouping.merging.row_traces import RowProgram, RowTrace
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.structure import producer

_OWN_ROWS = Reason("each element needs the reductions of its own row only, which the threads of the row hold")
_NOT_READ = Reason("only the kernel that makes it reads it")
_AGAIN = Reason("it would compute again, and many times, what other kernels store by then")
_IN_ORDER = Reason("the order of the elements counts in its reduction")


def merge_rows(family: KernelFamily, target: Device, grouping: Grouping) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with row programs merged to kernels of ``family`` on ``target``, and the decisions."""
    return merge_programs(RowPrograms(family, target, grouping))


def merge_programs(found: "RowPrograms") -> tuple[Grouping, Sequence[Decision]]:
    """Return the grouping with the programs that start from the candidates of ``found``, and the decisions."""
    groups = found.candidates()
    refusals = {group: found.refusal_to_start(group) for group in groups}
    starts = [group for group, refusal in refusals.items() if refusal is None]
    found.starts.update((root, group) for group in starts for root in group.roots)
    for group, refusal in refusals.items():
        if refusal is not None:
            found.refuse_readers(group, refusal)
    for group in starts:
        found.grow(group)
    # Second round: reductions that no program took in end no other, so programs may be delayed for their results.
    found.starts.clear()
    for group in starts:
        found.grow(group)
    return found.grouping(), [*found.decisions.values(), *found.dropped]


class RowPrograms:
    """The consumers of each group of a block, and the row programs made of groups so far."""

    LONG = "rows of {:,} elements: the threads of a block hold {:,}"

    def __init__(self, family: KernelFamily, target: Device, grouping: Grouping):
        self.starts: dict[ir.Value, Group] = {}
        self._family, self._target = family, target
        self._before = grouping
        self._levels, self._stored_at = dict(grouping.levels), dict(grouping.stored_at)
        self._now = Levels(grouping.made, self._levels, self._stored_at)
        left = (each for _, op in grouping.fallbacks for each in grouping.read_by(op))
        self._needed = {*grouping.results, *left}
        self._heroes = {hero for group in grouping.groups for hero in group.heroes}
        self._readers: dict[ir.Value, list[Group]] = {}
        self._fallback_readers: dict[ir.Value, int] = {}
        for level, op in reversed(grouping.fallbacks):
            self._fallback_readers.update(dict.fromkeys(grouping.read_by(op), level))
        self._updates: dict[ir.Value, list[int]] = {}
        self._reads: dict[Group, set[ir.Value]] = {}
        for group in grouping.groups:
            for value in self.read(group):
                self._readers.setdefault(value, []).append(group)
            for hero in group.heroes if group.kind.family.updates_in_place else ():
                for value in updated_operands(hero):
                    self._updates.setdefault(behind_bitcasts(value), []).append(group.level)
        self._merged: dict[Group, RowProgram] = {}
        self.decisions: dict[tuple[Group, Group], Decision] = {}
        self.dropped: list[Decision] = []

    def candidates(self) -> list[Group]:
        """Return the kernels that may start a program, or are refused with a reason."""
        return [group for group in self._before.groups if group.kind.family.stores_beside]

    def refusal_to_start(self, group: Group) -> Reason | None:
        """Return why the reduction ``group`` starts no program; None if it may."""
        shape = ReductionShape.of(group.heroes[0])
        if refusal := self.misshapen(shape):
            return refusal
        if refusal := self._too_long(shape, [group]):
            return refusal
        if not all(map(is_commutative, group.heroes)):
            return _IN_ORDER
        return PACKED if any(map(is_packed, group.roots)) else None

    def misshapen(self, shape: ReductionShape) -> Reason | None:
        """Return why reductions of this shape start no program, whatever they read; None if they may."""
        return None if shape.is_rows and len(shape.reduced) == 1 else Reason("the reduction is not one of rows")

    def _too_long(self, shape: ReductionShape, groups: Sequence[Group]) -> Reason | None:
        """Return why the threads of a block cannot hold the rows of a program of ``groups``; None if they can."""
        roots = {root for group in groups for root in group.roots}
        read = set[ir.Value]().union(*map(self.read, groups)) - roots
        longest = self.longest(whole_widths(read, shape), whole_widths(roots, shape))
        return None if shape.per_result <= longest else Reason(self.LONG, (shape.per_result, longest))

    def longest(self, read: Sequence[int], stored: Sequence[int]) -> int:
        """Return how many elements a row has at most, given the bits of an element of what is read and stored."""
        return longest_row(read, stored, self._target)

    def saves_nothing(self, group: Group, program: RowProgram) -> Reason | None:
        """Return why ``group`` is better off apart from ``program``, though it fits; None if it is not."""
        return None

    def refuse_readers(self, group: Group, refusal: Reason) -> None:
        """Record that the reduction ``group`` starts no row program, for the kernels that read it."""
        for reader in self._readers_of(group):
            self._decide(reader, group, refusal)

    def _decide(self, group: Group, first: Group, refusal: Reason | None) -> None:
        """Record whether ``group`` becomes part of the program that ``first`` starts; the last such decision counts."""
        value, other = group.roots[0], first.roots[0]
        decision = merged(value, other, _OWN_ROWS) if refusal is None else apart(value, other, refusal)
        self.decisions[group, first] = decision

    def grouping(self) -> Grouping:
        """Return the grouping as merged so far, without roots that no other group reads any more."""
        if not self._merged:
            return self._before
        found = []
        for group in self._before.groups:
            program = self._merged.get(group)
            if program is None or program.first == group:
                found.append(group if program is None else self._merged_group(program))
        needed, kept = set(self._needed), list[Group]()
        for group in sorted(found, key=lambda each: -each.level):
            if roots := tuple(root for root in group.roots if root in needed):
                self.dropped += [
                    Decision(Verdict.DROPPED, root, _NOT_READ) for root in group.roots if root not in needed
                ]
                # What is updated in place has a root for each array, needed or not.
                is_whole = len(roots) == len(group.roots) or group.kind.family.updates_in_place
                kept.append(group if is_whole else replace(group, roots=roots))
                needed |= self.read(kept[-1])
        begun = tuple(sorted(kept, key=lambda each: each.level))
        # Stages that move kernels ask what is stored before them: no longer what nobody reads.
        dropped = {root for group in found for root in group.roots} - {root for group in kept for root in group.roots}
        stored_at = {value: level for value, level in self._stored_at.items() if value not in dropped}
        return replace(self._before, begun=begun, levels=self._levels, stored_at=stored_at)

    def _merged_group(self, program: RowProgram) -> Group:
        kind = Kind(self._family, program.shape)
        return Group(kind, program.level, tuple(program.heroes), tuple(program.roots), _forms(program))

    def grow(self, first: Group) -> None:
        """Grow a program from ``first`` by all consumers that fit, if any does; it may have one already."""
        program = self._merged.get(first) or RowProgram(first, [first], first.level)
        if program.first != first:
            return
        size, seen = len(program.members), set(program.members)
        pending = [reader for member in program.members for reader in self._readers_of(member)]
        while pending:
            group = min(pending, key=lambda each: each.level)
            pending.remove(group)
            if group in seen:
                continue
            seen.add(group)
            if group in self._merged:
                continue
            level = self._level_with(group, program)
            self._decide(group, first, level if isinstance(level, Reason) else None)
            if not isinstance(level, Reason):
                program.level = level
                program.members.append(group)
                pending += self._readers_of(group)
        if len(program.members) > size:
            self._merged |= dict.fromkeys(program.members, program)
            self._stored_at.update(dict.fromkeys(program.roots, program.level))
            self._levels.update(dict.fromkeys(program.roots, program.level + 1))
            self._reads.clear()
            for value in self.read(self._merged_group(program)):
                self._readers.setdefault(value, []).append(first)

    def _level_with(self, group: Group, program: RowProgram) -> int | Reason:
        """Return the level at which ``program`` can run with ``group`` as a part, or why it cannot."""
        refusal = _misfit(group, program) or self._too_long(program.shape, [*program.members, group])
        if refusal := refusal or self.saves_nothing(group, program):
            return refusal
        refusal = self._cannot_follow(group, program) or self._computes_again(group, program)
        if refusal is None:
            return program.level
        read = self.read(group).difference(program.roots)
        level = max((self._now.level(value) for value in read), default=0)
        if level <= program.level:
            return refusal
        if self._belongs_elsewhere(read, program):
            return Reason("it may end another row program, which would walk its rows once more without it")
        if not self._can_wait(program, level, group):
            return Reason("it reads values that are computed too late for other readers of the reductions")
        return self._cannot_follow(group, replace(program, level=level)) or level

    def _belongs_elsewhere(self, read: Iterable[ir.Value], program: RowProgram) -> bool:
        """Whether a reader of ``read`` may end another row program, which would walk its rows once more without it."""
        others = (self.starts[value] for value in read if value in self.starts)
        return any(
            ReductionShape.of(other.heroes[0]).elements == program.shape.elements
            for other in others
            if other not in self._merged
        )

    def _can_wait(self, program: RowProgram, level: int, follower: Group) -> bool:
        """Whether ``program`` can be delayed to ``level``, a higher one.

        All other consumers of its results must come later, and no array that it reads may be updated before.
        """
        inside = {follower, *program.members}
        others = (each for member in program.members for each in self._readers_of(member) if each not in inside)
        if any(self._merged.get(reader, reader).level <= level for reader in others):
            return False
        if any(self._fallback_readers.get(root, level + 1) <= level for root in program.roots):
            return False
        read = set[ir.Value]().union(*map(self.read, program.members)).difference(program.roots)
        updates = (each for value in read for each in self._updates.get(behind_bitcasts(value), ()))
        return not any(program.level <= each < level for each in updates)

    def _readers_of(self, group: Group) -> list[Group]:
        return [reader for root in group.roots for reader in self._readers.get(root, ())]

    def read(self, group: Group) -> set[ir.Value]:
        """Return the stored values that the kernel of a group reads, found once until more is stored."""
        if group in self._reads:
            return self._reads[group]
        pending, seen = list(group.roots), set(group.roots)
        found = self._reads[group] = set[ir.Value]()
        while pending:
            value = pending.pop()
            if self._now.stored_before(value, group.level):
                found.add(value)
                continue
            op = producer(value)
            operands = {*self._before.read_by(op)} - seen
            seen |= operands
            pending += operands
        return found

    def _computes_again(self, group: Group, program: RowProgram) -> Reason | None:
        """Return why ``group`` is not to run at the level of ``program``, before what it waits for is stored."""
        awaited, inside = self._before.awaited, {*program.roots, *group.roots}
        pending, seen = list(group.roots), set(group.roots)
        while pending:
            value = pending.pop()
            if value not in group.roots and (value in inside or self._now.stored_before(value, program.level)):
                continue
            if value in awaited and value not in inside:
                return _AGAIN
            op = producer(value)
            operands = {*self._before.read_by(op)} - seen
            seen |= operands
            pending += operands
        return None

    def _cannot_follow(self, group: Group, program: RowProgram) -> Reason | None:
        """Return why ``group``, which fits into ``program``, cannot join it at the program's level; None if it can."""
        whole, single = _computed_by(group, program)
        trial = replace(program, members=[*program.members, group])
        forms = _forms(trial)
        trace = RowTrace(self._before, self._now, program, self._heroes, trial)
        followers = [root for root in group.roots if root in group.forms]
        if not all(root in forms for root in followers):
            return Reason("its epilogue does not use one element of each reduction")
        if not trace.reads_own_rows(whole):
            return Reason("an element needs reductions of other rows, or values that come after the reduction")
        if not trace.reads_nothing(single):
            return Reason("its initial values depend on the reduction")
        beside = RowTrace(self._before, self._now, trial, self._heroes, trial)
        if not beside.reads_nothing(_read_beside(followers, forms)):
            return Reason("its values of each row read more values that depend on the reductions")
        return None


def _read_beside(followers: Sequence[ir.Value], forms: Mapping[ir.Value, Form]) -> list[ir.Value]:
    """Return the operands of an epilogue that are not part of it."""
    pending, seen = list(followers), set(followers)
    found = dict[ir.Value, None]()
    while pending:
        op = producer(pending.pop())
        if op.name == "stablehlo.reduce":
            continue
        for operand in op.operands:
            if operand not in forms:
                found[operand] = None
            elif operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return list(found)


def _misfit(group: Group, program: RowProgram) -> Reason | None:
    """Return why the kinds or sizes of ``group`` rule it out as part of ``program``; None if they do not."""
    if len(program.heroes) + len(group.heroes) > MOST_ROOTS or len(program.roots) + len(group.roots) > MOST_ROOTS:
        return TOO_MANY_ROOTS
    if group.kind.family.stores_beside:
        if group.kind != program.first.kind:
            return Reason("it reduces other rows")
        if not all(map(is_commutative, group.heroes)):
            return _IN_ORDER
    elif group.heroes:
        return Reason("it is no loop and no reduction, but of the family '{}'", (group.kind.family.name,))
    whole, _ = _computed_by(group, program)
    if any(math.prod(shape_of(value)) != program.shape.elements for value in whole):
        return Reason("it computes other numbers of elements than the rows of the reduction have")
    return PACKED if any(map(is_packed, whole)) else None


def _computed_by(group: Group, program: RowProgram) -> tuple[list[ir.Value], list[ir.Value]]:
    """Return the values that ``group`` computes for each element of the program's rows, and its other inputs."""
    if not group.heroes:
        return list(group.roots), []
    read = [value for hero in group.heroes for value in hero.operands]
    whole = [value for value in read if shape_of(value) == program.shape.shape]
    single = [value for value in read if shape_of(value) != program.shape.shape]
    return whole + [root for root in group.roots if root not in group.forms], single


def whole_widths(values: Iterable[ir.Value], shape: ReductionShape) -> list[int]:
    """Return the bits of an element of each of ``values`` that is of the rows' size or larger."""
    types = (ir.RankedTensorType(value.type) for value in values if math.prod(shape_of(value)) >= shape.elements)
    return [dtype_of_element(type_.element_type).storage_bits for type_ in types]


def _forms(program: RowProgram) -> dict[ir.Value, Form]:
    """Return the forms of the values in all epilogues of a program."""
    forms: dict[ir.Value, Form] = {}
    for member in program.members:
        for value in member.forms:
            op = producer(value)
            if op in member.heroes:
                forms[value] = Form.of_hero(value)
            elif (form := follow(op, [forms.get(operand) for operand in op.operands])) is not None:
                forms[value] = form
    return forms

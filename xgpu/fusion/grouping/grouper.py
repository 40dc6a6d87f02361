"""Decides which values of a program must be stored, and which kernels compute them.

Results are stored, and what a hero and its epilogue compute if anything else reads it; all other values are recomputed
by each consumer. One pass over the program, in program order.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts, bitcasts_behind, is_bitcast
from xgpu.analysis.heroes import Form, follow, is_packed
from xgpu.analysis.in_place import UPDATE_SLICE, updated_operands
from xgpu.analysis.root_indices import MOST_ROOTS
from xgpu.analysis.transposes import moves_rows, transpose_of
from xgpu.dialects.attributes import HOST
from xgpu.fusion.fallback import (
    CONTRACTIONS,
    DYNAMIC_SLICE,
    FOLDED,
    PRODUCT,
    VIEWS,
    is_address_for,
    is_cast_for,
)
from xgpu.fusion.grouping.across import is_made_across, reads_apart
from xgpu.fusion.grouping.block_facts import BlockFacts
from xgpu.fusion.grouping.families import KernelFamily, Kind
from xgpu.fusion.grouping.groups import MOST_OPERATIONS, Group, Grouping, Levels
from xgpu.fusion.grouping.prologues import computed_operand, on_the_way
from xgpu.fusion.grouping.reach import Reach
from xgpu.fusion.loops.recurrences import Recurrence
from xgpu.fusion.loops.steps import arrays_read
from xgpu.fusion.widened_operands import widening
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import captured, dtype_of, is_constant, is_used, producer
from xgpu.target_machine import WARP_SIZE

_MOVES = VIEWS | {"stablehlo.convert", "stablehlo.reverse", "stablehlo.slice"}
"""Operations that cost next to nothing to recompute."""

_FFT = "stablehlo.fft"
_RESULT = Reason("a result of the program, or of the loop or branch around it")
_UPDATED = Reason("it is computed in the memory of the array that it updates")
_OF_LOOP = Reason("the last state of a loop that is one kernel")
_IN_LOOP = Reason("a loop that is one kernel reads it in every iteration")
_READ_BESIDE = Reason("the epilogue of another hero reads it")
_BEFORE_UPDATE = Reason("its reader updates in place an array that it is computed from")
_SPREAD = Reason(
    "every thread of an array reads this one number, which takes {} operations or more", (MOST_OPERATIONS,)
)
"""The reason to store a number that is broadcast."""


def group_block(facts: BlockFacts, scalars_fall_back: bool, awaited: Mapping[ir.Value, Reason]) -> Grouping:
    """Return the groups of a block.

    Its results are stored, unless they are given or bitcasts of what is stored. ``scalars_fall_back`` lets those that
    depend on scalars alone, such as a loop's counter, fall back to XLA. ``awaited`` are values that are stored in any
    case, with the reason; all kernels that need one run after the kernel that stores it.
    """
    return _Grouper(facts).run(scalars_fall_back, awaited)


@dataclass(eq=False)
class _Begun:
    """A group that values are still added to."""

    kind: Kind
    level: int
    heroes: list[ir.Operation] = field(default_factory=list)
    roots: list[ir.Value] = field(default_factory=list)
    forms: dict[ir.Value, Form] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the group is full, as in `Group`."""
        return max(len(self.heroes), len(self.roots)) >= MOST_ROOTS


class _Grouper:
    """The groups of a block as far as its operations are placed."""

    def __init__(self, facts: BlockFacts):
        self._facts = facts
        self._groups: list[_Begun] = []
        self._latest: dict[tuple[Kind, int], _Begun] = {}
        self._open: dict[ir.Value, _Begun] = {}
        self._levels: dict[ir.Value, int] = {}
        self._stored: dict[ir.Value, int] = {}
        self._known = Levels(facts.made, self._levels, self._stored)
        self._why: dict[ir.Value, Reason] = {}
        self._fallbacks: dict[ir.Operation, int] = {}
        self._views: dict[ir.Value, ir.Value] = {}
        self._reach = Reach(self._known, self._views, facts.order)

    def run(self, scalars_fall_back: bool, awaited: Mapping[ir.Value, Reason]) -> Grouping:
        """Place all operations, then see to the results."""
        facts = self._facts
        for op, falls_back, kind in zip(facts.operations, facts.fall_back, facts.kinds, strict=True):
            if falls_back:
                self._fall_back(op)
            else:
                self._place(op, kind)
            if awaited:
                for made in op.results:
                    if made in awaited:
                        self._store(made, awaited[made])
                        self._open.pop(made, None)
        taken = set(facts.results)
        for value in facts.results:
            if self._known.is_given(value) or self._show(value, taken):
                continue
            if scalars_fall_back and (scalars := self._scalars_of(value)) is not None:
                for op in scalars:
                    self._fall_back_too(op)
            else:
                self._store(value, _RESULT)
        return self._grouping(awaited.keys())

    def _grouping(self, awaited: Set[ir.Value]) -> Grouping:
        fallbacks = sorted(
            ((level, op) for op, level in self._fallbacks.items()),
            key=lambda each: (each[0], self._facts.order[each[1]]),
        )
        return Grouping(
            self._known.made,
            self._levels,
            self._stored,
            tuple(self._facts.results),
            tuple(
                Group(each.kind, each.level, tuple(each.heroes), tuple(each.roots), each.forms) for each in self._groups
            ),
            tuple(fallbacks),
            self._why,
            awaited,
        )

    def _place(self, op: ir.Operation, kind: Kind | None) -> None:
        """Place an operation that kernels can compute, a hero of ``kind`` if that is one."""
        if kind is not None and kind.family.updates_in_place and not self._can_update(op):
            kind = None
        if kind is not None and kind.family.updates_in_place:
            self._update_in_place(op, kind)
        elif kind is not None and kind.family.has_single_hero:
            self._run(op, kind)
        elif kind is not None or not self._join(op):
            self._compute(op, kind)

    def _compute(self, op: ir.Operation, kind: Kind | None) -> None:
        """Let kernels compute ``op`` from what it reads: a hero of ``kind``, or an operation that they recompute."""
        for number, operand in enumerate(op.operands):
            if operand in self._open:
                self._store_behind_bitcasts(operand, _read_elsewhere(op))
            if kind is not None and kind.family.reads_memory:
                if number == computed_operand(op):
                    self._compute_operand(operand, kind.family, op)
                    continue
                # A library would read a product's operand through the bitcast, too.
                if op.name in CONTRACTIONS:
                    self._view(operand)
                if not self._is_in_memory(operand):
                    self._store(operand, Reason("{} copies it as it is in memory", (op.name,)))
            if self._is_spread_number(op, operand) and self._takes_many_operations(operand):
                self._store(operand, _SPREAD)
        level = max((self._known.level(operand) for operand in op.operands), default=0)
        self._levels.update(dict.fromkeys(op.results, level))
        if kind is not None:
            group = self._group(kind, level)
            group.heroes.append(op)
            for value in op.results:
                group.forms[value] = Form.of_hero(value)
                self._open[value] = group

    def _compute_operand(self, value: ir.Value, family: KernelFamily, reader: ir.Operation) -> None:
        """Store what a kernel of a family needs in memory to compute ``value``; who is computed of it comes later."""
        made, read = on_the_way(value, family, self._is_in_memory)
        for each in read:
            self._store(each, Reason("{} computes an operand from it", (reader.name,)))
        for op in sorted(made, key=lambda each: self._facts.order[each]):
            level = max((self._known.level(operand) for operand in op.operands), default=0)
            self._levels.update(dict.fromkeys(op.results, level))

    def _is_spread_number(self, op: ir.Operation, operand: ir.Value) -> bool:
        """Whether ``op`` broadcasts one number to a large array, such as a norm by which all gradients are divided."""
        if op.name != "stablehlo.broadcast_in_dim" or math.prod(shape_of(operand)) != 1:
            return False
        return math.prod(shape_of(op.results[0])) > WARP_SIZE

    def _takes_many_operations(self, value: ir.Value) -> bool:
        """Whether a kernel reads and computes `MOST_OPERATIONS` values or more to compute ``value``."""
        pending, seen = [value], {value}
        while pending and len(seen) < MOST_OPERATIONS:
            each = pending.pop()
            if not self._is_in_memory(each) and not is_constant(each):
                operands = set(producer(each).operands) - seen
                seen |= operands
                pending += operands
        return len(seen) >= MOST_OPERATIONS

    def _fall_back(self, op: ir.Operation) -> None:
        """Let ``op`` fall back to XLA. Its operands are stored before it; kernels of its level can read its results."""
        provide = self._provide_to_host if HOST in op.attributes else self._provide
        for operand in dict.fromkeys((*op.operands, *captured(op))):
            provide(operand, op.name)
        level = max((self._known.level(operand) for operand in (*op.operands, *captured(op))), default=0)
        self._fallbacks[op] = level
        for value in op.results:
            self._stored[value] = level - 1
            self._levels[value] = level

    def _provide(self, value: ir.Value, reader: str) -> None:
        """Make ``value`` available to an operation called ``reader`` that falls back to XLA.

        Operations that XLA folds into the reader fall back too, and so does what depends on scalars alone.
        """
        folded = FOLDED.get(reader, VIEWS)
        widened = widening(value, self._is_in_memory) if reader == PRODUCT else ()
        pending = [value]
        views = []
        while pending:
            each = pending.pop()
            if self._known.is_given(each) or each in self._stored or not math.prod(shape_of(each)):
                continue
            op = producer(each)
            is_folded = op.name in folded and not self._is_made_transposed(op, reader)
            if is_folded or op in widened or self._is_free(op, reader):
                views.append(op)
                pending += op.operands
            elif (scalars := self._scalars_of(each)) is not None:
                views += scalars
            else:
                self._store(each, Reason("its reader {} is left to XLA", (reader,)))
        for op in sorted(dict.fromkeys(views), key=lambda each: self._facts.order[each]):
            self._fall_back_too(op)

    def _provide_to_host(self, value: ir.Value, reader: str) -> None:
        """Make ``value`` available to a loop or branch that the host runs, which knows arrays in memory alone."""
        if self._known.is_given(value) or not math.prod(shape_of(value)):
            return
        array = behind_bitcasts(value)
        if not self._is_in_memory(array):
            self._store(array, Reason("the host runs its reader {}", (reader,)))
        for op in bitcasts_behind(value):
            self._fall_back_too(op)

    def _is_free(self, op: ir.Operation, reader: str) -> bool:
        """Whether XLA needs no kernel for ``op``, whose operand is in memory, before a consumer called ``reader``."""
        is_free = is_address_for(op, reader) or is_cast_for(op, reader)
        return is_free and self._is_in_memory(behind_bitcasts(op.operands[0]))

    def _is_made_transposed(self, op: ir.Operation, reader: str) -> bool:
        """Whether ``op`` transposes what a kernel makes for a product or transform, so that it may store that so."""
        if reader not in (PRODUCT, _FFT) or op.name != "stablehlo.transpose" or is_bitcast(op):
            return False
        made = behind_bitcasts(op.operands[0])
        return not self._is_in_memory(made) and producer(made).name not in VIEWS

    def _fall_back_too(self, op: ir.Operation) -> None:
        """Let ``op`` fall back to XLA, though kernels could compute it; its operands are stored or fall back already.

        Its level is recomputed, as operands may have been stored after ``op`` was placed.
        """
        if op not in self._fallbacks:
            self._fallbacks[op] = max((self._known.level(operand) for operand in op.operands), default=0)
            self._levels.update(dict.fromkeys(op.results, self._fallbacks[op]))

    def _scalars_of(self, value: ir.Value) -> list[ir.Operation] | None:
        """Return the scalar operations that define ``value``, in order; None if it depends on anything but scalars."""
        pending, found = [value], set[ir.Operation]()
        while pending:
            each = pending.pop()
            if shape_of(each):
                return None
            if self._known.is_given(each) or each in self._stored:
                continue
            op = producer(each)
            if op in found or op in self._fallbacks:
                continue
            if len(op.regions):
                return None
            found.add(op)
            pending += op.operands
        return sorted(found, key=lambda op: self._facts.order[op])

    def _can_update(self, op: ir.Operation) -> bool:
        """Whether ``op`` can update its array here: its last reader, as what is not updated in place is a copy.

        A scatter always does, in the memory of a copy that it is given where it needs one.
        """
        if op.name != UPDATE_SLICE:
            return True
        array = behind_bitcasts(op.operands[0])
        return op.results[0] in self._facts.kept and self._facts.kept[array] == 1 and self._is_in_memory(array)

    def _is_in_memory(self, value: ir.Value) -> bool:
        """Whether ``value`` is given, or stored by an operation placed before."""
        return self._known.is_given(value) or value in self._stored

    def _show(self, value: ir.Value, taken: set[ir.Value]) -> bool:
        """Let XLA return ``value`` as a bitcast of a stored array, if it is one; tell whether it is.

        ``taken`` are the arrays that are results already: no two results share memory.
        """
        array = behind_bitcasts(value)
        if array not in self._stored or array in taken:
            return False
        for op in bitcasts_behind(value):
            self._fall_back_too(op)
        taken.add(array)
        return True

    def _view(self, value: ir.Value) -> None:
        """Let XLA view memory as ``value``, if it is a bitcast of what is in memory, for kernels that read it there."""
        if self._is_in_memory(value) or not self._is_in_memory(array := behind_bitcasts(value)):
            return
        for op in bitcasts_behind(value):
            self._fall_back_too(op)
        self._stored[value] = self._known.level(value) - 1
        self._views[value] = array
        self._reach.changed(value)

    def _update_in_place(self, op: ir.Operation, kind: Kind) -> None:
        """Compute ``op`` in the memory of the array that it updates, which its kernel reads for nothing else."""
        targets = updated_operands(op)
        if op.name == UPDATE_SLICE:
            self._view(op.operands[0])
        level = max(self._known.level(operand) for operand in op.operands)
        for operand in dict.fromkeys(op.operands):
            if operand in self._open:
                self._store_behind_bitcasts(operand, _read_elsewhere(op))
                level = max(level, self._known.level(operand))
                if operand in targets:
                    self._view(operand)
                    continue
            if not self._known.is_given(operand) and self._reach.reads(op, operand, targets, level):
                self._store(operand, _BEFORE_UPDATE)
        level = max(self._known.level(operand) for operand in op.operands)
        group = self._group(kind, level)
        if self._reach.interferes(op, group):
            group = self._begin(kind, level)
        group.heroes.append(op)
        self._reach.add(op, group)
        for value in op.results:
            group.roots.append(value)
            self._why[value] = _UPDATED
            self._stored[value] = level
            self._levels[value] = level + 1

    def _run(self, op: ir.Operation, kind: Kind) -> None:
        """Run the loop ``op`` in one kernel. It computes initial states, and reads other inputs each iteration."""
        recurrence = Recurrence.of(op)
        assert recurrence is not None
        for value in arrays_read(recurrence):
            if not shape_of(value) and HOST not in op.attributes:
                self._provide(value, op.name)
            else:
                self._store_computed(value, _IN_LOOP)
        needed = list(dict.fromkeys((*op.operands, *captured(op))))
        for value in needed:
            if value in self._open:
                self._store_behind_bitcasts(value, _read_elsewhere(op))
        level = max((self._known.level(value) for value in needed), default=0)
        group = self._begin(kind, level)
        group.heroes.append(op)
        for value in op.results:
            self._stored[value] = level
            self._levels[value] = level + 1
            if is_used(value):
                group.roots.append(value)
                self._why[value] = _OF_LOOP

    def _join(self, op: ir.Operation) -> bool:
        """Add ``op`` to the epilogue of the latest group that it depends on; tell whether that was possible."""
        groups = {self._open[operand] for operand in op.operands if operand in self._open}
        if not groups:
            return False
        group = max(groups, key=lambda each: each.level)
        others = [operand for operand in op.operands if operand not in group.forms]
        if any(each.level == group.level for each in groups - {group}):
            return False
        if any(operand not in self._open and self._known.level(operand) > group.level for operand in others):
            return False
        form = follow(op, [group.forms.get(operand) for operand in op.operands])
        if form is None or not self._follows(group, op, form, others) or self._is_across(group, op, form, others):
            return False
        (result,) = op.results
        if group.kind.family.is_cooperative and is_packed(result):
            # Threads that make neighbouring results would write parts of one byte.
            return False
        for operand in others:
            if operand in self._open:
                self._store(operand, _READ_BESIDE)
        group.forms[result] = form
        self._open[result] = group
        self._levels[result] = group.level
        return True

    def _is_across(self, group: _Begun, op: ir.Operation, form: Form, others: Sequence[ir.Value]) -> bool:
        """Whether a kernel that has a tile should compute ``op`` instead of that of ``group``, which it follows."""
        family, hero, target = group.kind.family, group.heroes[0], self._facts.target
        if not family.is_cooperative:
            return reads_apart(hero, op, target)
        if family.walk is None:
            return False
        return is_made_across(op, family.walk(hero).compose(form.forward), others, self._is_in_memory, target)

    def _follows(self, group: _Begun, op: ir.Operation, form: Form, others: Sequence[ir.Value]) -> bool:
        """Whether the family of ``group`` has code for ``op``, and for what its kernel would compute it from."""
        follows = group.kind.family.follows
        if follows is None:
            return True
        if not follows(op, form):
            return False
        pending = [value for value in others if value not in self._open]
        seen = set(pending)
        while pending:
            value = pending.pop()
            if self._is_in_memory(value):
                continue
            if len(seen) > MOST_OPERATIONS or not follows(producer(value), Form.of_hero(producer(value).results[0])):
                return False
            operands = set(producer(value).operands) - seen
            seen |= operands
            pending += operands
        return True

    def _store_computed(self, value: ir.Value, why: Reason) -> None:
        """Materialize what a loop reads many times, unless its producers only remap indices, which each read can do.

        Neighbouring threads read neighbours, which must then be neighbours in memory too.
        """
        moves = []
        while not self._known.is_given(value) and value not in self._stored:
            op = producer(value)
            is_part = op.name == DYNAMIC_SLICE and self._is_in_memory(behind_bitcasts(op.operands[0]))
            if (op.name not in _MOVES and not is_part) or _breaks_rows(op):
                self._store(value, why)
            if not op.operands or value in self._stored:
                break
            moves.append(value)
            value = op.operands[0]
        for moved in reversed(moves):
            self._levels[moved] = max(self._known.level(operand) for operand in producer(moved).operands)

    def _store_behind_bitcasts(self, value: ir.Value, why: Reason) -> None:
        """Store the array of which ``value``, made with a hero, is a bitcast, for a reader that computes the bitcast.

        So a state of a loop and its bitcast, which a stack of all states takes in, are stored once.
        """
        if value in self._stored:
            return
        array = behind_bitcasts(value)
        self._store(array, why)
        self._levels.update((op.results[0], self._known.level(array)) for op in bitcasts_behind(value))

    def _store(self, value: ir.Value, why: Reason) -> None:
        """Store ``value`` by the kernel of its hero, else by a loop over its shape, unless it is stored already."""
        if value in self._stored:
            return
        self._why[value] = why
        group = self._open.get(value)
        if group is None:
            group = self._group(self._facts.families.loop_over(value), self._known.level(value))
        group.roots.append(value)
        self._stored[value] = group.level
        self._levels[value] = group.level + 1
        self._reach.changed(value)

    def _group(self, kind: Kind, level: int) -> _Begun:
        """Return the group for another hero or root of this kind and level."""
        group = self._latest.get((kind, level))
        return self._begin(kind, level) if group is None or group.is_full else group

    def _begin(self, kind: Kind, level: int) -> _Begun:
        group = self._latest[kind, level] = _Begun(kind, level)
        self._groups.append(group)
        return group


def _read_elsewhere(reader: ir.Operation) -> Reason:
    return Reason("its reader {} is not in the kernel of its hero", (reader.name,))


def _breaks_rows(op: ir.Operation) -> bool:
    """Whether ``op`` is a transpose that keeps few elements neighbours."""
    transpose = transpose_of(op) if op.name == "stablehlo.transpose" else None
    bits = dtype_of(op.results[0]).storage_bits
    return transpose is not None and not moves_rows(transpose, bits)

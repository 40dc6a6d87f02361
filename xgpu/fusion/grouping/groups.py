"""Decides which values of a program are stored, and which kernels compute them.

Results are stored, and what a hero and its epilogue compute if anything else reads it; all other values are recomputed
by each consumer. Every stored value has a *level*: the number of kernels that must run one after the other before it
can be read. Stored values of one level and one iteration space share a kernel: they are independent, since a consumer
has a higher level than its producers. One pass over the program, in program order.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts, bitcasts_behind, is_bitcast
from xgpu.analysis.captures import captured, is_constant, maker
from xgpu.analysis.heroes import Form, HeroKind, follow, hero_kind, is_packed
from xgpu.analysis.in_place import UPDATE_SLICE, in_place_kind, updated_operands
from xgpu.analysis.transposes import moves_rows, transpose_of
from xgpu.dialects.attributes import RECURRENCE
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.fallback import (
    CONTRACTIONS,
    DYNAMIC_SLICE,
    FOLDED,
    PRODUCT,
    VIEWS,
    is_address_for,
    is_cast_for,
    reason_to_leave,
)
from xgpu.fusion.loops.recurrences import RECURRENCE_KIND, Recurrence
from xgpu.fusion.loops.steps import arrays_read
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.target_machine import WARP_SIZE

LOOP = "loop"
"""The emitter of kernels whose threads each compute elements of the results, and the kind of their groups."""

MOST_ROOTS = 16
"""Values that one kernel stores at most; more would run out of registers and of parameters."""

MOST_OPERATIONS = 64
"""Operations that kernels may duplicate to recompute a value; without a bound, programs could grow quadratically."""

_MOVES = VIEWS | {"stablehlo.convert", "stablehlo.reverse", "stablehlo.slice"}
"""Operations that cost next to nothing to recompute."""

TOO_MANY_ROOTS = Reason("one kernel stores at most {} values", (MOST_ROOTS,))
PACKED = Reason("elements of under a byte: threads that make neighbours would write parts of one byte")
"""Reasons not to merge kernels."""

_RESULT = Reason("a result of the program, or of the loop or branch around it")
_UPDATED = Reason("it is made in the memory of what it updates")
_OF_LOOP = Reason("the last state of a loop that is one kernel")
_IN_LOOP = Reason("a loop that is one kernel reads it in every iteration")
_READ_BESIDE = Reason("the epilogue of another hero reads it")
_BEFORE_UPDATE = Reason("what reads it updates an array in place that it is computed from")
_SPREAD = Reason(
    "every thread of an array reads this one number, which takes {} operations or more", (MOST_OPERATIONS,)
)
"""The reason to store a number that is broadcast."""


@dataclass(eq=False)
class Group:
    """A kernel: ``roots`` are the values it stores, ``level`` is that of its inputs.

    ``forms`` holds the values that depend on one element of a hero alone. A group without heroes is a loop.
    """

    kind: HeroKind
    level: int
    heroes: list[ir.Operation] = field(default_factory=list)
    roots: list[ir.Value] = field(default_factory=list)
    forms: dict[ir.Value, Form] = field(default_factory=dict)

    def shares(self, op: ir.Operation) -> bool:
        """Whether threads share what ``op`` reads, as they do for a hero; in a loop each reads for its own element."""
        return self.kind.name != LOOP and op in self.heroes


class Grouping:
    """The groups of a block of ``operations``, which are without the terminator.

    ``leave_scalars`` lets results that depend on scalars alone, such as a loop's counter, fall back to XLA. ``awaited``
    are values that are stored in any case, with the reason; all kernels that need one run after the kernel that stores
    it.
    """

    def __init__(
        self,
        operations: Sequence[ir.Operation],
        results: Sequence[ir.Value],
        leave_scalars: bool = False,
        awaited: Mapping[ir.Value, Reason] = MappingProxyType({}),
    ):
        self._groups: list[Group] = []
        self._latest: dict[tuple[HeroKind, int], Group] = {}
        self._levels: dict[ir.Value, int] = {}
        self._open: dict[ir.Value, Group] = {}
        self._stored: dict[ir.Value, Group] = {}
        self._why: dict[ir.Value, Reason] = {}
        self._kept = _kept(operations, results)
        self._made = {value for op in operations for value in op.results}
        self._left: dict[ir.Operation, int] = {}
        self._order = {op: number for number, op in enumerate(operations)}
        self._views: dict[ir.Value, ir.Value] = {}
        for op in operations:
            self._place(op)
            if awaited:
                for made in op.results:
                    if made in awaited:
                        self._store(made, awaited[made])
        taken = set(results)
        for value in results:
            if self.is_given(value) or self._show(value, taken):
                continue
            if leave_scalars and (scalars := self._scalars_of(value)) is not None:
                for op in scalars:
                    self._leave_too(op)
            else:
                self._store(value, _RESULT)

    @property
    def why_stored(self) -> Mapping[ir.Value, Reason]:
        """The reason for each stored value, in the order of the decisions."""
        return self._why

    @property
    def groups(self) -> list[Group]:
        """The groups in topological order."""
        return sorted((group for group in self._groups if group.roots), key=lambda group: group.level)

    @property
    def left(self) -> list[tuple[int, ir.Operation]]:
        """Operations that fall back to XLA, in topological order, each with the level whose kernels it precedes."""
        return sorted(
            ((level, op) for op, level in self._left.items()), key=lambda each: (each[0], self._order[each[1]])
        )

    def is_given(self, value: ir.Value) -> bool:
        """Whether ``value`` is an argument, or comes from around the block."""
        return value not in self._made

    def stored_before(self, value: ir.Value, level: int) -> bool:
        """Whether kernels of ``level`` can read ``value`` from memory: it is given, or a lower level stores it."""
        return self.is_given(value) or (value in self._stored and self._stored[value].level < level)

    def is_stored(self, value: ir.Value) -> bool:
        """Whether a kernel stores ``value``, or XLA computes it."""
        return value in self._stored

    def stored_at(self) -> dict[ir.Value, int]:
        """Return the level of the storing kernel for each stored value of the block, as of now."""
        return {value: group.level for value, group in self._stored.items()}

    def made_with_hero(self, value: ir.Value) -> Group | None:
        """Return the group whose hero, or whose hero's epilogue, defines ``value``: only its kernel can store it."""
        return self._open.get(value)

    def is_left(self, op: ir.Operation) -> bool:
        """Whether ``op`` falls back to XLA."""
        return op in self._left

    def level(self, value: ir.Value) -> int:
        """Return the lowest level of a kernel that can compute ``value``, or read it if it is stored."""
        return self._levels.get(value, 0)

    def store_at(self, value: ir.Value, level: int, why: Reason) -> Group:
        """Store ``value`` by a loop at ``level``, for consumers of higher levels; return the loop's group."""
        group = self._group(HeroKind("loop", shape_of(value)), level)
        group.roots.append(value)
        self._stored[value] = group
        self._why[value] = why
        self._levels[value] = level + 1
        return group

    def move(self, values: Sequence[ir.Value], level: int) -> None:
        """Record that ``values`` are now stored by a kernel at ``level``. All consumers must be at higher levels."""
        group = Group(HeroKind("moved", level), level)
        self._stored.update(dict.fromkeys(values, group))
        self._levels.update(dict.fromkeys(values, level + 1))

    def _place(self, op: ir.Operation) -> None:
        if reason_to_leave(op) is not None:
            self._leave(op)
            return
        if RECURRENCE in op.attributes:
            self._run(op)
            return
        if (in_place := self._in_place_kind(op)) is not None:
            self._update_in_place(op, in_place)
            return
        kind = hero_kind(op)
        if kind is None and self._join(op):
            return
        for operand in op.operands:
            if operand in self._open:
                self._store_behind_bitcasts(operand, _read_elsewhere(op))
            if op.name in CONTRACTIONS:
                self._store_computed(operand, Reason("{} reads each of its elements many times", (op.name,)))
            if self._is_spread_number(op, operand) and self._takes_many_operations(operand):
                self._store(operand, _SPREAD)
        level = max((self.level(operand) for operand in op.operands), default=0)
        self._levels.update(dict.fromkeys(op.results, level))
        if kind is not None:
            group = self._group(kind, level)
            group.heroes.append(op)
            for value in op.results:
                group.forms[value] = Form.of_hero(value)
                self._open[value] = group

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
                operands = set(maker(each).operands) - seen
                seen |= operands
                pending += operands
        return len(seen) >= MOST_OPERATIONS

    def _leave(self, op: ir.Operation) -> None:
        """Let ``op`` fall back to XLA. Its operands are stored before it; kernels of its level can read its results."""
        for operand in dict.fromkeys((*op.operands, *captured(op))):
            self._provide(operand, op.name)
        level = max((self.level(operand) for operand in (*op.operands, *captured(op))), default=0)
        self._left[op] = level
        before = Group(HeroKind("left", op.name), level - 1)
        for value in op.results:
            self._stored[value] = before
            self._levels[value] = level

    def _provide(self, value: ir.Value, reader: str) -> None:
        """Make ``value`` available to an operation called ``reader`` that falls back to XLA.

        Operations that XLA folds into the reader fall back too, and so does what depends on scalars alone.
        """
        folded = FOLDED.get(reader, VIEWS)
        pending = [value]
        views = []
        while pending:
            each = pending.pop()
            if self.is_given(each) or each in self._stored or not math.prod(shape_of(each)):
                continue
            op = maker(each)
            if (op.name in folded and not self._is_made_transposed(op, reader)) or self._is_free(op, reader):
                views.append(op)
                pending += op.operands
            elif (scalars := self._scalars_of(each)) is not None:
                views += scalars
            else:
                self._store(each, Reason("{} reads it, which is left to XLA", (reader,)))
        for op in sorted(dict.fromkeys(views), key=lambda each: self._order[each]):
            self._leave_too(op)

    def _is_free(self, op: ir.Operation, reader: str) -> bool:
        """Whether XLA needs no kernel for ``op``, whose operand is in memory, before a consumer called ``reader``."""
        is_free = is_address_for(op, reader) or is_cast_for(op, reader)
        return is_free and self._is_in_memory(behind_bitcasts(op.operands[0]))

    def _is_made_transposed(self, op: ir.Operation, reader: str) -> bool:
        """Whether ``op`` transposes a kernel's result for a product, so that the kernel may store it transposed."""
        if reader != PRODUCT or op.name != "stablehlo.transpose" or is_bitcast(op):
            return False
        made = behind_bitcasts(op.operands[0])
        return not self._is_in_memory(made) and maker(made).name not in VIEWS

    def _leave_too(self, op: ir.Operation) -> None:
        """Let ``op`` fall back to XLA, though kernels could compute it; its operands are stored or fall back already.

        Its level is recomputed, as operands may have been stored after ``op`` was placed.
        """
        if op not in self._left:
            self._left[op] = max((self.level(operand) for operand in op.operands), default=0)
            self._levels.update(dict.fromkeys(op.results, self._left[op]))

    def _scalars_of(self, value: ir.Value) -> list[ir.Operation] | None:
        """Return the scalar operations that define ``value``, in order; None if it depends on anything but scalars."""
        pending, found = [value], set[ir.Operation]()
        while pending:
            each = pending.pop()
            if shape_of(each):
                return None
            if self.is_given(each) or each in self._stored or maker(each) in found or maker(each) in self._left:
                continue
            if len(maker(each).regions):
                return None
            found.add(maker(each))
            pending += maker(each).operands
        return sorted(found, key=lambda op: self._order[op])

    def _in_place_kind(self, op: ir.Operation) -> HeroKind | None:
        """Return the kind of ``op`` if it can update an array in place here, else None."""
        kind = in_place_kind(op)
        if kind is None or op.name != UPDATE_SLICE:
            return kind
        array = behind_bitcasts(op.operands[0])
        is_wanted = op.results[0] in self._kept and self._kept[array] == 1
        return kind if is_wanted and self._is_in_memory(array) else None

    def _is_in_memory(self, value: ir.Value) -> bool:
        """Whether ``value`` is given, or stored by an operation placed before."""
        return self.is_given(value) or value in self._stored

    def _show(self, value: ir.Value, taken: set[ir.Value]) -> bool:
        """Let XLA return ``value`` as a bitcast of a stored array, if it is one; tell whether it is.

        ``taken`` are the arrays that are results already: no two results share memory.
        """
        array = behind_bitcasts(value)
        if array not in self._stored or array in taken:
            return False
        for op in bitcasts_behind(value):
            self._leave_too(op)
        taken.add(array)
        return True

    def _view(self, value: ir.Value) -> None:
        """Let XLA view memory as ``value``, if it is a bitcast of what is in memory, so that kernels can update it."""
        if self._is_in_memory(value) or not self._is_in_memory(array := behind_bitcasts(value)):
            return
        for op in bitcasts_behind(value):
            self._leave_too(op)
        self._stored[value] = Group(HeroKind("left", value), self.level(value) - 1)
        self._views[value] = array

    def _update_in_place(self, op: ir.Operation, kind: HeroKind) -> None:
        """Compute ``op`` in the memory of the array that it updates, which its kernel reads for nothing else."""
        targets = updated_operands(op)
        if op.name == UPDATE_SLICE:
            self._view(op.operands[0])
        level = max(self.level(operand) for operand in op.operands)
        for operand in dict.fromkeys(op.operands):
            if operand in self._open:
                self._store_behind_bitcasts(operand, _read_elsewhere(op))
            elif not self.is_given(operand) and self._reads(operand, targets, level):
                self._store(operand, _BEFORE_UPDATE)
        level = max(self.level(operand) for operand in op.operands)
        group = self._group(kind, level)
        if any(self._interfere(op, hero, level) for hero in group.heroes):
            group = self._latest[kind, level] = Group(kind, level)
            self._groups.append(group)
        group.heroes.append(op)
        for value in op.results:
            group.roots.append(value)
            self._why[value] = _UPDATED
            self._stored[value] = group
            self._levels[value] = level + 1

    def _run(self, op: ir.Operation) -> None:
        """Run the loop ``op`` in one kernel. It computes initial states, and reads other inputs each iteration."""
        recurrence = Recurrence.of(op)
        assert recurrence is not None
        for value in arrays_read(recurrence):
            if not shape_of(value):
                self._provide(value, op.name)
            else:
                self._store_computed(value, _IN_LOOP, is_read_in_rows=True)
        needed = list(dict.fromkeys((*op.operands, *captured(op))))
        for value in needed:
            if value in self._open:
                self._store_behind_bitcasts(value, _read_elsewhere(op))
        level = max((self.level(value) for value in needed), default=0)
        group = Group(HeroKind(RECURRENCE_KIND, op), level, [op])
        self._groups.append(group)
        for value in op.results:
            self._stored[value] = group
            self._levels[value] = level + 1
            if any(True for _ in value.uses):
                group.roots.append(value)
                self._why[value] = _OF_LOOP

    def _interfere(self, op: ir.Operation, other: ir.Operation, level: int) -> bool:
        """Whether one of two operations updates memory that the other updates or reads, in a kernel of ``level``."""
        pairs = ((op, updated_operands(other)), (other, updated_operands(op)))
        return any(self._reads(operand, targets, level) for each, targets in pairs for operand in each.operands)

    def _reads(self, value: ir.Value, targets: Sequence[ir.Value], level: int) -> bool:
        """Whether a kernel of ``level`` that computes ``value`` reads the memory of one of ``targets``."""
        updated = {self._views.get(target, target) for target in targets}
        pending, seen = [value], {value}
        while pending:
            value = pending.pop()
            if self._views.get(value, value) in updated:
                return True
            if not self.stored_before(value, level):
                operands = set(maker(value).operands) - seen
                seen |= operands
                pending += operands
        return False

    def _join(self, op: ir.Operation) -> bool:
        """Add ``op`` to the epilogue of the latest group that it depends on; tell whether that was possible."""
        groups = {self._open[operand] for operand in op.operands if operand in self._open}
        if not groups:
            return False
        group = max(groups, key=lambda each: each.level)
        others = [operand for operand in op.operands if operand not in group.forms]
        if any(each.level == group.level for each in groups - {group}):
            return False
        if any(operand not in self._open and self.level(operand) > group.level for operand in others):
            return False
        form = follow(op, [group.forms.get(operand) for operand in op.operands])
        if form is None:
            return False
        (result,) = op.results
        if group.kind.name in ("reduce", "scan") and is_packed(result):
            # Threads that make neighbouring results would write parts of one byte.
            return False
        for operand in others:
            if operand in self._open:
                self._store(operand, _READ_BESIDE)
        group.forms[result] = form
        self._open[result] = group
        self._levels[result] = group.level
        return True

    def _store_computed(self, value: ir.Value, why: Reason, is_read_in_rows: bool = False) -> None:
        """Materialize a contraction's operand, unless its producers only remap indices, which each read can do again.

        If ``is_read_in_rows``, neighbouring threads read neighbours, which must then be neighbours in memory too.
        """
        moves = []
        while not self.is_given(value) and value not in self._stored:
            op = maker(value)
            is_part = op.name == DYNAMIC_SLICE and self._is_in_memory(behind_bitcasts(op.operands[0]))
            if (op.name not in _MOVES and not is_part) or (is_read_in_rows and _breaks_rows(op)):
                self._store(value, why)
            if not op.operands or value in self._stored:
                break
            moves.append(value)
            value = op.operands[0]
        for moved in reversed(moves):
            self._levels[moved] = max(self.level(operand) for operand in maker(moved).operands)

    def _store_behind_bitcasts(self, value: ir.Value, why: Reason) -> None:
        """Store the array of which ``value``, made with a hero, is a bitcast, for a reader that computes the bitcast.

        So a state of a loop and its bitcast, which a stack of all states takes in, are stored once.
        """
        if value in self._stored:
            return
        array = behind_bitcasts(value)
        self._store(array, why)
        self._levels.update((op.results[0], self.level(array)) for op in bitcasts_behind(value))

    def _store(self, value: ir.Value, why: Reason) -> None:
        """Store ``value`` by the kernel of its hero, else by a loop over its shape, unless it is stored already."""
        if value in self._stored:
            return
        self._why[value] = why
        group = self._open.get(value)
        if group is None:
            group = self._group(HeroKind("loop", shape_of(value)), self.level(value))
        group.roots.append(value)
        self._stored[value] = group
        self._levels[value] = group.level + 1

    def _group(self, kind: HeroKind, level: int) -> Group:
        """Return the group for another hero or root of this kind and level."""
        group = self._latest.get((kind, level))
        if group is None or max(len(group.heroes), len(group.roots)) >= MOST_ROOTS:
            group = self._latest[kind, level] = Group(kind, level)
            self._groups.append(group)
        return group


def _read_elsewhere(reader: ir.Operation) -> Reason:
    return Reason("{} reads it, which is no part of the kernel of its hero", (reader.name,))


def _breaks_rows(op: ir.Operation) -> bool:
    """Whether ``op`` is a transpose that keeps few elements neighbours."""
    transpose = transpose_of(op) if op.name == "stablehlo.transpose" else None
    bits = dtype_of_element(ir.RankedTensorType(op.results[0].type).element_type).storage_bits
    return transpose is not None and not moves_rows(transpose, bits)


def _kept(operations: Sequence[ir.Operation], results: Sequence[ir.Value]) -> Counter[ir.Value]:
    """Count, for each array in memory at the end, or updated in place, the operations that update it.

    An array and its bitcasts count as one.
    """
    kept = Counter(dict.fromkeys(map(behind_bitcasts, results), 0))
    for op in reversed(operations):
        if (op.name != UPDATE_SLICE or op.results[0] in kept) and in_place_kind(op) is not None:
            kept.update(map(behind_bitcasts, updated_operands(op)))
    return kept

"""Which values of a program are stored, and which kernels make them.

A value is stored if it is a result, or what a hero and its epilogue make and something else reads; all others are
computed wherever they are read. Every stored value has a *level*: how many kernels must run one after the other before
it can be read. Stored values of one level and one iteration space are made by one kernel: they cannot depend on each
other, since a value that depends on another is of a higher level. One pass over the program, in its order.
"""

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from xgpu import ir
from xgpu.dialects.attributes import RECURRENCE
from xgpu.dtypes import dtype_of_element
from xgpu.fusion.bitcasts import behind_bitcasts, bitcasts_behind, is_bitcast
from xgpu.fusion.heroes import Form, HeroKind, follow, hero_kind, is_packed
from xgpu.fusion.in_place import UPDATE_SLICE, in_place_kind, updated_operands
from xgpu.fusion.left import (
    CONTRACTIONS,
    DYNAMIC_SLICE,
    FOLDED,
    PRODUCT,
    VIEWS,
    is_address_for,
    is_cast_for,
    reason_to_leave,
)
from xgpu.fusion.recurrence_steps import arrays_read
from xgpu.fusion.recurrences import RECURRENCE_KIND, Recurrence
from xgpu.fusion.regions import captured, is_constant, maker
from xgpu.fusion.transposes import moves_rows, transpose_of
from xgpu.indexing.access import shape_of

LOOP = "loop"
"""Kernels whose threads each compute elements of the results, and the kind of their groups."""

MOST_ROOTS = 16
"""Values that one kernel stores; more would run out of registers and of parameters."""

MOST_OPERATIONS = 64
"""Operations that are written again for each kernel that needs a value; else programs could grow quadratically."""

_LANES = 32
"""Threads of a warp, which execute an instruction together: what all of them compute takes as long as what one does."""

_MOVES = VIEWS | {"stablehlo.convert", "stablehlo.reverse", "stablehlo.slice"}
"""Operations that cost next to nothing wherever their result is read."""


@dataclass(eq=False)
class Group:
    """What one kernel makes: ``roots`` are the values it stores, ``level`` is that of what it reads.

    ``forms`` holds the values that depend on one element of a hero alone. A group without heroes is a loop.
    """

    kind: HeroKind
    level: int
    heroes: list[ir.Operation] = field(default_factory=list)
    roots: list[ir.Value] = field(default_factory=list)
    forms: dict[ir.Value, Form] = field(default_factory=dict)


class Grouping:
    """The groups of a block whose operations, but for the terminator, are ``operations``.

    ``leave_scalars`` leaves to XLA what results need that is computed from scalars alone, such as a loop's counter.
    ``awaited`` are values that are stored, whatever else is, and that all kernels wait for which need them.
    """

    def __init__(
        self,
        operations: Sequence[ir.Operation],
        results: Sequence[ir.Value],
        leave_scalars: bool = False,
        awaited: Set[ir.Value] = frozenset(),
    ):
        self._groups: list[Group] = []
        self._latest: dict[tuple[HeroKind, int], Group] = {}
        self._levels: dict[ir.Value, int] = {}
        self._open: dict[ir.Value, Group] = {}
        self._stored: dict[ir.Value, Group] = {}
        self._kept = _kept(operations, results)
        self._made = {value for op in operations for value in op.results}
        self._left: dict[ir.Operation, int] = {}
        self._order = {op: number for number, op in enumerate(operations)}
        self._views: dict[ir.Value, ir.Value] = {}
        for op in operations:
            self._place(op)
            if awaited:
                for value in awaited & set(op.results):
                    self._store(value)
        taken = set(results)
        for value in results:
            if self.is_given(value) or self._show(value, taken):
                continue
            if leave_scalars and (scalars := self._scalars_of(value)) is not None:
                for op in scalars:
                    self._leave_too(op)
            else:
                self._store(value)

    @property
    def groups(self) -> list[Group]:
        """The groups in an order in which they can run."""
        return sorted((group for group in self._groups if group.roots), key=lambda group: group.level)

    @property
    def left(self) -> list[tuple[int, ir.Operation]]:
        """What is left to XLA, in an order in which it can run, each with its level: before kernels of that level."""
        return sorted(
            ((level, op) for op, level in self._left.items()), key=lambda each: (each[0], self._order[each[1]])
        )

    def is_given(self, value: ir.Value) -> bool:
        """Whether ``value`` is an argument, or comes from around the block."""
        return value not in self._made

    def stored_before(self, value: ir.Value, level: int) -> bool:
        """Whether ``value`` is there for a kernel of ``level`` to read: given, or stored by one of a lower level."""
        return self.is_given(value) or (value in self._stored and self._stored[value].level < level)

    def is_stored(self, value: ir.Value) -> bool:
        """Whether a kernel stores ``value``, or XLA makes it."""
        return value in self._stored

    def stored_at(self) -> dict[ir.Value, int]:
        """Return for every stored value of the block the level of the kernel that stores it, as it is now."""
        return {value: group.level for value, group in self._stored.items()}

    def made_with_hero(self, value: ir.Value) -> Group | None:
        """Return the group whose hero makes ``value``, or one that it follows: only its kernel can store it."""
        return self._open.get(value)

    def is_left(self, op: ir.Operation) -> bool:
        """Whether ``op`` is left to XLA."""
        return op in self._left

    def level(self, value: ir.Value) -> int:
        """Return the least level of a kernel that can compute ``value``, or read it if it is stored."""
        return self._levels.get(value, 0)

    def store_at(self, value: ir.Value, level: int) -> Group:
        """Have a kernel of ``level`` that loops over its shape store ``value`` for later ones too; return its group."""
        group = self._group(HeroKind("loop", shape_of(value)), level)
        group.roots.append(value)
        self._stored[value] = group
        self._levels[value] = level + 1
        return group

    def move(self, values: Sequence[ir.Value], level: int) -> None:
        """Note that a kernel of ``level`` stores ``values``, which others did; what reads them is of higher levels."""
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
                self._store(operand)
            if op.name in CONTRACTIONS:
                self._store_computed(operand)
            if self._is_spread_number(op, operand) and self._takes_many_operations(operand):
                self._store(operand)
        level = max((self.level(operand) for operand in op.operands), default=0)
        self._levels.update(dict.fromkeys(op.results, level))
        if kind is not None:
            group = self._group(kind, level)
            group.heroes.append(op)
            for value in op.results:
                group.forms[value] = Form.of_hero(value)
                self._open[value] = group

    def _is_spread_number(self, op: ir.Operation, operand: ir.Value) -> bool:
        """Whether ``op`` makes a large array of one number, such as a norm by which all gradients are divided."""
        if op.name != "stablehlo.broadcast_in_dim" or math.prod(shape_of(operand)) != 1:
            return False
        return math.prod(shape_of(op.results[0])) > _LANES

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
        """Leave ``op`` to XLA. What it reads is stored before it, what it makes is there for kernels of its level."""
        for operand in dict.fromkeys((*op.operands, *captured(op))):
            self._provide(operand, op.name)
        level = max((self.level(operand) for operand in (*op.operands, *captured(op))), default=0)
        self._left[op] = level
        before = Group(HeroKind("left", op.name), level - 1)
        for value in op.results:
            self._stored[value] = before
            self._levels[value] = level

    def _provide(self, value: ir.Value, reader: str) -> None:
        """Have ``value`` there for an operation called ``reader`` that is left to XLA.

        Operations that XLA folds into it are left as well, and what scalars are computed from alone.
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
                self._store(each)
        for op in sorted(dict.fromkeys(views), key=lambda each: self._order[each]):
            self._leave_too(op)

    def _is_free(self, op: ir.Operation, reader: str) -> bool:
        """Whether XLA needs no kernel for ``op``, which takes what is in memory, before one called ``reader``."""
        is_free = is_address_for(op, reader) or is_cast_for(op, reader)
        return is_free and self._is_in_memory(behind_bitcasts(op.operands[0]))

    def _is_made_transposed(self, op: ir.Operation, reader: str) -> bool:
        """Whether a kernel stores what ``op`` transposes for a product: one that XLA folds is part of the product."""
        if reader != PRODUCT or op.name != "stablehlo.transpose" or is_bitcast(op):
            return False
        made = behind_bitcasts(op.operands[0])
        return not self._is_in_memory(made) and maker(made).name not in VIEWS

    def _leave_too(self, op: ir.Operation) -> None:
        """Leave ``op`` to XLA, though kernels may make it as well; what it reads is stored or left before.

        Its level is found anew: what it reads may have been stored after ``op`` was placed.
        """
        if op not in self._left:
            self._left[op] = max((self.level(operand) for operand in op.operands), default=0)
            self._levels.update(dict.fromkeys(op.results, self._left[op]))

    def _scalars_of(self, value: ir.Value) -> list[ir.Operation] | None:
        """Return the operations that make ``value``, in order, if they and all they read are scalars, else None."""
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
        """Return the kind of ``op`` if it is to update an array in place."""
        kind = in_place_kind(op)
        if kind is None or op.name != UPDATE_SLICE:
            return kind
        array = behind_bitcasts(op.operands[0])
        is_wanted = op.results[0] in self._kept and self._kept[array] == 1
        return kind if is_wanted and self._is_in_memory(array) else None

    def _is_in_memory(self, value: ir.Value) -> bool:
        """Whether ``value`` is given, or stored by what has been placed so far."""
        return self.is_given(value) or value in self._stored

    def _show(self, value: ir.Value, taken: set[ir.Value]) -> bool:
        """Leave a result to XLA if it is a bitcast of what is stored; ``taken`` are the arrays that are results."""
        array = behind_bitcasts(value)
        if array not in self._stored or array in taken:
            return False
        for op in bitcasts_behind(value):
            self._leave_too(op)
        taken.add(array)
        return True

    def _view(self, value: ir.Value) -> None:
        """Leave to XLA what makes ``value``, if it is a bitcast of what is in memory, so that kernels can update it."""
        if self._is_in_memory(value) or not self._is_in_memory(array := behind_bitcasts(value)):
            return
        for op in bitcasts_behind(value):
            self._leave_too(op)
        self._stored[value] = Group(HeroKind("left", value), self.level(value) - 1)
        self._views[value] = array

    def _update_in_place(self, op: ir.Operation, kind: HeroKind) -> None:
        """Have a kernel make ``op`` in the memory of what it updates, which the kernel reads for nothing else."""
        targets = updated_operands(op)
        if op.name == UPDATE_SLICE:
            self._view(op.operands[0])
        level = max(self.level(operand) for operand in op.operands)
        for operand in dict.fromkeys(op.operands):
            if not self.is_given(operand) and (operand in self._open or self._reads(operand, targets, level)):
                self._store(operand)
        level = max(self.level(operand) for operand in op.operands)
        group = self._group(kind, level)
        if any(self._interfere(op, hero, level) for hero in group.heroes):
            group = self._latest[kind, level] = Group(kind, level)
            self._groups.append(group)
        group.heroes.append(op)
        for value in op.results:
            group.roots.append(value)
            self._stored[value] = group
            self._levels[value] = level + 1

    def _run(self, op: ir.Operation) -> None:
        """Have a kernel run the loop ``op``. It computes the first states, and reads all else in every iteration."""
        recurrence = Recurrence.of(op)
        assert recurrence is not None
        for value in arrays_read(recurrence):
            if not shape_of(value):
                self._provide(value, op.name)
            else:
                self._store_computed(value, is_read_in_rows=True)
        needed = list(dict.fromkeys((*op.operands, *captured(op))))
        for value in needed:
            if value in self._open:
                self._store(value)
        level = max((self.level(value) for value in needed), default=0)
        group = Group(HeroKind(RECURRENCE_KIND, op), level, [op])
        self._groups.append(group)
        for value in op.results:
            self._stored[value] = group
            self._levels[value] = level + 1
            if any(True for _ in value.uses):
                group.roots.append(value)

    def _interfere(self, op: ir.Operation, other: ir.Operation, level: int) -> bool:
        """Whether one of two operations updates what the other updates or reads, in a kernel of ``level``."""
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
        """Add ``op`` to the epilogue of the latest group that it depends on, if it can be part of it."""
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
                self._store(operand)
        group.forms[result] = form
        self._open[result] = group
        self._levels[result] = group.level
        return True

    def _store_computed(self, value: ir.Value, is_read_in_rows: bool = False) -> None:
        """Have ``value`` stored, which is read many times over, unless to read it takes no more than other indices.

        If neighbouring threads read what is neighbouring in it, that must also be so in memory.
        """
        moves = []
        while not self.is_given(value) and value not in self._stored:
            op = maker(value)
            is_part = op.name == DYNAMIC_SLICE and self._is_in_memory(behind_bitcasts(op.operands[0]))
            if (op.name not in _MOVES and not is_part) or (is_read_in_rows and _breaks_rows(op)):
                self._store(value)
            if not op.operands or value in self._stored:
                break
            moves.append(value)
            value = op.operands[0]
        for moved in reversed(moves):
            self._levels[moved] = max(self.level(operand) for operand in maker(moved).operands)

    def _store(self, value: ir.Value) -> None:
        """Have a kernel store ``value``: that of its hero, or a loop over its shape."""
        if value in self._stored:
            return
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


def _breaks_rows(op: ir.Operation) -> bool:
    """Whether ``op`` transposes such that few elements stay neighbours."""
    transpose = transpose_of(op) if op.name == "stablehlo.transpose" else None
    bits = dtype_of_element(ir.RankedTensorType(op.results[0].type).element_type).storage_bits
    return transpose is not None and not moves_rows(transpose, bits)


def _kept(operations: Sequence[ir.Operation], results: Sequence[ir.Value]) -> Counter[ir.Value]:
    """Return the values that are in memory in the end, or for others to update, and how many operations do.

    It does not count as another value what is a bitcast of one.
    """
    kept = Counter(dict.fromkeys(map(behind_bitcasts, results), 0))
    for op in reversed(operations):
        if (op.name != UPDATE_SLICE or op.results[0] in kept) and in_place_kind(op) is not None:
            kept.update(map(behind_bitcasts, updated_operands(op)))
    return kept

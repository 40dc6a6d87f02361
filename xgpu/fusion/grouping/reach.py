"""Finds the arrays that operations read which update memory in place: kernels of one level may run in any order."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from xgpu import ir
from xgpu.analysis.in_place import updated_operands
from xgpu.fusion.grouping.groups import Levels
from xgpu.records import dataclass
from xgpu.structure import producer, users_of


class Updates(Hashable, Protocol):
    """A group of operations, ``heroes``, of one kernel of a ``level``, which computes nothing of what it updates."""

    level: int
    heroes: list[ir.Operation]


@dataclass(eq=False)
class _Known:
    """The reads of a kernel: the values that it computes or loads, the arrays in memory that these are, or may be of.

    ``updated`` are the arrays that it updates.
    """

    values: set[ir.Value] = field(default_factory=set)
    arrays: set[ir.Value] = field(default_factory=set)
    updated: set[ir.Value] = field(default_factory=set)


class Reach:
    """Finds the values that operations reach from their operands, through values not stored before their level.

    ``views`` has the arrays in whose memory values are, ``order`` the number of each operation. What is found of a
    group is kept, so that a value that many of its heroes are computed from is followed once; `changed` says that a
    value is stored, or viewed, from now on.
    """

    def __init__(self, known: Levels, views: Mapping[ir.Value, ir.Value], order: Mapping[ir.Operation, int]):
        self._known, self._views, self._order = known, views, order
        self._first_read: dict[ir.Value, float] = {}
        self._of: dict[Updates, _Known] = {}
        self._followed: dict[ir.Value, list[Updates]] = {}

    def changed(self, value: ir.Value) -> None:
        """Forget what was found by following a value, which is in memory now."""
        for group in self._followed.pop(value, ()):
            self._of.pop(group, None)

    def reads(self, op: ir.Operation, operand: ir.Value, targets: Sequence[ir.Value], level: int) -> bool:
        """Whether a kernel of ``level`` reads the memory of one of ``targets`` to compute an ``operand`` of ``op``."""
        updated = self._memory(targets)
        if (
            operand not in targets
            and updated == set(targets)
            and not any(_is_read_beside(each, op) for each in updated)
        ):
            return False
        return self._reaches([operand], level, updated, set())

    def interferes(self, op: ir.Operation, group: Updates) -> bool:
        """Whether ``op`` updates memory that the heroes of ``group`` update or read, or they what it reads."""
        if not group.heroes:
            return False
        found = self._of.get(group) or self._follow_all(group)
        if not found.arrays.isdisjoint(self._memory(updated_operands(op))):
            return True
        # What the heroes compute of values does not lead to what they update.
        return self._reaches(op.operands, group.level, found.updated, found.values)

    def add(self, op: ir.Operation, group: Updates) -> None:
        """Take note of ``op``, which is a hero of ``group`` from now on."""
        if (found := self._of.get(group)) is not None:
            self._follow(op, group, found)

    def _memory(self, values: Iterable[ir.Value]) -> set[ir.Value]:
        return {self._views.get(value, value) for value in values}

    def _reaches(self, values: Iterable[ir.Value], level: int, arrays: set[ir.Value], without: set[ir.Value]) -> bool:
        """Whether a kernel of ``level`` reads one of ``arrays`` for some values; those ``without`` lead to none."""
        pending = list(dict.fromkeys(values))
        seen = set(pending)
        first = min(map(self._first_read_of, arrays), default=math.inf)
        while pending:
            value = pending.pop()
            if self._views.get(value, value) in arrays:
                return True
            if value in without or self._known.stored_before(value, level):
                continue
            op = producer(value)
            # What comes before all that read the arrays is computed of none of them: a chain of indices, say.
            if self._order[op] >= first:
                operands = set(op.operands) - seen
                seen |= operands
                pending += operands
        return False

    def _first_read_of(self, array: ir.Value) -> float:
        """Return the number of the first operation that reads an array."""
        if array not in self._first_read:
            self._first_read[array] = min((self._order.get(op, math.inf) for op in users_of(array)), default=math.inf)
        return self._first_read[array]

    def _follow_all(self, group: Updates) -> _Known:
        found = self._of[group] = _Known()
        for hero in group.heroes:
            self._follow(hero, group, found)
        return found

    def _follow(self, op: ir.Operation, group: Updates, found: _Known) -> None:
        """Add what a hero of ``group`` reads and updates to what is known of the group."""
        found.updated |= self._memory(updated_operands(op))
        pending = [value for value in dict.fromkeys(op.operands) if value not in found.values]
        found.values.update(pending)
        while pending:
            value = pending.pop()
            found.arrays.add(self._views.get(value, value))
            if not self._known.stored_before(value, group.level):
                self._followed.setdefault(value, []).append(group)
                operands = set(producer(value).operands) - found.values
                found.values |= operands
                pending += operands


def _is_read_beside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether an operation other than ``op`` uses a value."""
    return any(use.owner.operation != op for use in value.uses)

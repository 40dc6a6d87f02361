"""Launches of small kernels: none has one that updates what another reads, and few states of loops are copied.

A kernel makes the next value of a state in its memory if no other reads the present one meanwhile or afterwards. Blocks
of one launch run in any order; so XLA copies what a part would overwrite and another reads, which takes a launch.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import partial

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.root_indices import KernelWalk, overwritten_where_read
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.delayed_updates import values_read, values_updated
from xgpu.records import dataclass


@dataclass(frozen=True)
class ArraysTouched:
    """The arrays that a kernel reads, those that it updates, and those of a loop's state of which it has the next one.

    ``in_place`` are those of these that it overwrites if no kernel beside it, or after it, is a reader: one that has
    them among its ``readable``.
    """

    read: frozenset[ir.Value]
    updated: frozenset[ir.Value]
    overwritten: frozenset[ir.Value]
    in_place: frozenset[ir.Value]
    readable: frozenset[ir.Value]

    @property
    def changed(self) -> frozenset[ir.Value]:
        """The arrays that it updates or may overwrite."""
        return self.updated | self.overwritten

    @property
    def alone(self) -> "ArraysTouched":
        """The same for a kernel that is no part of another, whatever it reads of states."""
        return replace(self, in_place=frozenset(), readable=frozenset())


class States:
    """The states of a loop's body: ``state`` maps its results to the arguments in whose memory they may be made."""

    def __init__(self, grouping: Grouping, state: Mapping[ir.Value, ir.Value]):
        self._grouping = grouping
        self._state = state
        self._last_read: dict[ir.Value, int] = {}
        if state:
            read: list[tuple[int, Set[ir.Value]]] = [
                (each.level, values_read(each, grouping)) for each in grouping.groups
            ]
            read += [(level - 1, {*grouping.read_by(op)}) for level, op in grouping.fallbacks]
            for level, values in read:
                for value in map(behind_bitcasts, values):
                    self._last_read[value] = max(level, self._last_read.get(value, level))

    def are_changed_by(self, kernels: Iterable[Group]) -> bool:
        """Whether some kernel computes the next one of a state."""
        return bool(self._state) and any(root in self._state for kernel in kernels for root in kernel.roots)

    def memory_of(self, kernel: Group) -> ArraysTouched:
        """Return what a kernel does to memory."""
        overwritten = frozenset(self._state[root] for root in kernel.roots if root in self._state)
        read = frozenset(map(behind_bitcasts, values_read(kernel, self._grouping)))
        updated = frozenset(map(behind_bitcasts, values_updated(kernel)))
        return ArraysTouched(read, updated, overwritten, self.in_place(kernel) if overwritten else overwritten, read)

    def in_place(self, kernel: Group) -> frozenset[ir.Value]:
        """Return the states whose next values a kernel makes in their memory, if no other of its level reads them."""
        if kernel.kind.family.must_alias:
            return frozenset()
        stored = partial(self._grouping.stored_before, level=kernel.level)
        walk = KernelWalk(kernel.roots, kernel.heroes if kernel.kind.family.is_cooperative else ())
        found = overwritten_where_read([walk], [self._state.get(root) for root in kernel.roots], stored)
        return frozenset(value for value in found if self._last_read.get(value, kernel.level) <= kernel.level)


@dataclass
class LaunchedTogether:
    """Kernels of one launch: none reads or updates what another changes, as far as one of the two updates arrays.

    What all of them read and change is kept together, so that none is looked at again for each that comes after it.
    """

    kernels: list[Group] = field(default_factory=list)
    _read: set[ir.Value] = field(default_factory=set)
    _changed: set[ir.Value] = field(default_factory=set)
    _read_to_update: set[ir.Value] = field(default_factory=set)
    _changed_by_updates: set[ir.Value] = field(default_factory=set)
    _in_place: set[ir.Value] = field(default_factory=set)
    _readable: set[ir.Value] = field(default_factory=set)

    def add(self, kernel: Group, memory: ArraysTouched) -> None:
        """Add a kernel that conflicts with none."""
        self.kernels.append(kernel)
        self._in_place = (self._in_place - memory.readable) | (memory.in_place - self._readable)
        self._readable |= memory.readable
        self._read |= memory.read
        self._changed |= memory.changed
        if memory.updated:
            self._read_to_update |= memory.read
            self._changed_by_updates |= memory.changed

    def conflicts(self, memory: ArraysTouched) -> bool:
        """Whether another kernel reads or updates what one of these changes, or the other way round."""
        read, changed = self._read_to_update, self._changed_by_updates
        if memory.updated:
            read, changed = self._read, self._changed
        own = memory.changed
        return not (changed.isdisjoint(memory.read) and changed.isdisjoint(own) and read.isdisjoint(own))

    def copied_before(self, memory: ArraysTouched) -> int:
        """Return how many states are copied if another kernel runs after these."""
        return len(self._in_place & memory.readable)

    def copied_after(self, memory: ArraysTouched) -> int:
        """Return how many states are copied if another kernel runs before these."""
        return len(memory.in_place & self._readable)


def launches_of(kernels: Sequence[tuple[Group, ArraysTouched]]) -> list[list[Group]]:
    """Return ``kernels`` of one level as launches, in order: with fewest launches and copies of states, one by one."""
    found: list[LaunchedTogether] = []
    for kernel, memory in kernels:
        before = [each.copied_before(memory) for each in found]
        after = [each.copied_after(memory) for each in found]
        beside = {
            number: sum(before[: number + 1]) + sum(after[number:])
            for number, each in enumerate(found)
            if not each.conflicts(memory)
        }
        best = min(beside, key=lambda each: beside[each], default=None)
        places = [sum(before[:place]) + sum(after[place:]) for place in range(len(found) + 1)]
        # Kernels that update are launched in their order, and others where that costs nothing.
        place = min(reversed(range(len(places))), key=lambda each: places[each]) if beside else len(found)
        if best is None or beside[best] > places[place] + 1:
            found.insert(place, LaunchedTogether())
            best = place
        found[best].add(kernel, memory)
    return [each.kernels for each in found]

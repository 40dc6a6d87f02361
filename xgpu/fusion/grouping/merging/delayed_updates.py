"""Delays kernels in a loop's body that may wait, so that one launch does as much as possible.

A loop that keeps something of each step, as one whose gradient is taken does of all that this needs, updates a slice of
a stack for each value, as soon as that is there. Nothing in the body reads the stacks, so updates may wait for others:
`merge_small_kernels` then has them in one kernel.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.in_place import UPDATE_SLICE, updated_operands
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.records import dataclass
from xgpu.structure import producer


def delay_updates(
    grouping: Grouping, state: Mapping[ir.Value, ir.Value], is_short: Callable[[Group], bool]
) -> Grouping:
    """Return ``grouping``, of a loop's body, with short updates of slices at the fewest levels that allow all of them.

    ``state`` maps each result to the argument in whose memory XLA keeps it: what reads that runs before it is made.
    Others do not wait, as what they store is in the cache, and takes memory for as long as it is to be stored.
    """
    intervals = Waiting(grouping, state).intervals()
    return _at_levels(grouping, dict(_delayed([each for each in intervals if is_short(each[0])])))


def delay_lone_loops(grouping: Grouping, is_part: Callable[[Group], bool]) -> Grouping:
    """Return ``grouping``, of a loop's body that a host runs, with lone loops at levels that have other small kernels.

    Such is the kernel of a counter's next value, which nothing in the body waits for. ``is_part`` tells of a group
    whether it is a small kernel, which may be one with others of its level. What is delayed has memory of its own, as
    the state is still read: the host exchanges pointers, where XLA would copy.
    """
    waiting = Waiting(grouping, {})
    parts = [group for group in grouping.groups if is_part(group)]
    counts = Counter(group.level for group in parts)
    levels: dict[Group, int] = {}
    for group in parts:
        if counts[group.level] == 1 and not group.heroes and waiting.is_read_by_none(group):
            last = waiting.last(group)
            later = [level for level, count in counts.items() if count and group.level < level <= last]
            if later:
                levels[group] = min(later)
                counts.subtract([group.level])
                counts.update([levels[group]])
    return _at_levels(grouping, levels)


def _at_levels(grouping: Grouping, levels: Mapping[Group, int]) -> Grouping:
    if not levels:
        return grouping
    # Before other kernels of their level, one of which may overwrite what they read.
    first = tuple(replace(group, level=level) for group, level in levels.items())
    made_at = {root: level for group, level in levels.items() for root in group.roots}
    return replace(
        grouping,
        begun=(*first, *(group for group in grouping.begun if group not in levels)),
        levels={**grouping.levels, **{root: level + 1 for root, level in made_at.items()}},
        stored_at={**grouping.stored_at, **made_at},
    )


def values_read(group: Group, grouping: Grouping) -> set[ir.Value]:
    """Return the values that the kernel of a group reads in memory; of what it updates in place it reads nothing."""
    pending = list(group.roots)
    if group.kind.family.updates_in_place:
        pending = [each for hero in group.heroes for each in hero.operands if each not in updated_operands(hero)]
    seen, found = set(pending), set[ir.Value]()
    while pending:
        value = pending.pop()
        if grouping.stored_before(value, group.level):
            found.add(value)
            continue
        op = producer(value)
        operands = {*grouping.read_by(op)} - seen
        seen |= operands
        pending += operands
    return found


def values_updated(group: Group) -> list[ir.Value]:
    """Return the values in whose memory a group's results are made."""
    heroes = group.heroes if group.kind.family.updates_in_place else ()
    return [value for hero in heroes for value in updated_operands(hero)]


def _delayed(intervals: Sequence[tuple[Group, int]]) -> Iterator[tuple[Group, int]]:
    """Yield the groups with new levels, of which there are as few as possible.

    Each group may run at any level from its own to the one given.
    """
    waiting = sorted(intervals, key=lambda each: each[1])
    while waiting:
        _, last = waiting[0]
        here = [group for group, _ in waiting if group.level <= last]
        level = max(group.level for group in here)
        yield from ((group, level) for group in here)
        waiting = [each for each in waiting if each[0].level > last]


@dataclass(frozen=True)
class Waiting:
    """The operations of a loop's body that can wait, and until when: ``state`` is that of `delay_updates`."""

    grouping: Grouping
    state: Mapping[ir.Value, ir.Value]

    def intervals(self) -> list[tuple[Group, int]]:
        """Return the updates of slices that nothing in the body reads, each with the last level that it can have."""
        updates = [group for group in self.grouping.groups if _updates_slices(group)]
        return [(group, self.last(group)) for group in updates if self.is_read_by_none(group)]

    def is_read_by_none(self, group: Group) -> bool:
        """Whether nothing in the body reads or updates a group's results."""
        return self._read.isdisjoint(group.roots)

    def last(self, group: Group) -> int:
        """Return the last level at which nothing that a group reads is overwritten."""
        last = max(each.level for each in self.grouping.groups)
        read = map(behind_bitcasts, values_read(group, self.grouping))
        return max(group.level, min((self._overwritten_at.get(value, last) for value in read), default=last))

    @cached_property
    def _read(self) -> set[ir.Value]:
        """The arrays that kernels or operations of the body read or update."""
        found = {each for _, op in self.grouping.fallbacks for each in self.grouping.read_by(op)}
        found |= {each for group in self.grouping.groups for each in values_updated(group)}
        return found.union(*(values_read(group, self.grouping) for group in self.grouping.groups))

    @cached_property
    def _overwritten_at(self) -> dict[ir.Value, int]:
        """The first level at which the memory of a value may become another's: an update's, or the next state's."""
        found: dict[ir.Value, int] = {}
        for group in self.grouping.groups:
            for array in map(behind_bitcasts, values_updated(group)):
                found[array] = min(group.level, found.get(array, group.level))
        for result, argument in self.state.items():
            level = self.grouping.stored_at.get(behind_bitcasts(result))
            if level is not None and behind_bitcasts(result) != argument:
                found[argument] = min(level, found.get(argument, level))
        return found


def _updates_slices(group: Group) -> bool:
    return group.kind.family.updates_in_place and all(hero.name == UPDATE_SLICE for hero in group.heroes)

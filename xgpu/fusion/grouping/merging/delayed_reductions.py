"""Delays reductions that can wait for others of the same elements, so that these are read once.

The gradient of a norm sums what comes in, and its products with what was normalised, for which a mean and a variance
have to be there first: the first sum could be a kernel of its own long before the second one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, partial

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.root_indices import MOST_ROOTS, at_root_indices
from xgpu.costs.values import elements
from xgpu.fusion.grouping.decisions import Decision, merged
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.delayed_updates import Waiting, values_read
from xgpu.indexing.hlo_maps import access_kind
from xgpu.reasons import Reason
from xgpu.structure import is_argument, producer

_SAME_READS = Reason("it can wait for the other one, which reads the same elements at the same indices")
_MOST_FOLLOWING = 16
"""Kernels that wait as well, of what reads a result: more are not followed."""


def delay_reductions(grouping: Grouping, state: Mapping[ir.Value, ir.Value]) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with reductions that nobody waits for in later kernels that read all that they read.

    ``state`` maps results of a loop's body to the arguments in whose memory XLA keeps them: what is overwritten cannot
    be read later.
    """
    delays = _Delays(grouping, state)
    return delays.grouping, delays.decisions


class _Delays:
    """The grouping as far as reductions are delayed, and what each of its groups reads."""

    def __init__(self, grouping: Grouping, state: Mapping[ir.Value, ir.Value]):
        self.grouping = grouping
        self.decisions: list[Decision] = []
        self._waiting = Waiting(grouping, state)
        self._groups = dict.fromkeys(grouping.begun)
        self._last = max((group.level for group in grouping.groups), default=0)
        self._readers: dict[ir.Value, dict[Group, None]] = {}
        self._left: dict[ir.Value, int] = {}
        self._arrays: dict[Group, frozenset[ir.Value]] = {}
        # Until a group is exchanged: the pieces of each that is asked about, and what each of them reads.
        self._pieces: dict[Group, Sequence[Group]] = {}
        self._read_by: dict[Group, Set[ir.Value]] = {}
        self._last_of: dict[Group, int] = {}
        reductions = [group for group in grouping.groups if _is_reduction(group)]
        kinds = {(group.kind, group.level) for group in reductions}
        if len({kind for kind, _ in kinds}) == len(kinds):
            return
        for level, op in grouping.fallbacks:
            for value in grouping.read_by(op):
                self._left[value] = min(level, self._left.get(value, level))
        for group in grouping.groups:
            self._note(group)
        for group in reductions:
            self._delay(group)

    def _note(self, group: Group) -> None:
        """Remember what a new group reads."""
        if not group.roots:
            return
        for value in values_read(group, self.grouping):
            self._readers.setdefault(value, {})[group] = None
        if _is_reduction(group):
            self._arrays[group] = arrays_of(group, self.grouping)

    def _delay(self, early: Group) -> None:
        """Move what can wait of a group to others."""
        if early not in self._groups or not self._candidates(early, self._arrays[early]):
            return
        for part in self._pieces_of(early):
            later = self._later(part, early) if part.heroes else None
            if later is not None:
                self.decisions.append(merged(later.roots[0], part.roots[0], _SAME_READS))
                self._wait(part.roots, later.level + 1)
                rest = _without(early, part)
                self._replace({early: rest, later: _with(later, part)}, part.roots, later.level)
                early = rest

    def _candidates(self, early: Group, read: frozenset[ir.Value]) -> list[Group]:
        """Return the later reductions of the same dimensions that read some of what a group reads, or all of it."""
        readers = dict.fromkeys(group for value in read for group in self._readers.get(value, ()))
        return [group for group in readers if group.kind == early.kind and group.level > early.level]

    def _later(self, part: Group, early: Group) -> Group | None:
        """Return a later group that can compute a part of one at no cost, if it is of use that it does."""
        read = arrays_of(part, self.grouping)
        rest = _without(early, part)
        if not read or (rest.heroes and read <= arrays_of(rest, self.grouping)):
            return None
        following = self._following(part)
        if following is None:
            return None
        last = min(self._waiting.last(part), following[1])
        for later in sorted(self._candidates(early, read), key=lambda each: each.level):
            is_full = max(len((*later.heroes, *part.heroes)), len((*later.roots, *part.roots))) > MOST_ROOTS
            if later.level <= last and not is_full and following[0].isdisjoint(later.roots):
                return later if read <= self._arrays[later] else None
        return None

    def _following(self, part: Group) -> tuple[set[ir.Value], int] | None:
        """Return what is stored of all that is computed from a part, and the last level at which this can be.

        What reads it can wait as well, if it is a loop or a reduction. None if very much would wait.
        """
        found, last, pending = set(part.roots), self._last, [(part, 0)]
        reached: dict[Group, int] = {}
        while pending:
            piece, steps = pending.pop()
            for root in piece.roots:
                last = min(last, self._left.get(root, self._last + 1) - 1 - steps)
                for group in self._readers.get(root, ()):
                    if not (group.kind.family.stores_beside or not (group.heroes or group.parts)):
                        last = min(last, group.level - 1 - steps)
                        continue
                    for reader in self._readers_of(root, group):
                        last = min(last, min(self._last, self._last_level(reader)) - 1 - steps)
                        found.update(reader.roots)
                        # What was reached in as many steps bounds all that follows as much.
                        if reached.get(reader, 0) <= steps:
                            reached[reader] = steps + 1
                            pending.append((reader, steps + 1))
            if len(found) > _MOST_FOLLOWING:
                return None
        return found, last

    def _wait(self, roots: Sequence[ir.Value], level: int) -> None:
        """Have all that reads some values run at a level or later, and so on."""
        for root in roots:
            for group in [each for each in self._readers.get(root, ()) if each.level < level]:
                for reader in self._readers_of(root, group):
                    self._wait(reader.roots, level + 1)
                    now = next(each for each in self._groups if set(reader.roots) <= set(each.roots))
                    if now.level < level:
                        heroes = partial(heroes_of, group=now, grouping=self.grouping)
                        moved = replace(_piece(now, reader.roots, heroes), level=level)
                        self._replace({now: _without(now, moved)}, moved.roots, level, moved)

    def _readers_of(self, root: ir.Value, group: Group) -> list[Group]:
        """Return the pieces of a loop, or of a reduction, that read a value."""
        pieces = self._pieces_of(group)
        for piece in pieces:
            if piece not in self._read_by:
                self._read_by[piece] = values_read(piece, self.grouping)
        return [piece for piece in pieces if root in self._read_by[piece]]

    def _pieces_of(self, group: Group) -> Sequence[Group]:
        if group not in self._pieces:
            self._pieces[group] = list(_pieces(group, self.grouping))
        return self._pieces[group]

    def _last_level(self, piece: Group) -> int:
        """Return the last level at which nothing that a piece reads is overwritten."""
        if piece not in self._last_of:
            self._last_of[piece] = self._waiting.last(piece)
        return self._last_of[piece]

    def _replace(
        self, new: Mapping[Group, Group], roots: Sequence[ir.Value], level: int, more: Group | None = None
    ) -> None:
        """Exchange groups, and add one, where ``roots`` are stored at a level now."""
        for known in (self._pieces, self._read_by, self._last_of):
            known.clear()
        groups = [new.get(group, group) for group in self._groups] + ([] if more is None else [more])
        self._groups = dict.fromkeys(groups)
        self.grouping = replace(
            self.grouping,
            begun=tuple(groups),
            levels={**self.grouping.levels, **dict.fromkeys(roots, level + 1)},
            stored_at={**self.grouping.stored_at, **dict.fromkeys(roots, level)},
        )
        for old in new:
            for readers in self._readers.values():
                readers.pop(old, None)
        for group in (*new.values(), *([] if more is None else [more])):
            self._note(group)


def _is_reduction(group: Group) -> bool:
    return bool(group.heroes) and group.kind.family.stores_beside


def _pieces(group: Group, grouping: Grouping) -> Iterator[Group]:
    """Yield what can be computed of a group apart: heroes that share no result with others, with their own results."""
    heroes = cache(partial(heroes_of, group=group, grouping=grouping))
    left = list(group.roots)
    while left:
        piece = _piece(group, left[:1], heroes)
        left = [root for root in left if root not in piece.roots]
        yield piece


def _piece(group: Group, roots: Sequence[ir.Value], heroes_of: Callable[[ir.Value], Set[ir.Operation]]) -> Group:
    """Return the part of a group that stores some of its results: with all that depend on the same heroes."""
    of_root = {root: heroes_of(root) for root in group.roots}
    heroes, count = set[ir.Operation]().union(*(of_root[root] for root in roots)), -1
    while count != len(heroes):
        count = len(heroes)
        heroes = heroes.union(*(each for each in of_root.values() if each & heroes))
    kept = tuple(root for root, each in of_root.items() if each & heroes or root in roots)
    return replace(
        group,
        heroes=tuple(hero for hero in group.heroes if hero in heroes),
        roots=kept,
        forms={value: form for value, form in group.forms.items() if heroes_of(value) & heroes},
    )


def heroes_of(value: ir.Value, group: Group, grouping: Grouping) -> set[ir.Operation]:
    """Return the heroes of a group that a value of its epilogue depends on."""
    pending, seen, found = [value], {value}, set[ir.Operation]()
    while pending and group.heroes:
        each = pending.pop()
        if grouping.stored_before(each, group.level):
            continue
        op = producer(each)
        if op in group.heroes:
            found.add(op)
            continue
        operands = {*grouping.read_by(op)} - seen
        seen |= operands
        pending += operands
    return found


def arrays_of(group: Group, grouping: Grouping) -> frozenset[ir.Value]:
    """Return the arrays in memory that heroes read at their own indices; none if they read as many elements besides."""
    stored = partial(grouping.stored_before, level=group.level)
    read = [value for hero in group.heroes for value in list(hero.operands)[: len(hero.results)]]
    ops = list(at_root_indices(read, stored, behind_bitcasts=True))
    values = {*read} | {
        each for op in ops if is_bitcast(op) or access_kind(op) == "elementwise" for each in op.operands
    }
    whole = elements(read[0])
    arrays = {value for value in values if elements(value) == whole and (is_argument(value) or stored(value))}
    others = {value for value in _read_by(group, grouping) if elements(value) >= whole}
    return frozenset(arrays) if others <= arrays else frozenset()


def _read_by(group: Group, grouping: Grouping) -> set[ir.Value]:
    """Return the values in memory that heroes are computed from."""
    pending = [value for hero in group.heroes for value in hero.operands]
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


def _without(group: Group, part: Group) -> Group:
    """Return a group without a part of it."""
    return replace(
        group,
        heroes=tuple(hero for hero in group.heroes if hero not in part.heroes),
        roots=tuple(root for root in group.roots if root not in part.roots),
        forms={value: form for value, form in group.forms.items() if value not in part.forms},
    )


def _with(group: Group, part: Group) -> Group:
    """Return a group that computes a part of another as well."""
    return replace(
        group,
        heroes=(*group.heroes, *part.heroes),
        roots=(*group.roots, *part.roots),
        forms={**group.forms, **part.forms},
    )

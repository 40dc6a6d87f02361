"""The barriers of a block: as few as possible for a given order.

Each two events that must not be close are an arc of gaps, one of which needs a meeting. The gaps of a body of steps are
a circle: the last one is before the next step begins. A smallest set of gaps that lie in all arcs of a circle is found
by trying each gap as the first one, and then always the last gap that does (interval stabbing). Meetings in steps come
first: there are many steps. Of several such sets those of all loops are chosen together, one loop after the other: how
many meetings what follows needs depends only on where the last one is.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from xgpu.block_plan.order.events import BlockOrder, Event, StagedGraph
from xgpu.records import dataclass

type _Arc = frozenset[int]
"""Gaps, one of which needs a meeting: of a body by their place, the last one before the next step begins."""


@dataclass(frozen=True)
class Meetings:
    """The nodes before which all threads meet; of what ends a step, before the next one begins."""

    nodes: frozenset[int]
    in_steps: int
    outside: int


def meetings(plan: StagedGraph, order: BlockOrder, given: Collection[int] = ()) -> Meetings:
    """Return where threads meet, at the ``given`` nodes in any case."""
    bodies = [number for number in order.regions[0] if plan.graph.nodes[number].kind == "steps"]
    ways = {steps: list(_smallest_sets(plan, order, steps, given)) for steps in bodies}
    best = _fewest(plan, order, ways, frozenset(given))
    return Meetings(best.inside | best.outside | frozenset(given), len(best.inside), len(best.outside))


def _smallest_sets(
    plan: StagedGraph, order: BlockOrder, steps: int, given: Collection[int]
) -> Iterator[frozenset[int]]:
    """Yield smallest sets of nodes of a body before which threads have to meet."""
    nodes = [*order.regions.get(plan.graph.nodes[steps].body, ()), end_of(plan, steps)]
    fixed = frozenset(place for place, node in enumerate(nodes) if node in given)
    for way in circles(_arcs(plan, steps, nodes), len(nodes), fixed):
        yield frozenset(nodes[gap] for gap in way)


def suffices(plan: StagedGraph, order: BlockOrder, met: Collection[int]) -> bool:
    """Whether nothing meets that must not if all threads meet before these nodes."""
    for steps in (number for number in order.regions[0] if plan.graph.nodes[number].kind == "steps"):
        nodes = [*order.regions.get(plan.graph.nodes[steps].body, ()), end_of(plan, steps)]
        if any(all(nodes[gap] not in met for gap in arc) for arc in _arcs(plan, steps, nodes)):
            return False
    return not _fewest(plan, order, {}, frozenset(met)).outside


def end_of(plan: StagedGraph, steps: int) -> int:
    """Return the node that ends each of some steps."""
    body = plan.graph.nodes[steps].body
    return next(number for number in plan.graph.within(body) if plan.graph.nodes[number].kind == "yield")


def circles(arcs: Sequence[_Arc], count: int, fixed: frozenset[int]) -> list[frozenset[int]]:
    """Return the smallest sets of ``count`` gaps of a circle, the ``fixed`` among them, that meet all arcs.

    Each arc is a run of gaps of the circle. Of the smallest sets there is one for each gap to begin with.
    """
    left = [arc for arc in arcs if not arc & fixed]
    if not left:
        return [fixed]
    found = {fixed | _greedy(left, [(first + step) % count for step in range(count)]) for first in range(count)}
    least = min(map(len, found))
    return sorted((way for way in found if len(way) == least), key=sorted)


def _greedy(arcs: Sequence[_Arc], gaps: Sequence[int]) -> frozenset[int]:
    """Return gaps that meet all arcs: the first one, and then each that is the last of an arc not met so far."""
    chosen = {gaps[0]}
    place = {gap: number for number, gap in enumerate(gaps)}
    open_arcs = [arc for arc in arcs if gaps[0] not in arc]
    for arc in sorted(open_arcs, key=lambda arc: max(place[gap] for gap in arc)):
        if not arc & chosen:
            chosen.add(max(arc, key=lambda gap: place[gap]))
    return frozenset(chosen)


def _arcs(plan: StagedGraph, steps: int, nodes: Sequence[int]) -> list[_Arc]:
    """Return the arcs of a body: the gap of a node is before it, that of the last one after all others."""
    events = [plan.event(node) for node in nodes[:-1]]
    last = len(events)
    # What the first step takes is written where the steps begin, after what stands before them.
    found = [frozenset(range(place + 1)) for place, event in enumerate(events) if plan.event(steps).meets(event)]
    for (i, first), (j, second) in itertools.combinations(enumerate(events), 2):
        if first.meets(second):
            found.append(frozenset(range(i + 1, j + 1)))
        if second.meets(first):
            found.append(frozenset((*range(j + 1, last + 1), *range(i + 1))))
    for place, node in enumerate(nodes[:-1]):
        if node in plan.ahead:
            copied = plan.memory[plan.graph.nodes[node].results[0]]
            for reader in (number for number, event in enumerate(events) if copied in event.reads):
                # A step begins with the arrival of its copies, and copies into what the step before has read.
                found.append(frozenset(range(reader + 1)))
                found.append(frozenset((*range(reader + 1, last + 1), *range(place + 1))))
    return found


def timeline(plan: StagedGraph, order: BlockOrder) -> Iterator[tuple[Event, int]]:
    """Yield all events of a block, those of one step of each loop, each with the steps it is in, -1 outside."""
    for number in order.regions[0]:
        yield plan.event(number), -1
        node = plan.graph.nodes[number]
        if node.kind == "steps" and node.count:
            for inner in order.regions.get(node.body, ()):
                yield plan.event(inner), number


@dataclass(frozen=True)
class _Chosen:
    """The meetings that are chosen up to an event; ``last`` is the place of the last event that follows one."""

    inside: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()
    at_ends: int = 0
    last: int = 0

    @property
    def cost(self) -> tuple[int, int, list[int]]:
        """The cost to minimise: meetings outside, then those of steps that are not at their ends."""
        return len(self.outside), -self.at_ends, sorted(self.inside)


def _fewest(
    plan: StagedGraph, order: BlockOrder, ways: Mapping[int, Sequence[frozenset[int]]], given: frozenset[int]
) -> _Chosen:
    """Return one of the ``ways`` for the meetings of each body, and the meetings outside that there have to be then."""
    events = list(timeline(plan, order))
    chosen = [_Chosen()]
    for number, group in itertools.groupby(range(len(events)), lambda place: _region_event(events[place])):
        places = list(group)
        if number in ways:
            end = end_of(plan, number)
            chosen = [
                replace(each, inside=each.inside | way, at_ends=each.at_ends + (end in way))
                for each, way in itertools.product(chosen, ways[number])
            ]
        found = [_followed(events, places, each, given) for each in chosen]
        by_last = itertools.groupby(sorted(found, key=lambda each: each.last), lambda each: each.last)
        chosen = [min(same, key=lambda each: each.cost) for _, same in by_last]
    return min(chosen, key=lambda each: each.cost)


def _region_event(event: tuple[Event, int]) -> int:
    """Return the node outside of steps that an event belongs to: the steps that it is in, or its own."""
    own, steps = event
    return own.node if steps < 0 else steps


def _followed(
    events: Sequence[tuple[Event, int]], places: Iterable[int], before: _Chosen, given: frozenset[int]
) -> _Chosen:
    """Return the meetings with those outside that the events of some places need besides the ones before them."""
    last, outside = before.last, set(before.outside)
    for j in places:
        second, inside = events[j]
        if second.node in given or second.node in before.inside:
            last = j
        for i in range(j - 1, last - 1, -1):
            first, inside_first = events[i]
            if (inside < 0 or inside not in (inside_first, first.node)) and first.meets(second):
                # The latest gap outside of steps; those after an event of steps are after all of them.
                last = next(place for place in range(j, i, -1) if events[place][1] < 0)
                outside.add(events[last][0].node)
                break
    return replace(before, outside=frozenset(outside), last=last)

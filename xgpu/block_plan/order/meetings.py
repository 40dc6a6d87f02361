"""The barriers of a block: as few as possible for a given order.

Each two events that must not be close are an arc of gaps, one of which needs a meeting. The gaps of a body of steps are
a circle: the last one is before the next step begins. A smallest set of gaps that lie in all arcs of a circle is found
by trying each gap as the first one, and then always the last gap that does (interval stabbing). Meetings in steps come
first: there are many steps.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence

from xgpu.block_plan.order.events import BlockOrder, Event, StagedGraph
from xgpu.records import dataclass

_MOST_WAYS = 4096
"""Combinations of meetings of several loops that are compared at most."""

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
    ways = []
    for steps in bodies:
        nodes = [*order.regions.get(plan.graph.nodes[steps].body, ()), end_of(plan, steps)]
        fixed = frozenset(place for place, node in enumerate(nodes) if node in given)
        arcs = _arcs(plan, steps, nodes)
        ways.append([frozenset(nodes[gap] for gap in way) for way in circles(arcs, len(nodes), fixed)])
    found = []
    for combination in itertools.islice(itertools.product(*ways), _MOST_WAYS):
        inside = frozenset[int]().union(*combination)
        outside = _outside(plan, order, inside | frozenset(given))
        at_ends = sum(end_of(plan, steps) in inside for steps in bodies)
        found.append((len(outside), -at_ends, sorted(inside), inside, outside))
    _, _, _, inside, outside = min(found, key=lambda way: way[:3])
    return Meetings(inside | outside | frozenset(given), len(inside), len(outside))


def suffices(plan: StagedGraph, order: BlockOrder, met: Collection[int]) -> bool:
    """Whether nothing meets that must not if all threads meet before these nodes."""
    for steps in (number for number in order.regions[0] if plan.graph.nodes[number].kind == "steps"):
        nodes = [*order.regions.get(plan.graph.nodes[steps].body, ()), end_of(plan, steps)]
        if any(all(nodes[gap] not in met for gap in arc) for arc in _arcs(plan, steps, nodes)):
            return False
    return not _outside(plan, order, frozenset(met))


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


def _outside(plan: StagedGraph, order: BlockOrder, known: frozenset[int]) -> frozenset[int]:
    """Return the meetings outside of steps that there have to be besides those that are known."""
    events = list(timeline(plan, order))
    chosen: set[int] = set()
    for j, (second, inside) in enumerate(events):
        for i, (first, inside_first) in reversed(list(enumerate(events[:j]))):
            if (inside >= 0 and inside in (inside_first, first.node)) or not first.meets(second):
                continue
            between = events[i + 1 : j + 1]
            if not any(event.node in known or event.node in chosen for event, _ in between):
                # The latest gap outside of steps; those after an event of steps are after all of them.
                chosen.add([event.node for event, steps in between if steps < 0][-1])
    return frozenset(chosen)

"""The lifetimes of tiles: the spans between two barriers in which some thread may access a tile's memory.

Spans are bits of a number. Two tiles may lie in the same memory if they share none: all threads meet between the last
access of one and the first of the other. Where a step begins without a meeting after the one before, its first and its
last span are one, which is a bit of its own for what is accessed in them.
"""

from collections.abc import Collection

from xgpu.block_plan.order.events import BlockOrder, Event, StagedGraph
from xgpu.block_plan.order.meetings import end_of, timeline


def lifetimes(plan: StagedGraph, order: BlockOrder, met: Collection[int]) -> dict[int, int]:
    """Return the spans of the memory of each tile; threads meet before the nodes ``met``."""
    events = list(timeline(plan, order))
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    spans: dict[int, list[int]] = {}
    inner: dict[int, list[tuple[int, frozenset[int]]]] = {}
    span = 0
    for event, steps in events:
        span += event.node in met
        accessed = _accessed(plan, event)
        for tile in accessed:
            first.setdefault(tile, span)
            last[tile] = span
        around = steps if steps >= 0 else event.node if plan.graph.nodes[event.node].kind == "steps" else -1
        if around >= 0:
            spans.setdefault(around, []).append(span)
            inner.setdefault(around, []).append((span, accessed if steps >= 0 else frozenset()))
    for steps, through in spans.items():
        for tile in _whole(plan, steps, first, through[0]):
            first[tile], last[tile] = min(first.get(tile, through[0]), through[0]), max(last.get(tile, 0), through[-1])
    found = {tile: ((1 << last[tile] - first[tile] + 1) - 1) << first[tile] for tile in first}
    for number, (steps, accesses) in enumerate(inner.items()):
        if end_of(plan, steps) in met:
            continue
        edges = (spans[steps][0], spans[steps][-1])
        both = {tile for at, tiles in accesses if at in edges for tile in tiles} | _through(found, edges)
        for tile in both:
            found[tile] |= 1 << span + 1 + number
    return found


def spans(plan: StagedGraph, order: BlockOrder, met: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the first and the last span of each acting node, which differ for steps; there are so many meetings."""
    found: dict[int, tuple[int, int]] = {}
    span = 0
    for event, steps in timeline(plan, order):
        span += event.node in met
        found[event.node] = (span, span)
        if steps >= 0:
            found[steps] = (found[steps][0], span)
    return found


def ends(plan: StagedGraph, order: BlockOrder) -> dict[int, tuple[int, int]]:
    """Return which nodes access the memory of each tile first and last: steps, if it is in use through all of them."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    nodes = [event.node for event, _ in timeline(plan, order)]
    through: dict[int, tuple[int, int]] = {}
    for place, (event, steps) in enumerate(timeline(plan, order)):
        for tile in _accessed(plan, event):
            first.setdefault(tile, place)
            last[tile] = place
        if plan.graph.nodes[event.node].kind == "steps":
            through[event.node] = (place, place)
        if steps >= 0:
            through[steps] = (through[steps][0], place)
    for begin, end in through.values():
        for tile in _whole(plan, nodes[begin], first, begin):
            first[tile] = min(first.get(tile, begin), begin)
            last[tile] = begin if last.get(tile, begin) <= end else last[tile]
    return {tile: (nodes[first[tile]], nodes[last[tile]]) for tile in first}


def _accessed(plan: StagedGraph, event: Event) -> frozenset[int]:
    """Return the memory that an event accesses, and what it copies ahead."""
    copied = {plan.memory[tile] for tile in plan.graph.nodes[event.node].results if tile in plan.memory}
    return event.reads | event.writes | copied


def _whole(plan: StagedGraph, steps: int, first: dict[int, int], begin: int) -> set[int]:
    """Return what is in use through all steps: what is carried, what is copied ahead, and what is from before."""
    carried = {plan.memory[each.result] for each in plan.graph.carried_by(steps) if each.result in plan.memory}
    ahead = {plan.memory[plan.graph.nodes[node].results[0]] for node, of in plan.ahead.items() if of == steps}
    body = plan.graph.nodes[steps].body
    read = {tile for number in plan.graph.within(body) if plan.acts(number) for tile in plan.event(number).reads}
    return carried | ahead | {tile for tile in read if first.get(tile, begin) < begin or _is_outer(plan, tile, body)}


def _is_outer(plan: StagedGraph, tile: int, body: int) -> bool:
    return plan.graph.nodes[plan.graph.maker[tile]].region != body


def _through(found: dict[int, int], edges: tuple[int, int]) -> set[int]:
    """Return what is in use in both spans."""
    return {tile for tile, used in found.items() if used >> edges[0] & 1 and used >> edges[1] & 1}

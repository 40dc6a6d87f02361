"""The order in which a block does things, and where all its threads meet: fewest meetings, then least memory.

Meetings in steps count first, then those outside, then the bytes of shared memory in use at once. (Mirage's notes, "TB
graph scheduling", take any of the orders with the fewest.) The bodies of steps are arranged in layers, then what is
outside, in which steps are two jobs: up to their first meeting, and from their last one on. See
`xgpu.block_plan.order.layers` for what is exact.
"""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from xgpu.block_plan.order.events import BlockOrder, Event, StagedGraph, needs, text_order
from xgpu.block_plan.order.layers import Job, Layers, arrange
from xgpu.block_plan.order.lifetimes import lifetimes
from xgpu.block_plan.order.meetings import end_of, meetings, suffices, timeline
from xgpu.records import dataclass

_MOST_LOOPS = 4
"""Loops of which both ways to place a meeting between two steps are tried."""


@dataclass(frozen=True)
class FoundSchedule:
    """An order, and the nodes before which all threads meet: so many in steps, and outside; ``peak`` bytes in use."""

    order: BlockOrder
    met: frozenset[int]
    in_steps: int
    outside: int
    peak: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """The cost to minimise."""
        return self.in_steps, self.outside, self.peak


def schedule(plan: StagedGraph, sizes: Mapping[int, int], given: Collection[int] = ()) -> FoundSchedule:
    """Return the best order that is found, the one of the text if none is better; with ``given`` meetings that one.

    ``sizes`` are the bytes of each memory.
    """
    text = text_order(plan)
    found = [_schedule(plan, sizes, text, meetings(plan, text, given).nodes)]
    if not given:
        found += _searched(plan, sizes)
    best = min(found, key=lambda each: each.cost)
    return best if given else _with_early_copies(plan, best)


def _with_early_copies(plan: StagedGraph, found: FoundSchedule) -> FoundSchedule:
    """Move what is copied ahead to where a step can first do it, without another meeting."""
    order = found.order
    for node in plan.ahead:
        region = plan.graph.nodes[node].region
        rest = [number for number in order.regions[region] if number != node]
        if node in found.met:
            continue
        ways = (BlockOrder({**order.regions, region: [*rest[:at], node, *rest[at:]]}) for at in range(len(rest) + 1))
        before = needs(plan, region)[node]
        order = next(
            way
            for way in ways
            if suffices(plan, way, found.met) and before <= set(way.regions[region][: way.regions[region].index(node)])
        )
    return replace(found, order=order)


def _searched(plan: StagedGraph, sizes: Mapping[int, int]) -> Iterator[FoundSchedule]:
    """Yield the schedules for each way to place the meetings between steps: at their end, or where they begin."""
    loops = [number for number in plan.graph.within(0) if plan.graph.nodes[number].kind == "steps"]
    bodies = {
        steps: arrange(_jobs(plan, plan.graph.nodes[steps].body), _own(plan, steps, sizes), True) for steps in loops
    }
    choices = [(False, True) if bodies[steps].ends and len(loops) <= _MOST_LOOPS else (False,) for steps in loops]
    for ways in itertools.product(*choices):
        regions, met = {}, set[int]()
        for steps, at_begin in zip(loops, ways, strict=True):
            order, inside = _flattened(plan, bodies[steps])
            regions[plan.graph.nodes[steps].body] = order
            met |= inside
            if bodies[steps].ends and order:
                met.add(order[0] if at_begin else end_of(plan, steps))
        outer = arrange(_outer_jobs(plan, regions, met), sizes, False)
        regions[0], outside = _flattened(plan, outer)
        whole = BlockOrder(regions)
        wanted = frozenset(met | outside)
        yield _schedule(plan, sizes, whole, meetings(plan, whole).nodes)
        if suffices(plan, whole, wanted):
            yield _schedule(plan, sizes, whole, wanted)


def _schedule(plan: StagedGraph, sizes: Mapping[int, int], order: BlockOrder, met: frozenset[int]) -> FoundSchedule:
    used = lifetimes(plan, order, met)
    spans = max((each.bit_length() for each in used.values()), default=0)
    peak = max((sum(sizes[each] for each in used if used[each] >> span & 1) for span in range(spans)), default=0)
    in_steps = sum(plan.graph.nodes[number].region != 0 for number in met)
    return FoundSchedule(order, met, in_steps, len(met) - in_steps, peak)


def _own(plan: StagedGraph, steps: int, sizes: Mapping[int, int]) -> dict[int, int]:
    """Return the sizes of tiles that are in use only for a part of each step."""
    body = plan.graph.nodes[steps].body
    made = {
        plan.memory[tile]
        for number in plan.graph.within(body)
        if number not in plan.ahead
        for tile in plan.graph.nodes[number].results
        if tile in plan.memory
    }
    carried = {plan.memory[each.result] for each in plan.graph.carried_by(steps) if each.result in plan.memory}
    return {memory: sizes[memory] for memory in made - carried}


def _jobs(plan: StagedGraph, region: int) -> dict[int, Job]:
    """Return what is done in each step, those that copy ahead first."""
    waiting, begin = needs(plan, region), plan.event(region - 1)
    ahead = {plan.memory[plan.graph.nodes[node].results[0]]: node for node in plan.ahead}
    jobs = {}
    for number in _sorted(waiting, lambda each: (each not in plan.ahead, each)):
        event = plan.event(number)
        copied = plan.graph.nodes[number].results if number in plan.ahead else ()
        refills = frozenset(plan.memory[tile] for tile in copied)
        late = any(memory in ahead for memory in event.reads) or begin.meets(event)
        jobs[number] = Job(
            frozenset(waiting[number]), event.reads, event.writes, event.reads | event.writes, refills, late
        )
    return jobs


def _outer_jobs(plan: StagedGraph, regions: Mapping[int, list[int]], met: Collection[int]) -> dict[int, Job]:
    """Return what is done outside of steps; steps are two jobs if threads meet in them, the second below zero."""
    waiting = needs(plan, 0)
    jobs: dict[int, Job] = {}
    behind: dict[int, int] = {}
    for number in _sorted(waiting, lambda each: (each,)):
        node, event = plan.graph.nodes[number], plan.event(number)
        before = frozenset(behind.get(each, each) for each in waiting[number])
        if node.kind != "steps":
            jobs[number] = Job(before, event.reads, event.writes, event.reads | event.writes)
            continue
        alone = BlockOrder({0: [number], **regions})
        events = [event for event, _ in timeline(plan, alone)]
        cuts = [place for place, event in enumerate(events) if event.node in met]
        uses = frozenset().union(*(each.reads | each.writes for each in events))
        parts = [events] if not cuts else [events[: cuts[0]], events[cuts[-1] :]]
        tail = -1 - number if cuts else None
        jobs[number] = _together(parts[0], before, uses, tail)
        if tail is not None:
            jobs[tail] = _together(parts[-1], frozenset((number,)), uses, None)
            behind[number] = tail
    return jobs


def _together(events: list[Event], before: frozenset[int], uses: frozenset[int], tail: int | None) -> Job:
    reads = frozenset[int]().union(*(each.reads for each in events))
    writes = frozenset[int]().union(*(each.writes for each in events))
    return Job(before, reads, writes, uses, tail=tail)


def _sorted(waiting: Mapping[int, set[int]], key: Callable[[int], tuple[int, ...]]) -> list[int]:
    left, found = dict(waiting), list[int]()
    while left:
        ready = [number for number, before in left.items() if not before & left.keys()]
        found.append(min(ready, key=key))
        del left[found[-1]]
    return found


def _flattened(plan: StagedGraph, layers: Layers) -> tuple[list[int], set[int]]:
    """Return the order of jobs, and those before which threads meet: the first of each layer, but of tails' none."""
    order: list[int] = []
    met: set[int] = set()
    every = {number for layer in layers.layers for number in layer}
    regions = {plan.graph.nodes[number].region for number in every if number >= 0}
    waiting = {number: before for region in regions for number, before in needs(plan, region).items()}
    for place, layer in enumerate(layers.layers):
        tails = [number for number in layer if number < 0]
        heads = [number for number in layer if number >= 0 and -1 - number in every]
        rest = [number for number in layer if number >= 0 and number not in heads]
        jobs = _after_needs(waiting, [*rest, *heads])
        if place and jobs and not tails:
            met.add(jobs[0])
        order += jobs
    return order, met


def _after_needs(waiting: Mapping[int, set[int]], jobs: Sequence[int]) -> list[int]:
    """Return the jobs of a layer in their order, but each after those of them that it needs.

    What is computed from accumulators that steps leave in registers may be in the layer of the steps.
    """
    places = {number: place for place, number in enumerate(jobs)}
    return _sorted({number: waiting[number] & places.keys() for number in jobs}, lambda each: (places[each],))

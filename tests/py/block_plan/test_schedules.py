"""Drawn blocks, ordered and placed: no thread reads or writes bytes that another one may be at."""

import random

import pytest

from xgpu.block_plan.memory.storage import Block, overlaps, place
from xgpu.block_plan.order import layers
from xgpu.block_plan.order.events import StagedGraph, needs, text_order
from xgpu.block_plan.order.lifetimes import lifetimes
from xgpu.block_plan.order.meetings import meetings, suffices
from xgpu.block_plan.order.schedules import schedule

from .graphs import Writer, accesses, drawn, with_copies


def drawn_plan(seed: int) -> StagedGraph:
    rng = random.Random(seed)
    plan = with_copies(drawn(rng))
    loops = [number for number, node in enumerate(plan.graph.nodes) if node.kind == "steps"]
    return StagedGraph(plan.graph, plan.where, {number: rng.choice((1, 1, 2, 3)) for number in loops})


def races(plan: StagedGraph, order: object, met: frozenset[int]) -> list[str]:
    sizes = {memory: 1 + memory % 3 for memory in plan.memory.values()}
    buffers = {
        memory: plan.stages[plan.ahead[maker]] for memory in sizes if (maker := plan.graph.maker[memory]) in plan.ahead
    }
    used = lifetimes(plan, order, met)
    memories = sorted(used)
    blocks = [Block(sizes[each] * buffers.get(each, 1), 1, used[each]) for each in memories]
    placement = place(blocks, {}, exactly=False)
    assert not overlaps(blocks, placement.offsets)
    found = list(accesses(plan, order, met, dict(zip(memories, placement.offsets, strict=True)), sizes))
    return [f"{one} {other}" for number, one in enumerate(found) for other in found[:number] if one.races(other)]


@pytest.mark.parametrize("seed", range(300))
def test_no_races(seed: int) -> None:
    plan = drawn_plan(seed)
    sizes = {memory: 1 + memory % 3 for memory in plan.memory.values()}
    found = schedule(plan, sizes)
    assert not races(plan, found.order, found.met)
    assert suffices(plan, found.order, found.met)
    for region, numbers in found.order.regions.items():
        before = needs(plan, region)
        assert sorted(numbers) == sorted(before)
        for position, number in enumerate(numbers):
            assert before[number] <= set(numbers[:position])


@pytest.mark.parametrize("seed", range(100))
def test_no_races_where_jobs_are_too_many_to_search(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_GROUPS", 3)
    test_no_races(seed)


@pytest.mark.parametrize("seed", range(100))
def test_no_races_in_the_order_of_the_text(seed: int) -> None:
    plan = drawn_plan(seed)
    order = text_order(plan)
    assert not races(plan, order, meetings(plan, order).nodes)


def test_fewer_meetings_than_in_the_order_of_the_text() -> None:
    """Of 300 drawn blocks, the search saves meetings in steps, or bytes, in some."""
    gains = {"meetings": 0, "bytes": 0}
    for seed in range(100):
        plan = drawn_plan(seed)
        sizes = {memory: 1 + memory % 3 for memory in plan.memory.values()}
        order = text_order(plan)
        text, best = meetings(plan, order), schedule(plan, sizes)
        assert (best.in_steps, best.outside) <= (text.in_steps, text.outside)
        gains["meetings"] += (best.in_steps, best.outside) < (text.in_steps, text.outside)
        gains["bytes"] += best.peak < schedule(plan, sizes, text.nodes).peak
    assert min(gains.values()) > 0, gains


@pytest.mark.parametrize("seed", range(60))
def test_every_meeting_is_needed(seed: int) -> None:
    """Without one of the meetings, something is missing: threads do not meet for nothing."""
    plan = drawn_plan(seed)
    sizes = dict.fromkeys(plan.memory.values(), 1)
    found = schedule(plan, sizes)
    assert not any(suffices(plan, found.order, found.met - {number}) for number in found.met)


def loops_with_two_ways(count: int) -> StagedGraph:
    """Loops one after the other, whose threads can meet in two ways, each with a reduction after it."""
    writer = Writer()
    total = writer.node("read")
    for _ in range(count):
        region, (carried,), (result,) = writer.steps((total,))
        part = writer.node("reduce", (writer.node("read", (), region),), region)
        writer.end(region, [carried], [writer.node("reduce", (carried, part), region)])
        total = writer.node("reduce", (result,))
    writer.node("write", (total,), results=0)
    plan = with_copies(writer.graph())
    loops = [number for number, node in enumerate(plan.graph.nodes) if node.kind == "steps"]
    return StagedGraph(plan.graph, plan.where, dict.fromkeys(loops, 2))


def test_meetings_of_many_loops() -> None:
    """Forty loops have 2^40 combinations of meetings: the fewest are found without looking at each."""
    few, many = (loops_with_two_ways(count) for count in (2, 40))
    for plan, count in ((few, 2), (many, 40)):
        found = meetings(plan, text_order(plan))
        assert (found.in_steps, found.outside) == (3 * count, count + 1)
        assert suffices(plan, text_order(plan), found.nodes)


def test_given_meetings_stay() -> None:
    plan = drawn_plan(3)
    sizes = dict.fromkeys(plan.memory.values(), 1)
    order = text_order(plan)
    given = frozenset(order.regions[0][1:])
    found = schedule(plan, sizes, given)
    assert found.met >= given
    assert found.order == order

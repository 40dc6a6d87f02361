"""Which nodes access a tile first and last, and when: as the accesses of drawn blocks, step by step, show."""

import pytest

from xgpu.block_plan.order.events import text_order
from xgpu.block_plan.order.lifetimes import ends, lifetimes, spans
from xgpu.block_plan.order.meetings import meetings, timeline

from .test_schedules import drawn_plan


@pytest.mark.parametrize("seed", range(200))
def test_tiles_are_in_use_between_their_ends(seed: int) -> None:
    plan = drawn_plan(seed)
    order = text_order(plan)
    met = meetings(plan, order).nodes
    used, through, between = lifetimes(plan, order, met), spans(plan, order, met), ends(plan, order)
    events = list(timeline(plan, order))
    assert used.keys() == between.keys()
    assert through.keys() == {event.node for event, _ in events}
    assert [through[event.node][0] for event, _ in events] == sorted(through[event.node][0] for event, _ in events)
    count = 1 + max((last for _, last in through.values()), default=0)
    for memory, (first, last) in between.items():
        found = [span for span in range(count) if used[memory] >> span & 1]
        assert found == list(range(through[first][0], found[-1] + 1))
        # What steps read where they begin is in use until then.
        assert found[-1] in through[last]
    for event, _ in events:
        for memory in event.reads | event.writes:
            first, last = between[memory]
            assert through[first][0] <= through[event.node][0] <= through[last][1]


def test_spans_count_meetings() -> None:
    plan = drawn_plan(3)
    order = text_order(plan)
    nodes = [event.node for event, _ in timeline(plan, order)]
    assert {last for _, last in spans(plan, order, ()).values()} == {0}
    everywhere = spans(plan, order, nodes)
    assert [everywhere[node][0] for node in nodes] == list(range(1, len(nodes) + 1))

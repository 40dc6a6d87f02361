"""The work of placing a program's values: a bounded number of calls for each launch, however many there are."""

from collections.abc import Callable

import pytest

from tests.py.fusion.planning_effort import counted_calls
from tests.py.packaging.control.test_memory_of_loops import flow_of, run
from xgpu.packaging.flow import Flow, Move, Node, Repeating
from xgpu.packaging.steps import make_steps


def chain(count: int) -> Flow:
    """Each value is made of the one before it."""
    return flow_of(1, (count,), count + 1, *(run(number, number + 1) for number in range(count)))


def gradients(count: int) -> Flow:
    """All values are kept, and read again in reverse order."""
    nodes: list[Node] = [run(number, number + 1) for number in range(count)]
    nodes += [run(count + number, count - 1 - number, count + 1 + number) for number in range(count)]
    return flow_of(1, (2 * count,), 2 * count + 1, *nodes)


def states(count: int) -> Flow:
    """A loop of states that cannot be computed in place: each of its predecessor."""
    start = Move(tuple((1 + number, 0) for number in range(count)))
    body: list[Node] = [run(1 + number, 1 + (number + 1) % count, 1 + count + number) for number in range(count)]
    body.append(Move(tuple((1 + number, 1 + count + number) for number in range(count))))
    return flow_of(1, tuple(range(1, count + 1)), 1 + 2 * count, start, Repeating(tuple(body), 3, None))


@pytest.mark.parametrize("made", [chain, gradients, states])
def test_calls_for_each_launch(made: Callable[[int], Flow]) -> None:
    flows = made(100), made(800)
    needed = []
    for flow in flows:
        with counted_calls() as calls:
            make_steps(flow)
        needed.append(calls())
    assert needed[1] < 2 * 8 * needed[0]

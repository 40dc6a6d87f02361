"""Innermost dimensions that operations and copies ask for, block by block."""

import pytest

from xgpu.block_plan.chains import choose
from xgpu.block_plan.graph import Graph, Kind, PlanNode, Tile
from xgpu.block_plan.memory.layouts import ACROSS, NO_MATRIX, NOT_ASYNCHRONOUS, NOT_WIDE, innermost, program_of
from xgpu.block_plan.order.events import StagedGraph
from xgpu.indexing.dot_dimensions import OperandDimensions

BATCHED = OperandDimensions((0,), (2,), (1,)), OperandDimensions((0,), (1,), (2,))
PLAIN = OperandDimensions((), (1,), (0,)), OperandDimensions((), (0,), (1,))


def planned(nodes: list[PlanNode], tiles: list[Tile]) -> StagedGraph:
    graph = Graph(tuple(nodes), tuple(tiles))
    return StagedGraph(
        graph, choose(graph, 128, {number: "shared" for node in nodes for number in node.results}).where, {}
    )


def node(kind: Kind, operands: tuple[int, ...], result: int, axes: tuple[int, ...] | None = None) -> PlanNode:
    return PlanNode(kind, operands, (result,), axes=axes)


def square(count: int, rank: int = 2) -> list[Tile]:
    return [Tile((32,) * rank, 16)] * count


def test_without_wishes_the_last_dimension_is_innermost() -> None:
    plan = planned([node("read", (), 0)], square(1, 3))
    assert innermost(plan, {}, {}) == {0: 2}


def test_copies_decide_where_operations_do_not() -> None:
    plan = planned([node("read", (), 0)], square(1, 3))
    assert innermost(plan, {0: (NOT_WIDE, 0, NOT_WIDE + NOT_ASYNCHRONOUS)}, {}) == {0: 1}


def test_what_is_given_stays() -> None:
    plan = planned([node("read", (), 0), node("elementwise", (0,), 1)], square(2))
    assert innermost(plan, {0: (NOT_WIDE, 0)}, {0: 0})[0] == 0


def test_elementwise_operations_go_along_one_dimension() -> None:
    """Two tiles that are copied along different dimensions: one is swizzled, which costs less than to turn it."""
    nodes = [node("read", (), 0), node("read", (), 1), node("elementwise", (0, 1), 2)]
    plan = planned(nodes, square(3))
    copies = {0: (NOT_WIDE, 0), 1: (0, NOT_WIDE)}
    found = innermost(plan, copies, {})
    assert (found[0], found[1]) == (1, 0)
    assert program_of(plan, copies, {}).rules[0].penalty == ACROSS


def test_reductions_do_not_go_along_what_they_reduce() -> None:
    nodes = [node("read", (), 0), node("reduce", (0,), 1, axes=(1,))]
    plan = planned(nodes, [Tile((32, 32), 16), Tile((32,), 16)])
    assert innermost(plan, {}, {}) == {0: 0, 1: 0}


def test_operands_of_batched_products_are_not_innermost_along_the_batch() -> None:
    """Copies ask for the batch; that no matrix instruction could read it weighs more."""
    nodes = [node("read", (), 0), node("read", (), 1), PlanNode("product", (0, 1), (2,), dimensions=BATCHED)]
    plan = planned(nodes, square(3, 3))
    wish = (0, NOT_WIDE, NOT_WIDE)
    assert innermost(plan, {0: wish, 1: wish}, {})[0] != 0
    assert innermost(plan, {0: (0, 2 * NO_MATRIX, 2 * NO_MATRIX), 1: wish}, {})[0] == 0


def test_dimensions_are_followed_through_what_is_computed() -> None:
    """A transposed tile that is added is gone along its own first dimension."""
    nodes = [
        node("read", (), 0),
        node("read", (), 1),
        PlanNode("move", (0,), (2,), axes=(1, 0)),
        node("elementwise", (2, 1), 3),
    ]
    graph = Graph(tuple(nodes), tuple(square(4)))
    where = choose(graph, 128, {0: "shared", 1: "shared", 2: "computed", 3: "shared"}).where
    rules = program_of(StagedGraph(graph, where, {}), {}, {}).rules
    assert rules[-1].ways == (((3, 0), (0, 1), (1, 0)), ((3, 1), (0, 0), (1, 1)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_tiles_of_one_element(shape: tuple[int, ...]) -> None:
    plan = planned([node("read", (), 0)], [Tile(shape, 32)])
    assert innermost(plan, {}, {}) == ({0: len(shape) - 1} if shape else {})


def test_products_ask_for_both_dimensions_of_operands() -> None:
    nodes = [node("read", (), 0), node("read", (), 1), PlanNode("product", (0, 1), (2,), dimensions=PLAIN)]
    rules = program_of(planned(nodes, square(3)), {}, {}).rules
    assert [rule.ways for rule in rules] == [(((0, 0), (0, 1)),), (((1, 1), (1, 0)),), (((2, 1),),)]

"""Where tiles are kept, rule by rule."""

from dataclasses import replace

import pytest

from xgpu.block_plan.chains import choose, missing_copies
from xgpu.block_plan.forms import MOST_ACCUMULATORS
from xgpu.block_plan.graph import Graph, Tile
from xgpu.indexing.dot_dimensions import OperandDimensions

from .graphs import SHAPE, THREADS, Writer


def where(graph: Graph, threads: int = THREADS) -> dict[int, str]:
    return dict(choose(graph, threads, {}).where)


def test_what_follows_a_product_is_computed_on_its_accumulators() -> None:
    block = Writer()
    left, right, bias = (block.node("read") for _ in range(3))
    product = block.node("product", (left, right))
    total = block.node("elementwise", (product, bias))
    result = block.node("elementwise", (total,), cost=20)
    block.node("write", (result,), results=0)
    found = where(block.graph())
    assert [found[each] for each in (left, right, bias)] == ["shared", "shared", "computed"]
    assert [found[each] for each in (product, total, result)] == ["fragments"] * 3
    assert not missing_copies(block.graph(), choose(block.graph(), THREADS, {}))


def test_what_is_read_in_another_way_is_copied() -> None:
    """A reduction needs the accumulators of other threads; the elementwise operation beside it does not."""
    block = Writer()
    left, right = (block.node("read") for _ in range(2))
    product = block.node("product", (left, right))
    row = block.node("reduce", (product,))
    plain = block.node("elementwise", (product,))
    block.node("write", (plain,), results=0)
    graph = block.graph()
    (copy,) = missing_copies(graph, choose(graph, THREADS, {}))
    assert (copy.tile, copy.readers) == (product, (graph.maker[row],))


def test_a_product_that_only_others_read_is_in_shared_memory() -> None:
    block = Writer()
    left, right = (block.node("read") for _ in range(2))
    product = block.node("product", (left, right))
    block.node("reduce", (product,))
    found = choose(block.graph(), THREADS, {})
    assert found.where[product] == "shared"
    assert not missing_copies(block.graph(), found)


def test_products_of_other_forms_do_not_meet_in_registers() -> None:
    block = Writer()
    left, right = (block.node("read") for _ in range(2))
    one, other = block.node("product", (left, right)), block.node("product", (left, right))
    number = block.graph().maker[other]
    block.nodes[number] = type(block.nodes[number])(
        "product", (left, right), (other,), dimensions=block.nodes[number].dimensions, fragment="f64"
    )
    total = block.node("elementwise", (one, other))
    block.node("write", (total,), results=0)
    found = choose(block.graph(), THREADS, {})
    assert (found.where[one], found.where[other]) == ("fragments", "shared")


@pytest.mark.parametrize(("count", "expected"), [(1, "fragments"), (2, "fragments"), (3, "shared")])
def test_steps_carry_as_many_accumulators_as_fit(count: int, expected: str) -> None:
    """Each of ``count`` sums takes 64 elements of a thread, of the 192 that it may have; a third is one too many."""
    block = Writer()
    zeros = tuple(block.node("constant") for _ in range(count + 1))
    region, arguments, results = block.steps(zeros)
    left, right = block.node("read", (), region), block.node("read", (), region)
    sums = [
        block.node("elementwise", (each, block.node("product", (left, right), region)), region) for each in arguments
    ]
    block.end(region, arguments, sums)
    large = Tile((SHAPE[0] * 8, SHAPE[1]), 32)
    assert large.size // THREADS * 3 == MOST_ACCUMULATORS
    for tile in (*arguments, *sums, *results, *zeros):
        block.tiles[tile] = large
    found = where(block.graph())
    assert found[results[0]] == found[arguments[0]] == expected
    assert "fragments" in {found[result] for result in results}


def test_constants_and_broadcasts_are_computed() -> None:
    block = Writer()
    one, row = block.node("constant"), block.node("read")
    wide = block.node("spread", (row,))
    total = block.node("elementwise", (one, wide))
    block.node("write", (total,), results=0)
    found = where(block.graph())
    assert [found[each] for each in (one, wide, total)] == ["computed"] * 3
    assert found[row] == "shared", "a broadcast reads its elements several times"


@pytest.mark.parametrize(("cost", "expected"), [(1, "computed"), (20, "shared")])
def test_only_cheap_operations_are_repeated(cost: int, expected: str) -> None:
    block = Writer()
    row = block.node("read")
    value = block.node("elementwise", (row,), cost=cost)
    wide = block.node("spread", (value,))
    block.node("write", (wide,), results=0)
    assert where(block.graph())[value] == expected


def test_a_tile_that_one_operation_reads_twice_is_computed() -> None:
    """``x * x`` needs no memory, whatever x is made of. Sixty squarings have 2^60 paths; each is looked at once."""
    block = Writer()
    value = read = block.node("read")
    squares = [value := block.node("elementwise", (value, value)) for _ in range(60)]
    block.node("write", (block.node("reduce", (value,)),), results=0)
    graph = block.graph()
    chains = choose(graph, THREADS, {read: "shared"})
    assert {chains.where[each] for each in squares} == {"computed"}
    assert graph.sources(value, chains.is_computed) == {read}
    assert not missing_copies(graph, chains)


def test_a_move_that_reads_a_tile_in_two_places_reads_memory() -> None:
    block = Writer()
    value = block.node("read")
    block.node("write", (block.node("move", (value, value)),), results=0)
    assert where(block.graph())[value] == "shared"


def test_operands_of_products_are_in_shared_memory() -> None:
    block = Writer()
    left, right = block.node("constant"), block.node("elementwise", (block.node("read"),))
    block.node("product", (left, right))
    found = where(block.graph())
    assert (found[left], found[right]) == ("shared", "shared")


def test_a_swap_needs_a_copy() -> None:
    """Steps that exchange what they carry cannot write either tile before the other is read."""
    block = Writer()
    region, arguments, _ = block.steps((block.node("constant"), block.node("constant")))
    block.end(region, arguments, arguments[::-1])
    graph = block.graph()
    assert [copy.operand for copy in missing_copies(graph, choose(graph, THREADS, {}))] == [0, 1]


def test_an_old_value_that_is_read_later_needs_a_copy() -> None:
    """``m' = max(m, x)`` is written in place; not if ``exp(m - m')`` reads both."""
    for reads_both in (False, True):
        block = Writer()
        region, arguments, _ = block.steps((block.node("constant"),))
        tile = block.node("read", (), region)
        new = block.node("elementwise", (arguments[0], tile), region)
        if reads_both:
            block.node("reduce", (block.node("elementwise", (arguments[0], new), region),), region)
        block.end(region, arguments, [new])
        graph = block.graph()
        assert bool(missing_copies(graph, choose(graph, THREADS, {}))) == reads_both


def test_a_reduction_of_the_old_value_is_not_written_over_it() -> None:
    block = Writer()
    region, arguments, _ = block.steps((block.node("constant"),))
    block.end(region, arguments, [block.node("reduce", (arguments[0],), region)])
    graph = block.graph()
    assert [copy.operand for copy in missing_copies(graph, choose(graph, THREADS, {}))] == [0]


def test_given_places_stay() -> None:
    block = Writer()
    left, right = (block.node("read") for _ in range(2))
    product = block.node("product", (left, right))
    block.node("write", (product,), results=0)
    assert choose(block.graph(), THREADS, {product: "shared"}).where[product] == "shared"


@pytest.mark.parametrize(
    ("instruction", "bits", "arranged", "batching", "own", "expected"),
    [
        ("wgmma", 16, (4, 1), (), (0,), "fragments"),
        ("wgmma", 16, (4, 1), (0,), (1,), "shared"),
        ("wgmma", 16, (4, 1), (), (0, 1), "shared"),
        ("wgmma", 16, (4, 2), (), (0,), "shared"),
        ("wgmma", 32, (4, 1), (), (0,), "shared"),
        ("mma", 16, (4, 1), (), (0,), "shared"),
    ],
)
def test_a_left_operand_of_warp_groups_stays_in_registers(
    instruction: str,
    bits: int,
    arranged: tuple[int, int],
    batching: tuple[int, ...],
    own: tuple[int, ...],
    expected: str,
) -> None:
    block = Writer()
    left, right, other = (block.node("read") for _ in range(3))
    logits = block.node("product", (left, right))
    weights = block.node("elementwise", (logits,))
    result = block.node("product", (weights, other))
    block.node("write", (result,), results=0)
    block.tiles[weights] = Tile(SHAPE, bits)
    second = block.graph().maker[result]
    dimensions = OperandDimensions(batching, (1,), own), OperandDimensions(batching, (0,), (1,))
    for number in (block.graph().maker[logits], second):
        block.nodes[number] = replace(block.nodes[number], instruction=instruction, dimensions=dimensions)
    graph = block.graph()
    found = choose(graph, THREADS, {}, dict.fromkeys((graph.maker[logits], second), arranged))
    assert found.where[weights] == expected
    assert not missing_copies(graph, found)

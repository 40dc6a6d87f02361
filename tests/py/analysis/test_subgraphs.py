"""Subgraphs: each operation in exactly one, those with all users at the same indices together."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from xgpu import ir
from xgpu.analysis.heroes import forms_of
from xgpu.analysis.placement import MAX_REGION_DEPTH
from xgpu.analysis.subgraphs import Partition, partition


@contextmanager
def partitioned(body: str, arguments: str = "%x: tensor<8x8xf32>") -> Iterator[Partition]:
    """Partition a function of ``body``; the context stays current, since the partition holds operations."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @main({arguments}) -> tensor<8x8xf32> {{ {body} }}")
        yield partition(module.body.operations[0].operation.regions[0].blocks[0])


def placed(result: Partition) -> dict[str, int]:
    """Return the subgraph of each operation by its name and number."""
    return {f"{node.op.name.split('.')[1]}{node.number}": node.scope.subgraph for node in result.nodes}


def test_elementwise_chain_is_one_subgraph() -> None:
    with partitioned("""
        %0 = stablehlo.add %x, %x : tensor<8x8xf32>
        %1 = stablehlo.multiply %0, %x : tensor<8x8xf32>
        return %1 : tensor<8x8xf32>""") as result:
        assert placed(result) == {"add0": 0, "multiply1": 0}


def test_operand_of_one_reader_stays_with_it_even_at_other_indices() -> None:
    with partitioned("""
        %0 = stablehlo.add %x, %x : tensor<8x8xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        return %1 : tensor<8x8xf32>""") as result:
        assert placed(result) == {"add0": 0, "transpose1": 0}
        assert result.nodes[0].scope is not result.nodes[1].scope


def test_value_read_at_two_indices_starts_a_subgraph() -> None:
    with partitioned("""
        %0 = stablehlo.negate %x : tensor<8x8xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
        return %2 : tensor<8x8xf32>""") as result:
        assert placed(result) == {"negate0": 1, "transpose1": 0, "add2": 0}


def test_equal_reads_share_their_scope() -> None:
    with partitioned("""
        %0 = stablehlo.negate %x : tensor<8x8xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %2 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        %3 = stablehlo.add %1, %2 : tensor<8x8xf32>
        return %3 : tensor<8x8xf32>""") as result:
        assert set(placed(result).values()) == {0}


def test_both_sides_of_a_concatenation_are_different_regions() -> None:
    with partitioned("""
        %0 = stablehlo.slice %x [0:4, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
        %1 = stablehlo.negate %0 : tensor<4x8xf32>
        %2 = stablehlo.concatenate %1, %1, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
        return %2 : tensor<8x8xf32>""") as result:
        assert placed(result) == {"slice0": 1, "negate1": 1, "concatenate2": 0}


def test_dead_operations_are_in_no_subgraph() -> None:
    with partitioned("""
        %0 = stablehlo.negate %x : tensor<8x8xf32>
        %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
        return %0 : tensor<8x8xf32>""") as result:
        assert len(result.subgraphs) == 1
        assert [node.op.name for node in result.nodes] == ["stablehlo.negate"]


def test_all_roots_are_in_the_first_subgraph() -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse("""
            func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
              %0 = stablehlo.negate %x : tensor<8xf32>
              %1 = stablehlo.add %0, %x : tensor<8xf32>
              return %1, %0 : tensor<8xf32>, tensor<8xf32>
            }""")
        result = partition(module.body.operations[0].operation.regions[0].blocks[0])
        assert [subgraph.roots for subgraph in result.subgraphs] == [(0, 1)]


def test_nesting_of_regions_is_bounded() -> None:
    steps = []
    for i in range(30):
        source = f"%{i - 1}" if i else "%x"
        rows = 8 + i
        steps.append(
            f"%{i} = stablehlo.pad {source}, %z, low = [1, 0], high = [0, 0], interior = [0, 0] "
            f": (tensor<{rows}x8xf32>, tensor<f32>) -> tensor<{rows + 1}x8xf32>"
        )
    steps.append("%s = stablehlo.slice %29 [0:8, 0:8] : (tensor<38x8xf32>) -> tensor<8x8xf32>")
    body = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n" + "\n".join(steps) + "\nreturn %s : tensor<8x8xf32>"
    with partitioned(body) as result:
        assert len(result.subgraphs) == 1 + (30 - 1) // (MAX_REGION_DEPTH + 1)
        assert max(node.scope.depth for node in result.nodes if hasattr(node, "scope")) <= MAX_REGION_DEPTH


@pytest.mark.parametrize("links", [50, 100])
def test_values_used_twice_make_code_linear_in_the_chain(links: int) -> None:
    steps = ["%z = stablehlo.constant dense<0.0> : tensor<f32>"]
    value = "%x"
    for i in range(links):
        steps.append(
            f"%p{i} = stablehlo.pad {value}, %z, low = [1, 0], high = [0, 0], interior = [0, 0] "
            ": (tensor<8x8xf32>, tensor<f32>) -> tensor<9x8xf32>"
        )
        steps.append(f"%s{i} = stablehlo.slice %p{i} [0:8, 0:8] : (tensor<9x8xf32>) -> tensor<8x8xf32>")
        steps.append(f"%a{i} = stablehlo.add %s{i}, {value} : tensor<8x8xf32>")
        value = f"%a{i}"
    steps.append(f"return {value} : tensor<8x8xf32>")
    with partitioned("\n".join(steps)) as result:
        assert len(result.subgraphs) == links
        per_subgraph = [0] * links
        for node in result.nodes:
            if hasattr(node, "scope"):
                per_subgraph[node.scope.subgraph] += 1
        assert sum(per_subgraph) == 3 * links


@pytest.mark.parametrize("rounds", [1, 20])
def test_words_computed_from_each_other_step_by_step_are_one_subgraph(rounds: int) -> None:
    """As the two words of a random number are: neither half of a concatenation computes a step more than once."""
    steps, left, right = [], "%x", "%x"
    for i in range(rounds):
        steps.append(f"%l{i} = stablehlo.add {left}, {right} : tensor<8x4xf32>")
        steps.append(f"%r{i} = stablehlo.multiply {right}, %l{i} : tensor<8x4xf32>")
        left, right = f"%l{i}", f"%r{i}"
    steps.append(f"%j = stablehlo.concatenate {left}, {right}, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>)")
    steps.append("-> tensor<8x8xf32> return %j : tensor<8x8xf32>")
    with partitioned("\n".join(steps), "%x: tensor<8x4xf32>") as result:
        assert len(result.subgraphs) == 2
        assert [node.scope.subgraph for node in result.nodes] == [1] * (2 * rounds - 1) + [0] * 2


def test_followers_lead_to_what_is_injected() -> None:
    """The map to an injected value, composed from there, may be simplified to other words than from the results."""
    body = """
        %0 = stablehlo.negate %x : tensor<3x2x12x8x31xf32>
        %1 = stablehlo.reshape %0 : (tensor<3x2x12x8x31xf32>) -> tensor<16x12x31x3xf32>
        %2 = stablehlo.reshape %1 : (tensor<16x12x31x3xf32>) -> tensor<8x2x12x31x3xf32>
        %3 = stablehlo.transpose %2, dims = [4, 1, 0, 3, 2] : (tensor<8x2x12x31x3xf32>) -> tensor<3x2x8x31x12xf32>
        %4 = stablehlo.reshape %3 : (tensor<3x2x8x31x12xf32>) -> tensor<3x496x12xf32>
        return %4 : tensor<3x496x12xf32>"""
    with ir.make_context(), ir.Location.unknown():
        text = f"func.func @main(%x: tensor<3x2x12x8x31xf32>) -> tensor<3x496x12xf32> {{ {body} }}"
        module = ir.Module.parse(text)
        block = module.body.operations[0].operation.regions[0].blocks[0]
        hero = block.operations[0].operation
        forms = forms_of(block, [hero])
        (result,) = block.operations[len(block.operations) - 1].operands
        given = {hero.results[0]: forms[result].backward}
        numbers = [
            {number for number, _ in partition(block, [result], given, followers).scope_of} for followers in ((), forms)
        ]
    assert numbers == [{0, 1, 2, 3, 4}, {1, 2, 3, 4}]

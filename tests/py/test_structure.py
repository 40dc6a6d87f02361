"""What defines and uses values, what is inside operations, slices and copies."""

from collections.abc import Iterator

import pytest

from xgpu import ir, structure
from xgpu.passes.framework.base import main_of

PROGRAM = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %square = stablehlo.broadcast_in_dim %ones, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %y = stablehlo.negate %x : tensor<4xf32>
  %unused = stablehlo.add %y, %y : tensor<4xf32>
  %r:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %b = stablehlo.add %a, %ones : tensor<4xf32>
    %j = stablehlo.add %i, %n : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %r#1, %square : tensor<4xf32>, tensor<4x4xf32>
}
"""


@pytest.fixture
def block() -> Iterator[ir.Block]:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        yield main_of(module).entry_block


def operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def names(ops: list[ir.Operation]) -> list[str]:
    return [op.name.removeprefix("stablehlo.") for op in ops]


def test_values(block: ir.Block) -> None:
    zero, _, ones, square, y, unused, loop, end = operations(block)
    x = block.arguments[0]
    assert structure.is_argument(x)
    assert structure.defining_op(x) is None
    assert structure.defining_op(y.results[0]) == structure.producer(y.results[0]) == y
    assert structure.is_constant(zero.results[0])
    assert not structure.is_constant(x)
    assert structure.is_result_of(y.results[0], "stablehlo.add", "stablehlo.negate")
    assert not structure.is_result_of(x, "stablehlo.negate")
    assert str(structure.element_of(zero.results[0])) == "i32"
    assert structure.dtype_of(x).hlo == "f32"
    assert structure.block_of(x) == structure.block_of(y.results[0]) == block
    state = structure.body_of(loop, 1).arguments[0]
    assert structure.owning_op(state) == loop
    assert structure.owning_op(y.results[0]) == y
    assert structure.is_used(y.results[0])
    assert not structure.is_used(*unused.results)
    assert structure.users_of(y.results[0]) == [loop, unused, unused]
    assert structure.behind(square.results[0], "stablehlo.broadcast_in_dim") == ones.operands[0]
    assert structure.behind(end.operands[0], "stablehlo.while") == zero.results[0]
    assert structure.behind(zero.results[0], "stablehlo.constant") == zero.results[0]


def test_what_is_inside(block: ir.Block) -> None:
    loop = operations(block)[6]
    inside = ["compare", "return", "add", "add", "return"]
    assert names(list(structure.nested(loop))) == inside
    assert names(structure.walk(loop)) == [*inside, "while"]
    assert names(structure.walk(loop, post_order=False)) == ["while", *inside]
    assert names(structure.walk(loop, "stablehlo.add", "stablehlo.while")) == ["add", "add", "while"]
    assert structure.find(loop, lambda op: op.name == "stablehlo.add") == structure.walk(loop, "stablehlo.add")[0]
    assert structure.find(loop, lambda op: op.name == "stablehlo.negate") is None
    assert [structure.count_ops(loop), structure.count_ops(loop, 2)] == [5, 3]
    assert len(list(structure.blocks_of(loop))) == 2
    assert len(structure.arguments_of(loop)) == 4
    assert structure.captured(loop) == [block.arguments[1], operations(block)[2].results[0]]
    assert structure.captured(operations(block)[4]) == []


def test_backward_slices(block: ir.Block) -> None:
    ops = operations(block)
    last = ops[7].operands[0]
    assert names(list(structure.backward_slice([last], lambda _: False))) == ["while", "negate", "constant"]
    negated = ops[4].results[0]
    assert names(list(structure.backward_slice([last], lambda value: value == negated))) == ["while", "constant"]


def test_copies(block: ir.Block) -> None:
    zero, _, ones, _, y, _, loop, end = operations(block)
    with ir.InsertionPoint(end):
        made = ir.Operation.create("stablehlo.abs", [y.results[0].type], [y.results[0]]).results[0]
        copies = {zero.results[0]: zero.results[0], y.results[0]: made, ones.results[0]: made}
        copy = structure.copy_operation(loop, copies)
    assert list(copy.operands) == [zero.results[0], made]
    assert structure.captured(copy) == [block.arguments[1], made]
    assert copies[loop.results[1]] == copy.results[1]
    structure.replace_op(loop, list(copy.results))
    assert end.operands[0] == copy.results[1]


def test_copies_of_modules() -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f'module attributes {{xgpu.some = "thing"}} {{ {PROGRAM} }}')
        copy = structure.copy_module(module)
        assert str(copy) == str(module)
        main_of(copy).operation.erase()
        assert len(module.body.operations) == 1


def test_names_are_those_of_all_that_is_nested(block: ir.Block) -> None:
    function = block.owner.operation
    assert structure.names_in(function) == {op.name for op in structure.walk(function)}
    assert {"func.func", "stablehlo.compare", "stablehlo.while"} <= structure.names_in(function)

"""A region's block that is emitted again: also what regions inside it use of it."""

from xgpu import ir
from xgpu.hlo.stablehlo_builder import inline_block
from xgpu.passes.framework.base import main_of
from xgpu.structure import body_of, captured

PROGRAM = """
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = stablehlo.while(%q = %p, %a = %x) : tensor<i1>, tensor<4xf32>
  cond {
    stablehlo.return %q : tensor<i1>
  } do {
    %b = stablehlo.negate %a : tensor<4xf32>
    %c = "stablehlo.if"(%q) ({
      %d = stablehlo.add %a, %b : tensor<4xf32>
      stablehlo.return %d : tensor<4xf32>
    }, {
      stablehlo.return %x : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    stablehlo.return %q, %c : tensor<i1>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""


def test_captured_values_are_those_of_the_copy() -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        block = main_of(module).entry_block
        p, x = block.arguments
        loop = next(iter(block.operations)).operation
        with ir.InsertionPoint(loop):
            inline_block(body_of(loop, 1), [p, x])
        negation, choice, *_ = (op.operation for op in block.operations)
        assert list(negation.operands) == [x]
        assert captured(choice) == [x, negation.results[0]]
        assert module.operation.verify()

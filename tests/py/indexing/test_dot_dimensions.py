"""The dimensions of a matrix product's operands, in any order."""

from xgpu import ir
from xgpu.indexing.dot_dimensions import OperandDimensions, operand_dimensions

_PRODUCT = """func.func @f(%x: tensor<2x3x5x7x1xf32>, %y: tensor<7x3x4x5xf32>) {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [1] x [1], contracting_dims = [3, 2] x [0, 3]
      : (tensor<2x3x5x7x1xf32>, tensor<7x3x4x5xf32>) -> tensor<3x2x1x4xf32>
  return
}"""


def test_dimensions_are_in_the_order_of_the_other_operand_and_own_ones_in_their_own() -> None:
    """Labels of the result's dimensions are their places in it; those of contracted ones come after."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(_PRODUCT)
        product = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        left, right = operand_dimensions(product)
    assert left == OperandDimensions((1,), (3, 2), (0, 4))
    assert right == OperandDimensions((1,), (0, 3), (2,))
    assert left.labels(1, 4) == (1, 0, 5, 4, 2)
    assert right.labels(3, 4) == (4, 0, 3, 5)

"""The orders of dimensions in which libraries read an operand of a matrix product at no cost."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.fusion.fallback import PRODUCT
from xgpu.hlo.stablehlo_builder import hlo
from xgpu.indexing.dot_dimensions import DIMENSIONS, OperandDimensions, operand_dimensions
from xgpu.structure import dtype_of

_LEAST_BITS = 16
"""Libraries read narrower floats only with what is summed last, and integers likewise."""


def takes_any_side(op: ir.Operation, value: ir.Value, order: Sequence[int]) -> bool:
    """Whether a product reads ``value`` in another order as fast: behind a batch, rows are summed or columns."""
    dtype = dtype_of(value)
    if op.name != PRODUCT or not dtype.is_float or dtype.bits < _LEAST_BITS:
        return False
    sides = zip(op.operands, operand_dimensions(op), strict=True)
    return all(operand != value or _is_read_at_once(dimensions, order) for operand, dimensions in sides)


def _is_read_at_once(dimensions: OperandDimensions, order: Sequence[int]) -> bool:
    """Whether an operand is a batch of matrices in an order, with dimensions of rows and of columns side by side."""
    batching, own, contracting = dimensions.batching, dimensions.own, dimensions.contracting
    return tuple(order) in ((*batching, *own, *contracting), (*batching, *contracting, *own))


def read_in_order(op: ir.Operation, old: ir.Value, new: ir.Value, order: Sequence[int]) -> None:
    """Have a product read ``new``, which has the dimensions of ``old`` in another order."""
    lists = [list(each) for side in operand_dimensions(op) for each in (side.batching, side.contracting)]
    for number, operand in enumerate(op.operands):
        if operand == old:
            op.operands[number] = new
            for place in (2 * number, 2 * number + 1):
                lists[place] = [order.index(dimension) for dimension in lists[place]]
    batch, sums, other_batch, other_sums = lists
    op.attributes[DIMENSIONS] = hlo.DotDimensionNumbers.get(batch, other_batch, sums, other_sums)

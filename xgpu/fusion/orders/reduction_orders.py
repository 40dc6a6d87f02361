"""Writes a reduction of operands whose dimensions are in another order."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.fusion.orders.carriers import TRANSPOSE
from xgpu.hlo.stablehlo_builder import hlo, tensor, transpose
from xgpu.indexing.access import integers
from xgpu.structure import element_of, is_result_of, is_used, producer


def _in_order(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """Return ``value`` with its dimensions in an order; of a transpose the source, if its dimensions are in that."""
    if is_result_of(value, TRANSPOSE):
        permutation = integers(producer(value), "permutation")
        value, order = producer(value).operands[0], [permutation[each] for each in order]
    return transpose(value, order)


def order_operands(op: ir.Operation, order: Sequence[int]) -> None:
    """Reorder the dimensions of a reduction's operands by ``order``; its results are transposed back."""
    shape = ReductionShape.of(op)
    kept = [i for i in order if i not in shape.dimensions]
    with ir.InsertionPoint(op):
        for number in range(len(op.results)):
            old = op.operands[number]
            op.operands[number] = _in_order(old, order)
            if is_result_of(old, TRANSPOSE) and not is_used(old):
                producer(old).erase()
    positions = [position for position, i in enumerate(order) if i in shape.dimensions]
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(positions)
    if kept == sorted(kept):
        return
    with ir.InsertionPoint.after(op):
        for result in op.results:
            result.set_type(tensor([shape.shape[i] for i in kept], element_of(result)))
            back = hlo.TransposeOp(result, [kept.index(i) for i in sorted(kept)]).operation
            result.replace_all_uses_except(back.results[0], back)

"""Expands StableHLO operations that are short for others, so that no later stage has to know of them."""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.frontend.batch_norm import (
    expand_batch_norm_grad,
    expand_batch_norm_inference,
    expand_batch_norm_training,
)
from xgpu.frontend.mhlo import replace
from xgpu.frontend.random_bits import expand_rng_bit_generator
from xgpu.frontend.select_and_scatter import expand_select_and_scatter
from xgpu.frontend.stablehlo_builder import Value, shape_of, splat


def _expand_get_dimension_size(op: ir.Operation) -> list[Value]:
    size = shape_of(op.operands[0])[ir.IntegerAttr(op.attributes["dimension"]).value]
    return [splat(size, ir.RankedTensorType(op.results[0].type))]


_EXPANSIONS: Mapping[str, Callable[[ir.Operation], list[Value]]] = {
    "stablehlo.batch_norm_grad": expand_batch_norm_grad,
    "stablehlo.batch_norm_inference": expand_batch_norm_inference,
    "stablehlo.batch_norm_training": expand_batch_norm_training,
    "stablehlo.get_dimension_size": _expand_get_dimension_size,
    "stablehlo.rng_bit_generator": expand_rng_bit_generator,
    "stablehlo.select_and_scatter": expand_select_and_scatter,
}


def expand_operations(module: ir.Module) -> None:
    """Replace every operation that has an expansion, in place, by operations that have none.

    Needs arrays of known shape. The new operations have the source line of the old one. Raises Unsupported for types
    that an operation does not work on.
    """
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name in _EXPANSIONS:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    for op in found:
        with op.location, ir.InsertionPoint(op):
            values = _EXPANSIONS[op.name](op)
        replace(op, values)

"""Rewrites small contractions in a loop's body as products and row sums, for the threads of a recurrence.

``jnp.einsum("dn,n->d", h, c)`` in a state space reads each element of a state once, so that there are no more pairs of
elements to multiply than the state has. Other contractions are matrix products, and stay.
"""

import math

from xgpu import ir
from xgpu.dtypes import dtype_named
from xgpu.fusion.fallback import PRODUCT
from xgpu.fusion.loops.recurrences import MOST_LANES
from xgpu.hlo.stablehlo_builder import broadcast, convert, fill_region, hlo, splat, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import dtype_of, element_of, replace_op


def with_sums(loop: ir.Operation) -> ir.Operation | None:
    """Return a copy of ``loop`` before it, with small contractions rewritten as sums; None if it has none."""
    (body,) = loop.regions[1].blocks
    if not any(_is_small(view.operation) for view in body.operations):
        return None
    copy = loop.clone(ip=ir.InsertionPoint(loop))
    for op in [view.operation for view in copy.regions[1].blocks[0].operations]:
        if _is_small(op):
            with ir.InsertionPoint(op), op.location:
                replace_op(op, [_sum_of_products(op)])
    return copy


def _is_small(op: ir.Operation) -> bool:
    """Whether ``op`` is a contraction whose sums lanes of a warp can share, and that reads each element once."""
    if op.name != PRODUCT:
        return False
    arrays = (*op.operands, op.results[0])
    types = [dtype_of(value) for value in arrays]
    length = math.prod(interval.size for interval in accesses(op)[0].map.symbols)
    pairs = length * math.prod(shape_of(op.results[0]))
    is_real = all(dtype.is_float or dtype.is_integer for dtype in types)
    return is_real and 0 < length <= MOST_LANES and pairs <= max(math.prod(shape_of(value)) for value in arrays)


def _sum_of_products(op: ir.Operation) -> ir.Value:
    """Return the result of a contraction; floats of less than 32 bits are multiplied and summed up as f32."""
    result = op.results[0]
    kept = len(shape_of(result))
    maps = [access.map for access in accesses(op)]
    shape = [*shape_of(result), *(interval.size for interval in maps[0].symbols)]
    element = element_of(result)
    if any(isinstance(element_of(value), ir.FloatType) for value in (*op.operands, result)):
        widths = [dtype_of(value).bits for value in (*op.operands, result)]
        element = ir.Type.parse(dtype_named("f64" if max(widths) > 32 else "f32").mlir)
    factors = []
    for operand, map_ in zip(op.operands, maps, strict=True):
        places = [expr.variables() for expr in map_.results]
        where = [next(iter(dims)) if dims else kept + next(iter(symbols)) for dims, symbols in places]
        factors.append(broadcast(convert(operand, element), shape, where))
    product = hlo.multiply(*factors)
    summed = list(range(kept, len(shape)))
    if not summed:
        return convert(product, element_of(result))
    total = ir.Operation.create(
        "stablehlo.reduce",
        results=[tensor(shape[:kept], element)],
        operands=[product, splat(0, tensor([], element))],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(summed)},
        regions=1,
    )
    scalar = tensor([], element)
    fill_region(total, [scalar, scalar], lambda values: [hlo.add(*values)])
    return convert(total.results[0], element_of(result))

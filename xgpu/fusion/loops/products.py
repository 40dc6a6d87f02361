"""Rewrites small contractions in a loop's body as products and row sums, for the threads of a recurrence.

``jnp.einsum("dn,n->d", h, c)`` in a state space reads each element of a state once, so that there are no more pairs of
elements to multiply than the state has. Other contractions are matrix products, and stay.
"""

from xgpu import ir
from xgpu.fusion.fallback import PRODUCT
from xgpu.fusion.loops.recurrences import MOST_LANES
from xgpu.fusion.loops.sums_of_products import length_of_sums, sum_of_products, uses_elements_once
from xgpu.structure import replace_op


def with_sums(loop: ir.Operation) -> ir.Operation | None:
    """Return a copy of ``loop`` before it, with small contractions rewritten as sums; None if it has none."""
    (body,) = loop.regions[1].blocks
    if not any(_is_small(view.operation) for view in body.operations):
        return None
    copy = loop.clone(ip=ir.InsertionPoint(loop))
    for op in [view.operation for view in copy.regions[1].blocks[0].operations]:
        if _is_small(op):
            with ir.InsertionPoint(op), op.location:
                replace_op(op, [sum_of_products(op)])
    return copy


def _is_small(op: ir.Operation) -> bool:
    """Whether ``op`` is a contraction whose sums lanes of a warp can share, and that reads each element once."""
    return op.name == PRODUCT and uses_elements_once(op) and length_of_sums(op) <= MOST_LANES

"""Operands of matrix products that kernels compute element by element, such as weights that are dequantised."""

from dataclasses import dataclass

from xgpu import ir
from xgpu.analysis.bitcasts import readers
from xgpu.analysis.heroes import is_hero
from xgpu.costs.values import byte_size, elements, instructions, is_immediate
from xgpu.fusion.fallback import VIEWS, fallback_reason
from xgpu.fusion.product_operands import behind_transposes
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.hlo_maps import access_kind
from xgpu.structure import is_argument, producer

_MOST_VISITED = 32
"""Operations of which a matrix is computed at most: more take longer than to store it."""
_COMPUTED = ("elementwise", "indexing", "piecewise")


@dataclass(frozen=True)
class Computed:
    """How a kernel computes an array: the bytes of the arrays that it reads, and the instructions for each element."""

    read: int
    instructions: float


def computed(value: ir.Value, reader: ir.Operation) -> Computed | None:
    """Return how a kernel computes ``value``, of which only ``reader`` needs the elements; None if it is stored anyway.

    Stored is what XLA computes, what reductions and other heroes make, what others read too, and what takes long.
    """
    made = behind_transposes(value)
    if is_argument(made) or any(each != reader for each in readers(value)):
        return None
    pending, seen = [made], {made}
    read, executed, is_computed = 0, 0.0, False
    while pending:
        each = pending.pop()
        if _is_in_memory(each):
            read += byte_size(each)
            continue
        op = producer(each)
        if op.name not in OPERATIONS or access_kind(op) not in _COMPUTED or len(seen) > _MOST_VISITED:
            return None
        is_computed |= op.name not in VIEWS
        executed += instructions(op) * elements(each) / elements(made)
        new = {operand for operand in op.operands if not is_immediate(operand)} - seen
        pending += new
        seen |= new
    return Computed(read, executed) if is_computed else None


def _is_in_memory(value: ir.Value) -> bool:
    if is_argument(value):
        return True
    op = producer(value)
    return op.name not in VIEWS and (fallback_reason(op) is not None or is_hero(op))

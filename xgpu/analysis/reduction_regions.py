"""Facts about the region of a reduction: whether it commutes, and whether it finds the position of an extreme."""

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.dialects.attributes import COMMUTATIVE
from xgpu.hlo.operations import direction_of, is_total_order
from xgpu.indexing.access import integer, integers
from xgpu.structure import is_argument, producer


def is_commutative(op: ir.Operation) -> bool:
    """Whether the elements of a ``stablehlo.reduce`` may be combined in any order.

    Regions that compute each result by one of the usual operations are known to commute, and regions marked so by an
    attribute. All others are only taken to be associative.
    """
    if COMMUTATIVE in op.attributes:
        return True
    return all(each.alone and each.function not in ("overwrite", "other") for each in combiners(op))


def region_names(op: ir.Operation) -> set[str]:
    """Return the names of the operations in the region of a reduction."""
    return {inner.operation.name for inner in op.regions[0].blocks[0].operations}


def first_extreme(op: ir.Operation) -> str | None:
    """Return ``GT`` or ``LT`` if a reduction finds the largest or smallest element along a dimension and its position.

    Of equal elements the first one counts, and of NaNs, which count as extreme, the one that comes first in the order
    of combination, as in JAX's argmax. The region is ``select(better, a, b), select(better or tie, i, j)`` of elements
    ``a, b`` at ``i, j``, where ``better`` is ``a > b or a != a`` (or ``<``), and ``tie`` is ``a == b and i < j``.
    """
    block = op.regions[0].blocks[0]
    if len(op.results) != 2 or not _is_position(op):
        return None
    a, i, b, j = block.arguments
    *_, end = block.operations
    value, index = (_parts(operand, "select") for operand in end.operation.operands)
    if value is None or index is None or value[1:] != [a, b] or index[1:] != [i, j]:
        return None
    better, of_index = _parts(value[0], "or"), _parts(index[0], "or")
    if better is None or of_index is None or of_index[0] != value[0] or not _compares(better[1], "NE", a, a):
        return None
    tie = _parts(of_index[1], "and")
    if tie is None or not _compares(tie[0], "EQ", a, b) or not _compares(tie[1], "LT", i, j):
        return None
    return next((direction for direction in ("GT", "LT") if _compares(better[0], direction, a, b)), None)


def _parts(value: ir.Value, name: str) -> list[ir.Value] | None:
    """Return the operands of the defining op of ``value`` if it is called ``name``, else nothing."""
    if is_argument(value) or producer(value).name != f"stablehlo.{name}":
        return None
    return list(producer(value).operands)


def _compares(value: ir.Value, direction: str, left: ir.Value, right: ir.Value) -> bool:
    if is_argument(value) or _parts(value, "compare") != [left, right]:
        return False
    op = producer(value)
    if is_total_order(op):
        return False
    return bool(direction_of(op) == direction)


def _is_position(op: ir.Operation) -> bool:
    """Whether the second operand of a reduction is each element's position along the only reduced dimension."""
    shape = ReductionShape.of(op)
    reduced = [i for i in shape.dimensions if shape.shape[i] > 1]
    value, dimensions = op.operands[1], list(range(len(shape.shape)))
    while _parts(value, "broadcast_in_dim") is not None:
        mapped = integers(producer(value), "broadcast_dimensions")
        dimensions = [dimensions[i] for i in mapped]
        value = producer(value).operands[0]
    if _parts(value, "iota") is None:
        return False
    return [dimensions[integer(producer(value), "iota_dimension")]] == reduced

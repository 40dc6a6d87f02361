"""Bytes that it costs to move the elements of a value, or to read them in another order."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.transposes import canonical
from xgpu.costs.values import byte_size
from xgpu.fusion.orders.carriers import BROADCAST, CONCATENATE, broadcast_order, is_free, reduced_order
from xgpu.fusion.orders.permutations import inverse, permuted
from xgpu.fusion.orders.product_sides import takes_any_side
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.structure import defining_op, dtype_of

_SECTOR_BYTES = 32
LEAST_SHARE = 1 / 8
"""The least part of its bytes that a transpose of whole rows costs: it takes no tile, but it takes time."""
UNTILED = 8
"""The cost of reading elements one by one, in times of their bytes: a sector has so many of 32 bits."""


def moved_bytes(value: ir.Value, shape: Sequence[int], permutation: Order) -> float:
    """Return the cost of transposing the elements of ``value`` in such a shape, in bytes.

    Rows that stay together fill the more of the sectors that they touch the longer they are.
    """
    transpose = canonical(shape, permutation)
    if transpose is None:
        return 0
    return byte_size(value) * share_of_rows(transpose.group * dtype_of(value).storage_bits / 8)


def parted_dimensions(op: ir.Operation) -> set[int]:
    """Return the dimensions along which neighbours in the result of ``op`` are read from, or of, different places."""
    if op.name == CONCATENATE:
        return {integer(op, "dimension")}
    if op.name == "stablehlo.slice":
        return {number for number, stride in enumerate(integers(op, "strides")) if stride > 1}
    return set()


def parted_bytes(op: ir.Operation, order: Order) -> float:
    """Return the cost, in bytes, of neighbours in memory, in an order, that come from different places.

    Parts of a concatenation that are rows of whole sectors cost as little as those that a transpose moves.
    """
    result = op.results[0]
    long = [dimension for dimension in order if shape_of(result)[dimension] > 1]
    if not long or long[-1] not in parted_dimensions(op):
        return 0
    rows = [shape_of(operand)[long[-1]] for operand in op.operands] if op.name == CONCATENATE else [1]
    return byte_size(result) * share_of_rows(min(rows) * dtype_of(result).storage_bits / 8)


def share_of_rows(row_bytes: float) -> float:
    """Return which part of its bytes it costs to move an array by rows of such a size."""
    return min(1, max(_SECTOR_BYTES / max(row_bytes, 1), LEAST_SHARE))


def read_cost(value: ir.Value, order: Order) -> float:
    """Return the cost of reading a value from outside all groups in another order."""
    if is_free(value):
        return 0
    op = defining_op(value)
    if op is not None and op.name == BROADCAST:
        operand_order, _ = broadcast_order(op, order)
        return moved_bytes(op.operands[0], shape_of(op.operands[0]), operand_order)
    return moved_bytes(value, shape_of(value), order)


def given_cost(value: ir.Value, users: Sequence[ir.Operation], order: Order) -> float:
    """Return the cost of reading ``value``, which is in another order, in the program's order.

    They share what is transposed for them. Reductions take any order, and their results are in another then; products
    read rows and columns alike.
    """
    users = [user for user in users if not takes_any_side(user, value, order)]
    reductions = [user for user in users if user.name == REDUCE and is_commutative(user)]
    results = [user.results[0] for user in reductions]
    total = sum(
        moved_bytes(result, shape_of(result), reduced_order(user, order))
        for user, result in zip(reductions, results, strict=True)
    )
    if len(reductions) < len(users):
        total += moved_bytes(value, permuted(shape_of(value), order), inverse(order))
    return total

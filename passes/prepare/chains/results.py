"""Results of attention of which a program has no more than the gradient: their products, written for chains."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.attention.lone_gradient import COLUMN, LoneGradient
from xgpu.hlo.stablehlo_builder import convert, hlo, reshape, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.structure import block_of, defining_op, element_of, producer


def write_result(gradient: LoneGradient) -> ir.Operation | None:
    """Write the product of weights and values whose gradient a program has, moved as that is; return the product.

    All is written as soon as both are known. None, and nothing is written, if the gradient is of something else.
    """
    order = _order(gradient)
    if order is None:
        return None
    shared, rows = order
    have = [*shared, *rows, COLUMN]
    wanted = [each for each in gradient.given_indices if _is_index(each)]
    if set(have) != set(wanted):
        return None
    after = _later(gradient.weights, gradient.values)
    with ir.InsertionPoint.after(after), after.location:
        product = _product(gradient, shared, rows)
        moved, positions = product.results[0], [have.index(each) for each in wanted]
        if positions != sorted(positions):
            moved = hlo.transpose(moved, positions)
        reshape(moved, shape_of(gradient.given))
    return product


def _order(gradient: LoneGradient) -> tuple[list[AffineExpr], list[AffineExpr]] | None:
    """Return the weights' dimensions that values have, too, and those that they have not, but for the keys."""
    own = [dim(number) for number, size in enumerate(shape_of(gradient.weights)) if size > 1]
    shared = [each for each in gradient.value_indices if each in own and each != dim(gradient.key)]
    rows = [each for each in own if each not in shared and each != dim(gradient.key)]
    known = {*own, COLUMN}
    used = [each for each in (*gradient.value_indices, *gradient.given_indices) if _is_index(each)]
    return (shared, rows) if rows and all(each in known for each in used) else None


def _product(gradient: LoneGradient, shared: Sequence[AffineExpr], rows: Sequence[AffineExpr]) -> ir.Operation:
    """Write the product of weights and values: dimensions of both, rows, and the column."""
    own = [dim(number) for number, size in enumerate(shape_of(gradient.weights)) if size > 1]
    weights = reshape(gradient.weights, [size for size in shape_of(gradient.weights) if size > 1])
    weights = convert(weights, element_of(gradient.values))
    indices = [each for each in gradient.value_indices if _is_index(each)]
    sizes = zip(gradient.value_indices, shape_of(gradient.values), strict=True)
    values = reshape(gradient.values, [size for each, size in sizes if _is_index(each)])
    key = dim(gradient.key)
    numbers = hlo.DotDimensionNumbers.get(
        [own.index(each) for each in shared],
        [indices.index(each) for each in shared],
        [own.index(key)],
        [indices.index(key)],
    )
    shape = [shape_of(weights)[own.index(each)] for each in (*shared, *rows)]
    type_ = tensor([*shape, shape_of(values)[indices.index(COLUMN)]], element_of(gradient.given))
    return producer(hlo.dot_general(type_, weights, values, numbers))


def _is_index(each: AffineExpr) -> bool:
    return any(each.variables())


def _later(first: ir.Value, second: ir.Value) -> ir.Operation:
    """Return the operation that makes the later one of two values; the first is made in this block."""
    op, other = producer(first), defining_op(second)
    if other is None or block_of(second) != block_of(first):
        return op
    return op if other.is_before_in_block(op) else other

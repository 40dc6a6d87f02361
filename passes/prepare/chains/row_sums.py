"""Sums of gradients times weights, of each row of attention: of the result and its gradient instead of all keys."""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.analysis.attention.gradient import RowSum
from xgpu.hlo.stablehlo_builder import convert, fill_region, hlo, reshape, splat, splat_like, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, symbol
from xgpu.structure import element_of

_FULL = "f32"


def row_sum(sums: RowSum, result: ir.Value, computed: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Write the sums of attention's ``result`` times its gradient, and times factors, which are ``computed`` again."""
    left, right = (convert(value, _FULL) for value in (sums.given, result))
    (column,) = (number for number, each in enumerate(sums.place.results) if each == symbol(0))
    value = _added_up(hlo.multiply(left, right), column)
    indices = [each for number, each in enumerate(sums.place.results) if number != column]
    wanted, sizes = sums.map, shape_of(sums.op.results[0])
    value = _rearranged(value, indices, wanted, sizes)
    for factor, map_ in sums.factors:
        row = _rearranged(convert(computed(factor), _FULL), map_.results, wanted, sizes)
        value = hlo.multiply(value, row)
    if sums.number == -1:
        value = hlo.negate(value)
    elif sums.number != 1:
        value = hlo.multiply(value, splat_like(sums.number, value))
    return convert(value, element_of(sums.op.results[0]))


def reciprocal(value: ir.Value) -> ir.Value:
    """Write one divided by each element."""
    quotient: ir.Value = hlo.divide(splat_like(1, value), value)
    return quotient


def _added_up(value: ir.Value, dimension: int) -> ir.Value:
    """Write the sums along a dimension."""
    sizes, scalar = list(shape_of(value)), tensor([], _FULL)
    del sizes[dimension]
    described: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([dimension])}
    operands = [value, splat(0, scalar)]
    op = ir.Operation.create("stablehlo.reduce", [tensor(sizes, _FULL)], operands, described, regions=1)
    fill_region(op, [scalar, scalar], lambda arguments: [hlo.add(*arguments)])
    return op.results[0]


def _rearranged(
    value: ir.Value, indices: Sequence[AffineExpr], wanted: Sequence[AffineExpr], sizes: Sequence[int]
) -> ir.Value:
    """Write the array of ``sizes`` that has the elements of ``value`` in another order of dimensions.

    Each index of both is one of another array, or that of a dimension of one element.
    """
    given = [(each, size) for each, size in zip(indices, shape_of(value), strict=True) if size > 1]
    value = reshape(value, [size for _, size in given])
    have = [each for each, _ in given]
    order = [have.index(each) for each, size in zip(wanted, sizes, strict=True) if size > 1]
    if order != sorted(order):
        value = hlo.transpose(value, order)
    return reshape(value, list(sizes))

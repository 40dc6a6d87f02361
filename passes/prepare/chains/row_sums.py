"""Sums of gradients times weights, of each row of attention: of the result and its gradient instead of all keys."""

from collections.abc import Callable, Iterator, Sequence

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.gradient import RowSum
from xgpu.analysis.attention.places import (
    MOVES,
    REDUCE,
    SPREADS,
    Place,
    behind,
    is_wide,
    number_of,
    reducing_function,
)
from xgpu.analysis.attention.softmax import Softmax
from xgpu.hlo.stablehlo_builder import convert, fill_region, hlo, reshape, splat, splat_like, tensor
from xgpu.indexing.access import ranges, shape_of
from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.prepare.chains.lifting import reading_of
from xgpu.passes.support.index_ops import erase_unused
from xgpu.structure import backward_slice, defining_op, element_of, in_order, producer, users_of

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


def with_one_sum(attention: Attention) -> None:
    """Write other sums of a row's powers, relative to another number, as those of the softmax times a power.

    A logarithm of sums that is returned beside attention is made so: relative to the largest logit if that is finite.
    """
    logits = attention.softmax.logits
    for sums in list(dict.fromkeys(_sums_of(logits))):
        if (made := _made_of_row(sums, attention)) is not None:
            sums.results[0].replace_all_uses_with(made)
            erase_unused([*in_order(backward_slice([sums.operands[0]], lambda value: value == logits)), sums])


def _sums_of(value: ir.Value) -> Iterator[ir.Operation]:
    """Yield the sums of powers of a value relative to another, moved or not."""
    for user in users_of(value):
        is_difference = user.name == "stablehlo.subtract" and user.operands[0] == value
        if user.name in MOVES or user.name == "stablehlo.exponential" or is_difference:
            yield from _sums_of(user.results[0])
        elif user.name == REDUCE and len(user.results) == 1 and is_wide(user.results[0]):
            yield from [user] if reducing_function(user) == "add" and number_of(user.operands[1]) == 0 else []


def _made_of_row(sums: ir.Operation, attention: Attention) -> ir.Value | None:
    """Write a sum of powers that are relative to a number of each row, after that of the softmax; None if it is not."""
    softmax, known = attention.softmax, producer(attention.softmax.total[0])
    powers = behind((sums.operands[0], accesses(sums)[0].map), MOVES)
    power = defining_op(powers[0])
    difference = None if power is None else defining_op(power.operands[0])
    if power is None or difference is None or power.name != "stablehlo.exponential":
        return None
    if difference.name != "stablehlo.subtract" or known.block != sums.block or not known.is_before_in_block(sums):
        return None
    logits, to_logits = behind((difference.operands[0], powers[1]), MOVES)
    reference = behind((difference.operands[1], powers[1]), SPREADS)
    at = _weights_of(to_logits, attention)
    if logits != softmax.logits or at is None or any(each.variables()[1] for each in reference[1].results):
        return None
    shape = shape_of(sums.results[0])
    of_softmax = [(value, [each.substitute(at) for each in map_.results]) for value, map_ in _rows_of(softmax)]
    readings = []
    for value, results in (*of_softmax, (reference[0], reference[1].results)):
        to_row = IndexingMap(ranges(shape), (), tuple(results)).with_simple_results()
        readings.append((value, reading_of(to_row, shape, shape_of(value))))
    with ir.InsertionPoint(sums), sums.location:
        rows = [convert(each.write(value, shape), _FULL) for value, each in readings if each is not None]
        if len(rows) < len(readings):
            return None
        largest, total, other = rows
        # Rows of nothing but -inf have no sum of the softmax.
        made = hlo.multiply(total, hlo.exponential(hlo.subtract(largest, other)))
        chosen = hlo.select(hlo.is_finite(largest), made, hlo.exponential(largest))
        return convert(chosen, element_of(sums.results[0]))


def _rows_of(softmax: Softmax) -> tuple[Place, Place]:
    return softmax.largest, softmax.total


def _weights_of(to_logits: IndexingMap, attention: Attention) -> dict[int, AffineExpr] | None:
    """Return the indices of the weights, given those of logits, whose keys are summed up; None if they are not."""
    found = {}
    for each, at in zip(attention.softmax.map.results, to_logits.results, strict=True):
        numbers = each.variables()[0]
        if len(numbers) > 1 or (numbers and each != dim(min(numbers))):
            return None
        if numbers:
            is_key = numbers == {attention.key}
            if is_key is not (at == symbol(0)) or (not is_key and at.variables()[1]):
                return None
            found[min(numbers)] = constant(0) if is_key else at
    rest = set(range(len(attention.shape))) - found.keys()
    return found if all(attention.shape[number] == 1 for number in rest) else None


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

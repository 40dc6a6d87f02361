"""The weights of attention, written again of logits in another shape: a softmax, and what multiplies it."""

import math
from collections.abc import Callable, Iterable

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.analysis.attention.places import Place
from xgpu.analysis.attention.weight_factors import Condition, WeightFactors
from xgpu.emit.families.attention.tiles import FULL
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, reshape, shape_of, splat_like, tensor, transpose
from xgpu.passes.prepare.chains.lifting import RowCode, reading_of
from xgpu.passes.prepare.chains.rewriting import described_product, reduced, result_order
from xgpu.structure import element_of


def has_logits_of_weights(attention: Attention) -> bool:
    """Whether logits can be written in the shape of the weights."""
    softmax = attention.softmax
    return reading_of(softmax.map, attention.shape, shape_of(softmax.logits)) is not None


def logits_of_weights(attention: Attention, value: ir.Value) -> ir.Value:
    """Write logits as f32 in the shape of the weights, of what the program has for them."""
    reading = reading_of(attention.softmax.map, attention.shape, shape_of(value))
    assert reading is not None
    return reading.write(convert(value, FULL), attention.shape)


def in_column_parts(attention: Attention, count: int) -> tuple[ir.Operation, ir.Value]:
    """Write the second product with its columns in so many parts, each with weights of its own.

    Return it, and what it is together.
    """
    second, weights = attention.second, attention.weights
    numbers = ir.stablehlo.DotDimensionNumbers(second.attributes["dot_dimension_numbers"])
    batches = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    keys = [*numbers.lhs_contracting_dimensions, *numbers.rhs_contracting_dimensions]
    if attention.weight:
        batches, keys = batches[::-1], keys[::-1]
    shape, own = shape_of(weights), shape_of(attention.values)
    (column,) = (number for number in range(len(own)) if number not in (*batches[1], keys[1]))
    width = own[column] // count
    repeated = broadcast(weights, [count, *shape], range(1, len(shape) + 1))
    values = reshape(attention.values, [*own[:column], count, width, *own[column + 1 :]])
    # The number of the part comes before all in the weights, and before its columns in the values.
    batch = [0, *(each + 1 for each in batches[0])], [column, *(each + (each > column) for each in batches[1])]
    described = described_product(attention, batch, (keys[0] + 1, keys[1] + (keys[1] > column)))
    order, result = result_order(attention), shape_of(second.results[0])
    rows = [result[number] for number in order[:-1]]
    type_ = tensor([count, *rows, width], element_of(second.results[0]))
    product = ir.Operation.create("stablehlo.dot_general", [type_], [repeated, values], described)
    moved = hlo.transpose(product.results[0], [*range(1, len(rows) + 1), 0, len(rows) + 1])
    together = reshape(moved, [*rows, own[column]])
    return product, transpose(together, [order.index(number) for number in range(len(order))])


def softmax_of(logits: ir.Value, dimension: int, code: RowCode | None = None) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Write the softmax along a dimension; return it, the largest logits and the sums of powers.

    If there is ``code`` of rows, it says what powers are relative to and divided by.
    """
    shape = shape_of(logits)
    rows = [number for number in range(len(shape)) if number != dimension]
    (largest,) = reduced([logits], dimension, [-math.inf], lambda each: [hlo.maximum(*each)])
    reference = largest if code is None else code.reference(largest)
    powers = hlo.exponential(hlo.subtract(logits, broadcast(reference, shape, rows)))
    (total,) = reduced([powers], dimension, [0.0], lambda each: [hlo.add(*each)])
    divisor = total if code is None else code.divisor(total)
    return hlo.divide(powers, broadcast(divisor, shape, rows)), largest, total


def factored(
    weights: ir.Value,
    factors: WeightFactors,
    conditions: Iterable[Condition],
    read: Callable[[Place], ir.Value],
) -> ir.Value:
    """Write weights times their factors, of the conditions only some; ``read`` writes what is at a place, so shaped."""
    for place, divides in factors.others:
        factor = convert(read(place), FULL)
        weights = hlo.divide(weights, factor) if divides else hlo.multiply(weights, factor)
    if factors.number != 1:
        weights = hlo.multiply(weights, splat_like(factors.number, weights))
    if factors.nan_as_zero:
        is_nan = hlo.compare(weights, weights, hlo.ComparisonDirectionAttr.get("NE"))
        weights = hlo.select(is_nan, splat_like(0, weights), weights)
    return dropped(weights, conditions, read)


def dropped(value: ir.Value, conditions: Iterable[Condition], read: Callable[[Place], ir.Value]) -> ir.Value:
    """Write zero in place of a value where one of some conditions drops it."""
    for place, keeps in conditions:
        condition, zero = read(place), splat_like(0, value)
        value = hlo.select(condition, *((value, zero) if keeps else (zero, value)))
    return value

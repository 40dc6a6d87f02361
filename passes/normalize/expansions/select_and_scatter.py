"""Expands stablehlo.select_and_scatter, the gradient of pooling, so that each result element is computed on its own.

First every window's selected element is found, by its position in row-major order. Then each element of the result
looks at all windows that cover it and combines the source values of those that selected it.
"""

from collections.abc import Sequence
from math import prod

from xgpu import ir
from xgpu.dtypes import MAX_ELEMENTS
from xgpu.hlo.source_location import unsupported
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    fill_region,
    hlo,
    inline_block,
    leading_part,
    linear_index,
    reshape,
    shape_of,
    splat,
    splat_like,
    tensor,
)
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.structure import element_of

_NONE = -1
"""The position that stands for no element."""


def expand_select_and_scatter(op: ir.Operation) -> list[Value]:
    """Return the result of a stablehlo.select_and_scatter.

    Of two candidates, the region decides, given the first one first; windows without elements select none.
    Raises Unsupported for windows that have too many elements.
    """
    operand, source, initial = op.operands
    shape, window_counts = shape_of(operand), shape_of(source)
    everywhere = broadcast(initial, shape)
    if 0 in shape or 0 in window_counts:
        return [everywhere]
    window, strides = (window_numbers(op, name, len(shape)) for name in ("window_dimensions", "window_strides"))
    lows = [low for low, _ in window_padding(op, len(shape))]
    if prod(shape) * prod(window) > MAX_ELEMENTS:
        raise unsupported(op, f"windows of shape {window} are too large")
    positions = linear_index(shape, "i32" if prod(shape) < 2**31 else "i64")
    selected = _selected_positions(op, positions, window_counts)
    # A dimension that counts the windows stands before each dimension of the result.
    inner_shape = [size for pair in zip(window, shape, strict=True) for size in pair]
    own = broadcast(positions, inner_shape, range(1, 2 * len(shape), 2))
    covering = _covering(selected, _NONE, shape, window, strides, lows)
    is_selected = hlo.compare(covering, own, hlo.ComparisonDirectionAttr.get("EQ"))
    values = _covering(source, 0, shape, window, strides, lows)
    total, is_any = _combine_selected(op, values, is_selected, shape)
    combined = hlo.MapOp(total.type, [everywhere, total], list(range(len(shape))))
    scatter = op.regions[1].blocks[0]
    scalar = tensor([], element_of(operand))
    fill_region(combined.operation, [scalar, scalar], lambda pair: inline_block(scatter, pair))
    return [hlo.select(is_any, combined.operation.results[0], everywhere)]


def _selected_positions(op: ir.Operation, positions: Value, window_counts: Sequence[int]) -> Value:
    """Return the position of the element that each window selects."""
    operand = op.operands[0]
    kept = {
        name: op.attributes[name]
        for name in ("window_dimensions", "window_strides", "padding")
        if name in op.attributes
    }
    scalars = [tensor([], element_of(value)) for value in (operand, positions)]
    reduced = ir.Operation.create(
        "stablehlo.reduce_window",
        results=[tensor(window_counts, scalar.element_type) for scalar in scalars],
        operands=[operand, positions, splat(0, scalars[0]), splat(_NONE, scalars[1])],
        attributes=kept,
        regions=1,
    )

    def better(values: list[Value]) -> list[Value]:
        first, first_position, later, later_position = values
        (keeps,) = inline_block(op.regions[0].blocks[0], [first, later])
        keeps = hlo.and_(_is_some(first_position), hlo.or_(keeps, hlo.not_(_is_some(later_position))))
        return [hlo.select(keeps, first, later), hlo.select(keeps, first_position, later_position)]

    fill_region(reduced, [*scalars, *scalars], better)
    return reduced.results[1]


def _is_some(position: Value) -> Value:
    return hlo.compare(position, splat_like(0, position), hlo.ComparisonDirectionAttr.get("GE"))


def _covering(
    per_window: Value,
    fill: int,
    shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    lows: Sequence[int],
) -> Value:
    """Return the values of the windows that cover each element, ``fill`` where there is no window.

    Each dimension of the result, of ``shape``, has one before it that counts the windows covering an element there.
    """
    padded_shape = [size + extent - 1 for size, extent in zip(shape, window, strict=True)]
    # The last window that may cover an element begins at it, less the padding.
    before = [extent - 1 - low for extent, low in zip(window, lows, strict=True)]
    own = [(count - 1) * stride + 1 for count, stride in zip(shape_of(per_window), strides, strict=True)]
    after = [whole - low - size for whole, low, size in zip(padded_shape, before, own, strict=True)]
    fill_value = splat(fill, tensor([], element_of(per_window)))
    value = hlo.pad(per_window, fill_value, before, after, [stride - 1 for stride in strides])
    for i, (size, extent) in enumerate(zip(shape, window, strict=True)):
        value = _neighbours(value, 2 * i, size, extent)
    return value


def _neighbours(value: Value, axis: int, size: int, count: int) -> Value:
    """Replace a dimension by two, of ``count`` and ``size``: element (k, i) of them is element k + i of the old one.

    The array is repeated ``count`` times and cut into rows that are longer by one, so that each row begins an element
    later than the row before it.
    """
    shape = shape_of(value)
    outer, length, inner = shape[:axis], shape[axis], shape[axis + 1 :]
    kept = [i for i in range(len(shape) + 1) if i != axis]
    rows = broadcast(value, [*outer, count, length, *inner], kept)
    if count == 1:
        return rows
    line = reshape(rows, [*outer, count * length, *inner])
    missing = [count if i == axis else 0 for i in range(len(shape))]
    none = [0] * len(shape)
    line = hlo.pad(line, splat(0, tensor([], element_of(value))), none, missing, none)
    return leading_part(reshape(line, [*outer, count, length + 1, *inner]), [*outer, count, size, *inner])


def _combine_selected(op: ir.Operation, values: Value, is_selected: Value, shape: Sequence[int]) -> tuple[Value, Value]:
    """Return the combination of the values that are selected for each element, and whether there are any."""
    scalars = [tensor([], element_of(value)) for value in (values, is_selected)]
    reduced = hlo.ReduceOp(
        [tensor(shape, scalar.element_type) for scalar in scalars],
        [values, is_selected],
        [splat(0, scalar) for scalar in scalars],
        range(0, 2 * len(shape), 2),
    )

    def combine(arguments: list[Value]) -> list[Value]:
        left, has_left, right, has_right = arguments
        (both,) = inline_block(op.regions[1].blocks[0], [left, right])
        combined = hlo.select(has_left, hlo.select(has_right, both, left), right)
        return [combined, hlo.or_(has_left, has_right)]

    fill_region(reduced.operation, [*scalars, *scalars], combine)
    total, is_any = reduced.operation.results
    return total, is_any

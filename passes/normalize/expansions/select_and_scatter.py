"""Expands stablehlo.select_and_scatter, the gradient of pooling, so that each result element is computed on its own.

First every window's selected element is found, by its position in row-major order. Then each element of the result
looks at all windows that may cover it and combines the source values of those that selected it. Where few may, each of
them is a step of elementwise operations; else they are reduced.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import prod

from xgpu import ir
from xgpu.analysis.combiners import BINARY
from xgpu.dtypes import MAX_ELEMENTS
from xgpu.hlo.source_location import unsupported
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    convert,
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
from xgpu.records import dataclass
from xgpu.structure import element_of

_NONE = -1
"""The position that stands for no element."""
_MOST_STEPS = 32
"""The most windows over an element for which each is a step of elementwise operations."""


@dataclass(frozen=True)
class _Covers:
    """The windows that cover a dimension's elements: those of a run have the same ``count`` that may cover them.

    A run is as long as the stride. The first one, of which ``skipped`` elements lie before the dimension, is covered by
    windows from number ``first`` on, each run after it from one window further on.
    """

    size: int
    windows: int
    extent: int
    stride: int
    low: int

    @cached_property
    def count(self) -> int:
        return -(-self.extent // self.stride)

    @cached_property
    def first(self) -> int:
        return self.low // self.stride - self.count + 1

    @cached_property
    def skipped(self) -> int:
        return self.low % self.stride

    @cached_property
    def runs(self) -> int:
        return (self.skipped + self.size - 1) // self.stride + 1

    @cached_property
    def padding(self) -> tuple[int, int]:
        """The padding of an array of windows to those from ``first`` on to the last that may cover an element."""
        return -self.first, self.first + self.runs + self.count - 1 - self.windows


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
    covers = [_Covers(*each) for each in zip(shape, window_counts, window, strides, lows, strict=True)]
    if prod(each.count for each in covers) <= _MOST_STEPS and (steps := _in_steps(op, selected, positions, covers)):
        return [steps]
    # A dimension that counts the windows stands before each dimension of the result.
    inner_shape = [size for each in covers for size in (each.count, each.size)]
    own = broadcast(positions, inner_shape, range(1, 2 * len(shape), 2))
    is_selected = _equal(_covering(selected, _NONE, covers), own)
    values = _covering(source, 0, covers)
    total, is_any = _combine_selected(op, values, is_selected, shape)
    (combined,) = _by_region(op, everywhere, total)
    return [hlo.select(is_any, combined, everywhere)]


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


def _equal(left: Value, right: Value) -> Value:
    return hlo.compare(left, right, hlo.ComparisonDirectionAttr.get("EQ"))


def _by_region(op: ir.Operation, left: Value, right: Value) -> list[Value]:
    """Combine two arrays element by element as the scatter's region does."""
    mapped = hlo.MapOp(left.type, [left, right], list(range(len(shape_of(left)))))
    scalar = tensor([], element_of(left))
    fill_region(mapped.operation, [scalar, scalar], lambda pair: inline_block(op.regions[1].blocks[0], pair))
    return list(mapped.operation.results)


def _in_steps(op: ir.Operation, selected: Value, positions: Value, covers: Sequence[_Covers]) -> Value | None:
    """Combine the source values of the windows that may cover an element one after the other, in their order.

    Sums and products of 16-bit floats are rounded once, at the end; None for other regions of such floats.
    """
    source, initial = op.operands[1], op.operands[2]
    element = element_of(source)
    scatter = op.regions[1].blocks[0]
    combiner, *rest = (each.operation for each in scatter.operations)
    is_binary = len(rest) == 1 and combiner.name in BINARY and set(combiner.operands) == set(scatter.arguments)
    is_half = isinstance(element, ir.F16Type | ir.BF16Type)
    if is_half and not is_binary:
        return None
    accumulator = ir.F32Type.get(element.context) if is_half else element
    total = broadcast(convert(initial, accumulator), shape_of(positions))
    selections, sources = _padded(selected, _NONE, covers), _padded(source, 0, covers)
    for numbers in product(*(range(each.count) for each in covers)):
        value = convert(_covering_one(sources, numbers, covers), accumulator)
        if is_binary:
            both = ir.Operation.create(combiner.name, results=[total.type], operands=[total, value]).results[0]
        else:
            (both,) = _by_region(op, total, value)
        total = hlo.select(_equal(_covering_one(selections, numbers, covers), positions), both, total)
    return convert(total, element)


def _padded(per_window: Value, fill: int, covers: Sequence[_Covers]) -> Value:
    """Return the values of all windows that may cover an element, ``fill`` where there is no window."""
    before, after = zip(*(each.padding for each in covers), strict=True)
    return hlo.pad(per_window, splat(fill, tensor([], element_of(per_window))), before, after, [0] * len(covers))


def _covering_one(padded: Value, numbers: Sequence[int], covers: Sequence[_Covers]) -> Value:
    """Return for each element the value of one of the windows that may cover it: along each dimension, its number."""
    ends = [number + each.runs for number, each in zip(numbers, covers, strict=True)]
    value = hlo.slice(padded, list(numbers), ends, [1] * len(covers))
    for axis, each in enumerate(covers):
        value = _spread(value, axis, each)
    return value


def _spread(value: Value, axis: int, covers: _Covers) -> Value:
    """Repeat what runs have along a dimension for each of their elements, and leave out those that do not exist."""
    shape = shape_of(value)
    outer, inner = shape[:axis], shape[axis + 1 :]
    if covers.stride > 1:
        kept = [i for i in range(len(shape) + 1) if i != axis + 1]
        rows = broadcast(value, [*outer, covers.runs, covers.stride, *inner], kept)
        value = reshape(rows, [*outer, covers.runs * covers.stride, *inner])
    if shape_of(value)[axis] == covers.size:
        return value
    starts = [covers.skipped if i == axis else 0 for i in range(len(shape))]
    ends = [start + size for start, size in zip(starts, [*outer, covers.size, *inner], strict=True)]
    return hlo.slice(value, starts, ends, [1] * len(shape))


def _covering(per_window: Value, fill: int, covers: Sequence[_Covers]) -> Value:
    """Return the values of the windows that may cover each element, ``fill`` where there is no window.

    Each dimension of the result has one before it that counts the windows which may cover an element there.
    """
    value = _padded(per_window, fill, covers)
    for i, each in enumerate(covers):
        value = _spread(_neighbours(value, 2 * i, each.runs, each.count), 2 * i + 1, each)
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

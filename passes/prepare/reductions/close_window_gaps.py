"""The pass `close-window-gaps`."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import BINARY, Function, combined
from xgpu.hlo.scan_op import binary_function, is_neutral
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    compared,
    convert,
    fill_region,
    hlo,
    reshape,
    shape_of,
    splat_like,
    tensor,
)
from xgpu.indexing.access import integers
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import element_of, is_result_of, is_used, producer, replace_op

_PAD = "stablehlo.pad"
_MOST_STEPS = 32
"""The most elements of a window for which each is a step of elementwise operations."""


@dataclass(frozen=True)
class _Row:
    """A row of ``size`` elements, ``step`` apart after ``low`` positions, and windows of it at ``count`` positions.

    A window is ``window`` long and meets ``least`` elements, or one more where it begins ``late`` enough before the
    next element.
    """

    size: int
    step: int
    low: int
    window: int
    count: int

    @property
    def is_spread(self) -> bool:
        return self.step > 1 and self.window > 1

    @property
    def least(self) -> int:
        return self.window // self.step

    @property
    def most(self) -> int:
        return -(-self.window // self.step)

    @property
    def late(self) -> int:
        return self.step - self.window % self.step

    @property
    def first(self) -> int:
        """The first element that the first window may meet, counted from the first one that there is."""
        return (self.step - 1 - self.low) // self.step

    @property
    def skipped(self) -> int:
        """The number of windows that would begin between the element before that one and the first window."""
        return (self.step - 1 - self.low) % self.step

    @property
    def runs(self) -> int:
        """The number of elements that are the first that some window may meet."""
        return (self.skipped + self.count - 1) // self.step + 1


@dataclass(frozen=True)
class CloseWindowGaps(OperationRewrite):
    """Computes windows over elements that are spread out from these elements alone.

    The gradient of a pool by sums is a window over what comes in, with zeros between. Of a window of 3 x 3 over every
    second element it reads nine positions for each result, five of them zeros at least. Here each result is made of the
    elements that its window meets, one or two along such a dimension: windows that begin between the same two elements
    read the same ones, and meet the last of them or not. Sums of 16-bit floats are made in f32, and rounded once.
    Windows that meet more than 32 elements are left. Needs: nothing; run it before what makes several windows of one.

    ```mlir
    %0 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
    %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 2>}> ({ ... stablehlo.add ... })
        : (tensor<17xf32>, tensor<f32>) -> tensor<16xf32>
    ```
    becomes, but for the initial value
    ```mlir
    %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<8xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<8x2xf32>) -> tensor<16xf32>
    ```
    """

    NAME: ClassVar[str] = "close-window-gaps"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce_window",))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite the windows of one operation if its operand is spread out."""
        function = _function(op)
        if function is None or (found := _rows(op, function)) is None:
            return
        array, rows = found
        if any(row.is_spread for row in rows) and math.prod(row.most for row in rows if row.is_spread) <= _MOST_STEPS:
            read = op.operands[0]
            replace_op(op, [_rewritten(op, function, array, rows)])
            if read != array and not is_used(read):
                producer(read).erase()


def _function(op: ir.Operation) -> Function | None:
    """Return the one operation by which windows are combined, from what changes no number; else None."""
    if len(op.results) != 1:
        return None
    name = binary_function(op.regions[0].blocks[0])
    function = BINARY.get(f"stablehlo.{name}")
    return function if name is not None and is_neutral(name, op.operands[1]) else None


def _rows(op: ir.Operation, function: Function) -> tuple[ir.Value, list[_Row]] | None:
    """Return what is spread out, and how its dimensions are; None if windows are not at each position."""
    array, rank = op.operands[0], len(shape_of(op.results[0]))
    if any(window_numbers(op, name, rank) != [1] * rank for name in ("window_strides", "window_dilations")):
        return None
    steps, low = window_numbers(op, "base_dilations", rank), [pair[0] for pair in window_padding(op, rank)]
    if steps == [1] * rank and is_result_of(array, _PAD) and is_neutral(function, producer(array).operands[1]):
        pad = producer(array)
        array = pad.operands[0]
        low = [sum(each) for each in zip(low, integers(pad, "edge_padding_low"), strict=True)]
        steps = [interior + 1 for interior in integers(pad, "interior_padding")]
    windows, counts = window_numbers(op, "window_dimensions", rank), shape_of(op.results[0])
    if 0 in (*shape_of(array), *counts):
        return None
    return array, [_Row(*each) for each in zip(shape_of(array), steps, low, windows, counts, strict=True)]


def _rewritten(op: ir.Operation, function: Function, array: ir.Value, rows: Sequence[_Row]) -> ir.Value:
    own = element_of(op.results[0])
    is_rounded = function in ("add", "multiply") and isinstance(own, ir.F16Type | ir.BF16Type)
    value, initial = (convert(each, ir.F32Type.get() if is_rounded else own) for each in (array, op.operands[1]))
    met: dict[tuple[int, ...], Value] = {(): _padded(value, initial, rows)}
    for dimension, row in enumerate(rows):
        if row.is_spread:
            pairs = {late: _met(each, initial, dimension, row, function) for late, each in met.items()}
            met = {(*late, more): each for late, pair in pairs.items() for more, each in enumerate(pair)}
    value = _spread(met, rows)
    others = [1 if row.is_spread else row.window for row in rows]
    if any(window > 1 for window in others):
        return convert(_windows(value, initial, others, function), own)
    return convert(combined(function, broadcast(initial, shape_of(value)), value), own)


def _padded(value: Value, initial: Value, rows: Sequence[_Row]) -> Value:
    """Return an array from the first element that some window may meet to the last, with the gaps that stay."""
    edges = [(-row.first, row.first + row.runs + row.most - 1 - row.size, 0) for row in rows]
    kept = [e if row.is_spread else (row.low, _high(row), row.step - 1) for e, row in zip(edges, rows, strict=True)]
    if not any(any(each) for each in kept):
        return value
    made: Value = hlo.pad(value, initial, *([each[i] for each in kept] for i in range(3)))
    return made


def _high(row: _Row) -> int:
    return row.count + row.window - 1 - row.low - ((row.size - 1) * row.step + 1)


def _windows(value: Value, initial: Value, windows: Sequence[int], function: Function) -> Value:
    """Return the windows along the dimensions that are not spread out."""
    shape = [size - window + 1 for size, window in zip(shape_of(value), windows, strict=True)]
    element = element_of(value)
    op = hlo.ReduceWindowOp([tensor(shape, element)], [value], [initial], windows).operation
    fill_region(op, [tensor([], element)] * 2, lambda pair: [combined(function, *pair)])
    return op.results[0]


def _met(value: Value, initial: Value, dimension: int, row: _Row, function: Function) -> list[Value]:
    """Return what windows meet that begin between the same two elements of a dimension: early ones, and late ones."""
    shape = shape_of(value)
    shape[dimension] = row.runs
    found = _part(value, dimension, 0, row.runs) if row.least else broadcast(initial, shape)
    for number in range(1, row.least):
        found = combined(function, found, _part(value, dimension, number, row.runs))
    if row.most == row.least:
        return [found]
    last = _part(value, dimension, row.least, row.runs)
    return [found, combined(function, found, last) if row.least else last]


def _spread(met: Mapping[tuple[int, ...], Value], rows: Sequence[_Row]) -> Value:
    """Return the result of each window, of arrays of those that are late along some dimensions and not along others."""
    sizes = shape_of(next(iter(met.values())))
    shape = [each for row, size in zip(rows, sizes, strict=True) for each in (size, row.step if row.is_spread else 1)]
    places = range(0, len(shape), 2)
    values = {late: broadcast(value, shape, places) for late, value in met.items()}
    spread = [dimension for dimension, row in enumerate(rows) if row.is_spread]
    for number, dimension in reversed(list(enumerate(spread))):
        pairs: dict[tuple[int, ...], list[Value]] = {}
        for late in sorted(values):
            pairs.setdefault(late[:number], []).append(values[late])
        values = {late: _chosen(pair, 2 * dimension + 1, rows[dimension].late) for late, pair in pairs.items()}
    value = reshape(values[()], [shape[i] * shape[i + 1] for i in places])
    for dimension in spread:
        value = _part(value, dimension, rows[dimension].skipped, rows[dimension].count)
    return value


def _chosen(pair: Sequence[Value], dimension: int, first: int) -> Value:
    """Return the second of two arrays from the index ``first`` on, if there are two."""
    if len(pair) == 1:
        return pair[0]
    place = hlo.iota(tensor(shape_of(pair[0]), "i32"), dimension)
    chosen: Value = hlo.select(compared(place, splat_like(first, place), "GE"), pair[1], pair[0])
    return chosen


def _part(value: Value, dimension: int, start: int, length: int) -> Value:
    shape = shape_of(value)
    if shape[dimension] == length:
        return value
    starts = [start if i == dimension else 0 for i in range(len(shape))]
    limits = [start + length if i == dimension else size for i, size in enumerate(shape)]
    part: Value = hlo.slice(value, starts, limits, [1] * len(shape))
    return part

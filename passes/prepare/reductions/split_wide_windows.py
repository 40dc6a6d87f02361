"""The pass `split-wide-windows`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import Function, combined, combiners, is_binary
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import elements
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, shape_of
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import element_of, replace_op

_IDEMPOTENT = frozenset(("and", "or", "minimum", "maximum"))
_LEAST_GAIN = 3
"""Factor by which operations must get fewer for a split to pay: intermediate sums are stored and read."""
_READ_AND_COMBINED = 15
"""Instructions in whose time a thread reads and combines an element of a window of 5 x 5, as measured; of 9 x 9, 28."""
_LAUNCHES = 3
"""Kernels that intermediate sums take, about."""


@dataclass(frozen=True)
class _Window:
    """The window along one dimension: its size, stride and dilation, and the padding before and after the array."""

    size: int
    stride: int
    dilation: int
    padding: tuple[int, int]


@dataclass(frozen=True)
class SplitWideWindows(OperationRewrite):
    """Computes wide windows that overlap from windows of half the width, which neighbours share.

    A sum over each window of 256 elements takes 255 additions for each, though two windows side by side differ by two
    elements. A window of 2n elements is one of n and its neighbour n elements on, so that eight additions do: for other
    widths, the powers of two that they are a sum of are put side by side, and of maxima two windows may overlap.
    So are windows of any rank whose results take at least three times fewer operations that way. Needs: nothing.

    ```mlir
    %sums = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 4>}> ({ ... stablehlo.add ... })
        : (tensor<103xf32>, tensor<f32>) -> tensor<100xf32>
    ```
    becomes, but for the initial value
    ```mlir
    %0 = stablehlo.slice %x [0:102] : (tensor<103xf32>) -> tensor<102xf32>
    %1 = stablehlo.slice %x [1:103] : (tensor<103xf32>) -> tensor<102xf32>
    %pairs = stablehlo.add %0, %1 : tensor<102xf32>
    %2 = stablehlo.slice %pairs [0:100] : (tensor<102xf32>) -> tensor<100xf32>
    %3 = stablehlo.slice %pairs [2:102] : (tensor<102xf32>) -> tensor<100xf32>
    %sums = stablehlo.add %2, %3 : tensor<100xf32>
    ```
    """

    NAME: ClassVar[str] = "split-wide-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce_window",))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite the windows of one operation if that is worth it."""
        if (windows := _windows(op)) and _is_worth_it(op, windows, self.target.device):
            replace_op(op, [_rewritten(op, windows)])


def _windows(op: ir.Operation) -> list[_Window] | None:
    """Return the windows along the dimensions of a reduction by one usual operation, else None."""
    rank = len(shape_of(op.results[0]))
    if len(op.results) != 1 or not is_binary(combiners(op)[0].function) or not rank:
        return None
    padding = window_padding(op, rank)
    if any(size != 1 for size in window_numbers(op, "base_dilations", rank)) or any(min(pair) < 0 for pair in padding):
        return None
    names = ("window_dimensions", "window_strides", "window_dilations")
    numbers = (window_numbers(op, name, rank) for name in names)
    return [_Window(*each) for each in zip(*numbers, padding, strict=True)]


def _is_worth_it(op: ir.Operation, windows: Sequence[_Window], target: Device) -> bool:
    direct = math.prod(each.size for each in windows)
    shared = math.prod(each.stride for each in windows) * sum(2 * (each.size - 1).bit_length() for each in windows)
    instructions = _READ_AND_COMBINED * direct * elements(op.results[0])
    takes_long = instructions * bytes_per_instruction(target) > _LAUNCHES * launch_bytes(target)
    return takes_long and direct > _LEAST_GAIN * shared


def _rewritten(op: ir.Operation, windows: Sequence[_Window]) -> ir.Value:
    function, own = combiners(op)[0].function, element_of(op.results[0])
    # Sums of 16-bit floats are made in f32, as those of reductions are, and rounded once.
    is_rounded = function not in _IDEMPOTENT and isinstance(own, ir.F16Type | ir.BF16Type)
    array, initial = (convert(operand, ir.F32Type.get() if is_rounded else own) for operand in op.operands)
    low, high = zip(*(each.padding for each in windows), strict=True)
    value: ir.Value = hlo.pad(array, initial, low, high, [0] * len(windows))
    for dimension, window in enumerate(windows):
        if window.size > 1:
            value = _along(value, dimension, window, function)
    shape = shape_of(value)
    value = hlo.slice(value, [0] * len(shape), shape, [each.stride for each in windows])
    return convert(combined(function, broadcast(initial, shape_of(value)), value), own)


def _along(value: ir.Value, dimension: int, window: _Window, function: Function) -> ir.Value:
    """Return the results of a window along one dimension, at every place where it fits."""
    length = shape_of(value)[dimension] - (window.size - 1) * window.dilation
    found: ir.Value | None = None
    width, done = 1, 0
    while True:
        is_last = 2 * width > window.size
        if is_last and found is None and function in _IDEMPOTENT:
            rest = _part(value, dimension, (window.size - width) * window.dilation, length)
            return combined(function, _part(value, dimension, 0, length), rest)
        if window.size & width and (is_last or function not in _IDEMPOTENT):
            part = _part(value, dimension, done * window.dilation, length)
            found = part if found is None else combined(function, found, part)
            done += width
        if is_last:
            assert found is not None
            return found
        step = width * window.dilation
        kept = shape_of(value)[dimension] - step
        value = combined(function, _part(value, dimension, 0, kept), _part(value, dimension, step, kept))
        width *= 2


def _part(value: ir.Value, dimension: int, start: int, length: int) -> ir.Value:
    shape = shape_of(value)
    starts = [start if i == dimension else 0 for i in range(len(shape))]
    limits = [start + length if i == dimension else size for i, size in enumerate(shape)]
    part: ir.Value = hlo.slice(value, starts, limits, [1] * len(shape))
    return part

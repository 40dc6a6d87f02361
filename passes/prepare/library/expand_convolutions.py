"""The pass `expand-convolutions`."""

from collections.abc import Sequence
from itertools import chain, product
from math import prod
from typing import Any, ClassVar, Literal

from xgpu import ir
from xgpu.fusion.fallback import fallback_reason
from xgpu.hlo.stablehlo_builder import Value, hlo, reshape, shape_of, splat, tensor
from xgpu.indexing.access import integer
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import element_of, replace_op

_PRECISION = "precision_config"
_MOST_PARTS = 16
"""Slices that patches are put together from, along one dimension."""
_MOST_ELEMENTS = 64
"""Elements of a window whose patches are put together at once, along all dimensions."""


@dataclass(frozen=True)
class ExpandConvolutions(OperationRewrite):
    """Writes convolutions as matrix products of what their windows see.

    Only for ``runs=launches``, where no library computes them. The patches, all elements of the window at each place
    side by side, are stored: as many times the image as a window has elements for each of its steps. Those that do
    not overlap, as of images cut into tiles, or of windows of one element, are only another view of the image. Few
    products are a kernel's loop, and stay; so do convolutions whose batches are in groups. Needs: nothing. Run it
    before all that looks at products.

    ```mlir
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {...}
        : (tensor<1x1000x64xbf16>, tensor<3x64x256xbf16>) -> tensor<1x998x256xbf16>
    ```
    becomes
    ```mlir
    %parts = stablehlo.slice %x [0:1, 0:998, 0:64] ...        // and from 1, and from 2
    %patches = stablehlo.concatenate %part0, %part1, %part2, dim = 2 : ... -> tensor<1x998x3x64xbf16>
    %0 = stablehlo.dot_general %reshaped, %matrix, contracting_dims = [1] x [0] : (tensor<998x192xbf16>, ...) -> ...
    ```
    """

    NAME: ClassVar[str] = "expand-convolutions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.convolution",))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of the program."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a convolution that would be left to a library."""
        is_whole = all(0 not in shape_of(value) for value in (*op.operands, *op.results))
        if self.runs != "launches" or not is_whole or integer(op, "batch_group_count") > 1:
            return
        if fallback_reason(op) is not None:
            replace_op(op, [_product(op)])


@dataclass(frozen=True)
class _Window:
    """The windows along a dimension: elements of one, steps between them, distances inside, and how many there are."""

    size: int
    stride: int
    dilation: int
    count: int

    @property
    def reach(self) -> int:
        """From the first window to the last, the first element of it included."""
        return (self.count - 1) * self.stride + 1

    @property
    def overlaps(self) -> bool:
        """Whether windows are more than another view."""
        return self.size > 1 and (self.size, self.dilation) != (self.stride, 1)

    def patches(self, images: Value, axis: int) -> Value:
        """Return ``images`` with the windows, and a dimension of the elements of each, in place of a dimension."""
        shape = shape_of(images)
        apart = [*shape[:axis], self.count, 1, *shape[axis + 1 :]]
        if self.size > 1 and not self.overlaps:
            whole = _part(images, axis, 0, self.count * self.size, 1)
            return reshape(whole, [*shape[:axis], self.count, self.size, *shape[axis + 1 :]])
        if self.size > _MOST_PARTS:
            return self._gathered(images, axis)
        starts = (number * self.dilation for number in range(self.size))
        parts = [reshape(_part(images, axis, start, start + self.reach, self.stride), apart) for start in starts]
        return parts[0] if len(parts) == 1 else hlo.concatenate(parts, axis + 1)

    def _gathered(self, images: Value, axis: int) -> Value:
        """Return the same by numbers of elements: parts would be too many."""
        shape, numbers = shape_of(images), tensor([self.count, self.size, 1], "i32")
        steps = zip((self.stride, self.dilation), (0, 1), strict=True)
        first, inside = (hlo.multiply(hlo.iota(numbers, along), splat(step, numbers)) for step, along in steps)
        dimensions = hlo.GatherDimensionNumbers.get(
            offset_dims=[*range(axis), *range(axis + 2, len(shape) + 1)],
            collapsed_slice_dims=[axis],
            operand_batching_dims=[],
            start_indices_batching_dims=[],
            start_index_map=[axis],
            index_vector_dim=2,
        )
        sizes = ir.DenseI64ArrayAttr.get([*shape[:axis], 1, *shape[axis + 1 :]])
        return hlo.gather(images, hlo.add(first, inside), dimensions, sizes)


def _part(value: Value, axis: int, start: int, limit: int, step: int) -> Value:
    shape = shape_of(value)
    if (start, limit, step) == (0, shape[axis], 1):
        return value
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, limit, step
    return hlo.slice(value, starts, limits, steps)


def _product(op: ir.Operation) -> Value:
    """Return the result of a convolution."""
    numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    rank, groups = len(numbers.input_spatial_dimensions), integer(op, "feature_group_count")
    images = _turned(
        op.operands[0],
        [numbers.input_batch_dimension, *numbers.input_spatial_dimensions, numbers.input_feature_dimension],
    )
    kernel = _turned(
        op.operands[1],
        [
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ],
    )
    if turned := [number for number, is_turned in enumerate(_reversals(op, rank)) if is_turned]:
        kernel = hlo.reverse(kernel, turned)
    order = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension]
    counts = [shape_of(op.results[0])[axis] for axis in order[1:-1]]
    patches = _patches(op, _padded(op, images, rank), shape_of(kernel)[:rank], counts)
    result = _multiplied(op, patches, kernel, groups, rank)
    found = reshape(result, [shape_of(images)[0], *counts, shape_of(kernel)[-1]])
    return _turned(found, [order.index(axis) for axis in range(len(order))])


def _padded(op: ir.Operation, images: Value, rank: int) -> Value:
    """Return images with what is padded around their elements, and between them."""
    dilations = window_numbers(op, "lhs_dilation", rank)
    pairs = window_padding(op, rank)
    if all(each == 1 for each in dilations) and not any(chain(*pairs)):
        return images
    low, high, inside = (
        [0, *each, 0] for each in ([a for a, _ in pairs], [b for _, b in pairs], [n - 1 for n in dilations])
    )
    zero = splat(0, tensor([], element_of(images)))
    return hlo.pad(images, zero, *map(ir.DenseI64ArrayAttr.get, (low, high, inside)))


def _patches(op: ir.Operation, images: Value, sizes: Sequence[int], counts: Sequence[int]) -> Value:
    """Return for each image and place all elements of the window, and the features of each."""
    rank = len(sizes)
    strides, dilations = (window_numbers(op, name, rank) for name in ("window_strides", "rhs_dilation"))
    windows = list(map(_Window, sizes, strides, dilations, counts))
    if sum(window.overlaps for window in windows) > 1 and prod(sizes) <= _MOST_ELEMENTS:
        return _all_patches(images, windows)
    for number, window in enumerate(windows):
        images = window.patches(images, 1 + 2 * number)
    places, elements = ([first + 2 * number for number in range(rank)] for first in (1, 2))
    return _turned(images, [0, *places, *elements, 2 * rank + 1])


def _all_patches(images: Value, windows: Sequence[_Window]) -> Value:
    """Return patches put together at once: a kernel reads vectors where parts of parts would be calls."""
    rank, shape = len(windows), shape_of(images)
    counts = [window.count for window in windows]
    parts = []
    for element in product(*(range(window.size) for window in windows)):
        starts = [number * window.dilation for number, window in zip(element, windows, strict=True)]
        ends = [start + window.reach for start, window in zip(starts, windows, strict=True)]
        steps = [1, *(window.stride for window in windows), 1]
        part = hlo.slice(images, [0, *starts, 0], [shape[0], *ends, shape[-1]], steps)
        parts.append(reshape(part, [shape[0], *counts, 1, shape[-1]]))
    joined = hlo.concatenate(parts, rank + 1)
    return reshape(joined, [shape[0], *counts, *(window.size for window in windows), shape[-1]])


def _multiplied(op: ir.Operation, patches: Value, kernel: Value, groups: int, rank: int) -> Value:
    """Return patches times the kernel: for each place all features of the result."""
    shape, (*window, features, results) = shape_of(patches), shape_of(kernel)
    places, taps = prod(shape[: 1 + rank]), prod(window)
    element = element_of(op.results[0])
    if groups == 1:
        left, right = reshape(patches, [places, taps * features]), reshape(kernel, [taps * features, results])
        return _dot(op, left, right, ([], [], [1], [0]), tensor([places, results], element))
    left = reshape(patches, [places, taps, groups, features])
    right = reshape(kernel, [taps, features, groups, results // groups])
    found = _dot(op, left, right, ([2], [2], [1, 3], [0, 1]), tensor([groups, places, results // groups], element))
    return reshape(hlo.transpose(found, [1, 0, 2]), [places, results])


def _dot(op: ir.Operation, left: Value, right: Value, dimensions: Sequence[Any], result: ir.Type) -> Value:
    attributes: dict[str, ir.Attribute] = {"dot_dimension_numbers": hlo.DotDimensionNumbers.get(*dimensions)}
    if _PRECISION in op.attributes:
        attributes[_PRECISION] = op.attributes[_PRECISION]
    return ir.Operation.create("stablehlo.dot_general", [result], [left, right], attributes).results[0]


def _reversals(op: ir.Operation, rank: int) -> list[bool]:
    if "window_reversal" not in op.attributes:
        return [False] * rank
    return [bool(each) for each in ir.DenseBoolArrayAttr(op.attributes["window_reversal"])]


def _turned(value: Value, order: Sequence[int]) -> Value:
    return value if list(order) == sorted(order) else hlo.transpose(value, list(order))

"""The pass `choose-convolution-layouts`."""

from collections.abc import Sequence
from typing import Any, ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.fusion.fallback import fallback_reason, is_kernel_gradient
from xgpu.hlo.stablehlo_builder import hlo, tensor, transpose
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, replace_op

_HALVES = ("f16", "bf16")
_HOPPER = 90


@dataclass(frozen=True)
class ChooseConvolutionLayouts(OperationRewrite):
    """Writes each of XLA's convolutions on images that lie in memory as the library reads them.

    From compute capability 9.0 on XLA has cuDNN read and write images with their channels last, (batch, space,
    channels), along one or two dimensions, and with channels before the space along three, or in f64; before 9.0
    channels are last in two dimensions of 16 bits only. (Source: XLA's assignment of layouts for GPUs.) It copies what
    lies otherwise, before and after each convolution. Transposes that are part of the program can be moved through what
    lies between convolutions, and are left out there. The gradient by the kernel contracts the batch: its images are
    read in the same order. Kernels are small, and stay as they are. Needs: nothing; run it before move-transposes.

    ```mlir
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], ... : ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : ...
    %2 = stablehlo.convolution(%1, %w) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], ... : ...
    %0 = stablehlo.transpose %2, dims = [0, 3, 1, 2] : ...
    ```
    """

    NAME: ClassVar[str] = "choose-convolution-layouts"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.convolution",))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU whose library is asked."""

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite a convolution of floats, if its images lie in another order."""
        numbers = hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        rank = len(numbers.input_spatial_dimensions)
        if not rank or not dtype_of(op.operands[0]).is_float or fallback_reason(op) is None:
            return
        is_last = _channels_are_last(device(self.target), dtype_of(op.operands[0]).hlo, rank)
        orders = _kernel_gradient(numbers, is_last) if is_kernel_gradient(op) else _forward(numbers, is_last)
        if any(order != _given(rank) for order in orders):
            _write(op, numbers, *orders)


def _channels_are_last(target: Device, dtype: str, rank: int) -> bool:
    """Whether the library reads images of ``rank`` dimensions with their channels last, and not before the space."""
    if target.compute_capability >= _HOPPER:
        return rank <= 2 and dtype != "f64"
    return rank == 2 and dtype in _HALVES


def _forward(numbers: Any, is_last: bool) -> list[list[int]]:
    """Return the orders of the dimensions of images, kernel and result."""
    space = numbers.input_spatial_dimensions
    images = _order(numbers.input_batch_dimension, space, numbers.input_feature_dimension, is_last)
    results = numbers.output_spatial_dimensions
    result = _order(numbers.output_batch_dimension, results, numbers.output_feature_dimension, is_last)
    return [images, _given(len(space)), result]


def _kernel_gradient(numbers: Any, is_last: bool) -> list[list[int]]:
    """Return these orders where the batch is what is contracted: the kernel is images too, the result a kernel."""
    space, windows = numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions
    images = _order(numbers.input_feature_dimension, space, numbers.input_batch_dimension, is_last)
    others = _order(numbers.kernel_input_feature_dimension, windows, numbers.kernel_output_feature_dimension, is_last)
    return [images, others, _given(len(space))]


def _order(batch: int, space: Sequence[int], channels: int, is_last: bool) -> list[int]:
    """Return the dimensions of images in the order of the library."""
    return [batch, *space, channels] if is_last else [batch, channels, *space]


def _given(rank: int) -> list[int]:
    return list(range(rank + 2))


def _write(op: ir.Operation, numbers: Any, images: list[int], kernel: list[int], result: list[int]) -> None:
    """Replace a convolution by one of operands, and to a result, in such orders of their dimensions."""
    with ir.InsertionPoint(op), op.location:
        operands = [transpose(each, order) for each, order in zip(op.operands, (images, kernel), strict=True)]
        new = op.clone()
        for number, operand in enumerate(operands):
            new.operands[number] = operand
        value = op.results[0]
        new.results[0].set_type(tensor([shape_of(value)[dimension] for dimension in result], element_of(value)))
        new.attributes["dimension_numbers"] = hlo.ConvDimensionNumbers.get(
            input_batch_dimension=images.index(numbers.input_batch_dimension),
            input_feature_dimension=images.index(numbers.input_feature_dimension),
            input_spatial_dimensions=[images.index(each) for each in numbers.input_spatial_dimensions],
            kernel_input_feature_dimension=kernel.index(numbers.kernel_input_feature_dimension),
            kernel_output_feature_dimension=kernel.index(numbers.kernel_output_feature_dimension),
            kernel_spatial_dimensions=[kernel.index(each) for each in numbers.kernel_spatial_dimensions],
            output_batch_dimension=result.index(numbers.output_batch_dimension),
            output_feature_dimension=result.index(numbers.output_feature_dimension),
            output_spatial_dimensions=[result.index(each) for each in numbers.output_spatial_dimensions],
        )
        replace_op(op, [transpose(new.results[0], [result.index(each) for each in _given(len(result) - 2)])])

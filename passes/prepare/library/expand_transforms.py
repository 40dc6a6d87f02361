"""The pass `expand-transforms`."""

from math import prod
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, hlo, shape_of
from xgpu.indexing.access import integers
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.transforms.fourier import ComplexArrays, scaled, transformed
from xgpu.records import dataclass
from xgpu.structure import replace_op

_MOST = 1 << 15
"""Elements of the longest row: products of two positions are numbers of 32 bits."""


@dataclass(frozen=True)
class ExpandTransforms(OperationRewrite):
    """Writes Fourier transforms as matrix products and arithmetic.

    Only for ``runs=launches``, where there is no library. A row of up to 64 elements, or of a prime number of them, is
    multiplied by a matrix of roots of unity; others are a matrix themselves, whose columns and then whose rows are
    transformed, with a factor for each element in between. Products are in full precision. Rows of more than 32768
    elements stay. Needs: nothing. Run it before all that looks at products.

    ```mlir
    %y = stablehlo.fft %x, type = RFFT, length = [64] : (tensor<8x64xf32>) -> tensor<8x33xcomplex<f32>>
    ```
    becomes
    ```mlir
    %re = stablehlo.dot_general %x, %cosines, contracting_dims = [1] x [0] : ... -> tensor<8x64xf32>
    %im = stablehlo.dot_general %x, %sines, contracting_dims = [1] x [0] : ... -> tensor<8x64xf32>
    %y = stablehlo.complex ...    // the first 33 of each
    ```
    """

    NAME: ClassVar[str] = "expand-transforms"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.fft",))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of the program."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a transform."""
        lengths = list(integers(op, "fft_length"))
        is_empty = any(0 in shape_of(value) for value in (*op.operands, *op.results))
        if self.runs == "launches" and not is_empty and max(lengths, default=0) <= _MOST:
            replace_op(op, [_result(op, lengths)])


def _result(op: ir.Operation, lengths: list[int]) -> Value:
    kind = ir.stablehlo.FftTypeAttr(op.attributes["fft_type"]).value
    (operand,) = op.operands
    rank = len(shape_of(operand))
    axes = list(range(rank - len(lengths), rank))
    numbers = ComplexArrays(operand, None) if kind == "RFFT" else ComplexArrays(hlo.real(operand), hlo.imag(operand))
    if kind in ("FFT", "IFFT"):
        for axis in axes:
            numbers = _along(numbers, axis, kind == "IFFT")
    elif kind == "RFFT":
        numbers = _along(numbers, axes[-1], False)
        numbers = _cut(numbers, lengths[-1] // 2 + 1)
        for axis in axes[:-1]:
            numbers = _along(numbers, axis, False)
    else:
        for axis in axes[:-1]:
            numbers = _along(numbers, axis, True)
        numbers = _along(_mirrored(numbers, lengths[-1]), axes[-1], True)
    if kind in ("IFFT", "IRFFT"):
        numbers = scaled(numbers, 1 / prod(lengths))
    if kind == "IRFFT":
        return numbers.real
    assert numbers.imaginary is not None
    return hlo.complex(numbers.real, numbers.imaginary)


def _along(numbers: ComplexArrays, axis: int, is_inverse: bool) -> ComplexArrays:
    """Return the transforms along a dimension."""
    shape = shape_of(numbers.real)
    order = [*(each for each in range(len(shape)) if each != axis), axis]
    apart = [shape[each] for each in order]
    rows = numbers.turned(order).reshaped([prod(apart[:-1]), apart[-1]])
    back = [order.index(each) for each in range(len(shape))]
    return transformed(rows, is_inverse).reshaped(apart).turned(back)


def _cut(numbers: ComplexArrays, size: int) -> ComplexArrays:
    """Return the first elements along the last dimension."""
    return numbers.each(lambda part: _part(part, 0, size))


def _mirrored(numbers: ComplexArrays, size: int) -> ComplexArrays:
    """Return the whole transform of real numbers, of which only the first half is given."""
    assert numbers.imaginary is not None
    given = _cut(numbers, size // 2 + 1)
    if size < 3:
        return given
    axis = len(shape_of(numbers.real)) - 1
    rest = [hlo.reverse(_part(part, 1, (size + 1) // 2), [axis]) for part in (numbers.real, numbers.imaginary)]
    imaginary = hlo.concatenate([given.imaginary, hlo.negate(rest[1])], axis)
    return ComplexArrays(hlo.concatenate([given.real, rest[0]], axis), imaginary)


def _part(value: Value, start: int, limit: int) -> Value:
    shape = shape_of(value)
    return hlo.slice(value, [0] * (len(shape) - 1) + [start], [*shape[:-1], limit], [1] * len(shape))

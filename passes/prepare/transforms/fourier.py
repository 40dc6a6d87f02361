"""Discrete Fourier transforms of rows: by the definition for short ones, in two steps for products of two lengths."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, hlo, reshape, shape_of, splat, splat_like, tensor
from xgpu.records import dataclass
from xgpu.structure import element_of

_LONGEST = 64
"""Elements of a row that is transformed by the definition though its length is no prime."""


@dataclass(frozen=True)
class ComplexArrays:
    """Complex numbers as two arrays; ``imaginary`` is None where all are 0."""

    real: Value
    imaginary: Value | None

    def reshaped(self, shape: Sequence[int]) -> "ComplexArrays":
        """Return the numbers under another shape."""
        return self.each(lambda part: reshape(part, shape))

    def turned(self, order: Sequence[int]) -> "ComplexArrays":
        """Return the numbers with their dimensions in another order."""
        return self if list(order) == sorted(order) else self.each(lambda part: hlo.transpose(part, list(order)))

    def times(self, real: Value, imaginary: Value) -> "ComplexArrays":
        """Return the numbers times others."""
        if self.imaginary is None:
            return ComplexArrays(hlo.multiply(self.real, real), hlo.multiply(self.real, imaginary))
        return ComplexArrays(
            hlo.subtract(hlo.multiply(self.real, real), hlo.multiply(self.imaginary, imaginary)),
            hlo.add(hlo.multiply(self.real, imaginary), hlo.multiply(self.imaginary, real)),
        )

    def each(self, change: Callable[[Value], Value]) -> "ComplexArrays":
        """Return both parts changed in the same way."""
        return ComplexArrays(change(self.real), None if self.imaginary is None else change(self.imaginary))


def transformed(rows: ComplexArrays, is_inverse: bool) -> ComplexArrays:
    """Return the transforms of rows, arrays of rank 2; the inverse is not divided by the length yet."""
    count, size = shape_of(rows.real)
    first = _factor(size)
    if first == size:
        return _by_definition(rows, is_inverse)
    second = size // first
    # Element j1 * second + j2 of a row, and element k1 + first * k2 of its transform.
    columns = rows.reshaped([count, first, second]).turned([0, 2, 1]).reshaped([count * second, first])
    inner = _by_definition(columns, is_inverse).reshaped([count, second, first])
    inner = inner.times(*_roots([count, second, first], size, is_inverse, element_of(rows.real)))
    inner = inner.turned([0, 2, 1]).reshaped([count * first, second])
    return transformed(inner, is_inverse).reshaped([count, first, second]).turned([0, 2, 1]).reshaped([count, size])


def _factor(size: int) -> int:
    """Return the largest factor of at most `_LONGEST`, or all of a size that has none but 1."""
    if size <= _LONGEST:
        return size
    found = max(each for each in range(1, _LONGEST + 1) if size % each == 0)
    return size if found == 1 else found


def _by_definition(rows: ComplexArrays, is_inverse: bool) -> ComplexArrays:
    """Return the sums of elements times roots of unity."""
    _, size = shape_of(rows.real)
    products = np.outer(np.arange(size), np.arange(size)) % size
    angles = (2 if is_inverse else -2) * np.pi / size * products
    cosines, sines = (_constant(each, element_of(rows.real)) for each in (np.cos(angles), np.sin(angles)))
    real, imaginary = _product(rows.real, cosines), _product(rows.real, sines)
    if rows.imaginary is None:
        return ComplexArrays(real, imaginary)
    return ComplexArrays(
        hlo.subtract(real, _product(rows.imaginary, sines)), hlo.add(imaginary, _product(rows.imaginary, cosines))
    )


def _roots(shape: Sequence[int], size: int, is_inverse: bool, element: ir.Type) -> tuple[Value, Value]:
    """Return the ``size``-th roots of unity to the power of the product of the last two indices."""
    numbers = tensor(shape, "i32")
    power = hlo.multiply(hlo.iota(numbers, 1), hlo.iota(numbers, 2))
    angle = hlo.convert(tensor(shape, element), power)
    angle = hlo.multiply(angle, splat_like((2 if is_inverse else -2) * math.pi / size, angle))
    return hlo.cosine(angle), hlo.sine(angle)


def _constant(numbers: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", element: ir.Type) -> Value:
    kind = np.float32 if isinstance(element, ir.F32Type) else np.float64
    return hlo.constant(ir.DenseElementsAttr.get(np.ascontiguousarray(numbers.astype(kind))))


def _product(left: Value, right: Value) -> Value:
    """Return a matrix product in the precision of its elements."""
    precision = ir.ArrayAttr.get([hlo.PrecisionAttr.get("HIGHEST")] * 2)
    attributes: dict[str, ir.Attribute] = {
        "dot_dimension_numbers": hlo.DotDimensionNumbers.get([], [], [1], [0]),
        "precision_config": precision,
    }
    result = tensor([shape_of(left)[0], shape_of(right)[1]], element_of(left))
    return ir.Operation.create("stablehlo.dot_general", [result], [left, right], attributes).results[0]


def scaled(numbers: ComplexArrays, factor: float) -> ComplexArrays:
    """Return numbers times a real one."""
    return numbers.each(lambda part: hlo.multiply(part, splat(factor, ir.RankedTensorType(part.type))))

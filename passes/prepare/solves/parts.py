"""Parts of batches of matrices, which loops over columns or rows take, and the numbers of rows and columns.

Also what of complex matrices has another form than of real ones.
"""

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, broadcast, compared, convert, hlo, shape_of, splat, splat_like, tensor
from xgpu.structure import element_of

NUMBER = "i32"
"""The type of the numbers of rows and columns."""


def numbers_of(value: Value) -> tuple[Value, Value]:
    """Return the row and the column of each element of matrices."""
    numbers = tensor(shape_of(value), NUMBER)
    return hlo.iota(numbers, 1), hlo.iota(numbers, 2)


def part(value: Value, places: tuple[Value | None, ...]) -> Value:
    """Return a slice of one element along the dimensions of which a place is given, and all of the others."""
    none = splat(0, tensor([], NUMBER))
    sizes = [size if place is None else 1 for size, place in zip(shape_of(value), places, strict=True)]
    return hlo.dynamic_slice(value, [none if place is None else place for place in places], sizes)


def like(value: Value, other: Value) -> Value:
    """Return a scalar, or what has one element along some dimensions, at each index of ``other``."""
    rank = len(shape_of(value))
    return broadcast(value, shape_of(other), range(rank))


def is_complex(value: Value) -> bool:
    """Whether elements are complex."""
    return isinstance(element_of(value), ir.ComplexType)


def real_type(value: Value) -> ir.Type:
    """Return the type of the elements, of complex ones that of their parts."""
    element = element_of(value)
    return ir.ComplexType(element).element_type if isinstance(element, ir.ComplexType) else element


def real(value: Value) -> Value:
    """Return the real parts."""
    return hlo.real(value) if is_complex(value) else value


def with_element(value: Value, element: ir.Type) -> Value:
    """Return real numbers, or truth values, in a type of real or complex elements."""
    if not isinstance(element, ir.ComplexType):
        return convert(value, element)
    parts = convert(value, ir.ComplexType(element).element_type)
    return hlo.complex(parts, splat_like(0, parts))


def conjugate(value: Value) -> Value:
    """Return the conjugates; real numbers are their own."""
    return hlo.complex(hlo.real(value), hlo.negate(hlo.imag(value))) if is_complex(value) else value


def adjoint(value: Value) -> Value:
    """Return conjugates of matrices with rows and columns exchanged."""
    return hlo.transpose(conjugate(value), [0, 2, 1])


def scaled(value: Value, factor: Value) -> Value:
    """Return ``value`` times real numbers."""
    if not is_complex(value):
        return hlo.multiply(value, factor)
    return hlo.complex(hlo.multiply(hlo.real(value), factor), hlo.multiply(hlo.imag(value), factor))


def divided(value: Value, divisor: Value) -> Value:
    """Return ``value`` divided by real numbers."""
    if not is_complex(value):
        return hlo.divide(value, divisor)
    return hlo.complex(hlo.divide(hlo.real(value), divisor), hlo.divide(hlo.imag(value), divisor))


def largest_part(value: Value) -> Value:
    """Return the larger one of the absolute values of the parts of each number: real, and no part is larger."""
    if not is_complex(value):
        return hlo.abs(value)
    return hlo.maximum(hlo.abs(hlo.real(value)), hlo.abs(hlo.imag(value)))


def squared(value: Value) -> Value:
    """Return the squares of absolute values."""
    if not is_complex(value):
        return hlo.multiply(value, value)
    re, im = hlo.real(value), hlo.imag(value)
    return hlo.add(hlo.multiply(re, re), hlo.multiply(im, im))


def direction_of(value: Value) -> Value:
    """Return complex numbers of length one in the direction of others; 1 for zero."""
    largest = largest_part(value)
    is_zero = compared(largest, splat_like(0, largest), "EQ")
    near = divided(value, hlo.select(is_zero, splat_like(1, largest), largest))
    length = hlo.sqrt(squared(near))
    one = splat_like(1, length)
    found = divided(near, hlo.select(is_zero, one, length))
    return hlo.select(is_zero, hlo.complex(one, splat_like(0, one)), found)

"""Parts of batches of matrices, which loops over columns or rows take, and the numbers of rows and columns."""

from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, shape_of, splat, tensor

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

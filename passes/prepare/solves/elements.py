"""Matrices as arrays of their elements: each has the shape of the batch."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, reshape, shape_of

Matrix = list[list[Value]]


def part_of(array: Value, places: dict[int, int]) -> Value:
    """Return the part of ``array`` at an index of some of its dimensions, without these."""
    shape = shape_of(array)
    starts = [places.get(axis, 0) for axis in range(len(shape))]
    limits = [places[axis] + 1 if axis in places else size for axis, size in enumerate(shape)]
    rest = [size for axis, size in enumerate(shape) if axis not in places]
    return reshape(hlo.slice(array, starts, limits, [1] * len(shape)), rest)


def elements_of(matrices: Value) -> Matrix:
    """Return the elements of the last two dimensions of ``matrices``."""
    *batch, rows, columns = shape_of(matrices)
    first = len(batch)
    return [[part_of(matrices, {first: i, first + 1: j}) for j in range(columns)] for i in range(rows)]


def stacked(parts: Sequence[Value], axis: int) -> Value:
    """Return arrays of one shape put together along a new dimension ``axis``."""
    shape = shape_of(parts[0])
    grown = [*shape[:axis], 1, *shape[axis:]]
    views = [reshape(part, grown) for part in parts]
    return views[0] if len(views) == 1 else hlo.concatenate(views, axis)


def matrices_of(elements: Matrix) -> Value:
    """Return the matrices that have these elements."""
    rank = len(shape_of(elements[0][0]))
    return stacked([stacked(row, rank) for row in elements], rank)


def swapped(elements: list[Value], k: int, others: Sequence[int], place: Sequence[Value]) -> list[Value]:
    """Return ``elements`` with that of ``k`` exchanged for the one of ``others`` whose ``place`` is true, if any is."""
    result = list(elements)
    for i, here in zip(others, place, strict=True):
        result[k] = hlo.select(here, elements[i], result[k])
        result[i] = hlo.select(here, elements[k], elements[i])
    return result


def spread(value: Value, like: Value) -> Value:
    """Return a value of a batch for each element of the rows ``like``, whose last dimension it has not."""
    shape = shape_of(like)
    return value if shape_of(value) == shape else broadcast(value, shape, range(len(shape) - 1))


def is_small(matrices: ir.Value, most: int) -> bool:
    """Whether the last two dimensions are equal and at most ``most``, of floats that kernels compute."""
    type_ = ir.RankedTensorType(matrices.type)
    *_, rows, columns = type_.shape if type_.rank > 1 else (0, 0)
    return isinstance(type_.element_type, ir.F32Type | ir.F64Type) and 0 < rows == columns <= most

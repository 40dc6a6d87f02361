"""Operations that move elements, on NumPy arrays, by their indexing maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.analysis.constants.arrays import Array
from xgpu.indexing.access import Access, Shape, integer, shape_of
from xgpu.indexing.hlo_maps import accesses


def iota(op: ir.Operation, numpy_type: np.dtype[Any]) -> Array:
    """Return the result of a ``stablehlo.iota``, whose elements are views of those along one dimension."""
    shape, along = shape_of(op.results[0]), integer(op, "iota_dimension")
    line = np.arange(shape[along]).astype(numpy_type)
    return np.broadcast_to(line.reshape([-1 if i == along else 1 for i in range(len(shape))]), shape)


def moved(op: ir.Operation, operands: Sequence[Array]) -> Array:
    """Return the result of an operation that takes each element from one of its operands."""
    if op.name == "stablehlo.reshape":
        return operands[0].reshape(shape_of(op.results[0]))
    shape = shape_of(op.results[0])
    found = accesses(op)
    runtime = {index.access for access in found for index in access.runtime}
    read: dict[int, Array] = {}
    for number, access in enumerate(found):
        if number in runtime:
            read[number] = _taken(operands[access.operand], access, shape, read)
    parts = [access for number, access in enumerate(found) if number not in runtime]
    *first, last = parts
    result = np.broadcast_to(_taken(operands[last.operand], last, shape, read), shape)
    for access in reversed(first):
        inside = _inside(access, shape, read)
        result = np.where(inside, _taken(operands[access.operand], access, shape, read), result)
    return result


def _variables(access: Access, shape: Shape, read: dict[int, Array]) -> list[Any]:
    """Return the indices of the result, each along its own dimension, and what runtime indices are."""
    grid: list[Any] = list(np.ogrid[tuple(slice(size) for size in shape)]) if shape else []
    return grid + [
        np.clip(_signed(read[index.access]), index.clamp.lower, index.clamp.upper) for index in access.runtime
    ]


def _signed(indices: Array) -> Array:
    """Return indices as numbers from which more can be taken away; those too large for that are out of any range."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.iinfo(np.int64).max)
    return indices.astype(np.int64)


def _taken(array: Array, access: Access, shape: Shape, read: dict[int, Array]) -> Array:
    """Return the elements that an access reads; some elements of the array where its constraints do not hold."""
    if not access.map.results:
        return np.broadcast_to(array, shape)
    variables = _variables(access, shape, read)
    indices = [expr.evaluate(variables) for expr in access.map.results]
    if access.map.constraints:
        indices = [np.clip(index, 0, size - 1) for index, size in zip(indices, array.shape, strict=True)]
    return np.broadcast_to(array[tuple(indices)], shape)


def _inside(access: Access, shape: Shape, read: dict[int, Array]) -> Array:
    """Return where the constraints of an access hold."""
    variables = _variables(access, shape, read)
    inside = np.broadcast_to(np.array(True), shape)
    for expr, interval in access.map.constraints:
        index = expr.evaluate(variables)
        inside = inside & (index >= interval.lower) & (index <= interval.upper)
    return inside

"""Arrays of integers that are arithmetic progressions along one dimension, as the indices of strided slices are."""

import numpy as np

from xgpu import ir
from xgpu.analysis.constants.arrays import Array, array_of, is_readable
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.records import dataclass
from xgpu.structure import dtype_of, is_argument, is_constant, producer

_MOST_BEHIND = 16
"""Operations between an index and the count that it is made of, at most."""
_MOST_ELEMENTS = 1 << 12
"""Elements of a constant that is looked through."""


@dataclass(frozen=True)
class Progression:
    """The integers ``start + step * i``, where ``i`` is the index along ``dim``; where that is None, ``start`` alone.

    As those of an array's type, which wrap around.
    """

    start: int
    step: int = 0
    dim: int | None = None

    def __add__(self, other: "Progression") -> "Progression | None":
        """Return the sums of two, if those are a progression."""
        if None not in (self.dim, other.dim) and self.dim != other.dim:
            return None
        dim = other.dim if self.dim is None else self.dim
        return Progression(self.start + other.start, self.step + other.step, dim)

    def times(self, factor: int) -> "Progression":
        """Return the products with a number."""
        return Progression(self.start * factor, self.step * factor, self.dim)

    def along(self, dim: int | None) -> "Progression":
        """Return the same numbers, with another dimension to count along."""
        return Progression(self.start, self.step if dim is not None else 0, dim)


def progression_of(value: ir.Value, most: int = _MOST_BEHIND) -> Progression | None:
    """Return the progression that an array of integers is, None if that is not known.

    At most so many operations are looked at in a row. Narrow types, which may wrap around before they are widened, are
    not looked at.
    """
    if is_argument(value) or not most or dtype_of(value).bits < 32 or not dtype_of(value).is_integer:
        return None
    op = producer(value)
    if is_constant(value):
        return _of_constant(op)
    match op.name:
        case "stablehlo.iota":
            return Progression(0, 1, integer(op, "iota_dimension"))
        case "stablehlo.add":
            first, second = (progression_of(operand, most - 1) for operand in op.operands)
            return None if first is None or second is None else first + second
        case "stablehlo.multiply":
            first, second = (progression_of(operand, most - 1) for operand in op.operands)
            if first is None or second is None or None not in (first.dim, second.dim):
                return None
            return first.times(second.start) if second.dim is None else second.times(first.start)
        case "stablehlo.broadcast_in_dim" | "stablehlo.reshape":
            before = progression_of(op.operands[0], most - 1)
            return before if before is None or before.dim is None else _moved(before, op, before.dim)
    return None


def _moved(before: Progression, op: ir.Operation, dim: int) -> Progression | None:
    """Return what a broadcast or a reshape of a progression along ``dim`` is."""
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    if old[dim] == 1:
        return before.along(None)
    if op.name == "stablehlo.broadcast_in_dim":
        return before.along(integers(op, "broadcast_dimensions")[dim])
    # Dimensions of one element apart, a reshape may leave all as they are.
    kept = [(i, size) for i, size in enumerate(new) if size != 1]
    if [size for _, size in kept] != [size for size in old if size != 1]:
        return None
    return before.along(kept[sum(size != 1 for size in old[:dim])][0])


def _of_constant(op: ir.Operation) -> Progression | None:
    """Return the progression that a constant is."""
    if not is_readable(op.results[0].type):
        return None
    array = array_of(op)
    return None if array is None else progression_of_array(array)


def progression_of_array(array: Array) -> Progression | None:
    """Return the progression that the elements of an array are, if it has some, and not too many."""
    if not array.size or array.size > _MOST_ELEMENTS:
        # Equal numbers have no strides, however many they are.
        return Progression(int(array.flat[0])) if array.size and not any(array.strides) else None
    numbers = array.astype(np.int64)
    start = int(numbers.flat[0])
    for dim in (None, *range(array.ndim)):
        step = 0 if dim is None or array.shape[dim] == 1 else int(numbers.take(1, dim).flat[0]) - start
        counted = np.arange(1 if dim is None else array.shape[dim]) * step
        along = [-1 if i == dim else 1 for i in range(array.ndim)]
        if (numbers == start + counted.reshape(along)).all():
            return Progression(start, step, dim)
    return None

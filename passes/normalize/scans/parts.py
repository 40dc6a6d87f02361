"""Slices and pads along one dimension: the parts of scans that are written out."""

from math import copysign

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.indexing.access import integers
from xgpu.passes.normalize.scans.polynomials import number_of
from xgpu.records import dataclass
from xgpu.structure import defining_op


@dataclass(frozen=True)
class Slice:
    """``count`` elements of an array along a dimension, of its ``size``, from ``start`` on, ``step`` apart."""

    array: Value
    size: int
    start: int
    count: int
    step: int

    @classmethod
    def of(cls, value: Value, dimension: int) -> "Slice | None":
        """Return what part of which array a `stablehlo.slice` is, if it cuts along the dimension alone."""
        op = defining_op(value)
        if op is None or op.name != "stablehlo.slice":
            return None
        starts, limits, steps = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
        shape, count = shape_of(op.operands[0]), shape_of(value)[dimension]
        others = [i for i in range(len(shape)) if i != dimension]
        if any((starts[i], limits[i], steps[i]) != (0, shape[i], 1) for i in others):
            return None
        return cls(op.operands[0], shape[dimension], starts[dimension], count, steps[dimension] if count > 1 else 1)


@dataclass(frozen=True)
class Pad:
    """An array with so many zeros before and after its elements along a dimension, and between each two of them."""

    array: Value
    low: int
    high: int
    inside: int

    @classmethod
    def of(cls, op: ir.Operation, dimension: int) -> "Pad | None":
        """Return how a `stablehlo.pad` pads its array, if it does along the dimension alone, and with zeros."""
        fill = defining_op(op.operands[1])
        number = None if fill is None else number_of(fill)
        names = "edge_padding_low", "edge_padding_high", "interior_padding"
        numbers = list(zip(*(integers(op, name) for name in names), strict=True))
        is_zero = number == 0 and copysign(1, number) > 0
        if not is_zero or any(any(each) for i, each in enumerate(numbers) if i != dimension):
            return None
        return cls(op.operands[0], *numbers[dimension])


def spread_dimension(op: ir.Operation | None) -> int | None:
    """Return the only dimension along which a `stablehlo.pad` has something between elements, if that is one.

    None for other operations.
    """
    if op is None or op.name != "stablehlo.pad":
        return None
    insides = integers(op, "interior_padding")
    along = [i for i, inside in enumerate(insides) if inside]
    return along[0] if len(along) == 1 and insides[along[0]] == 1 else None


def unreversed(op: ir.Operation | None, dimension: int) -> Value | None:
    """Return the array of which an operation is the one that is reversed along the dimension, None for other ones."""
    if op is None or op.name != "stablehlo.reverse":
        return None
    return op.operands[0] if integers(op, "dimensions") == [dimension] else None

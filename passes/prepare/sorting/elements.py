"""Accesses of a sort to single elements, for rows that lie one after the other in arrays of rank 1."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.scan_op import combine_elements
from xgpu.hlo.stablehlo_builder import (
    Value,
    broadcast,
    convert,
    fill_region,
    gathered,
    hlo,
    reduced,
    reshape,
    shape_of,
    splat,
    tensor,
)
from xgpu.records import dataclass
from xgpu.structure import element_of

POSITION = "i32"
"""The type of positions: arrays have fewer elements than it has numbers."""


@dataclass(frozen=True)
class SortOrder:
    """The order of a sort: its region, and the numbers of the arrays that the region looks at, which are the keys."""

    region: ir.Block
    keys: tuple[int, ...]

    @classmethod
    def of(cls, region: ir.Block) -> "SortOrder":
        """Return the order that the region of a ``stablehlo.sort`` gives."""
        arguments = region.arguments
        used = (number for number, each in enumerate(arguments) if list(each.uses))
        return cls(region, tuple(sorted({number // 2 for number in used})))

    @property
    def operations(self) -> int:
        """The number of operations that tell of two elements whether the first comes before the second."""
        return len(self.region.operations) - 1

    def is_before(self, left: Sequence[Value], right: Sequence[Value]) -> Value:
        """Return where the keys ``left`` come before ``right``, arrays of one shape."""
        pairs = {key: pair for key, *pair in zip(self.keys, left, right, strict=True)}
        some = next(iter(pairs.values()))
        count = len(self.region.arguments) // 2
        return combine_elements(self.region, [each for number in range(count) for each in pairs.get(number, some)])[0]


@dataclass(frozen=True)
class SortedRows:
    """So many rows of ``size`` elements."""

    count: int
    size: int

    @property
    def length(self) -> int:
        """Elements of all rows."""
        return self.count * self.size

    def numbers(self) -> Value:
        """Return the position of each element among all."""
        return hlo.iota(tensor([self.length], POSITION), 0)

    def starts(self) -> Value:
        """Return where the row of each element begins."""
        return times(over(self.numbers(), self.size), self.size)

    def moved(self, arrays: Sequence[Value], places: Value) -> list[Value]:
        """Return arrays whose elements are each at its place, a position among all."""
        order = scattered(self.numbers(), places)
        return [gathered(array, order) for array in arrays]


def number_like(number: int, value: Value) -> Value:
    """Return an array of positions, all of them one number, of the shape of ``value``."""
    return splat(number, tensor(shape_of(value), POSITION))


def times(value: Value, number: int) -> Value:
    """Return positions times a number."""
    return hlo.multiply(value, number_like(number, value))


def over(value: Value, number: int) -> Value:
    """Return positions divided by a number, rounded down."""
    return hlo.divide(value, number_like(number, value))


def scattered(values: Value, places: Value) -> Value:
    """Return an array of rank 1 of as many elements as ``values``, each at its place: a position of its own."""
    numbers = hlo.ScatterDimensionNumbers.get(
        update_window_dims=[],
        inserted_window_dims=[0],
        input_batching_dims=[],
        scatter_indices_batching_dims=[],
        scattered_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    attributes: dict[str, ir.Attribute] = {
        "scatter_dimension_numbers": numbers,
        "unique_indices": ir.BoolAttr.get(True),
    }
    empty = splat(0, ir.RankedTensorType(values.type))
    operands = [empty, reshape(places, [*shape_of(places), 1]), values]
    op = ir.Operation.create("stablehlo.scatter", [values.type], operands, attributes, regions=1)
    scalar = tensor([], element_of(values))
    fill_region(op, [scalar, scalar], lambda pair: [pair[1]])
    return op.results[0]


def counted(flags: Value, axis: int) -> Value:
    """Return how many of ``flags`` are true along a dimension."""
    return reduced(convert(flags, ir.Type.parse(POSITION)), splat(0, tensor([], POSITION)), [axis], hlo.add)


def spread(value: Value, like: Value) -> Value:
    """Return a scalar at each index of ``like``."""
    return broadcast(value, shape_of(like))

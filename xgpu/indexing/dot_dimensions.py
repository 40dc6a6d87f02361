"""The dimensions of a matrix product's operands: contracted, batch, and free."""

from functools import lru_cache

from xgpu import ir
from xgpu.records import dataclass

DIMENSIONS = "dot_dimension_numbers"


@dataclass(frozen=True)
class OperandDimensions:
    """The dimensions of an operand; those of a batch, and the contracted ones, are in the other operand's order.

    The result has those of the batch, then what the left operand has of its own, then what the right one has.
    """

    batching: tuple[int, ...]
    contracting: tuple[int, ...]
    own: tuple[int, ...]

    def labels(self, first_own: int, first_contracted: int) -> tuple[int, ...]:
        """Return a number for each dimension: those of a batch, its own and contracted ones count up from some first.

        The first of a batch is 0.
        """
        kinds = ((self.batching, 0), (self.own, first_own), (self.contracting, first_contracted))
        numbers = {dimension: number for each, first in kinds for number, dimension in enumerate(each, first)}
        return tuple(numbers[dimension] for dimension in range(len(numbers)))


def operand_dimensions(op: ir.Operation) -> tuple[OperandDimensions, OperandDimensions]:
    """Return the dimensions of both operands of a `dot_general`."""
    numbers = ir.stablehlo.DotDimensionNumbers(op.attributes[DIMENSIONS])
    left, right = (ir.RankedTensorType(value.type).rank for value in op.operands)
    return (
        _of(left, tuple(numbers.lhs_batching_dimensions), tuple(numbers.lhs_contracting_dimensions)),
        _of(right, tuple(numbers.rhs_batching_dimensions), tuple(numbers.rhs_contracting_dimensions)),
    )


@lru_cache(maxsize=256)
def _of(rank: int, batching: tuple[int, ...], contracting: tuple[int, ...]) -> OperandDimensions:
    own = tuple(sorted({*range(rank)} - {*batching, *contracting}))
    return OperandDimensions(batching, contracting, own)

"""The pass `turn-ragged-products`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.chlo import RAGGED, RAGGED_DIMENSIONS, RaggedDimensions
from xgpu.indexing.access import integers
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op

_TRANSPOSE = "stablehlo.transpose"


@dataclass(frozen=True)
class TurnRaggedProducts(OperationRewrite):
    """Has products of rows in groups read what is transposed for them as it was before.

    Which dimension is which, a product says, so that no transpose need be computed.

    ```mlir
    %1 = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<2x16x32xbf16>) -> tensor<2x32x16xbf16>
    %2 = "chlo.ragged_dot"(%x, %1, %sizes) {... rhs_contracting_dimensions = [1] ...} : ...
    ```
    becomes
    ```mlir
    %2 = "chlo.ragged_dot"(%x, %w, %sizes) {... rhs_contracting_dimensions = [2] ...} : ...
    ```
    """

    NAME: ClassVar[str] = "turn-ragged-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((RAGGED,))

    def rewrite(self, op: ir.Operation) -> None:
        """Look through the transposes of both operands of a product of rows."""
        found = RaggedDimensions.of(op)
        if found is None:
            return
        left, right = _source(op, 0), _source(op, 1)
        attribute = ir.chlo.RaggedDotDimensionNumbers.get(
            lhs_batching_dimensions=[],
            rhs_batching_dimensions=[],
            lhs_contracting_dimensions=[left[found.contracted]],
            rhs_contracting_dimensions=[right[found.right_contracted]],
            lhs_ragged_dimensions=[left[found.rows]],
            rhs_group_dimensions=[right[found.group]],
        )
        op.attributes[RAGGED_DIMENSIONS] = attribute


def _source(op: ir.Operation, number: int) -> list[int]:
    """Have an operand be what its transposes are of; return where each of its dimensions is in that."""
    places = list(range(ir.RankedTensorType(op.operands[number].type).rank))
    while (made := defining_op(op.operands[number])) is not None and made.name == _TRANSPOSE:
        permutation = integers(made, "permutation")
        places = [permutation[each] for each in places]
        op.operands[number] = made.operands[0]
    return places

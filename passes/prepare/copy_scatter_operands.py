"""The pass `copy-scatter-operands`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import is_result_of, producer

_FILLS = ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota")
"""Operations that are cheaper to recompute than to copy."""


@dataclass(frozen=True)
class CopyScatterOperands(OperationRewrite):
    """Gives each operand of a scatter memory that nothing else reads, since it is updated in place.

    An operand that the scatter has twice gets a copy; one with other uses that is as cheap to recompute is recomputed.
    Needs: scatters in their final form.

    ```mlir
    %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
    %new = "stablehlo.scatter"(%zeros, %indices, %updates) ({ ... }) : (tensor<8xf32>, ...) -> tensor<8xf32>
    %sum = stablehlo.add %new, %zeros : tensor<8xf32>
    ```
    becomes
    ```mlir
    %zeros = stablehlo.constant dense<0.0> : tensor<8xf32>
    %own = stablehlo.constant dense<0.0> : tensor<8xf32>
    %new = "stablehlo.scatter"(%own, %indices, %updates) ({ ... }) : (tensor<8xf32>, ...) -> tensor<8xf32>
    %sum = stablehlo.add %new, %zeros : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "copy-scatter-operands"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))
    WITH_CONDITIONS: ClassVar[bool] = True

    def rewrite(self, op: ir.Operation) -> None:
        """Copy the operands of one scatter that others read."""
        for position in range(len(op.results)):
            operand = op.operands[position]
            if is_result_of(operand, *_FILLS):
                fill = producer(operand)
                if len(list(operand.uses)) > 1 or fill.block != op.block:
                    op.operands[position] = fill.clone().results[0]
            elif list(op.operands).count(operand) > 1:
                # A reshape to the same shape is a value of its own, which a kernel stores.
                op.operands[position] = ir.stablehlo.reshape(operand.type, operand)

"""The pass `drop-empty-scatters`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import has_own_types
from xgpu.analysis.in_place import SCATTER, updated_operands, updates_of
from xgpu.hlo.stablehlo_builder import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op


@dataclass(frozen=True)
class DropEmptyScatters(OperationRewrite):
    """Replaces scatters without updates, or without elements to update, by their operands.

    Needs: nothing. Run it before order-scatters and the planner, which take scatters to have updates.

    ```mlir
    %new = "stablehlo.scatter"(%x, %indices, %none) ({ ... })
        : (tensor<8xf32>, tensor<0x1xi32>, tensor<0xf32>) -> tensor<8xf32>
    ```
    becomes ``%x``.
    """

    NAME: ClassVar[str] = "drop-empty-scatters"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))
    WITH_CONDITIONS: ClassVar[bool] = True

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a scatter without updates."""
        arrays = (*op.results, *updates_of(op))
        if has_own_types(op) and not all(math.prod(shape_of(value)) for value in arrays):
            replace_op(op, updated_operands(op))

"""The pass `check-operations`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo import checks
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class CheckOperations(Pass):
    """Refuses what xgpu cannot represent: operations outside StableHLO, and values that are no arrays of static shape.

    Raises Unsupported with the operation, its type and the user's source line. Changes nothing. Needs: MHLO, CHLO,
    composites, tuples and shardings gone.

    ```mlir
    %0 = stablehlo.add %x, %x : tensor<?xf32>
    ```
    is refused; what is not stays as it is.
    """

    NAME: ClassVar[str] = "check-operations"

    def apply(self, module: ir.Module) -> None:
        """Check all operations."""
        checks.check_operations(module)

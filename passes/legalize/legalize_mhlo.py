"""The pass `legalize-mhlo`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class LegalizeMhlo(Pass):
    """Converts operations of MHLO that exist in StableHLO, too, to that dialect.

    Raises Unsupported for others. Needs: what StableHLO lacks rewritten by rewrite-mhlo.

    ```mlir
    %0 = mhlo.add %x, %y : tensor<4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "legalize-mhlo"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("mhlo.*",))

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations."""
        run_mlir_passes(module, "hlo-legalize-to-stablehlo")

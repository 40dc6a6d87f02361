"""The pass `legalize-deprecated`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class LegalizeDeprecated(Pass):
    """Replaces deprecated StableHLO operations by their successors. Needs: nothing.

    ```mlir
    %0 = "stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2x4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    ```
    """

    NAME: ClassVar[str] = "legalize-deprecated"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        f"stablehlo.{name}"
        for name in (
            "broadcast",
            "create_token",
            "cross-replica-sum",
            "dot",
            "einsum",
            "map",
            "torch_index_select",
            "unary_einsum",
        )
    )

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations."""
        run_mlir_passes(module, "func.func(stablehlo-legalize-deprecated-ops{fail-on-unused=false})")

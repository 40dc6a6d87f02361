"""The pass `fix-sizes`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass


@dataclass(frozen=True)
class FixSizes(Pass):
    """Converts operations whose sizes are constant operands to those with static sizes.

    Needs: operations of StableHLO.

    ```mlir
    %sizes = stablehlo.constant dense<[2, 4]> : tensor<2xi64>
    %0 = stablehlo.dynamic_broadcast_in_dim %x, %sizes, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    ```
    """

    NAME: ClassVar[str] = "fix-sizes"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        f"stablehlo.{name}"
        for name in (
            "dynamic_broadcast_in_dim",
            "dynamic_conv",
            "dynamic_gather",
            "dynamic_iota",
            "dynamic_pad",
            "dynamic_reshape",
            "real_dynamic_slice",
        )
    )

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations."""
        run_mlir_passes(module, "func.func(stablehlo-canonicalize-dynamism)")

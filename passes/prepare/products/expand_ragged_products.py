"""The pass `expand-ragged-products`."""

from typing import ClassVar, Literal

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.emit.families.products.meetings import by_warp_groups
from xgpu.hlo.chlo import RAGGED, expand_ragged
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op


@dataclass(frozen=True)
class ExpandRaggedProducts(OperationRewrite):
    """Writes products of rows in groups as one product for each group, where kernels are to compute them but have none.

    With ``products=all`` nothing is left to XLA; warp groups multiply rows in groups, and nobody else does. Else XLA
    has such products as they are.

    ```mlir
    %0 = "chlo.ragged_dot"(%x, %w, %sizes) {...} : (tensor<64x32xf32>, tensor<2x32x16xf32>, tensor<2xi32>) -> ...
    ```
    becomes, with products=all
    ```mlir
    %0 = stablehlo.slice %w [0:1, 0:32, 0:16] : ...
    %1 = stablehlo.dot_general %x, ...
    %2 = stablehlo.select %is_of_first, %1, %zeros : ...
    ...
    ```
    """

    NAME: ClassVar[str] = "expand-ragged-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((RAGGED,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products."""

    def rewrite(self, op: ir.Operation) -> None:
        """Expand a product that no kernel computes, if kernels are to compute all."""
        if self.products == "all" and not by_warp_groups(op, device(self.target)):
            with ir.InsertionPoint(op), op.location:
                replace_op(op, [expand_ragged(op)])

"""The pass `mark-update-chains`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.in_place import UPDATE_SLICE, can_update_in_place, chained_updates
from xgpu.dialects.attributes import ELEMENTWISE
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass


@dataclass(frozen=True)
class MarkUpdateChains(BlockRewrite):
    """Marks updates of slices that kernels are to compute element by element: several of an array, one after another.

    Each is at a known place, and touches few of the array's sectors, so one by itself is made in the array's memory by
    a kernel of its own. Several would be a launch each, which takes longer than to move a whole array of up to four
    megabytes: one kernel computes all of them. What loops carry is updated in place. Needs: update-single-windows,
    which makes such updates of scatters.

    ```mlir
    %1 = stablehlo.dynamic_update_slice %x, %a, %c0, %c0 : (tensor<512x64xf32>, tensor<512x8xf32>, ...)
    %2 = stablehlo.dynamic_update_slice %1, %b, %c0, %c8 : (tensor<512x64xf32>, tensor<512x8xf32>, ...)
    ```
    becomes the same with
    ```mlir
    %1 = stablehlo.dynamic_update_slice ... {xgpu.elementwise}
    %2 = stablehlo.dynamic_update_slice ... {xgpu.elementwise}
    ```
    """

    NAME: ClassVar[str] = "mark-update-chains"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((UPDATE_SLICE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Mark the updates that are of several, one after another."""
        chained = chained_updates(block)
        for op in [op for op in operations_of(block, self.OPERATIONS) if op in chained and can_update_in_place(op)]:
            op.attributes[ELEMENTWISE] = ir.UnitAttr.get()

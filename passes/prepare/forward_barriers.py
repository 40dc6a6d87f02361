"""The pass `forward-barriers`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.frontend.mhlo import replace
from xgpu.fusion.left import BARRIER, reason_to_leave
from xgpu.passes.base import BlockRewrite


@dataclass(frozen=True)
class ForwardBarriers(BlockRewrite):
    """Removes the optimization barriers of a block all else of which kernels compute.

    What is computed again after a barrier, to save memory, must not be taken from before it. XLA would do that, and
    does not see a block of kernels; a barrier between two of its operations stays. Needs: nothing.

    ```mlir
    %0 = stablehlo.sine %x : tensor<8xf32>
    %1 = stablehlo.optimization_barrier %0 : tensor<8xf32>
    %2 = stablehlo.cosine %1 : tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.sine %x : tensor<8xf32>
    %2 = stablehlo.cosine %0 : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "forward-barriers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BARRIER,))
    keep: bool = False
    """Keep all of them, as boundaries of kernels."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Remove the barriers of ``block`` if XLA computes nothing of it."""
        *operations, _ = (view.operation for view in block.operations)
        barriers = [op for op in operations if op.name == BARRIER]
        if (
            self.keep
            or not barriers
            or any(op.name != BARRIER and reason_to_leave(op) is not None for op in operations)
        ):
            return
        for op in barriers:
            replace(op, list(op.operands))

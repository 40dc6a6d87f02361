"""The pass `forward-barriers`."""

from typing import ClassVar

from xgpu import ir
from xgpu.fusion.fallback import BARRIER, fallback_reason
from xgpu.passes.framework.base import BlockRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op


@dataclass(frozen=True)
class ForwardBarriers(BlockRewrite):
    """Removes the optimization barriers of blocks in which kernels compute everything else.

    A barrier keeps XLA from replacing values that are recomputed after it, to save memory, by those from before. XLA
    does not look into kernels, so it is needed only between two operations of XLA's. Needs: nothing.

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
            or any(op.name != BARRIER and fallback_reason(op) is not None for op in operations)
        ):
            return
        for op in barriers:
            replace_op(op, list(op.operands))

"""The pass `start-from-identity`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.initial_values import start_from_identity
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass


@dataclass(frozen=True)
class StartFromIdentity(OperationRewrite):
    """Starts reductions from their identity (sums from zero), and combines the initial value at the end.

    Every thread can then start from the identity: also in short reductions, whose elements the threads of a kernel may
    share, but not if results share bytes, which one thread computes. Regions of several operations are taken to start
    from their identity already, which StableHLO asks for, so their initial values may count more than once. Needs:
    nothing.

    ```mlir
    %sum = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1]
        : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<8x64xf32>, tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %sum = stablehlo.add %1, %0 : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "start-from-identity"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one reduction, if threads may share its elements."""
        if not any(map(is_packed, op.results)):
            start_from_identity(op)

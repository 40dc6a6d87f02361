"""The pass `slice-before-transposes`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.hlo.stablehlo_builder import hlo, transpose
from xgpu.indexing.access import integers, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op, users_of

_SLICE, _TRANSPOSE = "stablehlo.slice", "stablehlo.transpose"


@dataclass(frozen=True)
class SliceBeforeTransposes(OperationRewrite):
    """Transposes slices in place of taking slices of what is transposed.

    A kernel with tiles transposes what it computes at its own indices, from which a slice would be apart. Only where
    all that is read of a transpose are slices of no more elements in all, so that no more is transposed. Needs:
    nothing; run it after move-transposes, which puts transposes elsewhere.

    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
    %1 = stablehlo.slice %0 [0:256, 0:64] : (tensor<512x64xf32>) -> tensor<256x64xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.slice %x [0:64, 0:256] : (tensor<64x512xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
    ```
    """

    NAME: ClassVar[str] = "slice-before-transposes"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_TRANSPOSE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace the slices of one transpose, and the transpose, if it has no other users."""
        (result,) = op.results
        slices = list(dict.fromkeys(users_of(result)))
        if not slices or is_bitcast(op) or any(each.name != _SLICE or each.block != op.block for each in slices):
            return
        if sum(math.prod(shape_of(each.results[0])) for each in slices) > math.prod(shape_of(result)):
            return
        order = integers(op, "permutation")
        for each in slices:
            names = "start_indices", "limit_indices", "strides"
            numbers = [[0] * len(order) for _ in names]
            for name, given in zip(names, numbers, strict=True):
                for number, place in zip(integers(each, name), order, strict=True):
                    given[place] = number
            with ir.InsertionPoint(each), each.location:
                replace_op(each, [transpose(hlo.slice(op.operands[0], *numbers), order)])
        op.erase()

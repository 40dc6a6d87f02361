"""The pass `simplify-whole-slices`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.in_place import UPDATE_SLICE
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.hlo.stablehlo_builder import splat_like
from xgpu.indexing.access import shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.structure import is_constant, replace_op


@dataclass(frozen=True)
class SimplifyWholeSlices(OperationRewrite):
    """Replaces dynamic slices of whole arrays by the arrays, and starts that must be 0 by that constant.

    Starts are clamped to the array, so that a slice, or update, of all of a dimension starts at 0. A loop over stacked
    layers has such slices when there is one layer. Needs: nothing.

    ```mlir
    %part = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> ...
    %new = stablehlo.dynamic_update_slice %y, %update, %i : (tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %part = stablehlo.dynamic_slice %x, %i, %zero, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> ...
    // %update in place of %new
    ```
    """

    NAME: ClassVar[str] = "simplify-whole-slices"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((DYNAMIC_SLICE, UPDATE_SLICE))

    def rewrite(self, op: ir.Operation) -> None:
        """Simplify a slice, or the update of one."""
        if op.name == DYNAMIC_SLICE:
            _simplify(op, part=op.results[0], first_start=1)
        else:
            _simplify(op, part=op.operands[1], first_start=2)


def _simplify(op: ir.Operation, part: ir.Value, first_start: int) -> None:
    """Simplify a slice whose starts are operands from ``first_start`` on; ``part`` is what is sliced, or the update."""
    array = op.operands[0]
    if array.type == part.type:
        replace_op(op, [array if op.name == DYNAMIC_SLICE else part])
        return
    for number, (size, all_) in enumerate(zip(shape_of(part), shape_of(array), strict=True), first_start):
        if size == all_ and not is_constant(op.operands[number]):
            op.operands[number] = splat_like(0, op.operands[number])

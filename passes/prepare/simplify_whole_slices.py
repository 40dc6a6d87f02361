"""The pass `simplify-whole-slices`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.in_place import UPDATE_SLICE
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.hlo.stablehlo_builder import splat_like
from xgpu.indexing.access import integers, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import is_constant, replace_op

_SLICE, _PAD = _STATIC = ("stablehlo.slice", "stablehlo.pad")
_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


@dataclass(frozen=True)
class SimplifyWholeSlices(OperationRewrite):
    """Replaces slices of whole arrays, and pads that add nothing, by the arrays, and starts that must be 0 by 0.

    Starts of dynamic slices are clamped to the array, so that a slice, or update, of all of a dimension starts at 0. A
    loop over stacked layers has such slices when there is one layer; JAX's gradient of a largest element of windows has
    a pad and a slice, also where windows have no padding. Needs: nothing.

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
    and
    ```mlir
    %padded = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, ...) -> ...
    ```
    becomes `%x`.
    """

    NAME: ClassVar[str] = "simplify-whole-slices"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((DYNAMIC_SLICE, UPDATE_SLICE, *_STATIC))

    def rewrite(self, op: ir.Operation) -> None:
        """Simplify a slice, the update of one, or a pad."""
        if op.name in _STATIC:
            if _moves_nothing(op):
                replace_op(op, [op.operands[0]])
        elif op.name == DYNAMIC_SLICE:
            _simplify(op, part=op.results[0], first_start=1)
        else:
            _simplify(op, part=op.operands[1], first_start=2)


def _moves_nothing(op: ir.Operation) -> bool:
    """Whether a slice takes all elements, or a pad neither adds nor cuts off any."""
    if op.results[0].type != op.operands[0].type:
        return False
    return op.name == _SLICE or not any(number for name in _PADDING for number in integers(op, name))


def _simplify(op: ir.Operation, part: ir.Value, first_start: int) -> None:
    """Simplify a slice whose starts are operands from ``first_start`` on; ``part`` is what is sliced, or the update."""
    array = op.operands[0]
    if array.type == part.type:
        replace_op(op, [array if op.name == DYNAMIC_SLICE else part])
        return
    for number, (size, all_) in enumerate(zip(shape_of(part), shape_of(array), strict=True), first_start):
        if size == all_ and not is_constant(op.operands[number]):
            op.operands[number] = splat_like(0, op.operands[number])

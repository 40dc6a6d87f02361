"""The pass `simplify-single-reductions`."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.hlo.scan_op import is_neutral
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, reshape, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op

_ELEMENTWISE: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": hlo.add,
    "multiply": hlo.multiply,
    "minimum": hlo.minimum,
    "maximum": hlo.maximum,
}


@dataclass(frozen=True)
class SimplifySingleReductions(OperationRewrite):
    """Rewrites reductions of dimensions of one element as elementwise operations, which fuse with others.

    From a number that changes none, as a sum from zero, it is the element itself, as in XLA: -0 stays.
    Needs: nothing.

    ```mlir
    %sum = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1]
        : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.broadcast_in_dim %start, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.reshape %x : (tensor<8x1xf32>) -> tensor<8xf32>
    %sum = stablehlo.add %0, %1 : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "simplify-single-reductions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a reduction of single elements by what its region does with the initial values and them."""
        count, found = len(op.results), combiners(op)
        is_known = all(each.alone and each.function in _ELEMENTWISE for each in found)
        if ReductionShape.of(op).per_result != 1 or not is_known:
            return
        combined = []
        for number, each in enumerate(found):
            element, start = op.operands[number], op.operands[count + number]
            shape = shape_of(op.results[number])
            own = reshape(element, shape)
            if not is_neutral(each.function, start):
                own = _ELEMENTWISE[each.function](broadcast(start, shape), own)
            combined.append(own)
        replace_op(op, combined)

"""The pass `expand-operations`."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of, splat
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.passes.normalize.expansions.batch_norm import (
    expand_batch_norm_grad,
    expand_batch_norm_inference,
    expand_batch_norm_training,
)
from xgpu.passes.normalize.expansions.random_bits import expand_rng_bit_generator
from xgpu.passes.normalize.expansions.select_and_scatter import expand_select_and_scatter
from xgpu.records import dataclass
from xgpu.structure import replace_op


def _expand_get_dimension_size(op: ir.Operation) -> list[Value]:
    size = shape_of(op.operands[0])[ir.IntegerAttr(op.attributes["dimension"]).value]
    return [splat(size, ir.RankedTensorType(op.results[0].type))]


_EXPANSIONS: Mapping[str, Callable[[ir.Operation], list[Value]]] = {
    "stablehlo.batch_norm_grad": expand_batch_norm_grad,
    "stablehlo.batch_norm_inference": expand_batch_norm_inference,
    "stablehlo.batch_norm_training": expand_batch_norm_training,
    "stablehlo.get_dimension_size": _expand_get_dimension_size,
    "stablehlo.rng_bit_generator": expand_rng_bit_generator,
    "stablehlo.select_and_scatter": expand_select_and_scatter,
}


@dataclass(frozen=True)
class ExpandOperations(ModuleRewrite):
    """Expands operations that are shorthand for others, so that no later stage has to know them.

    These are batch normalisation, random bits, windows that scatter, and sizes of dimensions. The new operations have
    the source line of the old one. Raises Unsupported for types that an operation does not work on. Needs: arrays of
    known shape.

    ```mlir
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<8xf32>) -> tensor<i32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.constant dense<8> : tensor<i32>
    ```
    """

    NAME: ClassVar[str] = "expand-operations"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(_EXPANSIONS)

    def rewrite(self, op: ir.Operation) -> None:
        """Expand one operation."""
        replace_op(op, _EXPANSIONS[op.name](op))

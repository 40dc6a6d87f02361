"""The pass `replace-empty-values`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.hlo.stablehlo_builder import empty_constant
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class ReplaceEmptyValues(Pass):
    """Replaces values without elements by constants, so that no kernel makes one.

    Their operations stay where they have other effects, and are dead code otherwise. Needs: nothing.

    ```mlir
    %0 = stablehlo.add %x, %y : tensor<0xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.constant dense<> : tensor<0xf32>
    ```
    """

    NAME: ClassVar[str] = "replace-empty-values"

    def has_work(self, contents: Contents) -> bool:
        """Whether there are such values."""
        return any(map(_is_empty, contents.arrays))

    def apply(self, module: ir.Module) -> None:
        """Replace the results of all operations that have none."""
        found: list[ir.OpResult] = []
        for op in walk(module.operation, post_order=False):
            if op.name != "stablehlo.constant":
                found.extend(result for result in op.results if _is_empty(result.type))
        for value in found:
            if list(value.uses):
                with ir.InsertionPoint(value.owner), value.owner.location:
                    value.replace_all_uses_with(empty_constant(ir.RankedTensorType(value.type)))


def _is_empty(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and math.prod(type_.shape) == 0

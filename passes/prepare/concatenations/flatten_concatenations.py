"""The pass `flatten-concatenations`."""

from typing import ClassVar

from xgpu import ir
from xgpu.indexing.access import integer, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op

_CONCATENATE = "stablehlo.concatenate"


@dataclass(frozen=True)
class FlattenConcatenations(OperationRewrite):
    """Flattens nested concatenations along the same dimension: JAX nests those of more than 16 arrays.

    Only those that nothing else uses, so that the program does not grow. Empty arrays are left out, such as the part of
    a dimension that is rotated by 0. Needs: nothing.

    ```mlir
    %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
    %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<5xf32>, tensor<4xf32>) -> tensor<9xf32>
    ```
    becomes
    ```mlir
    %1 = stablehlo.concatenate %a, %b, %c, dim = 0 : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<9xf32>
    ```
    """

    NAME: ClassVar[str] = "flatten-concatenations"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CONCATENATE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace operands of a concatenation by what they are put together from themselves."""
        inner = {value: ir.OpResult(value).owner.operation for value in op.operands if _goes_into(value, op)}
        operands = [each for value in op.operands for each in (inner[value].operands if value in inner else [value])]
        dimension = integer(op, "dimension")
        filled = [each for each in operands if shape_of(each)[dimension]] or operands[:1]
        if not inner and len(filled) == len(operands):
            return
        if len(filled) > 1:
            attributes = {"dimension": op.attributes["dimension"]}
            types = [op.results[0].type]
            new = ir.Operation.create(_CONCATENATE, results=types, operands=filled, attributes=attributes)
            filled = list(new.results)
        replace_op(op, filled)
        for each in inner.values():
            each.erase()


def _goes_into(value: ir.Value, outer: ir.Operation) -> bool:
    """Whether ``value`` is a concatenation along the same dimension as ``outer``, which alone uses it, once."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != _CONCATENATE or owner.operation.block != outer.block:
        return False
    return integer(owner.operation, "dimension") == integer(outer, "dimension") and sum(1 for _ in value.uses) == 1

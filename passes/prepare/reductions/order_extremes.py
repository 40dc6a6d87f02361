"""The pass `order-extremes`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_reduction
from xgpu.analysis.reduction_regions import first_extreme
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.dialects.attributes import COMMUTATIVE, FIRST_EXTREME
from xgpu.hlo.constants import is_number
from xgpu.hlo.stablehlo_builder import hlo
from xgpu.hlo.widening import Widening
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class OrderExtremes(OperationRewrite):
    """Makes the position of the first extreme, as JAX's argmax finds it, independent of the order of combination.

    Of two NaNs the one of the lower position is taken, where JAX takes the one that comes first. Numbers of 16 bits are
    compared in f32. ``xgpu.commutative`` says that elements may be combined in any order, and ``xgpu.first_extreme``
    that positions rise from the initial one, so that of equal elements the first is to be kept. Needs: nothing.

    ```mlir
    %max, %position = stablehlo.reduce(%x init: %lowest), (%positions init: %zero) across dimensions = [1] ...
      %keeps = stablehlo.or ...
      %a = stablehlo.select %keeps, %left, %right : tensor<i1>, tensor<f32>
    ```
    becomes
    ```mlir
    %max, %position = stablehlo.reduce(%x init: %lowest), (%positions init: %zero) across dimensions = [1] ...
        {xgpu.commutative, xgpu.first_extreme = "GT"}
      %keeps = stablehlo.or ...
      %ordered = stablehlo.select %both_are_nan, %is_before, %keeps : tensor<i1>
      %a = stablehlo.select %ordered, %left, %right : tensor<i1>, tensor<f32>
    ```
    """

    NAME: ClassVar[str] = "order-extremes"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite a reduction that finds positions of extremes, if threads share its elements."""
        if is_reduction(op) and (direction := first_extreme(op)) is not None:
            Widening(_single).widen(op)
            _order_by_position(op, direction)


def _single(type_: ir.Type) -> ir.Type | None:
    """Numbers of 16 bits are compared in f32, where extending each once costs less than at each comparison."""
    return ir.F32Type.get(type_.context) if isinstance(type_, ir.F16Type | ir.BF16Type) else None


def _order_by_position(op: ir.Operation, direction: str) -> None:
    """Rewrite the region that `first_extreme` recognises to prefer, of two NaNs, the one of the lower position.

    The region ends with ``select(better, a, b), select(better or tie, i, j)``, where ``better`` holds for every ``a``
    that is NaN. Where both are NaN, ``i < j`` takes the place of both conditions.
    """
    block = op.regions[0].blocks[0]
    first, position, second, other = block.arguments
    if dtype_of(first).is_float:
        *_, end = block.operations
        with ir.InsertionPoint(end.operation):
            both = hlo.and_(*(hlo.compare(x, x, _direction("NE")) for x in (first, second)))
            is_before = hlo.compare(position, other, _direction("LT"))
            for number, (left, right) in enumerate(((first, second), (position, other))):
                keeps = end.operation.operands[number].owner.operation.operands[0]
                end.operation.operands[number] = hlo.select(hlo.select(both, is_before, keeps), left, right)
    op.attributes[COMMUTATIVE] = ir.UnitAttr.get()
    if is_number(op.operands[3], 0):
        op.attributes[FIRST_EXTREME] = ir.StringAttr.get(direction)


def _direction(name: str) -> ir.Attribute:
    return hlo.ComparisonDirectionAttr.get(name)

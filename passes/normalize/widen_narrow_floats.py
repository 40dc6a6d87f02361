"""The pass `widen-narrow-floats`."""

from typing import ClassVar

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.hlo.operations import is_total_order
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.widening import Widening
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_AS_IT_IS = frozenset(
    f"stablehlo.{name}"
    for name in """bitcast_convert broadcast broadcast_in_dim concatenate constant convert convolution custom_call
    dot_general dynamic_slice dynamic_update_slice gather iota optimization_barrier pad reshape return reverse scatter
    select slice sort transpose case if while tuple get_tuple_element""".split()
)
"""Operations that move values, convert them, multiply and add in a wide type of their own, or hold such operations."""


@dataclass(frozen=True)
class WidenNarrowFloats(Pass):
    """Widens arithmetic on floats of 8 and 4 bits, and rounds each result.

    XLA does the same, for no machine computes with such numbers: in f16, or f32 for f8e8m0fnu, whose range f16 lacks.
    So a function such as exp is rounded twice, to f16 and to its type, and a reduction is done in f16 and rounded at
    its end. Comparisons by the order of the bits stay. Needs: calls inlined.

    ```mlir
    %0 = stablehlo.add %x, %y : tensor<4xf8E5M2>
    ```
    becomes
    ```mlir
    %1 = stablehlo.convert %x : (tensor<4xf8E5M2>) -> tensor<4xf16>
    %2 = stablehlo.convert %y : (tensor<4xf8E5M2>) -> tensor<4xf16>
    %3 = stablehlo.add %1, %2 : tensor<4xf16>
    %0 = stablehlo.convert %3 : (tensor<4xf16>) -> tensor<4xf8E5M2>
    ```
    """

    NAME: ClassVar[str] = "widen-narrow-floats"

    def has_work(self, contents: Contents) -> bool:
        """Whether there are such floats."""
        return any(_wider_float(element) is not None for element in contents.elements)

    def apply(self, module: ir.Module) -> None:
        """Widen every arithmetic operation that has narrow operands or results, outer ones first."""
        widening = Widening(_wider_float)
        found = [op for op in walk(module.operation, post_order=False) if _is_arithmetic(op) and widening.is_needed(op)]
        for op in found:
            # What is in the region of an operation before it is wide by now.
            if widening.is_needed(op):
                with op.location:
                    widening.widen(op)


def _is_arithmetic(op: ir.Operation) -> bool:
    if op.name == "stablehlo.compare" and _is_ordered_by_bits(op):
        return False
    return op.name == SCAN or (op.name.startswith("stablehlo.") and op.name not in _AS_IT_IS)


def _is_ordered_by_bits(op: ir.Operation) -> bool:
    """Whether a comparison has an order of the bits, of which a wide NaN has others.

    Types without a zero of each sign (``FNUZ``, ``FNU``) have one NaN alone, and its place is that of the wide one.
    """
    element = str(ir.ShapedType(op.operands[0].type).element_type)
    return is_total_order(op) and "FNU" not in element


def _wider_float(element: ir.Type) -> ir.Type | None:
    if not isinstance(element, ir.FloatType) or element.width > 8:
        return None
    return ir.F32Type.get(element.context) if str(element) == "f8E8M0FNU" else ir.F16Type.get(element.context)

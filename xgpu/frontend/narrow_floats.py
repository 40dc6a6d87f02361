"""Rewrites arithmetic on floats of 8 and 4 bits: each operation is done in a wider type and its result rounded.

XLA does the same, for no machine computes with such numbers: in f16, or f32 for f8e8m0fnu, whose range f16 lacks. So
a function such as exp is rounded twice, to f16 and to its type, and a reduction is done in f16 and rounded at its end.
"""

from collections.abc import Callable, Iterable

from xgpu import ir
from xgpu.frontend.scan_op import SCAN

WiderType = Callable[[ir.Type], ir.Type | None]
"""Returns the element type to compute with instead of one, or None if that will do."""

_AS_IT_IS = frozenset(
    f"stablehlo.{name}"
    for name in """bitcast_convert broadcast broadcast_in_dim concatenate constant convert convolution custom_call
    dot_general dynamic_slice dynamic_update_slice gather iota optimization_barrier pad reshape return reverse scatter
    select slice sort transpose case if while tuple get_tuple_element""".split()
)
"""Operations that move values, convert them, multiply and add in a wide type of their own, or hold such operations."""
_IN_REGIONS = frozenset(
    f"stablehlo.{name}" for name in "add multiply subtract maximum minimum select compare and or xor not return".split()
)
"""Operations of a region that can be computed as a whole in a wider type."""


def widen_narrow_floats(module: ir.Module) -> bool:
    """Rewrite arithmetic on narrow floats as arithmetic on wider ones, between conversions.

    Returns whether there was any. Needs calls to have been inlined: the module holds only StableHLO operations.
    """
    widening = Widening(_wider_float)
    found: list[ir.Operation] = []

    def visit(view: ir.Operation) -> ir.WalkResult:
        op = view.operation
        is_arithmetic = op.name == SCAN or (op.name.startswith("stablehlo.") and op.name not in _AS_IT_IS)
        if is_arithmetic and widening.is_needed(op):
            found.append(op)
        return ir.WalkResult.ADVANCE

    with module.operation.location:
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        for op in found:
            # What is in the region of an operation before it is wide by now.
            if widening.is_needed(op):
                with op.location:
                    widening.widen(op)
    return bool(found)


class Widening:
    """Widens operations one by one; remembers the wide type of every type it has met."""

    def __init__(self, wider: WiderType) -> None:
        self._wider = wider
        self._types: dict[ir.Type, ir.Type | None] = {}

    def _wide(self, type_: ir.Type) -> ir.Type | None:
        """Return the array type to compute with instead, or None if the type itself will do."""
        if type_ not in self._types:
            self._types[type_] = self._wide_array(type_)
        return self._types[type_]

    def _wide_array(self, type_: ir.Type) -> ir.Type | None:
        if not isinstance(type_, ir.RankedTensorType):
            return None
        element = self._wider(type_.element_type)
        return None if element is None else ir.RankedTensorType.get(type_.shape, element)

    def _any(self, values: Iterable[ir.Value]) -> bool:
        return any(self._wide(value.type) is not None for value in values)

    def is_needed(self, op: ir.Operation) -> bool:
        """Tell whether an operand or result is of narrow floats."""
        return self._any(op.operands) or self._any(op.results)

    def widen(self, op: ir.Operation) -> None:
        """Convert the operands and the results of an operation, and of those in its regions."""
        if not all(self._can_widen(region) for region in op.regions):
            return
        with ir.InsertionPoint(op):
            for position, operand in enumerate(op.operands):
                wide = self._wide(operand.type)
                if wide is not None:
                    op.operands[position] = _convert(operand, wide).results[0]
        for result in op.results:
            self._widen_result(op, result)
        for region in op.regions:
            for block in region.blocks:
                self._widen_block(block)

    def _widen_result(self, op: ir.Operation, result: ir.Value) -> None:
        narrow, wide = result.type, self._wide(result.type)
        if wide is not None:
            result.set_type(wide)
            _convert_after(op, result, narrow)

    def _can_widen(self, region: ir.Region) -> bool:
        """Tell whether no operation of a region rounds to a narrow type but as its arithmetic does."""
        return all(
            op.operation.name in _IN_REGIONS or op.operation.name == "stablehlo.constant"
            for block in region.blocks
            for op in block.operations
        )

    def _widen_block(self, block: ir.Block) -> None:
        for argument in block.arguments:
            argument.set_type(self._wide(argument.type) or argument.type)
        for view in list(block.operations):
            op = view.operation
            for result in op.results:
                wide = self._wide(result.type)
                if wide is not None and op.name == "stablehlo.constant":
                    _convert_after(op, result, wide)
                elif wide is not None:
                    result.set_type(wide)


def _wider_float(element: ir.Type) -> ir.Type | None:
    if not isinstance(element, ir.FloatType) or element.width > 8:
        return None
    return ir.F32Type.get(element.context) if str(element) == "f8E8M0FNU" else ir.F16Type.get(element.context)


def _convert(value: ir.Value, type_: ir.Type) -> ir.Operation:
    return ir.Operation.create("stablehlo.convert", results=[type_], operands=[value])


def _convert_after(op: ir.Operation, result: ir.Value, type_: ir.Type) -> None:
    """Let what uses a result of ``op`` use it converted."""
    with ir.InsertionPoint.after(op), op.location:
        converted = _convert(result, type_)
    result.replace_all_uses_except(converted.results[0], converted)

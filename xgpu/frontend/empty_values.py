"""Replaces values without elements by constants, whatever computes them, so that no kernel has to."""

import math

from xgpu import ir


def replace_empty_values(module: ir.Module) -> None:
    """Replace all results without elements by constants, in place.

    An operation with other results or effects stays; others become dead code.
    """
    found: list[ir.OpResult] = []

    def visit(view: ir.Operation) -> ir.WalkResult:
        if view.name != "stablehlo.constant":
            found.extend(result for result in view.operation.results if _is_empty(result))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for value in found:
        if list(value.uses):
            with ir.InsertionPoint(value.owner), value.owner.location:
                value.replace_all_uses_with(empty_constant(ir.RankedTensorType(value.type)))


def empty_constant(type_: ir.RankedTensorType) -> ir.Value:
    """Return a constant without elements; a complex one is made of its parts, as all of them are."""
    if isinstance(type_.element_type, ir.ComplexType):
        part = empty_constant(ir.RankedTensorType.get(type_.shape, ir.ComplexType(type_.element_type).element_type))
        return ir.Operation.create("stablehlo.complex", results=[type_], operands=[part, part]).results[0]
    empty = ir.Attribute.parse(f"dense<> : {type_}")
    return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": empty}).results[0]


def _is_empty(value: ir.Value) -> bool:
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    type_ = ir.RankedTensorType(value.type)
    return type_.has_static_shape and math.prod(type_.shape) == 0

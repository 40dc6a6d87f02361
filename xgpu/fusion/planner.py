"""Decides which operations of a program become which kernel, and writes the ``fusions`` level.

A program is fusible as a whole: its results of one shape become one fusion, hero and all, with everything they need;
work that results of several shapes share is done by each. Results without elements need no kernel.
"""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.errors import InvalidInput
from xgpu.indexing.hlo_maps import accesses

MAIN = "main"


def plan(module: ir.Module) -> ir.Module:
    """Return a module of level ``fusions`` for a normalised program: ``@main`` calls one function per fusion.

    Raises `Unsupported` naming the operation, its type and the user's line if the program cannot be fused as a whole.
    """
    with module.context, ir.Location.unknown():
        main = _function(module, MAIN)
        body = main.operation.regions[0].blocks[0]
        operations = [op.operation for op in body.operations]
        for op in operations[:-1]:
            accesses(op)
        planned = ir.Module.create()
        planned.operation.attributes[attributes.LEVEL] = ir.StringAttr.get("fusions")
        groups = _groups([value.type for value in operations[-1].operands])
        with ir.InsertionPoint(planned.body):
            arguments = [_add_fusion(f"fusion_{i}", main, group) for i, group in enumerate(groups)]
            _add_main(main, groups, arguments)
    return planned


def _function(module: ir.Module, name: str) -> ir.func.FuncOp:
    for op in module.body.operations:
        if isinstance(op, ir.func.FuncOp) and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op
    raise InvalidInput(f"the module has no function @{name}")


def _groups(types: Sequence[ir.Type]) -> list[list[int]]:
    """Return the numbers of the results that have elements, those of one shape together, in order."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for number, type_ in enumerate(types):
        shape = tuple(ir.RankedTensorType(type_).shape)
        if math.prod(shape):
            by_shape.setdefault(shape, []).append(number)
    return list(by_shape.values())


def _add_fusion(name: str, main: ir.func.FuncOp, results: Sequence[int]) -> list[int]:
    """Write the function of a fusion: a copy of ``main`` without what ``results`` do not need.

    Returns the numbers of the arguments of ``main`` that it takes.
    """
    clone = main.operation.clone(ir.InsertionPoint.current)
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in clone.attributes:
            del clone.attributes[attribute]
    clone.attributes["sym_name"] = ir.StringAttr.get(name)
    clone.attributes["sym_visibility"] = ir.StringAttr.get("private")
    clone.attributes[attributes.EMITTER] = ir.StringAttr.get("loop")
    block = clone.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    returned = [operations[-1].operands[i] for i in results]
    operations[-1].erase()
    with ir.InsertionPoint(block):
        ir.func.return_(returned)
    for op in reversed(operations[:-1]):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()
    used = [i for i, argument in enumerate(block.arguments) if any(True for _ in argument.uses)]
    for i in reversed(range(len(block.arguments))):
        if i not in used:
            block.erase_argument(i)
    type_ = ir.FunctionType.get([a.type for a in block.arguments], [value.type for value in returned])
    clone.attributes["function_type"] = ir.TypeAttr.get(type_)
    return used


def _add_main(main: ir.func.FuncOp, groups: Sequence[Sequence[int]], arguments: Sequence[Sequence[int]]) -> None:
    """Write ``@main``, which calls the fusions; results without elements are constants."""
    function = ir.func.FuncOp(MAIN, main.type)
    block = function.add_entry_block()
    results: list[ir.Value | None] = [None] * len(main.type.results)
    with ir.InsertionPoint(block):
        for i, (group, taken) in enumerate(zip(groups, arguments, strict=True)):
            types = [main.type.results[number] for number in group]
            call = ir.func.CallOp(types, f"fusion_{i}", [block.arguments[number] for number in taken])
            for number, value in zip(group, call.operation.results, strict=True):
                results[number] = value
        for number, value in enumerate(results):
            if value is None:
                results[number] = _empty_constant(main.type.results[number])
        ir.func.return_(results)


def _empty_constant(type_: ir.RankedTensorType) -> ir.Value:
    """Return a constant without elements; a complex one is made of its parts, as the frontend makes all of them."""
    if isinstance(type_.element_type, ir.ComplexType):
        part = _empty_constant(ir.RankedTensorType.get(type_.shape, ir.ComplexType(type_.element_type).element_type))
        return ir.Operation.create("stablehlo.complex", results=[type_], operands=[part, part]).results[0]
    empty = ir.Attribute.parse(f"dense<> : {type_}")
    return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": empty}).results[0]

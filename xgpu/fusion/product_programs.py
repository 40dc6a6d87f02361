"""The programs that are measured to choose what computes a product: each is one product, with what follows it.

What follows is what the planner has a kernel compute with the product. Before it come transposes and slices of what is
in memory anyway: XLA's product may read through them, while a kernel's operands are copied.
"""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import CANDIDATE, EMITTER, int_of
from xgpu.fusion.fallback import PRODUCT, VIEWS, fallback_reason
from xgpu.structure import copy_operation, defining_op, is_argument, walk


def count_candidates(prepared: ir.Module) -> int:
    """Return how many products of a program of level ``prepared`` are numbered."""
    return len(_candidates(prepared.operation))


def product_programs(prepared: ir.Module, planned: ir.Module) -> Iterator[tuple[int, ir.Module]]:
    """Yield the number of each product that a plan has a kernel for, and the product's program, of level ``stablehlo``.

    Products that one kernel computes have one program. ``prepared`` is the module that the plan is of. The program's
    arguments are in the order in which it reads them, so that equal programs are equal text, wherever they come from.
    """
    originals = _candidates(prepared.operation)
    for function in planned.body.operations:
        if EMITTER in function.operation.attributes:
            if not (heroes := _candidates(function.operation)):
                continue
            program = _alone(function.operation, {hero: originals[each] for each, hero in heroes.items()})
            yield from dict.fromkeys(heroes, program).items()


def _candidates(op: ir.Operation) -> dict[int, ir.Operation]:
    return {int_of(each.attributes[CANDIDATE]): each for each in walk(op, PRODUCT) if CANDIDATE in each.attributes}


def _alone(function: ir.Operation, originals: Mapping[ir.Operation, ir.Operation]) -> ir.Module:
    """Return the program of a kernel's function, and of what its products are given in memory, by the ``originals``."""
    body = function.regions[0].blocks[0]
    pairs = (zip(hero.operands, original.operands, strict=True) for hero, original in originals.items())
    views = {copy: _views(given) for each in pairs for copy, given in each}
    arguments = list(dict.fromkeys(each for op in body.operations for each in op.operands if is_argument(each)))
    *_, end = body.operations
    with function.context, ir.Location.unknown():
        module = ir.Module.create()
        types = [views[each][0].operands[0].type if views.get(each) else each.type for each in arguments]
        with ir.InsertionPoint(module.body):
            main = ir.func.FuncOp("main", (types, [value.type for value in end.operation.operands]))
        block, values = main.add_entry_block(), dict[ir.Value, ir.Value]()
        with ir.InsertionPoint(block):
            for argument, given in zip(arguments, block.arguments, strict=True):
                values[argument] = given
                for view in views.get(argument, ()):
                    copies = {view.operands[0]: values[argument]}
                    values[argument] = _without_marks(copy_operation(view, copies)).results[0]
            for op in body.operations:
                _without_marks(copy_operation(op.operation, values))
    return module


def _views(value: ir.Value) -> list[ir.Operation]:
    """Return the views of an array in memory that ``value`` is, in order; none if a kernel computes that array.

    That kernel can store the view instead.
    """
    views: list[ir.Operation] = []
    while (op := defining_op(value)) is not None and op.name in VIEWS and len(op.operands) == 1:
        views.append(op)
        value = op.operands[0]
    return views[::-1] if is_argument(value) or (op is not None and fallback_reason(op) is not None) else []


def _without_marks(op: ir.Operation) -> ir.Operation:
    for name in [name for name in op.attributes if name.startswith("xgpu.")]:
        del op.attributes[name]
    return op

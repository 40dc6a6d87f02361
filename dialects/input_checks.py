"""Checks of a program from outside that are made once, as passes preserve what they find."""

from xgpu import ir
from xgpu.dialects.base import Problem
from xgpu.dialects.discardable import attribute_problems
from xgpu.dialects.limits import type_problems
from xgpu.dialects.namespace import YIELD
from xgpu.dialects.verify import problems
from xgpu.hlo.unreadable import unreadable_attribute
from xgpu.structure import blocks_of, defining_op, walk


def input_problems(module: ir.Module) -> list[Problem]:
    """Return the errors in a module from outside: in its attributes, its types, its operations.

    Passes make attributes of the right kind, so those of operations within functions are not checked again after each.
    """
    # First, as nothing can look at these.
    if (unreadable := unreadable_attribute(module.operation)) is not None:
        return [Problem(*unreadable)]
    return type_problems(module) or _attribute_problems(module) or problems(module) or _order_problems(module.operation)


def _attribute_problems(module: ir.Module) -> list[Problem]:
    return [
        Problem(op, f"'{op.name}' {message}")
        for op in walk(module.operation)
        if len(op.attributes)
        for message in attribute_problems(op)
    ]


def _order_problems(within: ir.Operation) -> list[Problem]:
    """Return the uses before definitions in regions of the xgpu dialect, and its operations where blocks should end.

    MLIR takes operations that it does not know for ones whose regions have no order, and canonicalizes for ever there.
    It also takes them for ones that may end a block.
    """
    found: list[Problem] = []
    for op in walk(within):
        for block in blocks_of(op) if op.name != "builtin.module" else ():
            operations = block.operations
            last = operations[len(operations) - 1].operation if len(operations) else None
            if last is not None and last.name.startswith("xgpu.") and last.name != YIELD:
                found.append(Problem(last, f"'{last.name}' does not end a block"))
            if op.name.startswith("xgpu."):
                found.extend(_uses_too_early(block))
    return found


def _uses_too_early(block: ir.Block) -> list[Problem]:
    found: list[Problem] = []
    before: set[ir.Operation] = set()
    for view in block.operations:
        for op in walk(view.operation):
            for number, operand in enumerate(op.operands):
                made_by = defining_op(operand)
                if made_by is not None and made_by.block == block and made_by not in before:
                    found.append(Problem(op, f"'{op.name}' operand #{number} does not dominate this use"))
        before.add(view.operation)
    return found

"""Checks of a program from outside that are made once, as passes preserve what they find."""

from xgpu import ir
from xgpu.dialects.base import Problem
from xgpu.dialects.discardable import attribute_problems
from xgpu.dialects.limits import type_problems
from xgpu.dialects.namespace import YIELD
from xgpu.dialects.verify import problems
from xgpu.hlo.unreadable import unreadable_attribute


def input_problems(module: ir.Module) -> list[Problem]:
    """Return the errors in a module from outside: in its attributes, its types, its operations.

    Passes make attributes of the right kind, so those of operations within functions are not checked again after each.
    """
    # First, as nothing can look at these.
    if (unreadable := unreadable_attribute(module.operation)) is not None:
        return [Problem(*unreadable)]
    return type_problems(module) or _attribute_problems(module) or problems(module) or _order_problems(module.operation)


def _attribute_problems(module: ir.Module) -> list[Problem]:
    found: list[Problem] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if len(op.attributes):
            found.extend(Problem(op, f"'{op.name}' {message}") for message in attribute_problems(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _order_problems(within: ir.Operation) -> list[Problem]:
    """Return the uses before definitions in regions of the xgpu dialect, and its operations where blocks should end.

    MLIR takes operations that it does not know for ones whose regions have no order, and canonicalizes for ever there.
    It also takes them for ones that may end a block.
    """
    found: list[Problem] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for block in [block for region in op.regions for block in region.blocks if op.name != "builtin.module"]:
            operations = block.operations
            last = operations[len(operations) - 1].operation if len(operations) else None
            if last is not None and last.name.startswith("xgpu.") and last.name != YIELD:
                found.append(Problem(last, f"'{last.name}' does not end a block"))
            if op.name.startswith("xgpu."):
                found.extend(_uses_too_early(block))
        return ir.WalkResult.ADVANCE

    within.walk(visit)
    return found


def _uses_too_early(block: ir.Block) -> list[Problem]:
    found: list[Problem] = []
    before: set[ir.Operation] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        for number, operand in enumerate(op.operands):
            owner = operand.owner
            if not isinstance(owner, ir.Block) and owner.operation.block == block and owner.operation not in before:
                found.append(Problem(op, f"'{op.name}' operand #{number} does not dominate this use"))
        return ir.WalkResult.ADVANCE

    for op in block.operations:
        op.operation.walk(visit)
        before.add(op.operation)
    return found

"""Operands that the kernel of a product computes on their way from memory: which they are, and what must be stored."""

from collections.abc import Callable

from xgpu import ir
from xgpu.analysis.heroes import Form
from xgpu.dialects.attributes import LEFT, PROLOGUE
from xgpu.fusion.grouping.families import KernelFamily
from xgpu.structure import producer


def computed_operand(op: ir.Operation) -> int | None:
    """Return the number of the operand that the kernel of a product computes, None if there is none."""
    side = op.attributes.get(PROLOGUE)
    return None if side is None else int(ir.StringAttr(side).value != LEFT)


def on_the_way(
    value: ir.Value, family: KernelFamily, is_in_memory: Callable[[ir.Value], bool]
) -> tuple[list[ir.Operation], list[ir.Value]]:
    """Return what a kernel of a family does to compute ``value`` element by element, and what it needs in memory."""
    pending, seen = [value], set[ir.Value]()
    made, read = list[ir.Operation](), list[ir.Value]()
    while pending:
        each = pending.pop()
        if each in seen or is_in_memory(each):
            continue
        seen.add(each)
        op = producer(each)
        if family.follows is not None and family.follows(op, Form.of_hero(each)):
            made.append(op)
            pending += op.operands
        else:
            read.append(each)
    return made, read

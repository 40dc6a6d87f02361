"""Puts the operations of a block in an order in which each follows what it uses."""

from xgpu import ir
from xgpu.structure import captured, is_argument, producer


def sort_block(block: ir.Block) -> None:
    """Move operations of ``block`` that come before what they use behind it; the others keep their order."""
    *operations, terminator = (view.operation for view in block.operations)
    inside = set(operations)
    done: dict[ir.Operation, None] = {}
    pending = list(reversed(operations))
    while pending:
        op = pending[-1]
        if op in done:
            pending.pop()
            continue
        producers = (producer(value) for value in (*op.operands, *captured(op)) if not is_argument(value))
        if missing := [each for each in producers if each in inside and each not in done]:
            pending += reversed(missing)
        else:
            done[op] = None
            pending.pop()
    if list(done) != operations:
        for op in done:
            op.move_before(terminator)

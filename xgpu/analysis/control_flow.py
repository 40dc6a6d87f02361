"""Control flow: the operations that run blocks, the blocks that are planned, and what loops do not change."""

from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.structure import is_argument, producer

CONTROL_FLOW = {"stablehlo.while": (1,), "stablehlo.case": None, "stablehlo.if": None}
"""Operations that run the blocks of their regions, and which regions hold work for kernels; None is all of them.

The condition of a loop is left as it is: XLA finds the number of iterations from it.
"""


def planned_blocks(block: ir.Block, with_conditions: bool = False) -> Iterator[ir.Block]:
    """Yield ``block`` and the blocks of control flow in it whose operations kernels compute, outer ones first.

    ``with_conditions`` adds those that XLA runs: the conditions of loops. A block may be rewritten when it was yielded.
    """
    pending = [block]
    while pending:
        current = pending.pop()
        yield current
        for op in current.operations:
            if op.operation.name not in CONTROL_FLOW:
                continue
            planned = CONTROL_FLOW[op.operation.name]
            for number, region in enumerate(op.operation.regions):
                if with_conditions or planned is None or number in planned:
                    pending += region.blocks


def before_loops(values: Sequence[ir.Value], block: ir.Block) -> tuple[list[ir.Value], ir.Operation | None]:
    """Return the outermost loop around ``block`` with all between that changes none of ``values``; None for no loop.

    With it comes what the values are before that loop.
    """
    found, loop = list(values), None
    while block.owner.operation.name == "stablehlo.while":
        outside = [before for value in found if (before := _before(value, block)) is not None]
        if len(outside) < len(found):
            break
        found, loop = outside, block.owner.operation
        block = loop.block
    return found, loop


def _before(value: ir.Value, body: ir.Block) -> ir.Value | None:
    """Return what ``value`` is before the loop of ``body``, None if the loop computes it."""
    loop = body.owner.operation
    if is_argument(value):
        if value.owner != body:
            return value
        *_, terminator = body.operations
        number = ir.BlockArgument(value).arg_number
        return loop.operands[number] if terminator.operation.operands[number] == value else None
    return None if producer(value).block == body else value

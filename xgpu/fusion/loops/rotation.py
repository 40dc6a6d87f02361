"""Loops whose condition is a part of their state: computed before the loop, and at the end of each iteration."""

from xgpu import ir
from xgpu.hlo.stablehlo_builder import hlo, inline_block
from xgpu.structure import attributes_of, body_of, is_argument, terminator_of


def is_rotated(loop: ir.Operation) -> bool:
    """Whether the condition of a loop computes nothing: it is a value of the loop's state."""
    condition = body_of(loop, 0)
    (result,) = terminator_of(condition).operands
    return is_argument(result) and result.owner == condition


def rotated(loop: ir.Operation) -> ir.Operation:
    """Make a loop with the same results, and its condition as one more, at the current insertion point."""
    condition, body = (body_of(loop, number) for number in (0, 1))
    starts = [*loop.operands, *inline_block(condition, list(loop.operands))]
    types = [start.type for start in starts]
    new = ir.Operation.create(loop.name, types, starts, attributes_of(loop), regions=2)
    blocks = [region.blocks.append(*types) for region in new.regions]
    with ir.InsertionPoint(blocks[0]):
        hlo.return_([blocks[0].arguments[len(types) - 1]])
    with ir.InsertionPoint(blocks[1]):
        state = inline_block(body, list(blocks[1].arguments)[:-1])
        hlo.return_([*state, *inline_block(condition, state)])
    return new

"""Loops whose condition is a part of their state: computed before the loop, and at the end of each iteration."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.attributes import ROTATED
from xgpu.hlo.stablehlo_builder import hlo, inline_block
from xgpu.structure import (
    as_needed,
    attributes_of,
    block_of,
    body_of,
    captured,
    copy_operation,
    is_argument,
    is_used,
    terminator_of,
)


def is_rotated(loop: ir.Operation) -> bool:
    """Whether the condition of a loop computes nothing: it is a value of the loop's state."""
    condition = body_of(loop, 0)
    (result,) = terminator_of(condition).operands
    return is_argument(result) and result.owner == condition


def rotated(loop: ir.Operation) -> ir.Operation:
    """Make a loop with the same results, and its condition as one more, at the current insertion point.

    It is marked: its condition at the start is what it computes of the next state, for the start.
    """
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
    new.attributes[ROTATED] = ir.UnitAttr.get()
    return new


def unrotated(loop: ir.Operation) -> ir.Operation | None:
    """Make the loop that was rotated, with the condition's place in its state left out, at the current insertion point.

    None if the loop was not rotated, or its next condition no longer follows from its next state alone.
    """
    if ROTATED not in loop.attributes or not is_rotated(loop):
        return None
    number, body = condition_number(loop), body_of(loop, 1)
    ends, states = list(terminator_of(body).operands), list(body.arguments)
    condition, own = ends.pop(number), states.pop(number)
    behind = as_needed([condition], lambda value: value in ends or block_of(value) != body)
    read = {condition, *(value for op in behind for value in (*op.operands, *captured(op)))}
    if is_used(own) or any(is_argument(value) and value.owner == body and value not in ends for value in read):
        return None
    starts = [start for place, start in enumerate(loop.operands) if place != number]
    if any(_is_ambiguous(value, ends, starts, body) for value in read if value in ends):
        return None
    types = [start.type for start in starts]
    new = ir.Operation.create(loop.name, types, starts, attributes_of(loop), regions=2)
    del new.attributes[ROTATED]
    needed = set(as_needed(ends, lambda value: block_of(value) != body))
    step = [view.operation for view in body.operations if view.operation in needed]
    for region, operations, names, results in (
        (new.regions[0], behind, ends, [condition]),
        (new.regions[1], step, states, ends),
    ):
        block = region.blocks.append(*types)
        copies = dict(zip(names, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in operations:
                # What is from around the loop is its own copy.
                copies |= {value: value for value in op.operands if value not in copies}
                copy_operation(op, copies)
            hlo.return_([copies.get(value, value) for value in results])
    return new


def _is_ambiguous(value: ir.Value, ends: Sequence[ir.Value], starts: Sequence[ir.Value], body: ir.Block) -> bool:
    """Whether a next state that the condition reads need not be the state that it read before the loop was rotated.

    Equal values have been merged: it may be the next one of several states, which start from different values, or what
    the condition computes from others or has from around the loop.
    """
    if len({start for start, end in zip(starts, ends, strict=True) if end == value}) > 1:
        return True
    own = as_needed([value], lambda each: (each in ends and each != value) or block_of(each) != body)
    used = {value, *(each for op in own for each in (*op.operands, *captured(op)))}
    return not any(is_argument(each) and each.owner == body for each in used)


def condition_number(loop: ir.Operation) -> int:
    """Return which value of a rotated loop's state is its condition."""
    (condition,) = terminator_of(body_of(loop, 0)).operands
    return ir.BlockArgument(condition).arg_number

"""The states of a loop that XLA copies in each iteration, as no kernel can write the next one over the present one."""

import math

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.analysis.heroes import is_hero, is_reduction
from xgpu.analysis.in_place import can_update_in_place, updated_operands
from xgpu.analysis.root_indices import KernelWalk, own_and_moved
from xgpu.fusion.fallback import fallback_reason
from xgpu.indexing.access import shape_of
from xgpu.structure import backward_slice, body_of, defining_op, is_argument, is_constant, producer, terminator_of


def has_copied_states(loop: ir.Operation) -> bool:
    """Whether XLA copies a state of ``loop`` in each iteration.

    That is a state that becomes another one unchanged, or whose next value a kernel computes from other elements of it,
    also by reducing them.
    It is none that is updated in place, and none of which only a kernel that ran before has read other elements.
    """
    body = body_of(loop, 1)
    states = zip(body.arguments, terminator_of(body).operands, strict=True)
    return any(math.prod(shape_of(state)) > 1 and _is_copied(state, following) for state, following in states)


def longest_move(loop: ir.Operation) -> int:
    """Return through how many places of the state a value goes on unchanged, at most."""
    body = body_of(loop, 1)
    moves = {
        number: ir.BlockArgument(value).arg_number
        for number, value in enumerate(terminator_of(body).operands)
        if is_argument(value) and value.owner == body and value != body.arguments[number]
    }
    longest = 0
    for number in moves:
        seen = {number}
        while (number := moves.get(number, number)) not in seen:
            seen.add(number)
        longest = max(longest, len(seen) - 1)
    return longest


def _is_copied(state: ir.Value, following: ir.Value) -> bool:
    value = following
    while (op := defining_op(value)) is not None and can_update_in_place(op):
        value = updated_operands(op)[ir.OpResult(value).result_number]
    if value == state or is_constant(value):
        return False
    if is_argument(value):
        return value.owner == state.owner
    if _is_read_from_memory(value):
        return _is_reduced(state, value)
    own, moved = own_and_moved(KernelWalk([value]), _is_read_from_memory)
    if state in moved:
        return True
    # An epilogue is in the kernel of the reductions that it follows, but for one that another of them reads: that is
    # stored before.
    reductions = [each for each in own | moved if (op := defining_op(each)) is not None and is_reduction(op)]
    return any(
        _is_reduced(state, each) and not any(_depends(other, each) for other in reductions)
        for each in own.intersection(reductions)
    )


def _depends(value: ir.Value, other: ir.Value) -> bool:
    """Whether ``value`` is computed from ``other``."""
    return value != other and producer(other) in backward_slice([value], is_argument)


def _is_reduced(state: ir.Value, result: ir.Value) -> bool:
    """Whether the kernel that reduces elements to ``result`` reads ``state`` to compute them."""
    op = defining_op(result)
    if op is None or not is_reduction(op):
        return False
    return any(state in read for read in own_and_moved(KernelWalk(list(op.operands)), _is_read_from_memory))


def _is_read_from_memory(value: ir.Value) -> bool:
    """Whether a kernel that computes an array from ``value`` reads it as another one has stored it."""
    op = defining_op(value)
    if op is None or is_constant(value):
        return False
    return op.name in CONTROL_FLOW or is_hero(op) or can_update_in_place(op) or fallback_reason(op) is not None

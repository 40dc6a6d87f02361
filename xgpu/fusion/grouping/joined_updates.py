"""Concatenations that scatters would compute: lanes of a warp take the branches of short pieces one after the other.

A kernel that is built around a concatenation walks its pieces, computes an element of each at once, and once what they
share. A scatter walks its updates in their own order: where a warp is inside of several pieces, each of them is
computed for the whole warp, with all that it shares with the others. So another kernel stores them, if the instructions
that this saves take longer than to store an array, to read it again, and to launch one more kernel.
"""

from collections.abc import Sequence
from typing import Any

from xgpu import ir
from xgpu.analysis.concatenations import Concatenation, concatenation_of, together
from xgpu.analysis.in_place import SCATTER
from xgpu.costs.evaluations import Evaluations
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import byte_size, elements
from xgpu.device import Device
from xgpu.fusion.grouping.groups import Grouping
from xgpu.reasons import Reason
from xgpu.structure import users_of
from xgpu.target_machine import WARP_SIZE

_CONCATENATE = "stablehlo.concatenate"
_MOST_INSTRUCTIONS = 4096
"""Instructions of an element that are counted at most; there are as many if it is computed from very many values."""
_SAVED = "a scatter's warps would compute its pieces one after the other, for as long as {:,} bytes more take"


def joined_updates(
    operations: Sequence[ir.Operation], grouping: Grouping, evaluations: Evaluations[Any], target: Device
) -> dict[ir.Value, Reason]:
    """Return the concatenations among ``operations`` that scatters are to wait for, with the reasons."""
    reasons: dict[ir.Value, Reason] = {}
    for op in operations:
        if op.name != _CONCATENATE or not _is_update(op.results[0]) or grouping.is_stored(op.results[0]):
            continue
        (value,), layout = op.results, concatenation_of(op)
        if (beside := _pieces_of_warp(layout)) > 1 and together(op) is not None:
            counts = [_instructions(op.operands[piece.operand], grouping, evaluations) for piece in layout.pieces]
            saved = beside * sum(counts) / len(counts) - max(counts)
            more = saved * elements(value) * bytes_per_instruction(target, elements(value))
            more -= launch_bytes(target) + 2 * byte_size(value)
            if more > 0:
                reasons[value] = Reason(_SAVED, (round(more),))
    return reasons


def _is_update(value: ir.Value) -> bool:
    """Whether a scatter reads ``value`` as one of its updates."""
    return any(
        user.name == SCATTER and value in list(user.operands)[len(user.results) + 1 :] for user in users_of(value)
    )


def _pieces_of_warp(layout: Concatenation) -> float:
    """Return in how many pieces a warp's elements lie that are walked in the order of the result."""
    return min(len(layout.pieces), WARP_SIZE * len(layout.pieces) / layout.row) if layout.row else 1


def _instructions(value: ir.Value, grouping: Grouping, evaluations: Evaluations[Any]) -> float:
    """Return the instructions that an element of ``value`` takes."""
    block = evaluations.block
    if value not in block.numbers or block.makers[block.numbers[value]] is None or grouping.is_stored(value):
        return 0
    found = evaluations.instructions_again(
        block.numbers[value], lambda number: grouping.is_stored(block.values[number]), _MOST_INSTRUCTIONS
    )
    return min(max(found, 0), _MOST_INSTRUCTIONS)

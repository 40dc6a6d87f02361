"""Reductions with a long epilogue, which one lane of each row would compute; in a loop all lanes do so."""

from functools import partial

from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.values import byte_size, instructions
from xgpu.device import Device
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.ir import Value
from xgpu.reasons import Reason
from xgpu.structure import backward_slice
from xgpu.target_machine import WARP_SIZE

_LONG = "one lane of each row would compute {} instructions from it: {:.1f} us, and to store it first takes {:.1f} us"
_VECTOR = 4
"""Elements of a row that a lane has at least, where a row has several lanes."""


def long_epilogues(grouping: Grouping, target: Device) -> dict[Value, Reason]:
    """Return the results of reductions of rows that kernels are to wait for, with the reasons.

    Others may need them for each element of their rows, and would read these again: that counts in any case.
    """
    found: dict[Value, Reason] = {}
    for group in grouping.groups:
        if group.heroes and group.heroes[0].name == REDUCE and group.kind.family.is_cooperative:
            shape = ReductionShape.of(group.heroes[0])
            lanes = min(WARP_SIZE, shape.per_result // _VECTOR) if shape.is_rows else 1
            if lanes > 1 and (reason := _reason(group, shape.results * (lanes - 1), grouping, target)) is not None:
                found.update((value, reason) for hero in group.heroes for value in hero.results)
    return {value: reason for value, reason in found.items() if value not in grouping.awaited}


def _reason(group: Group, idle: int, grouping: Grouping, target: Device) -> Reason | None:
    """Return why the heroes' results are stored first, if they are; ``idle`` lanes wait for those of the epilogue."""
    results = {value for hero in group.heroes for value in hero.results}
    stored = partial(grouping.stored_before, level=group.level)
    numbers = [root for root in group.roots if root in group.forms and root not in results]
    code = sum(map(instructions, backward_slice(numbers, lambda each: each in results or stored(each))))
    waiting = idle * code / target.issue_rate
    operands = {value for hero in group.heroes for value in hero.operands}
    moved = sum(map(byte_size, operands)) + 2 * sum(map(byte_size, results))
    storing = target.launch_seconds + moved / target.memory_bandwidth
    return Reason(_LONG, (code, waiting * 1e6, storing * 1e6)) if waiting > storing else None

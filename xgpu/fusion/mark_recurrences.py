"""Marks the loops that become one kernel each: those that can, where it takes less time."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.stablehlo_builder import splat
from xgpu.fusion.cost_model import BYTES_PER_INSTRUCTION, byte_size, elements, instructions, launch_bytes
from xgpu.fusion.heroes import hero_kind
from xgpu.fusion.left import RECURRENCE, reason_to_leave
from xgpu.fusion.loop_counters import unchanging
from xgpu.fusion.recurrence_steps import Step, arrays_read
from xgpu.fusion.recurrences import Recurrence
from xgpu.fusion.regions import planned_blocks
from xgpu.indexing.hlo_maps import handled_ops
from xgpu.options import Options

_MOST_ARRAYS = 128
"""Arrays that a loop reads and writes at most; a launch takes some hundreds."""
_SPREAD = 8
"""How many times fewer elements than the states a value has that threads compute for themselves all the same."""


def mark_recurrences(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Mark the loops that become one kernel each, and forward what is known of their results."""
    for block in list(planned_blocks(main.entry_block)):
        for op in [view.operation for view in block.operations]:
            if op.name == "stablehlo.while":
                if RECURRENCE in op.attributes:
                    del op.attributes[RECURRENCE]
                recurrence = Recurrence.of(op)
                if recurrence is not None and _is_for_one_kernel(recurrence, target):
                    op.attributes[RECURRENCE] = ir.UnitAttr.get()
                    _forward_results(recurrence)


def _is_for_one_kernel(recurrence: Recurrence, target: Device) -> bool:
    """Whether elements are computed each for itself, by operations of which nothing is left to XLA, in good time."""
    read = arrays_read(recurrence)
    if len(read) + len(recurrence.states) + len(recurrence.stacked) > _MOST_ARRAYS:
        return False
    step = Step(recurrence, read)
    operations = step.operations
    if any(op.name not in handled_ops() or reason_to_leave(op) or hero_kind(op) for op in operations):
        return False
    if not _is_cheap(recurrence, operations, target):
        return False
    # One function each: nothing is computed more than once for an element.
    return (parts := step.partitions()) is not None and all(len(part.subgraphs) == 1 for part in parts)


def _is_cheap(recurrence: Recurrence, operations: Sequence[ir.Operation], target: Device) -> bool:
    """Whether what is computed once by a loop's kernels takes all threads no longer than an iteration's launches."""
    size = math.prod(recurrence.shape)
    spread = sum(instructions(op) for op in operations if _SPREAD * elements(op.results[0]) < size)
    saved = launch_bytes(target) + 2 * sum(byte_size(value) for value in recurrence.next_states)
    return spread * size * BYTES_PER_INSTRUCTION <= saved


def _forward_results(recurrence: Recurrence) -> None:
    """Replace results that do not change by what they are, and counters by where they end."""
    loop = recurrence.loop
    (body,) = loop.regions[1].blocks
    with ir.InsertionPoint(loop), loop.location:
        for number, result in enumerate(loop.results):
            if (counter := recurrence.counters.get(number)) is not None:
                if any(True for _ in result.uses):
                    end = counter.start + recurrence.trips * counter.step
                    result.replace_all_uses_with(splat(counter.wrapped(end), ir.RankedTensorType(result.type)))
            elif unchanging(body.arguments[number], loop) != body.arguments[number]:
                result.replace_all_uses_with(loop.operands[number])

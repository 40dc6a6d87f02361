"""Marks the loops that become one kernel each: those that can, where it takes less time."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import RECURRENCE
from xgpu.frontend.mhlo import replace
from xgpu.frontend.stablehlo_builder import splat
from xgpu.fusion.cost_model import BYTES_PER_INSTRUCTION, byte_size, elements, instructions, launch_bytes
from xgpu.fusion.heroes import hero_kind
from xgpu.fusion.left import BARRIER, reason_to_leave
from xgpu.fusion.loop_counters import unchanging
from xgpu.fusion.loop_products import with_sums
from xgpu.fusion.recurrence_steps import Step, arrays_read
from xgpu.fusion.recurrences import Recurrence
from xgpu.fusion.regions import planned_blocks
from xgpu.hlo.operations import OPERATIONS
from xgpu.options import Options

_MOST_ARRAYS = 128
"""Arrays that a loop reads and writes at most; a launch takes some hundreds."""


def mark_recurrences(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Mark the loops that become one kernel each, and forward what is known of their results."""
    # Blocks of a loop are found after the loop itself, which may be another one then.
    for block in planned_blocks(main.entry_block):
        for op in [view.operation for view in block.operations]:
            if op.name == "stablehlo.while":
                if RECURRENCE in op.attributes:
                    del op.attributes[RECURRENCE]
                _mark(op, target)


def _mark(loop: ir.Operation, target: Device) -> None:
    recurrence = _recurrence_of(loop, target)
    if recurrence is None and (copy := with_sums(loop)) is not None:
        recurrence = _recurrence_of(copy, target)
        if recurrence is None:
            copy.erase()
        else:
            replace(loop, list(copy.results))
    if recurrence is not None:
        recurrence.loop.attributes[RECURRENCE] = ir.UnitAttr.get()
        _forward_results(recurrence)


def _recurrence_of(loop: ir.Operation, target: Device) -> Recurrence | None:
    """Return what a loop is as one kernel; None if it is better left a loop."""
    recurrence = Recurrence.of(loop)
    return recurrence if recurrence is not None and _is_for_one_kernel(recurrence, target) else None


def _is_for_one_kernel(recurrence: Recurrence, target: Device) -> bool:
    """Whether elements are computed each for itself, by operations of which nothing is left to XLA, in good time."""
    (body,) = recurrence.loop.regions[1].blocks
    *all_, _ = (view.operation for view in body.operations)
    if any(op.name != BARRIER and (op.name not in OPERATIONS or reason_to_leave(op)) for op in all_):
        return False
    read = arrays_read(recurrence)
    if len(read) + len(recurrence.states) + len(recurrence.stacked) > _MOST_ARRAYS:
        return False
    step = Step(recurrence, read)
    if any(map(hero_kind, step.operations)) or not _is_cheap(recurrence, step.operations, target):
        return False
    # One function each: nothing is computed more than once for an element.
    return (parts := step.partitions()) is not None and all(len(part.subgraphs) == 1 for part in parts)


def _is_cheap(recurrence: Recurrence, operations: Sequence[ir.Operation], target: Device) -> bool:
    """Whether what several threads compute takes them no longer than a launch and the states in memory.

    That is what an iteration takes as kernels, which compute each value once.
    """
    size = math.prod(recurrence.shape)
    spread = sum(instructions(op) for op in operations if 2 * elements(op.results[0]) <= size)
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

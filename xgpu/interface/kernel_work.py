"""The work of a fusion's kernel: the operations that it executes, and its approximate time."""

from xgpu import ir
from xgpu.costs.time import seconds_to_execute, seconds_to_move
from xgpu.costs.values import Weight, instructions
from xgpu.device import Device
from xgpu.dialects.attributes import EMITTER
from xgpu.emit.family_table import FAMILIES, seconds_by_schedule
from xgpu.fusion.grouping.executed import kernel_work
from xgpu.options import Options
from xgpu.structure import callees


def kernel_seconds(fusion: ir.Operation, moved: int, threads: int, device: Device, options: Options) -> float:
    """Return how long a launch takes that moves so many bytes with so many threads, about: a launch's time at least.

    Kernels that multiply by tensor cores take as long as was estimated to choose their schedules.
    """
    multiplied = seconds_by_schedule(fusion, device, options)
    if multiplied is not None:
        return multiplied
    return max(seconds_to_move(moved, device), seconds_to_execute(fusion_work(fusion, instructions), threads, device))


def fusion_work(fusion: ir.Operation, weight: Weight) -> float:
    """Return the work of one launch of the kernel of a fusion, as the planner counts what is computed again."""
    if parts := callees(fusion):
        return sum(fusion_work(part, weight) for part in parts)
    return kernel_work(fusion, FAMILIES[ir.StringAttr(fusion.attributes[EMITTER]).value], weight)

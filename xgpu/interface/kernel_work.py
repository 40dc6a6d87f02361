"""The work of a fusion's kernel: the operations that it executes, and its approximate time."""

import math
from collections.abc import Callable

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.costs.evaluations import ONLY, Evaluations
from xgpu.costs.time import seconds_to_execute, seconds_to_move
from xgpu.costs.values import elements, instructions
from xgpu.device import Device
from xgpu.dialects.attributes import EMITTER, HERO
from xgpu.emit.family_table import FAMILIES, seconds_by_schedule
from xgpu.fusion.fallback import VIEWS
from xgpu.fusion.grouping.families import Kind
from xgpu.fusion.grouping.groups import Group
from xgpu.indexing.access import integers
from xgpu.options import Options
from xgpu.structure import callees

_FREE = VIEWS | CONTROL_FLOW.keys() | {"stablehlo.constant", "stablehlo.iota", "stablehlo.slice", "stablehlo.reverse"}
"""Operations that compute nothing."""
_REDUCE = "stablehlo.reduce"
_ROWS = "rows"
"""The emitter of kernels whose blocks keep rows."""

type Weight = Callable[[ir.Operation], int]
"""Returns what an operation counts for an element of its result."""


def kernel_seconds(fusion: ir.Operation, moved: int, threads: int, device: Device, options: Options) -> float:
    """Return how long a launch takes that moves so many bytes with so many threads, about: a launch's time at least.

    Kernels that multiply by tensor cores take as long as was estimated to choose their schedules.
    """
    multiplied = seconds_by_schedule(fusion, device, options)
    if multiplied is not None:
        return multiplied
    executed = fusion_work(fusion, instructions)
    return max(seconds_to_move(moved, device), seconds_to_execute(executed, threads, device))


def fusion_work(fusion: ir.Operation, weight: Weight) -> float:
    """Return the work of one launch of the kernel of a fusion, as the planner counts what is computed again."""
    if parts := callees(fusion):
        return sum(fusion_work(part, weight) for part in parts)
    *operations, terminator = (op.operation for op in fusion.regions[0].blocks[0].operations)
    emitter = ir.StringAttr(fusion.attributes[EMITTER]).value
    # Reductions of rows are computed once for each row, whichever of them the kernel is built around.
    heroes = [op for op in operations if HERO in op.attributes or (emitter == _ROWS and op.name == _REDUCE)]
    group = Group(Kind(FAMILIES[emitter], None), 0, tuple(heroes))
    evaluations, work = Evaluations[Group](operations), 0.0
    evaluations.start()
    for value in terminator.operands:
        evaluations.want(value, group, ONLY)
    for op in reversed(operations):
        times = max((need.times for value in op.results for need in evaluations.of(value)), default=0.0)
        if times:
            evaluations.compute(op, {group: ONLY})
        if op in heroes:
            times = max(map(elements, op.results))
        work += element_work(op, weight) * times
    return work


def element_work(op: ir.Operation, weight: Weight) -> float:
    """Return the work of an operation for each element of its first result."""
    if op.name in _FREE or not len(op.results):
        return 0
    if op.name == _REDUCE:
        return weight(op) * elements(op.operands[0]) / max(1, elements(op.results[0]))
    return weight(op) * (math.prod(integers(op, "window_dimensions")) if op.name == "stablehlo.reduce_window" else 1)

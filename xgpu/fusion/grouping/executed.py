"""The work of one launch of a kernel, of level ``fusions``."""

from xgpu import ir
from xgpu.costs.evaluations import executed
from xgpu.costs.values import Weight
from xgpu.dialects.attributes import EMITTER, HERO
from xgpu.fusion.grouping.families import KernelFamily, Kind
from xgpu.fusion.grouping.groups import Group

_REDUCE = "stablehlo.reduce"
_ROWS = "rows"
"""The emitter of kernels whose blocks keep rows."""


def kernel_work(fusion: ir.Operation, family: KernelFamily, weight: Weight) -> float:
    """Return the work of a launch of the kernel of ``fusion``, as the planner counts what is computed again."""
    *operations, terminator = (op.operation for op in fusion.regions[0].blocks[0].operations)
    keeps_rows = ir.StringAttr(fusion.attributes[EMITTER]).value == _ROWS
    # Reductions of rows are computed once for each row, whichever of them the kernel is built around.
    heroes = [op for op in operations if HERO in op.attributes or (keeps_rows and op.name == _REDUCE)]
    return executed(operations, terminator.operands, Group(Kind(family, None), 0, tuple(heroes)), heroes, weight)

"""The work of one launch of a kernel, of level ``fusions``."""

from xgpu import ir
from xgpu.costs.evaluations import executed
from xgpu.costs.values import Weight
from xgpu.dialects.attributes import HERO
from xgpu.fusion.grouping.families import KernelFamily, Kind
from xgpu.fusion.grouping.groups import Group

_REDUCE = "stablehlo.reduce"


def kernel_work(fusion: ir.Operation, family: KernelFamily, weight: Weight) -> float:
    """Return the work of a launch of the kernel of ``fusion``, as the planner counts what is computed again."""
    *operations, terminator = (op.operation for op in fusion.regions[0].blocks[0].operations)
    # Families that merge groups of heroes keep rows: their reductions are computed once for each row, whichever of them
    # the kernel is built around.
    keeps_rows = family.heroes is not None and family.merge is not None
    heroes = [op for op in operations if HERO in op.attributes or (keeps_rows and op.name == _REDUCE)]
    return executed(operations, terminator.operands, Group(Kind(family, None), 0, tuple(heroes)), heroes, weight)

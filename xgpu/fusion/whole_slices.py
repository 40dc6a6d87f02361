"""Dynamic slices that take, or update, all of a dimension: their start is 0, as starts are clamped to the array.

A slice of a whole array is that array, and an array updated as a whole is its update. A loop over stacked layers has
such slices when there is one layer.
"""

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.mhlo import replace
from xgpu.frontend.stablehlo_builder import splat_like
from xgpu.fusion.in_place import UPDATE_SLICE
from xgpu.fusion.left import DYNAMIC_SLICE
from xgpu.fusion.regions import is_constant, planned_blocks
from xgpu.indexing.access import shape_of
from xgpu.options import Options


def simplify_whole_slices(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Replace slices of whole arrays by what they are, and starts that must be 0 by that constant."""
    for block in planned_blocks(main.entry_block):
        for op in [view.operation for view in block.operations]:
            if op.name == DYNAMIC_SLICE:
                _simplify(op, part=op.results[0], first_start=1)
            elif op.name == UPDATE_SLICE:
                _simplify(op, part=op.operands[1], first_start=2)


def _simplify(op: ir.Operation, part: ir.Value, first_start: int) -> None:
    """Simplify a slice whose starts are operands from ``first_start`` on; ``part`` is what is sliced, or the update."""
    array = op.operands[0]
    if array.type == part.type:
        replace(op, [array if op.name == DYNAMIC_SLICE else part])
        return
    for number, (size, all_) in enumerate(zip(shape_of(part), shape_of(array), strict=True), first_start):
        if size == all_ and not is_constant(op.operands[number]):
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = splat_like(0, op.operands[number])

"""Slices of concatenations that lie within one operand: slices of that operand.

The words of a random key are put together and taken apart again with each key derived from it; kernels would look for
each word in both halves.
"""

import itertools

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.mhlo import replace
from xgpu.frontend.stablehlo_builder import hlo, shape_of
from xgpu.fusion.regions import maker, planned_blocks
from xgpu.indexing.access import integer, integers
from xgpu.options import Options


def slice_operands(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Have slices read the one operand of a concatenation that they are from."""
    for block in planned_blocks(main.entry_block):
        for op in [view.operation for view in block.operations]:
            if op.name == "stablehlo.slice":
                _simplify(op)


def _simplify(op: ir.Operation) -> None:
    value = op.operands[0]
    starts, limits, strides = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    while not isinstance(value.owner, ir.Block) and maker(value).name == "stablehlo.concatenate":
        axis, parts = integer(maker(value), "dimension"), list(maker(value).operands)
        ends = list(itertools.accumulate(shape_of(part)[axis] for part in parts))
        pieces = zip(parts, [0, *ends], ends, strict=False)
        inside = [(part, start) for part, start, end in pieces if start <= starts[axis] < limits[axis] <= end]
        if not inside:
            break
        value, before = inside[0]
        starts[axis] -= before
        limits[axis] -= before
    if value == op.operands[0]:
        return
    if value.type != op.results[0].type:
        with ir.InsertionPoint(op), op.location:
            value = hlo.slice(value, starts, limits, strides)
    replace(op, [value])

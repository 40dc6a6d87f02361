"""Rewrites a program before its operations are grouped into kernels, on a copy: the program itself stays as it is."""

from collections.abc import Callable

from xgpu import ir
from xgpu.device import Device
from xgpu.fusion.barriers import forward_barriers
from xgpu.fusion.mark_recurrences import mark_recurrences
from xgpu.fusion.nested_concatenations import flatten_concatenations
from xgpu.fusion.outer_constants import make_constants_inside
from xgpu.fusion.product_epilogues import leave_epilogues
from xgpu.fusion.product_layouts import choose_product_layouts
from xgpu.fusion.reduction_order import order_reductions
from xgpu.fusion.reduction_rewrites import rewrite_reductions
from xgpu.fusion.scatters import rewrite_scatters
from xgpu.fusion.single_windows import update_single_windows
from xgpu.fusion.sliced_parts import slice_parts
from xgpu.fusion.split_reductions import split_reductions
from xgpu.fusion.split_scans import rewrite_scans
from xgpu.fusion.unused import remove_unused
from xgpu.fusion.whole_slices import simplify_whole_slices
from xgpu.fusion.wide_windows import split_wide_windows
from xgpu.options import Options

Rewrite = Callable[[ir.func.FuncOp, Device, Options], None]
"""Rewrites a function for a device and options."""

REWRITES: tuple[Rewrite, ...] = (
    remove_unused,
    make_constants_inside,
    simplify_whole_slices,
    forward_barriers,
    choose_product_layouts,
    leave_epilogues,
    flatten_concatenations,
    slice_parts,
    update_single_windows,
    rewrite_scatters,
    split_wide_windows,
    rewrite_scans,
    rewrite_reductions,
    order_reductions,
    split_reductions,
    remove_unused,
    mark_recurrences,
)
"""Every rewrite, in order."""


def prepare(module: ir.Module, main: str, target: Device, options: Options) -> ir.Module:
    """Return a copy of a normalised module whose function ``main`` is rewritten."""
    with module.context, ir.Location.unknown():
        copy = ir.Module.create(module.operation.location)
        for op in module.body.operations:
            clone = op.operation.clone(ip=ir.InsertionPoint(copy.body))
            if isinstance(clone.opview, ir.func.FuncOp) and clone.opview.name.value == main:
                for rewrite in REWRITES:
                    rewrite(clone.opview, target, options)
    return copy

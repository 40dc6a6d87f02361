"""The places where PTX instructions are allowed in a nest: where all iterations that run at once execute them."""

from typing import cast

from xgpu import ir
from xgpu.dialects.nests.assembly import AsmOp, takes_warp
from xgpu.dialects.nests.loops import ParOp, WhereOp
from xgpu.nests.structure import PAR, ancestors, loop_of
from xgpu.target_machine import WARP_SIZE


def place_problem(op: ir.Operation) -> str | None:
    """Return why an `xgpu.asm` must not stand where it does; None if it may."""
    loop = next((cast(ParOp, each.opview) for each in ancestors(op) if each.name == PAR), None)
    if loop is None or loop.align is None:
        return "'asm' stands inside of 'fully par', whose iterations run at once"
    if takes_warp(cast(AsmOp, op.opview).text) and loop.extent % WARP_SIZE:
        return (
            f"its instructions are those of a warp of {WARP_SIZE} threads: expected a multiple of as many iterations of"
            f" 'fully par {loop.called}', got {loop.extent}"
        )
    for each in ancestors(op):
        if each == loop.operation:
            break
        if each.name != WhereOp.OPERATION_NAME:
            continue
        for variable in cast(WhereOp, each.opview).variables:
            if variable == loop.variable:
                return f"'asm' stands under a condition on '{loop.called}', by which not all iterations come"
            if loop_of(variable) is None:
                return "'asm' stands under a condition on a value, by which not all iterations may come"
    return None

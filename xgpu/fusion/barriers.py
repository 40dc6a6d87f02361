"""Optimisation barriers: what is computed again after one, to save memory, is not what was computed before it."""

from xgpu import ir
from xgpu.device import Device
from xgpu.fusion.left import BARRIER, reason_to_leave
from xgpu.options import Options


def forward_barriers(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Remove the barriers of a function all of which kernels make: XLA, for which they are there, does not see it.

    They stay if ``options`` want them to part kernels.
    """
    if options.keep_barriers:
        return
    # Control flow is left to XLA, so that there are no other blocks if nothing is.
    *operations, _ = (view.operation for view in main.entry_block.operations)
    barriers = [op for op in operations if op.name == BARRIER]
    if any(op.name != BARRIER and reason_to_leave(op) is not None for op in operations):
        return
    for op in barriers:
        for result, operand in zip(op.results, op.operands, strict=True):
            result.replace_all_uses_with(operand)
        op.erase()

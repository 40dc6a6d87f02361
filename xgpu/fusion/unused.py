"""Operations whose results nothing uses, which rewrites leave behind."""

from xgpu import ir
from xgpu.device import Device
from xgpu.options import Options


def remove_unused(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Erase operations without effects that nothing uses, in blocks of control flow too.

    The planner takes only what results need, but a loop that becomes one kernel is looked at, and copied, as a whole.
    """
    passes = ir.PassManager.parse("func.func(trivial-dce)", main.operation.context)
    passes.enable_verifier(False)
    passes.run(main.operation)

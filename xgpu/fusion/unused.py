"""Operations whose results nothing uses: leftovers of rewrites, values of functions that are only differentiated."""

from xgpu import ir
from xgpu.device import Device
from xgpu.options import Options


def remove_unused(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Erase operations without effects that nothing uses, in blocks of control flow too.

    A product that nothing uses would have what it reads stored, and its layout would count with those of others. A loop
    that becomes one kernel is looked at, and copied, as a whole.
    """
    passes = ir.PassManager.parse("func.func(trivial-dce)", main.operation.context)
    passes.enable_verifier(False)
    passes.run(main.operation)

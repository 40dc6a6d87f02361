"""Libraries that XLA's programs on the CPU call, and that someone must have loaded."""

import numpy as np
from jaxlib import lapack

from xgpu import ir


def load_host_libraries(module: ir.Module) -> None:
    """Load what calls of LAPACK in ``module`` need, as JAX does when it lowers one; without it they end the process."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call":
            found.append(ir.StringAttr(op.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if any(target.startswith("lapack_") for target in found):
        lapack.prepare_lapack_call("potrf", np.dtype(np.float32))  # type: ignore[no-untyped-call]

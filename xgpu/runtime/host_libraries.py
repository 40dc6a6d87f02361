"""Libraries that XLA's programs on the CPU call, and that someone must have loaded."""

import numpy as np
from jaxlib import lapack

from xgpu import ir
from xgpu.structure import walk


def load_host_libraries(module: ir.Module) -> None:
    """Load what calls of LAPACK in ``module`` need, as JAX does when it lowers one; without it they end the process."""
    calls = walk(module.operation, "stablehlo.custom_call")
    if any(ir.StringAttr(op.attributes["call_target_name"]).value.startswith("lapack_") for op in calls):
        lapack.prepare_lapack_call("potrf", np.dtype(np.float32))  # type: ignore[no-untyped-call]

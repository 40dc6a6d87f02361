"""MLIR's passes on programs that users gave: what these refuse is an error with the user's source line."""

import re

from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import name_of, source_of

_NOT_LEGALIZED = re.compile(r"failed to legalize operation '([^']*)'")


def run_mlir_passes(module: ir.Module, pipeline: str) -> None:
    """Run MLIR's passes on ``module``, verified after each. Raises Unsupported for what they refuse."""
    passes = ir.PassManager.parse(f"builtin.module({pipeline})", module.context)
    try:
        passes.run(module.operation)
    except ir.MLIRError as error:
        diagnostics = error.error_diagnostics
        if not diagnostics:
            raise Unsupported(str(error)) from None
        first = diagnostics[0]
        message = first.message.split("\n")[0]
        if (refused := _NOT_LEGALIZED.match(message)) is not None:
            name = name_of(first.location)
            message = f"{refused.group(1)}{f" ('{name}')" if name else ''}: operation not supported"
        raise Unsupported(message, source_of(first.location)) from None

"""The emitters of a compiled program's kernels, for tests of their maps."""

import xgpu
from xgpu import ir
from xgpu.device import device
from xgpu.emit import family_table
from xgpu.emit.base import Emitter
from xgpu.options import Options


def emitter_of(compiled: xgpu.Compiled, number: int = 0) -> Emitter:
    """Return the emitter of one of the kernels, in the order in which they run."""
    kernel = compiled.kernels[number]
    module = ir.Module.parse(compiled.ir("fusions"), context=ir.make_context())
    function = next(
        op.operation
        for op in module.body.operations
        if ir.StringAttr(op.operation.attributes["sym_name"]).value == kernel.name
    )
    _KEPT.append(module)
    return family_table.emitter_of(function, device("sm_90a"), Options())


_KEPT: list[ir.Module] = []
"""Modules whose operations the emitters refer to."""

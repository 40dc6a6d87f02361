"""The emitters of a compiled program's kernels, for tests of their maps."""

import xgpu
from xgpu import ir
from xgpu.device import device
from xgpu.dialects import attributes
from xgpu.emit.base import Emitter, Fusion
from xgpu.emit.select import EMITTERS
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
    given = function.attributes
    aliases = attributes.int_array_of(given[attributes.ALIASES]) if attributes.ALIASES in given else ()
    fusion = Fusion(kernel.name, function.regions[0].blocks[0], device("sm_90a"), Options(), aliases)
    _KEPT.append(module)
    return EMITTERS[kernel.emitter](fusion)


_KEPT: list[ir.Module] = []
"""Modules whose operations the emitters refer to."""

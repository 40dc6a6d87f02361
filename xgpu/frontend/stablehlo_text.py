"""StableHLO text to the ``stablehlo`` level; CHLO and the MHLO operations of HLO imports are read too."""

from xgpu.dialects.verify import problems
from xgpu.errors import InvalidInput
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import Source, make_source, module_name
from xgpu.hlo.source_location import source_of


def from_stablehlo_text(text: str, filename: str = "<text>", name: str = "program") -> Source:
    """Read a StableHLO module. ``name`` is the program's name if the module has none.

    Raises InvalidInput with file, line and column if the text does not parse or verify, and what ``normalize`` raises.
    """
    module = parse_module(text, filename)
    # Passes take operations of ours to be right; of others they say themselves that they do not know them.
    for problem in problems(module):
        if problem.op.name.startswith("xgpu."):
            raise InvalidInput(problem.message, source_of(problem.op))
    return make_source(module, module_name(module, name), filename)

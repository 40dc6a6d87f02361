"""StableHLO text to the ``stablehlo`` level; CHLO and the MHLO operations of HLO imports are read too."""

from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import Source, make_source, module_name


def from_stablehlo_text(text: str, filename: str = "<text>", name: str = "program") -> Source:
    """Read a StableHLO module. ``name`` is the program's name if the module has none.

    Raises InvalidInput with file, line and column if the text does not parse or verify, and what ``normalize`` raises.
    """
    module = parse_module(text, filename)
    return make_source(module, module_name(module, name), filename)

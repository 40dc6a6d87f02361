"""Frontends: JAX functions, HLO text and StableHLO text to the ``stablehlo`` level; ``load_source`` picks one.

The names are imported when they are first used, so that a tool that only reads MLIR text does not import JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xgpu.frontend.hlo_text import from_hlo_text
    from xgpu.frontend.jax_function import from_jax
    from xgpu.frontend.load import load_source
    from xgpu.frontend.stablehlo_text import from_stablehlo_text

__all__ = ["from_hlo_text", "from_jax", "from_stablehlo_text", "load_source"]

_MODULES = {
    "from_hlo_text": "hlo_text",
    "from_jax": "jax_function",
    "from_stablehlo_text": "stablehlo_text",
    "load_source": "load",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

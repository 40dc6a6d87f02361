"""xgpu compiles JAX programs to GPU kernels through MLIR levels that a person can read, stop at and restart from.

>>> import xgpu
>>> double = xgpu.jit(lambda x: x * 2)
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xgpu.errors import CompilerError, InvalidInput, ToolError, Unsupported, XgpuError, XgpuWarning
    from xgpu.interface import block
    from xgpu.interface.api import Compiled, compile
    from xgpu.interface.jitting import jit
    from xgpu.loop_language import python as loops
    from xgpu.options import Options
    from xgpu.packaging.export import Exported, export

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(("Compiled", "compile"), "xgpu.interface.api"),
    **dict.fromkeys(
        ("CompilerError", "InvalidInput", "ToolError", "Unsupported", "XgpuError", "XgpuWarning"), "xgpu.errors"
    ),
    **dict.fromkeys(("Exported", "export"), "xgpu.packaging.export"),
    "Options": "xgpu.options",
    "jit": "xgpu.interface.jitting",
}
_MODULES = {"block": "xgpu.interface.block", "loops": "xgpu.loop_language.python"}
"""Modules that have a name here of their own."""

__all__ = [
    "Compiled",
    "CompilerError",
    "Exported",
    "InvalidInput",
    "Options",
    "ToolError",
    "Unsupported",
    "XgpuError",
    "XgpuWarning",
    "block",
    "compile",
    "export",
    "jit",
    "loops",
]


def __getattr__(name: str) -> Any:
    # On demand, because importing JAX takes longer than all that xgpu-opt does.
    if name in _MODULES:
        return _imported(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'xgpu' has no attribute '{name}'")
    return getattr(_imported(_HOMES[name]), name)


def _imported(module: str) -> Any:
    from xgpu.driver.collector import rare_collections

    # One collection of JAX's own objects takes as long as a hundred modules.
    with rare_collections():
        return importlib.import_module(module)


if "jax" in sys.modules:
    # Programs that hold kernels may come from another process, and be loaded by JAX without another word to xgpu.
    _imported("xgpu.runtime.xla_calls")

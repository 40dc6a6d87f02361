"""The MLIR bindings, and the only module that imports them.

xgpu uses the bindings that ship inside jaxlib, so a module that JAX lowered needs no text round trip. Moving to
the upstream ``mlir-python-bindings`` package is a change of this file alone: everything else says
``from xgpu import ir`` and takes classes (``ir.Module``), dialect builders (``ir.arith``) and passes from here.
"""

import os
import sys
import threading
import types

# XLA's log reaches stderr otherwise, where diagnostics go; it is read when jaxlib is loaded.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jaxlib.mlir._mlir_libs._mlir as _bindings
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _stablehlo
from jaxlib.mlir._mlir_libs import _mlirDialectsLLVM as llvm
from jaxlib.mlir.dialects import arith, cf, chlo, func, math, scf, sdy, stablehlo
from jaxlib.mlir.ir import *  # noqa: F403
from jaxlib.mlir.passmanager import PassManager

__all__ = [
    "PassManager",
    "arith",
    "cf",
    "chlo",
    "func",
    "llvm",
    "make_context",
    "math",
    "parse_briefly",
    "register_dialect",
    "register_operation",
    "scf",
    "sdy",
    "stablehlo",
]

_NAMED_ONLY = ("complex", "coro", "gpu", "llvm", "nvvm", "tensor", "ub", "vector", "xgpu")
"""Dialects of whose operations xgpu needs no Python classes: it makes them, and looks at them, by their names."""


def _pass_over(dialect: str) -> None:
    """Have the bindings take the Python module of a dialect for imported, which others still may import.

    They look for it whenever an operation of the dialect is touched. Where there is none, they search the disk again
    each time, which makes passes more than twice as slow; those of LLVM and GPUs take a fifth of xgpu's own import.
    """
    name = f"jaxlib.mlir.dialects.{dialect}"
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        try:
            _bindings.globals._check_dialect_module_loaded(dialect)
        finally:
            del sys.modules[name]


for _name in _NAMED_ONLY:
    _pass_over(_name)

register_dialect = _bindings.register_dialect
register_operation = _bindings.register_operation

_stablehlo.register_stablehlo_passes()
_mlirHlo.register_mhlo_passes()


def make_context() -> "Context":  # noqa: F405
    """Return a new context with every dialect that xgpu reads or writes loaded.

    Unregistered dialects are allowed because the ``xgpu`` dialect exists only in Python; the verifier of
    ``dialects`` refuses every other unknown operation. Multithreading is off: kernels are compiled in parallel by
    giving each worker a context of its own.
    """
    registry = DialectRegistry()  # noqa: F405
    _jax_mlir_ext.register_dialects(registry)
    context = Context()  # noqa: F405
    context.enable_multithreading(False)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    _mlirHlo.register_mhlo_dialect(context)
    _chlo.register_dialect(context)
    _stablehlo.register_dialect(context)
    sdy.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context


_MOST_USES = 10
"""The number of modules for one of a thread's contexts: their types and attributes stay in it until it is dropped."""
_MOST_BYTES = 1 << 20
"""Size of a module, as bytecode, whose constants are not to stay."""


class _Thread(threading.local):
    context: "Context | None" = None  # noqa: F405
    uses = 0


_thread = _Thread()


def parse_briefly(bytecode: bytes) -> "Module":  # noqa: F405
    """Return the module that ``bytecode`` holds, which one thread uses, and only while what parses it goes on.

    To make a context takes longer than most passes do on a small kernel, so a few such modules after each other share
    one, as JAX's do. A module that may be asked for more later, in whichever thread, needs a context of its own.
    """
    if len(bytecode) > _MOST_BYTES:
        return Module.parse(bytecode, make_context())  # noqa: F405
    if _thread.context is None or _thread.uses == _MOST_USES:
        _thread.context, _thread.uses = make_context(), 0
    _thread.uses += 1
    return Module.parse(bytecode, _thread.context)  # noqa: F405

"""Finds what in a JAX program calls back into Python, which no kernel can."""

import traceback
from typing import Any

from xgpu.errors import SourceLocation, Unsupported
from xgpu.jax_internals import core, source_info_util

_REASON = "a program that xgpu compiles as a whole cannot call Python; xgpu.jit runs it, leaving this to JAX"
_CALLBACKS = ("debug_callback", "debug_print", "io_callback", "pure_callback")
_LOWERING = "emit_python_callback"
"""The function of JAX that lowers each of them."""


def refuse_callbacks(jaxpr: Any, library: tuple[str, ...], reason: str = _REASON) -> None:
    """Raise Unsupported for the first callback of a program, with the user's line.

    Nothing else would tell: ``pure_callback`` has no effect that JAX knows of, and its lowering complains of platforms.
    ``library`` are beginnings of file names whose lines are not the user's, ``reason`` is what the message ends with.
    """
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in _CALLBACKS:
            types = ", ".join(each.aval.str_short(short_dtypes=True) for each in equation.outvars)
            of_type = f" of type {types}" if types else ""
            raise Unsupported(f"{name}{of_type}: {reason}", _line_of(equation, library))
        for inner in core.jaxprs_in_params(equation.params):
            refuse_callbacks(inner, library, reason)


def lowered_callback(error: BaseException) -> Unsupported | None:
    """Return the error for an exception of lowering a callback that no equation shows; None for any other exception.

    Libraries have operations of their own that JAX lowers by tracing a function, such as solvers that check results.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == _LOWERING:
            return Unsupported(f"a callback in the lowering of an operation: {_REASON}")
    return None


def _line_of(equation: Any, library: tuple[str, ...]) -> SourceLocation | None:
    """Return the innermost line that is the user's."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        if not frame.file_name.startswith(library):
            # JAX counts columns from 0.
            return SourceLocation(frame.file_name, frame.start_line, frame.start_column + 1, frame.function_name)
    return None

"""Arrays that a block program takes from outside of its function: only numbers become part of a kernel."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from xgpu.block_language.program import Body
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.frontend.jax_function import is_library
from xgpu.jax_internals import core, source_info_util


def body_of_kernel(closed: Any, name: str, location: SourceLocation) -> Body:
    """Return what a kernel computes. Raises InvalidInput for arrays from outside that are not all of one number."""
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        if _number_of(value) is None:
            at = _use_of(closed.jaxpr, variable) or location
            raise InvalidInput(
                f"kernel {name} uses an array from outside, {value.dtype}{list(value.shape)}: make it an argument of"
                " the kernel, and read tiles of it",
                at,
            )
    return Body.of(closed, dict(zip(closed.jaxpr.constvars, closed.consts, strict=True)))


def constant_value(value: Any) -> Any:
    """Return a constant of a kernel as one that is computed: a number, everywhere."""
    number: Any = _number_of(value)
    return jnp.full(value.shape, number, value.dtype)


def _number_of(value: Any) -> Any | None:
    """Return the number that each element of an array is; None if they differ, or are not known yet."""
    if isinstance(value, core.Tracer):
        return None
    array = np.asarray(value)
    flat = array.reshape(-1)
    same = array.size > 0 and all(flat[:1].tobytes() == each.tobytes() for each in (flat.min(), flat.max()))
    return flat[0] if array.size == 1 or same else None


def _use_of(jaxpr: Any, variable: Any) -> SourceLocation | None:
    """Return the user's line of the first equation that uses a variable."""
    for equation in jaxpr.eqns:
        if any(each is variable for each in equation.invars):
            return line_of(equation)
    return None


def line_of(equation: Any) -> SourceLocation | None:
    """Return the user's line that an equation comes from."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        if not is_library(frame.file_name):
            return SourceLocation(frame.file_name, frame.start_line, function=frame.function_name)
    return None

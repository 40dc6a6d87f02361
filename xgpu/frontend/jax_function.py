"""JAX functions to the ``stablehlo`` level, lowered for CUDA in this process; no GPU is needed.

What JAX has library calls for (linear algebra) becomes calls of cuSOLVER, which only a GPU can run: a program with such
calls is lowered for the processor as well, when it is asked to run there.
"""

import inspect
import io
import reprlib
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import jit as jax_jit
from jax.api_util import shaped_abstractify

import xgpu
from xgpu import ir
from xgpu.dtypes import parse_spec
from xgpu.errors import InvalidInput, SourceLocation, Unsupported, XgpuError
from xgpu.frontend.callbacks import lowered_callback, refuse_callbacks
from xgpu.frontend.jax_lowering import lowering_parameters
from xgpu.frontend.signature import Source, make_source
from xgpu.structure import find

LIBRARY_PREFIXES = (
    *(str(Path(module.__file__).parent) for module in (traceback, jax, np, xgpu) if module.__file__),
    "<frozen",
)
"""Beginnings of the names of files that are never the user's: Python's, JAX's, NumPy's, xgpu's, the import system's."""


def from_jax(
    function: Callable[..., Any],
    arguments: Sequence[Any] = (),
    keyword_arguments: Mapping[str, Any] | None = None,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
) -> Source:
    """Trace a JAX function and lower it for CUDA.

    Arguments are arrays, scalars, ``jax.ShapeDtypeStruct``, specifications such as ``"f32[8,128]"``, or trees of
    them; static arguments are passed as they are. Every leaf becomes an argument of the program, used or not.
    A specification of 64-bit elements turns JAX's 64-bit mode on for the trace, since JAX would narrow it otherwise.
    If the program calls code that only CUDA may have, ``on_cpu`` of the result lowers it again for the processor.

    Raises InvalidInput, with the user's line, for an exception while tracing, Unsupported for a callback into Python,
    and what ``normalize`` raises.
    """
    static = set(static_argnums), set(static_argnames)
    name = getattr(function, "__name__", type(function).__name__)
    args, kwargs, wide = _abstract_arguments(name, arguments, keyword_arguments or {}, *static)
    try:
        with jax.enable_x64(wide):
            jitted = jax_jit(
                function, keep_unused=True, static_argnums=tuple(static_argnums), static_argnames=tuple(static_argnames)
            )
            traced = jitted.trace(*args, **kwargs)
            refuse_callbacks(traced.jaxpr.jaxpr, LIBRARY_PREFIXES)
            if traced.jaxpr.effects:
                raise _side_effects(function, name, traced.jaxpr.effects)
    except (XgpuError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise user_error(error, f"tracing {name}", definition_of(function)) from error
    source = lower(traced, name, "cuda", wide)
    return replace(source, on_cpu=lambda: lower(traced, name, "cpu", wide)) if _calls_code(source.module) else source


def lower(traced: Any, name: str, platform: str, wide: bool) -> Source:
    """Lower a function that was traced in JAX's 64-bit mode, or without it, and normalise the program."""
    bytecode = io.BytesIO()
    try:
        with jax.enable_x64(wide):
            lowered = traced.lower(lowering_platforms=(platform,), _private_parameters=lowering_parameters())
        lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise lowered_callback(error) or user_error(error, f"lowering {name} for {platform}") from error
    try:
        module = ir.Module.parse(bytecode.getvalue(), ir.make_context())
    except ir.MLIRError as error:
        # JAX lowers operations without a StableHLO form to dialects of its own.
        raise Unsupported(f"what JAX lowered {name} to is not StableHLO: {str(error).splitlines()[-1]}") from None
    return make_source(module, name, None, lowered.in_tree, lowered.out_tree)


def _calls_code(module: ir.Module) -> bool:
    """Whether the program has calls of code that is not in it."""
    return find(module.operation, lambda op: op.name == "stablehlo.custom_call") is not None


def definition_of(function: Callable[..., Any]) -> SourceLocation | None:
    """Return where a function is defined; None for what Python did not compile."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return SourceLocation(code.co_filename, code.co_firstlineno) if code else None


def user_error(error: BaseException, activity: str, otherwise: SourceLocation | None = None) -> InvalidInput:
    """Return the error for an exception in the user's code, at the innermost line that is the user's.

    ``activity`` says what was being done, for example ``tracing f``. If no line of the user's was being run, as when
    JAX refuses what a function returned, the error is at ``otherwise``.
    """
    if isinstance(error, SyntaxError) and error.filename:
        place: SourceLocation | None = SourceLocation(error.filename, error.lineno or 0, error.offset or 0)
        text = error.msg
    else:
        place = _user_frame(error) or otherwise
        text = _shortened(str(error))
    kind = type(error).__name__
    return InvalidInput(f"{activity} failed: {kind}: {text}" if text else f"{activity} failed: {kind}", place)


def _abstract_arguments(
    name: str,
    arguments: Sequence[Any],
    keyword_arguments: Mapping[str, Any],
    static_numbers: set[int],
    static_names: set[str],
) -> tuple[list[Any], dict[str, Any], bool]:
    """Replace specifications by abstract arrays; also return whether JAX is in 64-bit mode, or one of them needs it.

    Raises InvalidInput for what is no array of a function called ``name``, and no specification of one.
    """
    wide = bool(jax.config.jax_enable_x64)

    def abstract(what: str, path: Any, leaf: Any) -> Any:
        nonlocal wide
        if not isinstance(leaf, str):
            _check_is_array(f"{name}, argument {what}{jax.tree_util.keystr(path)}", leaf)
            return leaf
        dtype, shape = parse_spec(leaf)
        wide = wide or (dtype.bits == 128 if dtype.kind == "complex" else dtype.bits == 64)
        return jax.ShapeDtypeStruct(shape, dtype.numpy)  # type: ignore[no-untyped-call]

    positions = {number if number >= 0 else number + len(arguments) for number in static_numbers}

    def abstract_tree(what: str, value: Any) -> Any:
        return jax.tree_util.tree_map_with_path(partial(abstract, what), value)

    args = [value if i in positions else abstract_tree(str(i), value) for i, value in enumerate(arguments)]
    kwargs = {
        key: value if key in static_names else abstract_tree(f"'{key}'", value)
        for key, value in keyword_arguments.items()
    }
    return args, kwargs, wide


def _side_effects(function: Callable[..., Any], name: str, effects: Iterable[object]) -> Unsupported:
    listed = ", ".join(sorted(str(effect) for effect in effects))
    return Unsupported(f"{name} has side effects ({listed}), which xgpu does not support", definition_of(function))


def _check_is_array(what: str, value: Any) -> None:
    """Raise InvalidInput for what JAX takes for no array."""
    try:
        shaped_abstractify(value)  # type: ignore[no-untyped-call]
    except TypeError:
        dtype = f", an array of {value.dtype}" if isinstance(value, np.ndarray) else ""
        kind = f"{reprlib.repr(value)} of type {type(value).__name__}{dtype}"
        raise InvalidInput(
            f"{what}: expected an array, a number or a specification such as f32[8], got {kind}"
        ) from None
    except OverflowError as error:
        raise InvalidInput(f"{what}: {error}") from None


def _user_frame(error: BaseException) -> SourceLocation | None:
    """Return the innermost frame of an exception outside Python's, JAX's, NumPy's and xgpu's own code."""
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        if not is_library(frame.filename):
            found = SourceLocation(frame.filename, frame.lineno or 0)
    return found


def is_library(filename: str) -> bool:
    """Whether a file is Python's, JAX's, NumPy's or of another package, and not the user's."""
    return filename.startswith(LIBRARY_PREFIXES) or "site-packages" in Path(filename).parts


def _shortened(message: str) -> str:
    """Return the first paragraph of a message, and what it announces: what follows in JAX's is general advice."""
    paragraph, *others = message.split("\n\n")
    if paragraph.rstrip().endswith(":") and others:
        paragraph = f"{paragraph}\n{others[0]}"
    return " ".join(line.strip() for line in paragraph.splitlines() if line.strip() and not set(line.strip()) <= {"-"})

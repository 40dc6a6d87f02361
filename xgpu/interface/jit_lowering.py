"""The lowering of a function of ``xgpu.jit`` inside a JAX program: to calls of xgpu's kernels.

Such a function is a ``jax.jit`` whose name is a `MarkedName`, which every transformation of JAX keeps. Where JAX lowers
it, the function that this makes gets a body of ours. What xgpu cannot compile is lowered by JAX alone, and is XLA's.
"""

import io
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax.interpreters import mlir

from xgpu import ir
from xgpu.device import HOST
from xgpu.errors import CompilerError, Unsupported, XgpuError
from xgpu.frontend.jax_lowering import lowering_parameters
from xgpu.frontend.signature import make_source
from xgpu.fusion.fallback import nothing_to_compile
from xgpu.interface.api import Compiled, default_device, options_on
from xgpu.jax_internals import SPMDAxisContext, core, pjit, weakref_lru_cache
from xgpu.options import Options
from xgpu.runtime import cuda_calls
from xgpu.runtime.jax_backend import lower_program

_CALLER = "caller"
_OF_SCALARS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "all_reduce",
        "map",
        "reduce",
        "reduce_scatter",
        "reduce_window",
        "scatter",
        "select_and_scatter",
        "sort",
    )
)
"""Operations whose regions XLA computes element by element, where nothing can be called that is not its own."""
_REPLACED = "xgpu.planned"
"""Marks a function of JAX's module that has been looked at: it may be called from several places."""


class MarkedName(str):
    """The name of a function that xgpu compiles, with the options for that; for all else it is that string."""

    options: Options

    def __new__(cls, name: str, options: Options) -> "MarkedName":
        """Return ``name`` with ``options``."""
        marked = super().__new__(cls, name)
        marked.options = options
        return marked


class _Thread(threading.local):
    by_jax = False


_thread = _Thread()
_jit_p: Any = pjit.jit_p
_lower_jit: Callable[..., Any] = pjit._pjit_lowering


@contextmanager
def lowered_by_jax() -> Iterator[None]:
    """Context in which this thread lowers functions of ``xgpu.jit`` as JAX does."""
    before, _thread.by_jax = _thread.by_jax, True
    try:
        yield
    finally:
        _thread.by_jax = before


def _lower(ctx: Any, *arguments: Any, name: str, **parameters: Any) -> Any:
    """Lower a ``jax.jit`` inside another program, and if it is one of ours replace the function that was made."""
    if not _thread.by_jax and _combines_elements():
        # A function that is called elsewhere too is another there, so that this one is made anew.
        own = ctx.module_context.replace(cached_primitive_lowerings={}, lowering_cache={})
        with lowered_by_jax():
            return _lower_jit(ctx.replace(module_context=own), *arguments, name=str(name), **parameters)
    if not isinstance(name, MarkedName) or _thread.by_jax:
        return _lower_jit(ctx, *arguments, name=name, **parameters)
    # The kernels' function is called, whether or not JAX would have put the operations in its place.
    parameters = {**parameters, "inline": jax.Inline.AUTO}
    # What is marked inside is compiled as a part of this.
    with lowered_by_jax():
        program = _program(ctx, arguments, name, parameters)
        if program is None:
            return _lower_jit(ctx, *arguments, name=str(name), **parameters)
        parameters["jaxpr"] = _outline(parameters["jaxpr"])
        results = _lower_jit(ctx, *arguments, name=str(name), **parameters)
        function = _last_callee(ctx.module_context.symbol_table)
        if _REPLACED not in function.attributes:
            function.attributes[_REPLACED] = ir.UnitAttr.get()
            _replace(ctx, function, program)
    return results


mlir.register_lowering(_jit_p, _lower, cacheable=False)


def _combines_elements() -> bool:
    """Whether JAX's current insertion point is in what a reduction combines its elements by, or the like."""
    owner: ir.Operation | None = ir.InsertionPoint.current.block.owner.operation
    while owner is not None and owner.name != "func.func":
        if owner.name in _OF_SCALARS:
            return True
        # JAX puts some operations into their function only after their regions are written.
        owner = owner.parent if owner.attached else None
    return False


def _last_callee(symbols: Any) -> Any:
    """Return the function that was called last at JAX's current insertion point."""
    operations = ir.InsertionPoint.current.block.operations
    call = next(op.operation for op in reversed(list(operations)) if op.operation.name == "func.call")
    return symbols[ir.FlatSymbolRefAttr(call.attributes["callee"]).value].operation


def _lower_alone(ctx: Any, arguments: Sequence[Any], name: str, parameters: Mapping[str, Any]) -> bytes:
    """Return the function as a module of its own, lowered as xgpu has it: some functions stay one operation."""
    module = ir.Module.create(ir.Location.unknown())
    alone = ctx.module_context.replace(
        module=module,
        ip=ir.InsertionPoint(module.body),
        symbol_table=ir.SymbolTable(module.operation),
        cached_primitive_lowerings={},
        lowering_cache={},
        lowering_parameters=lowering_parameters(),
    )
    with ir.InsertionPoint(module.body), ir.Location.unknown():
        caller = ir.func.FuncOp(_CALLER, ([], []))
        # JAX writes a call where it stands now, and what it wants to be done with the results.
        with ir.InsertionPoint(caller.add_entry_block()):
            _lower_jit(ctx.replace(module_context=alone), *arguments, name=name, **parameters)
            function = _last_callee(alone.symbol_table)
    caller.operation.erase()
    function.attributes["sym_name"] = ir.StringAttr.get("main")
    function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _platform(context: Any) -> str | None:
    """Return what a module is lowered for: ``"cuda"`` or ``"cpu"``, None if xgpu has no part in it.

    A program that XLA is to partition over several devices has global shapes, which no kernel will see; so has the
    body of a ``shard_map`` over some of a mesh's axes alone.
    """
    (platform, *others) = context.platforms
    axes = context.axis_context
    if isinstance(axes, SPMDAxisContext) and axes.manual_axes != frozenset(axes.mesh.axis_names):
        return None
    if others or platform not in ("cuda", "cpu") or getattr(axes, "num_devices", 1) not in (1, None):
        return None
    return str(platform)


def _program(ctx: Any, arguments: Sequence[Any], name: MarkedName, parameters: Mapping[str, Any]) -> Compiled | None:
    """Return a function compiled, once for all its calls in JAX's module; None if it is left to XLA."""
    platform = _platform(ctx.module_context)
    if platform is None or ctx.dim_var_values or len(ctx.tokens_in):
        return None
    known = ctx.module_context.cached_primitive_lowerings
    key = (_program, name, name.options, parameters["jaxpr"])
    if key not in known:
        known[key] = _compiled(_lower_alone(ctx, arguments, str(name), parameters), name, platform)
    program: Compiled | None = known[key]
    return program


def _compiled(own: bytes, name: MarkedName, platform: str) -> Compiled | None:
    """Return the program ``own`` compiled; None, with a warning if that is nobody's intention, if it cannot be."""
    try:
        return _compile(own, str(name), name.options, platform)
    except CompilerError as error:
        warnings.warn(f"xgpu leaves {name} to XLA after an internal error: {error}", stacklevel=2)
    except Unsupported:
        pass
    except XgpuError as error:
        warnings.warn(f"xgpu leaves {name} to XLA: {error}", stacklevel=2)
    return None


@weakref_lru_cache
def _outline(jaxpr: Any) -> Any:
    """Return a jaxpr of the same arguments, constants and results that is one operation of no meaning.

    JAX makes a function of it, whose body is replaced: to lower the real one for that would take twice the time.
    """
    constants = [core.Literal(*each) for each in core.jaxpr_const_args(jaxpr)]  # type: ignore[no-untyped-call]
    results = [core.Var(value) for value in jaxpr.out_avals]
    operation = core.new_jaxpr_eqn(constants, results, _outline_p, {}, core.no_effects)
    return jaxpr.replace(eqns=[operation], outvars=results)


_outline_p = core.Primitive("xgpu_outline")
_outline_p.multiple_results = True


# JAX keeps what it lowers by operands and parameters, and here only the results differ.
mlir.register_lowering(_outline_p, jax.ffi.ffi_lowering(_outline_p.name), cacheable=False)


def _replace(ctx: Any, function: Any, program: Compiled) -> None:
    """Replace the body of ``function`` by kernels."""
    platform = _platform(ctx.module_context)
    assert platform is not None
    block = function.regions[0].blocks[0]
    old = list(block.operations)
    # Types are those of the program, which may have been traced in another mode than this thread is in now. What is
    # traced here is no function of the user's.
    modes = jax.enable_x64(True), jax.explain_cache_misses(False), jax.log_compiles(False)
    with ir.InsertionPoint.at_block_begin(block), function.location, modes[0], modes[1], modes[2]:
        values = lower_program(ctx, program, list(block.arguments), platform)
        ir.Operation.create("func.return", operands=values)
    for op in reversed(old):
        op.operation.erase()


def _compile(bytecode: bytes, name: str, options: Options, platform: str) -> Compiled:
    module = ir.parse_briefly(bytecode)
    source = make_source(module, name)
    target = default_device() if platform == "cuda" else HOST
    options = options_on(platform, options)
    level = cuda_calls.level(target) if platform == "cuda" else "lowered"
    program = Compiled.from_source(source, target, options, [], level)
    if program.main is not None and not program.kernels:
        raise nothing_to_compile(program.main)
    return program

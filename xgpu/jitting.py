"""``xgpu.jit``: as ``jax.jit``, but the program is compiled by xgpu.

The function is a ``jax.jit`` inside a ``jax.jit``. JAX traces, transforms, caches and calls both; the inner one has a
name that only xgpu gives, which every transformation keeps. When JAX lowers it, the body of the function that this
makes is replaced by xgpu's kernels. What xgpu cannot compile stays as it is, XLA's.
"""

import functools
import inspect
import io
import threading
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax._src import pjit
from jax._src.api_util import fun_signature, infer_argnums_and_argnames
from jax._src.sharding_impls import SPMDAxisContext
from jax.interpreters import mlir

from xgpu import ir
from xgpu.api import Compiled, default_device
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.errors import CompilerError, XgpuError
from xgpu.explanation import Explanation, explain
from xgpu.frontend import from_jax
from xgpu.frontend.jax_lowering import lowering_parameters
from xgpu.frontend.signature import make_source
from xgpu.fusion.left import nothing_to_compile
from xgpu.options import Options
from xgpu.partitioning import can_have_mesh, mesh_of, over_mesh, partition_program
from xgpu.runtime.jax_backend import call_program, lower_program

_MARK = "xgpu::"
_OPTIONS: dict[str, Options] = {}
"""The options that functions were given, by the part of their name that stands for them."""


class _Nesting(threading.local):
    inside = False


_nesting = _Nesting()
_jit_p: Any = pjit.jit_p
_lower_jit: Callable[..., Any] = pjit._pjit_lowering


def jit(
    function: Callable[..., Any] | None = None, *, options: Options | None = None, **jit_options: Any
) -> Callable[..., Any]:
    """Return ``function`` compiled by xgpu, to be used like the result of ``jax.jit``, which takes ``jit_options``.

    Its kernels run inside XLA's executable, on a CUDA device and on a CPU. What xgpu cannot compile is left to XLA.
    The result can be called, traced, transformed (``jax.grad``, ``jax.vmap``, ...) and lowered.
    """
    if function is None:
        return functools.partial(jit, options=options, **jit_options)
    chosen = options or Options()
    static = {key: value for key, value in jit_options.items() if key.startswith("static_")}

    @functools.wraps(function)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    name = getattr(function, "__name__", type(function).__name__)
    given = repr(chosen)
    _OPTIONS[given] = chosen
    marked.__name__ = marked.__qualname__ = f"{_MARK}{given if chosen != Options() else ''}::{name}"
    inner = jax.jit(marked, **static)

    @functools.wraps(function)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    return Jitted(jax.jit(outer, **jit_options), function, chosen, jit_options)


class Jitted:
    """A function compiled by xgpu, with everything that the result of ``jax.jit`` has.

    Called with arrays that are spread over a mesh of devices, it is partitioned before it is compiled, so that the
    kernels work on each device's parts. What cannot be partitioned here is left to XLA.
    """

    def __init__(self, jitted: Any, function: Callable[..., Any], options: Options, jit_options: dict[str, Any]):
        functools.update_wrapper(self, function)
        self._jitted = jitted
        self._function = function
        self._options = options
        self._jit_options = jit_options
        self._partitioned: dict[Any, Callable[..., Any] | None] = {}

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return which kernels the function becomes for these arguments, and what is left to XLA and why."""
        given = [self._jit_options.get(key) for key in ("static_argnums", "static_argnames")]
        signature = fun_signature(self._function) or inspect.Signature()
        numbers, names = infer_argnums_and_argnames(signature, *given)
        source = from_jax(self._function, args, kwargs, static_argnums=numbers, static_argnames=names)
        return explain(Compiled.from_source(source, default_device(), self._options, [], None))

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function traced for these arguments, as a ``jax.stages.Traced``."""
        return self._jitted.trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function lowered for these arguments, as a ``jax.stages.Lowered``."""
        return self._jitted.lower(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return a method of ``instance``, as a function in the body of a class does."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(jit, options=self._options, **self._jit_options), (self._function,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # To look at every argument takes some microseconds of a call, which may be as short as its launches.
        if self._jit_options or not can_have_mesh() or (mesh := mesh_of(jax.tree.leaves((args, kwargs)))) is None:
            return self._jitted(*args, **kwargs)
        leaves, tree = jax.tree.flatten((args, kwargs))
        key = (mesh, tree, tuple((jax.typeof(leaf), getattr(leaf, "sharding", None)) for leaf in leaves))
        if key not in self._partitioned:
            self._partitioned[key] = self._partition(mesh, args, kwargs)
        call = self._partitioned[key]
        return self._jitted(*args, **kwargs) if call is None else call(leaves)

    def _partition(self, mesh: Any, args: Any, kwargs: Any) -> Callable[..., Any] | None:
        """Return a function of the arguments' leaves that runs kernels on each device, None if that cannot be done."""
        lowered = jax.jit(self._function, keep_unused=True).lower(*args, **kwargs)
        partitioned = partition_program(lowered)
        if partitioned is None:
            return None
        target = default_device()
        try:
            source = make_source(partitioned.module, self.__name__)
            level = "ptx" if mesh.devices.flat[0].platform == "gpu" else "lowered"
            program = Compiled.from_source(source, target, self._options, [], level)
        except XgpuError:
            return None
        whole = over_mesh(mesh, partitioned, lambda *parts: tuple(call_program(program, parts)))
        return lambda leaves: jax.tree.unflatten(lowered.out_tree, whole(*leaves))


def _lower(ctx: Any, *arguments: Any, name: str, **parameters: Any) -> Any:
    """Lower a ``jax.jit`` inside another program, and if it is one of ours replace the function that was made."""
    if not name.startswith(_MARK) or _nesting.inside:
        return _lower_jit(ctx, *arguments, name=name, **parameters)
    platform = _platform(ctx.module_context)
    # What is marked inside is compiled as a part of this.
    _nesting.inside = True
    try:
        own = None if platform is None else _lower_alone(ctx, arguments, name, parameters)
        results = _lower_jit(ctx, *arguments, name=name, **parameters)
    finally:
        _nesting.inside = False
    if platform is not None and own is not None:
        call = [op for op in ir.InsertionPoint.current.block.operations if op.operation.name == "func.call"][-1]
        _replace_callee(ctx, call.operation, own, _OPTIONS.get(name.split("::")[1], Options()), platform)
    return results


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
    _lower_jit(ctx.replace(module_context=alone), *arguments, name=name, **parameters)
    # JAX also writes a call, where it stands now.
    calls = [op.operation for op in ir.InsertionPoint.current.block.operations if op.operation.name == "func.call"]
    function = alone.symbol_table[ir.FlatSymbolRefAttr(calls[-1].attributes["callee"]).value].operation
    calls[-1].erase()
    function.attributes["sym_name"] = ir.StringAttr.get("main")
    function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


mlir.register_lowering(_jit_p, _lower, cacheable=False)


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


def _replace_callee(ctx: Any, call: Any, own: bytes, options: Options, platform: str) -> None:
    symbols = ctx.module_context.symbol_table
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    function = symbols[name].operation
    if _REPLACED in function.attributes:
        return
    function.attributes[_REPLACED] = ir.UnitAttr.get()
    try:
        program = _compile(own, name, options, platform)
    except CompilerError as error:
        warnings.warn(f"xgpu leaves {name} to XLA after an internal error: {error}", stacklevel=2)
        return
    except XgpuError:
        return
    block = function.regions[0].blocks[0]
    old = list(block.operations)
    with ir.InsertionPoint.at_block_begin(block), function.location:
        values = lower_program(ctx, program, list(block.arguments), platform)
        ir.Operation.create("func.return", operands=values)
    for op in reversed(old):
        op.operation.erase()


_REPLACED = "xgpu.planned"
"""Marks a function of JAX's module that has been looked at: it may be called from several places."""


def _compile(bytecode: bytes, name: str, options: Options, platform: str) -> Compiled:
    module = ir.Module.parse(bytecode, ir.make_context())
    source = make_source(module, name.rpartition("::")[2])
    target = default_device() if platform == "cuda" else device(DEFAULT_DEVICE)
    program = Compiled.from_source(source, target, options, [], "ptx" if platform == "cuda" else "lowered")
    if program.main is not None and not program.kernels:
        raise nothing_to_compile(program.main)
    return program

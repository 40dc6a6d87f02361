"""``xgpu.jit``: as ``jax.jit``, but the program is compiled by xgpu.

The function is a ``jax.jit`` inside a ``jax.jit``. JAX traces, transforms, caches and calls both; the inner one has a
name that only xgpu gives, which every transformation keeps. When JAX lowers it, the body of the function that this
makes is replaced by xgpu's kernels. What xgpu cannot compile stays as it is, XLA's.
"""

import functools
import io
import threading
import warnings
from collections.abc import Callable
from typing import Any

import jax
from jax._src import pjit
from jax.interpreters import mlir

from xgpu import ir
from xgpu.api import Compiled, default_device
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.errors import CompilerError, XgpuError
from xgpu.explanation import Explanation, explain
from xgpu.frontend import from_jax
from xgpu.frontend.signature import make_source
from xgpu.options import Options
from xgpu.partitioning import mesh_of, over_mesh, partition_program
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

    On a CUDA device its kernels run inside XLA's executable, on a CPU on the host executor. What xgpu cannot compile is
    left to XLA. The result can be called, traced, transformed (``jax.grad``, ``jax.vmap``, ...) and lowered.
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
        static = {key: value for key, value in self._jit_options.items() if key in ("static_argnums", "static_argnames")}
        static = {key: (value,) if isinstance(value, int | str) else tuple(value) for key, value in static.items()}
        source = from_jax(self._function, args, kwargs, **static)
        return explain(Compiled.from_source(source, default_device(), self._options, []))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, kwargs))
        if self._jit_options or (mesh := mesh_of(leaves)) is None:
            return self._jitted(*args, **kwargs)
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
            program = Compiled.from_source(source, target, self._options, [])
        except XgpuError:
            return None
        whole = over_mesh(mesh, partitioned, lambda *parts: tuple(call_program(program, parts)))
        return lambda leaves: jax.tree.unflatten(lowered.out_tree, whole(*leaves))


def _lower(ctx: Any, *arguments: Any, name: str, **parameters: Any) -> Any:
    """Lower a ``jax.jit`` inside another program, and if it is one of ours replace the function that was made."""
    if not name.startswith(_MARK) or _nesting.inside:
        return _lower_jit(ctx, *arguments, name=name, **parameters)
    # What is marked inside is compiled as a part of this.
    _nesting.inside = True
    try:
        results = _lower_jit(ctx, *arguments, name=name, **parameters)
    finally:
        _nesting.inside = False
    if (platform := _platform(ctx.module_context)) is not None:
        call = [op for op in ir.InsertionPoint.current.block.operations if op.operation.name == "func.call"][-1]
        _replace_callee(ctx, call.operation, _OPTIONS.get(name.split("::")[1], Options()), platform)
    return results


mlir.register_lowering(_jit_p, _lower, cacheable=False)


def _platform(context: Any) -> str | None:
    """Return what a module is lowered for: ``"cuda"`` or ``"cpu"``, None if xgpu has no part in it.

    A program that XLA is to partition over several devices has global shapes, which no kernel will see.
    """
    (platform, *others) = context.platforms
    if others or platform not in ("cuda", "cpu") or getattr(context.axis_context, "num_devices", 1) not in (1, None):
        return None
    return str(platform)


def _replace_callee(ctx: Any, call: Any, options: Options, platform: str) -> None:
    symbols = ctx.module_context.symbol_table
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    function = symbols[name].operation
    if _REPLACED in function.attributes:
        return
    function.attributes[_REPLACED] = ir.UnitAttr.get()
    try:
        program = _compile(_bytecode(function, symbols), name, options, platform)
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


def _bytecode(function: Any, symbols: Any) -> bytes:
    """Return a module of ``function``, as ``main``, and all that it calls."""
    needed: dict[str, Any] = {}
    pending = [function]
    while pending:
        each = pending.pop()
        name = each.attributes["sym_name"].value
        if name not in needed:
            needed[name] = each
            pending += [symbols[callee].operation for callee in _callees(each) if callee in symbols]
    module = ir.Module.create(function.location)
    for each in needed.values():
        copy = each.clone(ir.InsertionPoint(module.body))
        if each is function:
            copy.attributes["sym_name"] = ir.StringAttr.get("main")
            copy.attributes["sym_visibility"] = ir.StringAttr.get("public")
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _callees(function: Any) -> list[str]:
    found: list[str] = []

    def visit(op: Any) -> Any:
        for attribute in ("callee", "decomposition", "called_computations"):
            if attribute in op.attributes:
                value = op.attributes[attribute]
                parts = value if isinstance(value, ir.ArrayAttr) else [value]
                found.extend(ir.FlatSymbolRefAttr(part).value for part in parts)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _compile(bytecode: bytes, name: str, options: Options, platform: str) -> Compiled:
    module = ir.Module.parse(bytecode, ir.make_context())
    source = make_source(module, name.rpartition("::")[2])
    target = default_device() if platform == "cuda" else device(DEFAULT_DEVICE)
    return Compiled.from_source(source, target, options, [])

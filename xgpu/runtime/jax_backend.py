"""Calls compiled programs from JAX: inside jit, scan and loops, on CUDA and on the CPU.

A compiled program is one JAX primitive. Each kernel becomes a call: on CUDA of XLA's own PTX launch, so at run time
there is no host code of ours, and no copy; on the CPU of the foreign function of `xla_calls`, or, with an XLA to which
that cannot be made known, of the host executor through Python.
"""

import functools
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import jit as jax_jit
from jax._src.interpreters import mlir as jax_mlir
from jax.extend.core import Primitive
from jax.interpreters import mlir

from xgpu import ir
from xgpu.dialects.attributes import LEFT
from xgpu.errors import ToolError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.frontend.xla_form import xla_form
from xgpu.runtime.host_libraries import load_host_libraries
from xgpu.runtime.host_program import HostLaunches
from xgpu.runtime.program import CompiledKernel, CompiledProgram
from xgpu.runtime.xla_calls import HANDLER, TARGET, Handler, allow_export, kernel_text

_PTX_CALL = "__gpu$xla.gpu.ptx"
allow_export(_PTX_CALL)


program_p = Primitive("xgpu_program")
program_p.multiple_results = True


def call_program(program: CompiledProgram, arrays: Sequence[Any]) -> list[Any]:
    """Call ``program`` on JAX arrays or tracers of its arguments' types; returns its results in order."""
    return list(program_p.bind(*arrays, program=program))  # type: ignore[no-untyped-call]


@program_p.def_impl  # type: ignore[untyped-decorator]
def _run_eagerly(*arrays: Any, program: CompiledProgram) -> list[Any]:
    return jax_jit(lambda *tracers: call_program(program, tracers))(*arrays)


@program_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _result_types(*arguments: Any, program: CompiledProgram) -> list[jax.core.ShapedArray]:
    return [jax.core.ShapedArray(spec.shape, spec.dtype.numpy) for spec in program.results]


def _struct(spec: ArgumentSpec) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype.numpy)  # type: ignore[no-untyped-call]


def _launch(
    target: str,
    kernel: CompiledKernel,
    arrays: Sequence[Any],
    results: Sequence[jax.ShapeDtypeStruct],
    described: Mapping[str, Any],
) -> list[Any]:
    """Write a call of a foreign function that takes a kernel's inputs, and return its outputs, the first ``results``.

    If the kernel's blocks exchange messages, XLA clears memory for them.
    """
    aliases = {source: number for number, source in enumerate(kernel.aliases) if source >= 0}
    count, operands, types = len(kernel.aliases), list(arrays), list(results)
    if kernel.scratch_words:
        board = jax.numpy.zeros((2 * kernel.scratch_words,), np.uint32)
        aliases[len(operands)] = count
        operands.append(board)
        types.insert(count, jax.ShapeDtypeStruct(board.shape, board.dtype))  # type: ignore[no-untyped-call]
    written = list(jax.ffi.ffi_call(target, types, input_output_aliases=aliases)(*operands, **described))
    return written[:count]


def _launch_on_cuda(*arrays: Any, kernel: CompiledKernel, outputs: Sequence[ArgumentSpec]) -> list[Any]:
    described = {
        "name": kernel.name,
        "kernel_type": "ptx",
        "kernel_data": kernel.ptx,
        **{f"grid_{axis}": np.int32(size) for axis, size in zip("xyz", kernel.grid, strict=True)},
        **{f"block_{axis}": np.int32(size) for axis, size in zip("xyz", kernel.block, strict=True)},
        "shared_mem_bytes": np.int32(kernel.shared_bytes),
    }
    return _launch(_PTX_CALL, kernel, arrays, list(map(_struct, outputs)), described)


def _results_on_host(results: Sequence[ArgumentSpec]) -> list[jax.ShapeDtypeStruct]:
    """Return the types of a call's results on the CPU: one more than anyone reads, without elements.

    If a call's results were all that a loop's body returns, in order, XLA would have the call itself return them, and
    then take its operand i for result i: where that is the loop's argument i, it would find that the loop never changes
    it, and go on for ever.
    """
    nothing = jax.ShapeDtypeStruct((0,), np.bool_)  # type: ignore[no-untyped-call]
    return [*map(_struct, results), nothing]


def _call_back(function: Callable[..., Any], results: Sequence[ArgumentSpec], arrays: Sequence[Any]) -> list[Any]:
    """Call ``function`` on NumPy arrays, from XLA's program on the CPU; it returns arrays of the types ``results``."""

    def run(*values: Any) -> list[np.ndarray[Any, Any]]:
        return [*function([np.asarray(value) for value in values]), np.zeros(0, np.bool_)]

    *written, _ = jax.pure_callback(run, _results_on_host(results), *arrays, vmap_method="sequential")
    return written


def _launcher_on_host(handler: Handler) -> Callable[..., Any]:
    texts: dict[CompiledKernel, str] = {}

    def launch_on_host(*arrays: Any, kernel: CompiledKernel, outputs: Sequence[ArgumentSpec]) -> list[Any]:
        if kernel not in texts:
            texts[kernel] = kernel_text(kernel)
            handler.load(texts[kernel])
        return _launch(TARGET, kernel, arrays, _results_on_host(outputs), {"kernel": texts[kernel]})

    return launch_on_host


def _launcher_by_callback() -> Callable[..., Any]:
    compiled = HostLaunches()

    def launch_by_callback(*arrays: Any, kernel: CompiledKernel, outputs: Sequence[ArgumentSpec]) -> list[Any]:
        return _call_back(compiled.get(kernel, outputs), outputs, arrays)

    return launch_by_callback


def _launcher(platform: str) -> Callable[..., list[Any]]:
    """Return what launches the kernels of one program on JAX arrays."""
    if platform == "cuda":
        return _launch_on_cuda
    return _launcher_by_callback() if HANDLER is None else _launcher_on_host(HANDLER)


def _call(*arrays: Any, program: CompiledProgram, platform: str) -> list[Any]:
    values: dict[int | None, Any] = dict(enumerate(arrays))
    launcher = _launcher(platform)
    for launch in program.launches:
        outputs = [program.values[i] for i in launch.outputs]
        written = launcher(*(values[i] for i in launch.inputs), kernel=launch.kernel, outputs=outputs)
        values.update(zip(launch.outputs, written, strict=True))
    return [
        jax.numpy.zeros(spec.shape, spec.dtype.numpy) if number is None else values[number]
        for number, spec in zip(program.result_values, program.results, strict=True)
    ]


def lower_program(context: Any, program: CompiledProgram, operands: Sequence[Any], platform: str) -> list[Any]:
    """Write the calls of ``program`` at JAX's current insertion point and return the results' values.

    ``context`` is the ``LoweringRuleContext`` of what the program takes the place of.
    """
    if platform == "cpu":
        program = program.on_cpu
    if program.main is not None:
        return _lower_with_xla(context, program, operands, platform)
    arguments = program.values[: len(operands)]
    call = functools.partial(_call, program=program, platform=platform)
    return _lower(context, call, arguments, program.results, operands)


def _lower(
    context: Any,
    function: Callable[..., Any],
    arguments: Sequence[ArgumentSpec],
    results: Sequence[ArgumentSpec],
    operands: Sequence[Any],
) -> list[Any]:
    """Write what ``function`` does on arrays of these types."""
    avals = [[jax.core.ShapedArray(spec.shape, spec.dtype.numpy) for spec in specs] for specs in (arguments, results)]
    rule = mlir.lower_fun(function, multiple_results=True)
    return list(rule(context.replace(avals_in=avals[0], avals_out=avals[1]), *operands))


def _lower_with_xla(context: Any, program: CompiledProgram, operands: Sequence[Any], platform: str) -> list[Any]:
    """Write a call of the program's function, and that function, with launches in the place of calls of kernels."""
    stream = io.BytesIO()
    assert program.main is not None
    if platform == "cpu":
        load_host_libraries(program.main)
    xla_form(_with_kernels_declared(program.main)).operation.write_bytecode(stream)
    target = context.module_context
    module = ir.Module.parse(stream.getvalue(), target.context)
    for op in list(module.body.operations):
        if not op.operation.regions[0].blocks:
            op.operation.erase()
    calls: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "func.call":
            calls.append(op)
        elif LEFT in op.attributes:
            del op.attributes[LEFT]
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    launcher = _launcher(platform)
    for call, launch in zip(calls, program.launches, strict=True):
        inputs, outputs = ([program.values[i] for i in numbers] for numbers in (launch.inputs, launch.outputs))
        run = functools.partial(launcher, kernel=launch.kernel, outputs=outputs)
        with ir.InsertionPoint(call), call.location:
            written = _lower(context, run, inputs, outputs, list(call.operands))
        for old, new in zip(call.results, written, strict=True):
            old.replace_all_uses_with(new)
        call.erase()
    (main,) = module.body.operations
    types = list(ir.FunctionType(ir.TypeAttr(main.operation.attributes["function_type"]).value).results)
    name = jax_mlir.merge_mlir_modules(target.module, "xgpu_main", module, dst_symtab=target.symbol_table)
    callee: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(name)}
    return list(ir.Operation.create("func.call", results=types, operands=operands, attributes=callee).results)


def _with_kernels_declared(planned: ir.Module) -> ir.Module:
    """Return a module of level ``fusions`` with ``@main`` alone: kernels are only declared."""
    with planned.context, ir.Location.unknown():
        module = ir.Module.create()
        for op in planned.body.operations:
            name = ir.StringAttr(op.operation.attributes["sym_name"]).value
            if name == "main":
                module.body.append(op.operation.clone())
            else:
                with ir.InsertionPoint(module.body):
                    type_ = ir.TypeAttr(op.operation.attributes["function_type"]).value
                    ir.func.FuncOp(name, type_, visibility="private")  # type: ignore[call-arg]
    return module


def _lower_for(platform: str) -> Callable[..., list[Any]]:
    def rule(context: Any, *operands: Any, program: CompiledProgram) -> list[Any]:
        return lower_program(context, program, operands, platform)

    return rule


for _platform in ("cuda", "cpu"):
    mlir.register_lowering(program_p, _lower_for(_platform), platform=_platform)


def gpu_device() -> Any:
    """Return JAX's first CUDA device; raises `ToolError` saying why there is none."""
    try:
        return jax.devices("cuda")[0]
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ToolError(f"no CUDA device can be used by JAX ({reason}); run on the host instead") from None

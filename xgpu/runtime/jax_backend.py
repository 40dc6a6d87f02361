"""Calls compiled programs from JAX: inside jit, scan and loops, on CUDA and on the CPU.

A compiled program is one JAX primitive. Each kernel becomes a call: on CUDA of XLA's own PTX launch, so at run time
there is no host code of ours, and no copy; on the CPU of the foreign function of `xla_calls`, or, with an XLA to which
that cannot be made known, of the host executor through Python.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import jit as jax_jit
from jax.interpreters import ad, batching, mlir

from xgpu import ir
from xgpu.dialects.attributes import EXPECTED, FALLBACK, MEASURED
from xgpu.errors import InvalidInput, ToolError
from xgpu.frontend.signature import ArgumentSpec
from xgpu.frontend.xla_form import xla_form
from xgpu.jax_internals import Primitive
from xgpu.jax_internals import mlir as jax_mlir
from xgpu.records import dataclass
from xgpu.runtime import cuda_calls
from xgpu.runtime.host_libraries import load_host_libraries
from xgpu.runtime.host_program import HostLaunches
from xgpu.runtime.program import CompiledKernel, CompiledProgram
from xgpu.runtime.xla_calls import HANDLER, TARGET, Handler, allow_export, kernel_text
from xgpu.structure import replace_op, walk

allow_export(cuda_calls.TARGET)


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
    return [*map(_aval, program.results)]


def _aval(spec: ArgumentSpec) -> jax.core.ShapedArray:
    return jax.core.ShapedArray(spec.shape, spec.dtype.numpy)


def _refuse(transformation: str) -> Callable[..., Any]:
    def refused(*arguments: Any, program: CompiledProgram) -> Any:
        raise InvalidInput(
            f"{transformation} cannot transform a compiled program, which is for arrays of its shapes:"
            " use a function of xgpu.jit"
        )

    return refused


ad.primitive_jvps[program_p] = _refuse("jax.grad")
batching.primitive_batchers[program_p] = _refuse("jax.vmap")


_NOTHING = jax.core.ShapedArray((0,), np.dtype(np.bool_))
"""The type of a result on the CPU that nobody reads; every call there has it after its own.

If a call's results were all that a loop's body returns, in order, XLA would have the call itself return them, and then
take its operand i for result i: where that is the loop's argument i, it would find that the loop never changes it, and
go on for ever.
"""


@dataclass(frozen=True)
class _Call:
    """A launch in JAX's module: the lowering context, the kernel, its inputs, and types of inputs and outputs."""

    context: Any
    kernel: CompiledKernel
    operands: Sequence[Any]
    inputs: Sequence[ArgumentSpec]
    outputs: Sequence[ArgumentSpec]

    def write(self, target: str, extra: Sequence[jax.core.ShapedArray], **attributes: Any) -> list[Any]:
        """Write a call of a foreign function that returns the outputs, and ``extra``; return the outputs' values.

        If the kernel's blocks exchange messages, XLA clears memory for them, which is a result that nobody reads. All
        is written without a trace, which would take as long, and whose caches would keep the kernel's text.
        """
        aliases = {source: number for number, source in enumerate(self.kernel.aliases) if source >= 0}
        operands, taken = list(self.operands), [*map(_aval, self.inputs)]
        if self.kernel.scratch_words:
            board = jax.core.ShapedArray((2 * self.kernel.scratch_words,), np.dtype(np.uint32))
            aliases[len(operands)] = len(self.outputs)
            operands.append(jax_mlir.full_like_aval(self.context, 0, board))
            taken.append(board)
            extra = board, *extra
        if self.kernel.workspace_bytes:
            own = jax.core.ShapedArray((self.kernel.workspace_bytes,), np.dtype(np.uint8))
            extra = *extra[: self.kernel.scratch_words > 0], own, *extra[self.kernel.scratch_words > 0 :]
        types = {"avals_in": taken, "avals_out": [*map(_aval, self.outputs), *extra]}
        rule = jax.ffi.ffi_lowering(target, operand_output_aliases=aliases, has_side_effect=False)
        results: Sequence[Any] = rule(self.context.replace(**types), *operands, **attributes)
        return list(results[: len(self.outputs)])


def _launcher_on_cuda(codes: Mapping[CompiledKernel, str | bytes]) -> Callable[[_Call], list[Any]]:
    def launch_on_cuda(call: _Call) -> list[Any]:
        kernel = call.kernel
        code = codes[kernel]
        attributes = cuda_calls.launch_attributes(kernel.name, code, kernel.grid, kernel.block, kernel.shared_bytes)
        return call.write(cuda_calls.TARGET, (), **attributes)

    return launch_on_cuda


def _launcher_on_host(handler: Handler) -> Callable[[_Call], list[Any]]:
    texts: dict[CompiledKernel, str] = {}

    def launch_on_host(call: _Call) -> list[Any]:
        if call.kernel not in texts:
            texts[call.kernel] = kernel_text(call.kernel)
            handler.load(texts[call.kernel])
        return call.write(TARGET, (_NOTHING,), kernel=texts[call.kernel])

    return launch_on_host


def _launcher_by_callback() -> Callable[[_Call], list[Any]]:
    compiled = HostLaunches()

    def launch_by_callback(call: _Call) -> list[Any]:
        function = compiled.get(call.kernel, call.outputs)
        types = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (*map(_aval, call.outputs), _NOTHING)]  # type: ignore[no-untyped-call]

        def run(*values: Any) -> list[np.ndarray[Any, Any]]:
            return [*function([np.asarray(value) for value in values]), np.zeros(0, np.bool_)]

        def call_back(*arrays: Any) -> list[Any]:
            *written, _ = jax.pure_callback(run, types, *arrays, vmap_method="sequential")
            return written

        return _lower(call.context, call_back, call.inputs, call.outputs, call.operands)

    return launch_by_callback


def _launcher(program: CompiledProgram, context: Any, platform: str) -> Callable[[_Call], list[Any]]:
    """Return what writes the launches of one program."""
    if platform == "cuda":
        kernels = [*dict.fromkeys(launch.kernel for launch in program.launches)]
        is_exported = context.module_context.lowering_parameters.for_export
        return _launcher_on_cuda(cuda_calls.codes(kernels, is_exported))
    return _launcher_by_callback() if HANDLER is None else _launcher_on_host(HANDLER)


def lower_program(context: Any, program: CompiledProgram, operands: Sequence[Any], platform: str) -> list[Any]:
    """Write the calls of ``program`` at JAX's current insertion point and return the results' values.

    ``context`` is the ``LoweringRuleContext`` of what the program takes the place of.
    """
    if platform == "cpu":
        program = program.on_cpu
    if program.main is not None:
        return _lower_with_xla(context, program, operands, platform)
    values: dict[int | None, Any] = dict(enumerate(operands))
    launcher = _launcher(program, context, platform)
    for launch in program.launches:
        inputs, outputs = ([program.values[i] for i in numbers] for numbers in (launch.inputs, launch.outputs))
        call = _Call(context, launch.kernel, [values[i] for i in launch.inputs], inputs, outputs)
        values.update(zip(launch.outputs, launcher(call), strict=True))
    return [
        mlir.ir_constant(np.zeros(spec.shape, spec.dtype.numpy)) if number is None else values[number]
        for number, spec in zip(program.result_values, program.results, strict=True)
    ]


def _lower(
    context: Any,
    function: Callable[..., Any],
    arguments: Sequence[ArgumentSpec],
    results: Sequence[ArgumentSpec],
    operands: Sequence[Any],
) -> list[Any]:
    """Write what ``function`` does on arrays of these types."""
    types = {"avals_in": [*map(_aval, arguments)], "avals_out": [*map(_aval, results)]}
    rule = mlir.lower_fun(function, multiple_results=True)
    return list(rule(context.replace(**types), *operands))


def _lower_with_xla(context: Any, program: CompiledProgram, operands: Sequence[Any], platform: str) -> list[Any]:
    """Write a call of the program's function, and that function, with launches in place of calls of kernels."""
    stream = io.BytesIO()
    assert program.main is not None
    if platform == "cpu":
        load_host_libraries(program.main)
    xla_form(_with_kernels_declared(program.main), platform != "cpu").operation.write_bytecode(stream)
    target = context.module_context
    module = _read_by_xla(stream.getvalue(), target.context)
    for function in list(module.body.operations):
        if not function.operation.regions[0].blocks:
            function.operation.erase()
    for op in walk(module.operation):
        for name in (FALLBACK, MEASURED, EXPECTED):
            if name in op.attributes:
                del op.attributes[name]
    calls = walk(module.operation, "func.call")
    launcher = _launcher(program, context, platform)
    for call, launch in zip(calls, program.launches, strict=True):
        inputs, outputs = ([program.values[i] for i in numbers] for numbers in (launch.inputs, launch.outputs))
        with ir.InsertionPoint(call), call.location:
            written = launcher(_Call(context, launch.kernel, list(call.operands), inputs, outputs))
        replace_op(call, written)
    (main,) = module.body.operations
    types = list(ir.FunctionType(ir.TypeAttr(main.operation.attributes["function_type"]).value).results)
    name = jax_mlir.merge_mlir_modules(target.module, "xgpu_main", module, dst_symtab=target.symbol_table)
    callee: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(name)}
    return list(ir.Operation.create("func.call", results=types, operands=operands, attributes=callee).results)


def _read_by_xla(bytecode: bytes, context: ir.Context) -> ir.Module:
    """Return a module in XLA's context; raises InvalidInput for attributes of dialects that XLA does not have."""
    try:
        return ir.Module.parse(bytecode, context)
    except ir.MLIRError as error:
        message = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
        reason = message.partition(". If this is intended")[0]
        raise InvalidInput(f"an operation that is left to XLA has what XLA cannot read: {reason}") from None


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
        raise ToolError(f"no CUDA device can be used by JAX ({reason})") from None

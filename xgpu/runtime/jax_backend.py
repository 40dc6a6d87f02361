"""Calls compiled programs from JAX: inside jit, scan and loops, on CUDA and on the CPU.

A compiled program is one JAX primitive. Lowered for CUDA, each kernel is a call of XLA's own PTX launch, so at run time
there is no host code of ours, and no copy. Lowered for the CPU, it is a callback into the host executor.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from xgpu.errors import ToolError
from xgpu.runtime.program import CompiledProgram

_PTX_CALL = "__gpu$xla.gpu.ptx"


program_p = Primitive("xgpu_program")
program_p.multiple_results = True


def call_program(program: CompiledProgram, arrays: Sequence[Any]) -> list[Any]:
    """Call ``program`` on JAX arrays or tracers of its arguments' types; returns its results in order."""
    return list(program_p.bind(*arrays, program=program))  # type: ignore[no-untyped-call]


@program_p.def_impl  # type: ignore[untyped-decorator]
def _run_eagerly(*arrays: Any, program: CompiledProgram) -> list[Any]:
    return jax.jit(lambda *tracers: call_program(program, tracers))(*arrays)


@program_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _result_types(*arguments: Any, program: CompiledProgram) -> list[jax.core.ShapedArray]:
    return [jax.core.ShapedArray(spec.shape, spec.dtype.numpy) for spec in program.results]


def _result_structs(program: CompiledProgram) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(spec.shape, spec.dtype.numpy) for spec in program.results]  # type: ignore[no-untyped-call]


def _call_on_cuda(*arrays: Any, program: CompiledProgram) -> list[Any]:
    structs = _result_structs(program)
    results: list[Any] = [None] * len(structs)
    for kernel in program.kernels:
        call: Callable[..., Any] = jax.ffi.ffi_call(_PTX_CALL, [structs[i] for i in kernel.outputs])
        values = call(
            *(arrays[i] for i in kernel.inputs),
            name=kernel.name,
            kernel_type="ptx",
            kernel_data=kernel.ptx,
            **{f"grid_{axis}": np.int32(size) for axis, size in zip("xyz", kernel.grid, strict=True)},
            **{f"block_{axis}": np.int32(size) for axis, size in zip("xyz", kernel.block, strict=True)},
            shared_mem_bytes=np.int32(kernel.shared_bytes),
        )
        for number, value in zip(kernel.outputs, values, strict=True):
            results[number] = value
    return [
        jax.numpy.zeros(struct.shape, struct.dtype) if result is None else result
        for result, struct in zip(results, structs, strict=True)
    ]


def _call_on_host(*arrays: Any, program: CompiledProgram) -> Any:
    def run(*values: Any) -> list[np.ndarray[Any, Any]]:
        return program.run_on_host([np.asarray(value) for value in values])

    return jax.pure_callback(run, _result_structs(program), *arrays, vmap_method="sequential")


mlir.register_lowering(program_p, mlir.lower_fun(_call_on_cuda, multiple_results=True), platform="cuda")
mlir.register_lowering(program_p, mlir.lower_fun(_call_on_host, multiple_results=True), platform="cpu")


def gpu_device() -> Any:
    """Return JAX's first CUDA device; raises `ToolError` saying why there is none."""
    try:
        return jax.devices("cuda")[0]
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ToolError(f"no CUDA device can be used by JAX ({reason}); run on the host instead") from None

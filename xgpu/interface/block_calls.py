"""Calls of block programs in JAX programs: one primitive, which is lowered to the launch of its kernel."""

import functools
import io
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import jit as jax_jit
from jax.interpreters import ad, batching, mlir

from xgpu import ir
from xgpu.block_language.batching import batched
from xgpu.block_language.program import BlockProgram, NamedArrayType
from xgpu.block_language.writing import tiles_source
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.kernel import advance
from xgpu.dtypes import dtype_of_numpy
from xgpu.errors import InvalidInput
from xgpu.frontend.signature import Source
from xgpu.frontend.xla_form import xla_form
from xgpu.interface.api import Compiled, default_device
from xgpu.jax_internals import Primitive
from xgpu.jax_internals import mlir as jax_mlir
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.runtime import cuda_calls
from xgpu.runtime.jax_backend import lower_program

block_p = Primitive("xgpu_block_program")
block_p.multiple_results = True


def call_block_program(program: BlockProgram, arrays: Sequence[Any], reference: bool = False) -> list[Any]:
    """Call a program on JAX arrays or tracers; ``reference`` has XLA compute its tiles."""
    return list(block_p.bind(*arrays, program=program, reference=reference))  # type: ignore[no-untyped-call]


@functools.lru_cache(maxsize=256)
def source_of_program(program: BlockProgram) -> Source:
    """Return the program at level ``tiles``."""
    return tiles_source(program, default_device())


@functools.lru_cache(maxsize=256)
def compiled_program(program: BlockProgram, platform: str) -> Compiled:
    """Return the program with its kernel compiled for a platform of JAX."""
    target = default_device() if platform == "cuda" else device(DEFAULT_DEVICE)
    level = cuda_calls.level(target) if platform == "cuda" else "lowered"
    return Compiled.from_tiles(source_of_program(program), target, Options(), [], level)


@functools.lru_cache(maxsize=256)
def _jitted(program: BlockProgram, reference: bool) -> Any:
    return jax_jit(lambda *tracers: call_block_program(program, tracers, reference))


@block_p.def_impl  # type: ignore[untyped-decorator]
def _run_eagerly(*arrays: Any, program: BlockProgram, reference: bool) -> list[Any]:
    return list(_jitted(program, reference)(*arrays))


@block_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _result_types(*arguments: Any, program: BlockProgram, reference: bool) -> list[Any]:
    return [jax.core.ShapedArray(each.shape, each.dtype) for each in program.outputs]


def _batch(
    arrays: Sequence[Any], axes: Sequence[Any], *, program: BlockProgram, reference: bool
) -> tuple[list[Any], list[int]]:
    (size, *_) = {array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None}
    if not size:
        empty = [jnp.zeros((0, *each.shape), each.dtype) for each in program.outputs]
        return empty, [0] * len(empty)
    given = tuple(None if axis is None else int(axis) for axis in axes)
    results = call_block_program(_batched(program, size, given), arrays, reference)
    return results, [0] * len(results)


@functools.lru_cache(maxsize=256)
def _batched(program: BlockProgram, size: int, axes: tuple[int | None, ...]) -> BlockProgram:
    return batched(program, size, axes)


batching.primitive_batchers[block_p] = _batch


def _refuse_gradient(primals: Sequence[Any], tangents: Sequence[Any], *, program: BlockProgram, reference: bool) -> Any:
    raise InvalidInput(
        f"kernel {program.name} has no gradient: give it one with {program.name}.defvjp(forward, backward), as those of"
        f" jax.custom_vjp, or {program.name}.gradient_of(function), of a function that computes the same",
        program.location,
    )


ad.primitive_jvps[block_p] = _refuse_gradient


def _lower_for(platform: str) -> Any:
    def rule(context: Any, *operands: Any, program: BlockProgram, reference: bool) -> list[Any]:
        if reference:
            return _lower_reference(context, program, operands)
        return lower_program(context, compiled_program(program, platform), operands, platform)

    return rule


for _platform in ("cuda", "cpu"):
    mlir.register_lowering(block_p, _lower_for(_platform), platform=_platform)


@functools.lru_cache(maxsize=256)
def _reference_bytecode(program: BlockProgram) -> bytes:
    """Return the program as StableHLO that XLA runs, with arrays of signless integers."""
    module = source_of_program(program).module
    with module.context, ir.Location.unknown():
        expanded = advance(module, pipeline.steps(pipeline.EXPAND_TILES), [])
    stream = io.BytesIO()
    xla_form(expanded).operation.write_bytecode(stream)
    return stream.getvalue()


def _lower_reference(context: Any, program: BlockProgram, operands: Sequence[Any]) -> list[Any]:
    """Write a call of the program as a function of StableHLO."""
    target = context.module_context
    module = ir.Module.parse(_reference_bytecode(program), target.context)
    name = jax_mlir.merge_mlir_modules(
        target.module, f"{program.name}_reference", module, dst_symtab=target.symbol_table
    )
    taken = [_cast(value, _type(each, is_signless=True)) for value, each in zip(operands, program.inputs, strict=True)]
    types = [_type(each, is_signless=True) for each in program.outputs]
    callee: dict[str, ir.Attribute] = {"callee": ir.FlatSymbolRefAttr.get(name)}
    call = ir.Operation.create("func.call", results=types, operands=taken, attributes=callee)
    return [_cast(value, _type(each)) for value, each in zip(call.results, program.outputs, strict=True)]


def _type(array: NamedArrayType, is_signless: bool = False) -> ir.Type:
    dtype = dtype_of_numpy(np.dtype(array.dtype))
    return ir.RankedTensorType.get(array.shape, ir.Type.parse(dtype.signless if is_signless else dtype.mlir))


def _cast(value: Any, type_: ir.Type) -> Any:
    return value if value.type == type_ else ir.stablehlo.bitcast_convert(type_, value)

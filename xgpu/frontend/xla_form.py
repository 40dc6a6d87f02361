"""Programs of the ``stablehlo`` level as XLA takes them.

They are without the operations that only xgpu knows, scans among them, and without those of which XLA's compiler for
the CPU aborts: concatenations of numbers that share a byte.
"""

import io
from collections.abc import Callable, Mapping

import jax
from jax import jit as jax_jit
from jax import lax

from xgpu import ir
from xgpu.dialects.chain import CHAIN
from xgpu.dtypes import dtype_of_element
from xgpu.frontend.scan_expansion import expand_scan
from xgpu.hlo.chlo import BESSEL_I0E, RAGGED, expand_ragged
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.stablehlo_builder import hlo, inline_block, shape_of, tensor
from xgpu.structure import body_of, copy_operation, dtype_of, replace_op, walk

_CONCATENATE = "stablehlo.concatenate"
_EXPANDED: Mapping[str, Callable[[ir.Operation], list[ir.Value]]] = {
    CHAIN: lambda op: inline_block(body_of(op), list(op.operands)),
    RAGGED: lambda op: [expand_ragged(op)],
    SCAN: expand_scan,
}
"""The functions that write out operations that XLA does not have."""


def xla_form(module: ir.Module, is_for_gpu: bool = False) -> ir.Module:
    """Return the program with bessel_i0e, scans and chains written out, and packed numbers concatenated as wider ones.

    So are products of rows in groups, which XLA has only on a GPU.

    The module itself is returned if it has no such operation, else a copy. Works at the ``fusions`` level too.
    """
    if not _operations(module, is_for_gpu):
        return module
    copy = ir.Module.parse(_bytecode(module), module.context)
    lowered: dict[ir.Type, ir.Module] = {}
    for op in _operations(copy, is_for_gpu):
        type_ = op.results[0].type
        if op.name == _CONCATENATE:
            replace_op(op, [_concatenated(op)])
            continue
        if op.name in _EXPANDED:
            with ir.InsertionPoint(op), op.location:
                replace_op(op, _EXPANDED[op.name](op))
            continue
        if type_ not in lowered:
            lowered[type_] = _lowered(type_)
        replace_op(op, _copied(lowered[type_], op))
    return copy


def _operations(module: ir.Module, is_for_gpu: bool) -> list[ir.Operation]:
    names = [name for name in _EXPANDED if name != RAGGED or not is_for_gpu]
    found = walk(module.operation, BESSEL_I0E, _CONCATENATE, *names)
    return [op for op in found if op.name != _CONCATENATE or dtype_of(op.results[0]).is_packed]


def _concatenated(op: ir.Operation) -> ir.Value:
    """Write a concatenation of packed numbers as one of bytes, or of bf16, which hold all of them."""
    dtype = dtype_of(op.results[0])
    with ir.InsertionPoint(op), op.location:
        if dtype.is_float:
            wide: ir.Type = ir.BF16Type.get()
        else:
            wide = ir.IntegerType.get_signless(8) if dtype.is_signed else ir.IntegerType.get_unsigned(8)
        operands = [hlo.convert(tensor(shape_of(operand), wide), operand) for operand in op.operands]
        joined = hlo.concatenate(operands, op.attributes["dimension"])
        result: ir.Value = hlo.convert(op.results[0].type, joined)
        return result


def _lowered(type_: ir.Type) -> ir.Module:
    """Return JAX's lowering of the function of an array of this type: one function without calls."""
    array = ir.RankedTensorType(type_)
    element = dtype_of_element(array.element_type).numpy
    with jax.enable_x64(True):
        spec = jax.ShapeDtypeStruct(tuple(array.shape), element)  # type: ignore[no-untyped-call]
        lowered = jax_jit(lax.bessel_i0e).lower(spec).compiler_ir("stablehlo")
    assert lowered is not None
    return ir.Module.parse(_bytecode(lowered), type_.context)


def _copied(function: ir.Module, op: ir.Operation) -> list[ir.Value]:
    """Copy the operations of a module's only function before ``op``, on its operands, and return what they return."""
    (main,) = function.body.operations
    block = main.operation.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, op.operands, strict=True))
    for inner in block.operations:
        if inner.operation.name == "func.return":
            return [values[operand] for operand in inner.operation.operands]
        with ir.InsertionPoint(op):
            copy_operation(inner.operation, values)
    raise AssertionError("a function ends with func.return")


def _bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()

"""Programs of the ``stablehlo`` level as XLA takes them: without the operations that only xgpu knows."""

import io

import jax
from jax import lax
from jax._src.interpreters import mlir

from xgpu import ir
from xgpu.dtypes import dtype_of_element
from xgpu.frontend.chlo import BESSEL_I0E
from xgpu.frontend.mhlo import replace


def xla_form(module: ir.Module) -> ir.Module:
    """Return the program with bessel_i0e as JAX lowers it, in functions of the module that are called.

    The module itself is returned if it has no such operation, else a copy.
    """
    if not _operations(module):
        return module
    copy = ir.Module.parse(_bytecode(module), module.context)
    names: dict[ir.Type, str] = {}
    with module.context:
        for op in _operations(copy):
            type_ = op.results[0].type
            if type_ not in names:
                names[type_] = mlir.merge_mlir_modules(copy, "bessel_i0e", _lowered(type_))
            with ir.InsertionPoint(op), op.location:
                call = ir.func.CallOp([type_], names[type_], list(op.operands))
            replace(op, list(call.results))
    return copy


def _operations(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == BESSEL_I0E:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def _lowered(type_: ir.Type) -> ir.Module:
    array = ir.RankedTensorType(type_)
    spec = jax.ShapeDtypeStruct(tuple(array.shape), dtype_of_element(array.element_type).numpy)  # type: ignore[no-untyped-call]
    with jax.enable_x64(True):
        lowered = jax.jit(lax.bessel_i0e).lower(spec)
    return ir.Module.parse(_bytecode(lowered.compiler_ir("stablehlo")), type_.context)


def _bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()

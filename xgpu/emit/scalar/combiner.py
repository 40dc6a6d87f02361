"""Scalar code of the region of a reduction or of a map: a block over rank-0 tensors, at one point."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.op import ScalarOp
from xgpu.emit.scalar.table import build_scalar
from xgpu.hlo.operations import FORWARDED
from xgpu.hlo.source_location import unsupported
from xgpu.structure import is_constant, producer


def emit_combiner(block: ir.Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Emit ``block`` with scalars for its arguments and return the scalars that it returns.

    Raises `Unsupported` for an operation that has no scalar code.
    """
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    for op in block.operations:
        operation = op.operation
        with operation.location:
            operands = [values[operand] if operand in values else _outer(operation, operand) for operand in op.operands]
            if operation.name == "stablehlo.return":
                return operands
            if operation.name == "stablehlo.constant":
                values[operation.results[0]] = emit_constant(operation, ())
            elif operation.name in FORWARDED:
                values[operation.results[0]] = operands[0]
            else:
                values[operation.results[0]] = build_scalar(ScalarOp(operation, tuple(operands)))
    raise AssertionError("a verified region ends with stablehlo.return")


def _outer(user: ir.Operation, value: ir.Value) -> ir.Value:
    """Emit a value from outside the region: a constant, merged there with equal ones."""
    if not is_constant(value):
        raise unsupported(user, "a region can use no value from outside it but constants")
    return emit_constant(producer(value), ())

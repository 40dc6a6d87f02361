"""Rewrites concatenations of concatenations as one: JAX writes those of more than 16 arrays nested."""

from xgpu import ir
from xgpu.device import Device
from xgpu.indexing.access import integer
from xgpu.options import Options

CONCATENATE = "stablehlo.concatenate"


def flatten_concatenations(function: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Replace operands of concatenations by what they are put together from themselves, along the same dimension.

    Only those that nothing else uses, so that the program does not grow.
    """
    for view in list(function.entry_block.operations):
        op = view.operation
        if op.name != CONCATENATE:
            continue
        inner = [value.owner.operation for value in op.operands if _goes_into(value, op)]
        if not inner:
            continue
        operands = [each for value in op.operands for each in (_operands(value) if _goes_into(value, op) else [value])]
        attributes = {"dimension": op.attributes["dimension"]}
        types = [op.results[0].type]
        with ir.InsertionPoint(op), op.location:
            new = ir.Operation.create(CONCATENATE, results=types, operands=operands, attributes=attributes)
        op.results[0].replace_all_uses_with(new.results[0])
        op.erase()
        for each in inner:
            each.erase()


def _goes_into(value: ir.Value, outer: ir.Operation) -> bool:
    """Whether ``value`` is a concatenation along the same dimension as ``outer``, which alone uses it, once."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != CONCATENATE:
        return False
    same = integer(value.owner.operation, "dimension") == integer(outer, "dimension")
    return same and sum(1 for _ in value.uses) == 1


def _operands(value: ir.Value) -> list[ir.Value]:
    return list(value.owner.operation.operands)

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
        inner = {value: ir.OpResult(value).owner.operation for value in op.operands if _goes_into(value, op)}
        if not inner:
            continue
        operands = [each for value in op.operands for each in (inner[value].operands if value in inner else [value])]
        attributes = {"dimension": op.attributes["dimension"]}
        types = [op.results[0].type]
        with ir.InsertionPoint(op), op.location:
            new = ir.Operation.create(CONCATENATE, results=types, operands=operands, attributes=attributes)
        op.results[0].replace_all_uses_with(new.results[0])
        op.erase()
        for each in inner.values():
            each.erase()


def _goes_into(value: ir.Value, outer: ir.Operation) -> bool:
    """Whether ``value`` is a concatenation along the same dimension as ``outer``, which alone uses it, once."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != CONCATENATE:
        return False
    return integer(owner.operation, "dimension") == integer(outer, "dimension") and sum(1 for _ in value.uses) == 1

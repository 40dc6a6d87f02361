"""Memory of its own that a kernel has for tensor maps: one more output."""

from xgpu import ir
from xgpu.dialects import attributes


def add_workspace(function: ir.Operation, size: int) -> ir.Value:
    """Give a kernel ``size`` bytes, and return them; a multiprocessor is to have room for one of its blocks."""
    type_ = ir.RankedTensorType.get([size], ir.IntegerType.get_signless(8))
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    entry = function.regions[0].blocks[0]
    workspace = entry.add_argument(type_, function.location)
    new = ir.FunctionType.get([*old.inputs, type_], [*old.results, type_])
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    function.attributes[attributes.WORKSPACE] = attributes.int_attribute(size)
    function.attributes[attributes.RESIDENT] = attributes.int_attribute(1)
    (*_, end) = entry.operations
    with ir.InsertionPoint(end):
        ir.func.return_([*end.operation.operands, workspace])
    end.operation.erase()
    return workspace

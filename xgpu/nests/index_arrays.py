"""Arrays of a program of loops whose elements are indices: they must be below a size, or accesses are undefined."""

from typing import cast

from xgpu import ir
from xgpu.dialects.nests.accesses import ReadOp, ToIndexOp
from xgpu.nests.structure import access_of_parameter
from xgpu.structure import owning_op, walk


def index_limits(module: ir.Module) -> dict[int, int]:
    """Return what the elements of arguments have to be below, by the number of the argument, where they are indices."""
    found: dict[int, int] = {}
    for op in walk(module.operation, ToIndexOp.OPERATION_NAME):
        to_index = cast(ToIndexOp, op.opview)
        buffer = _array(to_index.value)
        if buffer is not None and (number := _argument(buffer)) is not None:
            found[number] = min(to_index.extent, found.get(number, to_index.extent))
    return found


def _array(value: ir.Value) -> ir.Value | None:
    """Return the buffer that an index is read from; None if it is computed."""
    owner = owning_op(value)
    while owner.name == "stablehlo.convert":
        owner = owning_op(owner.operands[0])
    return cast(ReadOp, owner.opview).buffer if owner.name == ReadOp.OPERATION_NAME else None


def _argument(buffer: ir.Value) -> int | None:
    """Return which argument of the program a buffer is; None if it is none."""
    if owning_op(buffer).name != "func.func":
        return None
    argument = cast(ir.BlockArgument, buffer)
    given = [other for other in argument.owner.arguments if access_of_parameter(other) != "out"]
    return given.index(argument) if argument in given else None

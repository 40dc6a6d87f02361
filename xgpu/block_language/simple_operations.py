"""Operations that JAX writes in several ones, written as one: constants of any shape, and broadcasts in one step."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.decisions import DECISIONS
from xgpu.dialects.block.tiles import StepsOp
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import integers
from xgpu.structure import defining_op, is_used

_CONSTANT, _BROADCAST, _CONVERT = "stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.convert"
_SPREAD = (_BROADCAST, "stablehlo.reshape")
_DIMENSIONS = "broadcast_dimensions"


def simply_written(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value | None:
    """Return what an operation makes of these operands, written otherwise; None if it is as simple as it can be."""
    if op.name == _CONVERT and op.results[0].type == operands[0].type:
        return operands[0]
    if op.name not in _SPREAD or (source := defining_op(operands[0])) is None or _is_decided(source):
        return None
    type_ = op.results[0].type
    if source.name == _CONSTANT and (number := splat_of(source)) is not None:
        value = ir.DenseElementsAttr.get_splat(type_, number)
        return ir.Operation.create(_CONSTANT, [type_], [], {"value": value}, loc=op.location).results[0]
    if op.name == source.name == _BROADCAST:
        outer = integers(op, _DIMENSIONS)
        dimensions = [outer[each] for each in integers(source, _DIMENSIONS)]
        described: dict[str, ir.Attribute] = {_DIMENSIONS: ir.DenseI64ArrayAttr.get(dimensions)}
        return ir.Operation.create(_BROADCAST, [type_], source.operands, described, loc=op.location).results[0]
    return None


def _is_decided(op: ir.Operation) -> bool:
    """Whether something is decided about what an operation makes, which then has to be made."""
    return any(each.name in op.attributes for each in DECISIONS)


def erase_unused(block: ir.Block) -> None:
    """Erase the constants and broadcasts that nothing reads, in a block and in its steps."""
    for each in reversed(list(block.operations)):
        op = each.operation
        if isinstance(op.opview, StepsOp):
            erase_unused(op.opview.body)
        elif op.name in (_CONSTANT, *_SPREAD) and not is_used(*op.results):
            op.erase()

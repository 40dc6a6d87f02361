"""Operations that JAX writes in several ones, written as one: constants of any shape, broadcasts, turned operands."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.decisions import DECISIONS
from xgpu.dialects.block.tiles import StepsOp
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import integers
from xgpu.indexing.dot_dimensions import DIMENSIONS, OperandDimensions, operand_dimensions
from xgpu.structure import defining_op, is_used

_CONSTANT, _BROADCAST, _CONVERT = "stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.convert"
_PRODUCT, _TRANSPOSE = "stablehlo.dot_general", "stablehlo.transpose"
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


def take_turned_operands(block: ir.Block) -> None:
    """Have products take what their operands are transposes of, in a block and in its steps."""
    for each in block.operations:
        op = each.operation
        if isinstance(op.opview, StepsOp):
            take_turned_operands(op.opview.body)
        elif op.name == _PRODUCT:
            _take_turned(op)


def _take_turned(product: ir.Operation) -> None:
    sides = [_turned_back(*each) for each in zip(product.operands, operand_dimensions(product), strict=True)]
    (left, right) = (dimensions for _, dimensions in sides)
    numbers = ir.stablehlo.DotDimensionNumbers.get(left.batching, right.batching, left.contracting, right.contracting)
    for number, (operand, _) in enumerate(sides):
        product.operands[number] = operand
    product.attributes[DIMENSIONS] = numbers


def _turned_back(operand: ir.Value, dimensions: OperandDimensions) -> tuple[ir.Value, OperandDimensions]:
    """Return what an operand is the transpose of, unless its own dimensions then came in another order."""
    source = defining_op(operand)
    if source is None or source.name != _TRANSPOSE or _is_decided(source):
        return operand, dimensions
    order = integers(source, "permutation")
    found = OperandDimensions(
        *(tuple(order[each] for each in of) for of in (dimensions.batching, dimensions.contracting, dimensions.own))
    )
    return (source.operands[0], found) if sorted(found.own) == list(found.own) else (operand, dimensions)


def _is_decided(op: ir.Operation) -> bool:
    """Whether something is decided about what an operation makes, which then has to be made."""
    return any(each.name in op.attributes for each in DECISIONS)


def erase_unused(block: ir.Block) -> None:
    """Erase the constants, broadcasts and transposes that nothing reads, in a block and in its steps."""
    for each in reversed(list(block.operations)):
        op = each.operation
        if isinstance(op.opview, StepsOp):
            erase_unused(op.opview.body)
        elif op.name in (_CONSTANT, _TRANSPOSE, *_SPREAD) and not is_used(*op.results):
            op.erase()

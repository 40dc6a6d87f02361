"""Products that steps only add up: warp groups multiply the next step's tiles while the last one's are still read."""

from xgpu import ir
from xgpu.block_plan.kernel import instruction_of
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import StepsOp, TileOp
from xgpu.structure import block_of, defining_op, dtype_of, users_of

_ADD = "stablehlo.add"


def accumulated_products(steps: StepsOp) -> dict[ir.Operation, int]:
    """Return the products of some steps that may be under way when the next step begins, each with what carries it.

    Warp groups add them to a value that steps carry, which nothing else reads, from tiles that are copied ahead, or
    were made before the steps: nothing writes these before a later step's copies.
    """
    *_, end = (each.operation for each in steps.body.operations)
    found = {}
    for number, (carried, total) in enumerate(zip(list(steps.body.arguments)[1:], end.operands, strict=True)):
        add = defining_op(total)
        if add is None or add.name != _ADD or users_of(carried) != [add] or users_of(total) != [end]:
            continue
        others = [value for value in add.operands if value != carried]
        product = defining_op(others[0]) if len(others) == 1 else None
        if product is None or block_of(others[0]) != steps.body or users_of(others[0]) != [add]:
            continue
        is_by_groups = instruction_of(product) == attributes.BY_WARP_GROUPS and dtype_of(total).hlo == "f32"
        if is_by_groups and all(_stays(steps, operand) for operand in product.operands):
            found[product] = number
    return found


def _stays(steps: StepsOp, operand: ir.Value) -> bool:
    """Whether a tile in shared memory is written by nothing in steps but copies ahead.

    Registers of a left operand would be others' before the next step has waited: ptxas does not keep them.
    """
    op = defining_op(operand)
    if op is None or attributes.PLACE not in op.attributes or isinstance(op.opview, StepsOp):
        return False
    is_shared = ir.StringAttr(op.attributes[attributes.PLACE]).value == attributes.SHARED
    return is_shared and (isinstance(op.opview, TileOp) or block_of(operand) != steps.body)

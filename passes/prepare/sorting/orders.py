"""The orders of sorts, and of searches for the largest elements."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.scan_op import is_elementwise
from xgpu.hlo.stablehlo_builder import Value, fill_region, hlo, shape_of, tensor
from xgpu.passes.prepare.sorting.elements import SortOrder
from xgpu.structure import element_of, is_constant, producer

SORT = "stablehlo.sort"


def order_of_sort(op: ir.Operation) -> SortOrder | None:
    """Return the order that the region of a sort gives; None if it does more than look at single elements."""
    region = op.regions[0].blocks[0]
    _take_constants(region)
    if not is_elementwise(region):
        return None
    order = SortOrder.of(region)
    return order if order.keys else None


def order_of_largest(op: ir.Operation) -> SortOrder:
    """Return the order of a search for the largest elements: of these and, beside them, their positions."""
    (array,) = op.operands
    # The region is a part of no program: it says what comes first.
    with ir.InsertionPoint(op):
        sort = ir.Operation.create(SORT, [array.type], [array], {"dimension": _i64(0)}, regions=1)
    scalar = tensor([], element_of(array))
    fill_region(sort, [scalar, scalar], _is_larger)
    order = SortOrder(sort.regions[0].blocks[0], (0,))
    sort.detach_from_parent()
    return order


def numbered(op: ir.Operation) -> list[Value]:
    """Return the operand of a search for the largest elements, and beside it the position of each in its row."""
    (array,) = op.operands
    shape = shape_of(array)
    return [array, hlo.iota(tensor(shape, element_of(op.results[1])), len(shape) - 1)]


def _take_constants(region: ir.Block) -> None:
    """Give a region constants of its own for those around it that it uses."""
    own = {result for view in region.operations for result in view.operation.results}
    for op in [view.operation for view in region.operations]:
        for position, operand in enumerate(op.operands):
            if operand not in own and is_constant(operand):
                with ir.InsertionPoint.at_block_begin(region):
                    copy = producer(operand).clone()
                own.update(copy.results)
                op.operands[position] = copy.results[0]


def _is_larger(pair: Sequence[Value]) -> list[Value]:
    kind = None
    if isinstance(element_of(pair[0]), ir.FloatType):
        kind = hlo.ComparisonTypeAttr.get("TOTALORDER")
    left, right = pair
    return [hlo.compare(left, right, hlo.ComparisonDirectionAttr.get("GT"), compare_type=kind)]


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)

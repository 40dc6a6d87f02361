"""The dimensions of values that operations carry from operands to results, all of them or some."""

from collections.abc import Mapping

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.in_place import SCATTER
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.structure import defining_op

TRANSPOSE = "stablehlo.transpose"
RESHAPE = "stablehlo.reshape"
CONCATENATE = "stablehlo.concatenate"
BROADCAST = "stablehlo.broadcast_in_dim"
REDUCE_WINDOW = "stablehlo.reduce_window"
_SLICE = "stablehlo.slice"
_REVERSE = "stablehlo.reverse"
_CARRIERS: Mapping[str, int] = {
    _SLICE: 1,
    "stablehlo.pad": 1,
    _REVERSE: 1,
    "stablehlo.dynamic_slice": 1,
    "stablehlo.dynamic_update_slice": 2,
}
"""Operations beside elementwise ones whose dimensions are those of so many first operands."""
ELSEWHERE = (REDUCE_WINDOW, _SLICE, _REVERSE)
"""Operations that read elements elsewhere than where they put what they make of them."""
_FREE_STEPS = 6
"""Operations one after the other that are as soon made again, such as those of a mask by two indices."""


def carried(op: ir.Operation) -> list[ir.Value]:
    """Return the operands of which the results of ``op`` have the dimensions, in order; none for other operations."""
    if op.name == REDUCE_WINDOW:
        return list(op.operands)[: len(op.results)] if is_commutative(op) else []
    if op.name == SCATTER:
        return list(op.operands)[: len(op.results)]
    if not len(op.results) or len(op.regions) or not (shape := shape_of(op.results[0])):
        return []
    if op.name == CONCATENATE:
        return list(op.operands)
    if op.name in _CARRIERS:
        return list(op.operands)[: _CARRIERS[op.name]]
    if op.name not in OPERATIONS or OPERATIONS[op.name].kind != "elementwise":
        return []
    found = [(operand, shape_of(operand)) for operand in op.operands]
    arrays = [operand for operand, own in found if own]
    return arrays if all(own in (shape, ()) for _, own in found) else []


def is_between(op: ir.Operation) -> bool:
    """Whether an operation transposes or reshapes, by whatever name, so that it connects two groups."""
    return op.name == TRANSPOSE or is_bitcast(op)


def broadcast_order(op: ir.Operation, order: Order) -> tuple[Order, list[int]]:
    """Return how the operand of a broadcast is transposed for a result in another order, and its dimensions there."""
    places = [order.index(each) for each in integers(op, "broadcast_dimensions")]
    return tuple(sorted(range(len(places)), key=places.__getitem__)), sorted(places)


def reduced_order(op: ir.Operation, order: Order) -> Order:
    """Return the order of a reduction's result for operands in another order."""
    dimensions = integers(op, "dimensions")
    kept = [each for each in order if each not in dimensions]
    return tuple(sorted(kept).index(each) for each in kept)


def is_free(value: ir.Value, steps: int = _FREE_STEPS) -> bool:
    """Whether a value can be made in any order at once: few elementwise ``steps`` make it of indices and numbers."""
    op = defining_op(value)
    if op is None or op.name == "stablehlo.iota":
        return op is not None
    if op.name == "stablehlo.constant":
        return splat_of(op) is not None
    if op.name == BROADCAST and not shape_of(op.operands[0]):
        return True
    operands = list(op.operands)[:1] if op.name == BROADCAST else elementwise(op)
    return steps > 0 and bool(operands) and all(is_free(each, steps - 1) for each in operands)


def elementwise(op: ir.Operation) -> list[ir.Value]:
    """Return the arrays that an elementwise operation of one result computes it from; none for other operations."""
    is_one = len(op.results) == 1 and op.name in OPERATIONS and OPERATIONS[op.name].kind == "elementwise"
    return carried(op) if is_one else []

"""The pass `order-pairs`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_reduction
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.fusion.orders.carriers import BROADCAST, elementwise
from xgpu.fusion.orders.permutations import permuted
from xgpu.hlo.constants import splat_of
from xgpu.hlo.stablehlo_builder import broadcast, hlo, tensor, transpose
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of
from xgpu.target_machine import WARP_SIZE

_CONSTANT, _IOTA = "stablehlo.constant", "stablehlo.iota"
_MOST_VISITED = 64
"""Operations of what is reduced that are looked at."""
_LONGEST = 128
"""Elements of a row from which on its lanes have as much to compute as the row takes besides."""
_SAVED = 64
"""Instructions for a row that one thread does not execute and two lanes do: where it is, twice, and an exchange."""


@dataclass(frozen=True)
class OrderPairs(BlockRewrite):
    """Reduces short rows that nobody has in memory with results side by side, not one row after the other.

    Distances between all rows of two small arrays are such reductions, or how many of a few limits are below each
    number. Several lanes share a row otherwise, each of which finds out where the row is, and then exchange what they
    have. With neighbours in another order, each thread computes some results by itself. Where an array is read at both
    indices, as the second rows are, it is transposed once, by a kernel of its own. So there have to be enough results.
    Needs: order-reductions.

    ```mlir
    %1 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<4096x16xf32>) -> tensor<4096x4096x16xf32>
    %2 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<4096x16xf32>) -> tensor<4096x4096x16xf32>
    %3 = stablehlo.subtract %1, %2 : tensor<4096x4096x16xf32>
    %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.maximum across dimensions = [2] : ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4096x16xf32>) -> tensor<4096x16x4096xf32>
    %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<4096x16xf32>) -> tensor<16x4096xf32>
    %2 = stablehlo.broadcast_in_dim %t, dims = [1, 2] : (tensor<16x4096xf32>) -> tensor<4096x16x4096xf32>
    %3 = stablehlo.subtract %1, %2 : tensor<4096x16x4096xf32>
    %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.maximum across dimensions = [1] : ...
    ```
    """

    NAME: ClassVar[str] = "order-pairs"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Order the rows of reductions of ``block``."""
        target = self.target.device
        for op in operations_of(block, self.OPERATIONS):
            if not (is_reduction(op) and is_commutative(op) and _is_of_pairs(op, target)):
                continue
            rank = len(shape_of(op.operands[0]))
            order, written = (*range(rank - 2), rank - 1, rank - 2), dict[ir.Value, ir.Value]()
            with ir.InsertionPoint(op), op.location:
                for number in range(len(op.results)):
                    op.operands[number] = _in_order(op.operands[number], order, written)
            op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([rank - 2])


def _is_of_pairs(op: ir.Operation, target: Device) -> bool:
    """Whether a reduction is of short rows that are computed of arrays at an index each, or of small ones at both."""
    shape = ReductionShape.of(op)
    last = len(shape.shape) - 1
    if last < 1 or shape.dimensions != (last,) or shape.per_result > _LONGEST:
        return False
    found = _arrays(list(op.operands)[: len(op.results)])
    if found is None:
        return False
    if not any({last - 1, last} <= set(places) for _, places in found):
        # Nothing is transposed: threads are enough if each has a result.
        return shape.shape[-2] >= WARP_SIZE and shape.results >= target.resident_threads
    wide = WARP_SIZE * target.max_vector_bytes // 4
    if last < 2 or shape.shape[-2] < wide or shape.results * _SAVED < target.launch_seconds * target.issue_rate:
        return False
    return all(WARP_SIZE * elements <= shape.elements for elements, _ in found)


def _arrays(values: Sequence[ir.Value]) -> list[tuple[int, list[int]]] | None:
    """Return the sizes of the arrays that values are computed from element by element, once they are broadcast.

    Each comes with the dimensions of the values in which it has several elements. None if they are made otherwise.
    """
    pending, seen = list(values), set(values)
    found = []
    while pending:
        op = defining_op(pending.pop())
        if op is None or len(seen) > _MOST_VISITED:
            return None
        if op.name == BROADCAST:
            array, dimensions = op.operands[0], integers(op, "broadcast_dimensions")
            sizes = zip(dimensions, shape_of(array), strict=True)
            found.append((math.prod(shape_of(array)), [i for i, size in sizes if size > 1]))
        elif op.name == _IOTA:
            found.append((1, [integer(op, "iota_dimension")]))
        elif op.name != _CONSTANT or splat_of(op) is None:
            operands = elementwise(op)
            if not operands or len(operands) != len(op.operands):
                return None
            pending += [each for each in operands if each not in seen]
            seen |= {*operands}
    return found


def _in_order(value: ir.Value, order: Order, written: dict[ir.Value, ir.Value]) -> ir.Value:
    """Return a value with its dimensions in an order, computed of arrays that are transposed where they have to be."""
    if value not in written:
        op = defining_op(value)
        if op is not None and op.name == BROADCAST:
            written[value] = _broadcast(op, order)
        elif op is not None and op.name == _IOTA:
            type_ = tensor(permuted(shape_of(value), order), element_of(value))
            written[value] = hlo.iota(type_, list(order).index(integer(op, "iota_dimension")))
        elif op is not None and (operands := elementwise(op)):
            inputs = [_in_order(operand, order, written) for operand in operands]
            copy = op.clone()
            for number, operand in enumerate(inputs):
                copy.operands[number] = operand
            copy.results[0].set_type(tensor(permuted(shape_of(value), order), element_of(value)))
            written[value] = copy.results[0]
        else:
            repeated = None if op is None else splat_of(op)
            assert repeated is not None
            type_ = tensor(permuted(shape_of(value), order), element_of(value))
            written[value] = hlo.constant(ir.DenseElementsAttr.get_splat(type_, repeated))
    return written[value]


def _broadcast(op: ir.Operation, order: Order) -> ir.Value:
    """Return what a broadcast makes with its dimensions in an order."""
    places = [list(order).index(i) for i in integers(op, "broadcast_dimensions")]
    inner = tuple(sorted(range(len(places)), key=places.__getitem__))
    (operand,) = op.operands
    if list(inner) != sorted(inner):
        around = defining_op(operand)
        is_spread = around is not None and around.name == BROADCAST
        operand = _in_order(operand, inner, {}) if is_spread else transpose(operand, inner)
    return broadcast(operand, permuted(shape_of(op.results[0]), order), sorted(places))

"""The pass `order-reductions`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_reduction
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.analysis.transposes import canonical, moves_lines
from xgpu.fusion.memory_reads import Known, arrays_read
from xgpu.fusion.orders.carriers import TRANSPOSE, carried
from xgpu.fusion.orders.reduction_orders import order_operands
from xgpu.indexing.access import Shape, integer, integers, shape_of
from xgpu.indexing.affine import Dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of
from xgpu.target_machine import WARP_SIZE

_MANY_TIMES = 8
"""The elements that a reduction takes in for each one of an array that it reads, from which on order is no matter."""
_MOST_VISITED = 256
"""Values behind a reduction that are looked at."""


@dataclass(frozen=True)
class OrderReductions(BlockRewrite):
    """Transposes operands of reductions so that neighbours in memory are reduced together, and the results back.

    A sum over the columns of a transposed array is one over rows: two transposes one after the other are one, or none.
    Rows that are whole lines of memory stay in the order that they have, as they are read as fast in any. Needs:
    order-extremes, which makes more reductions commutative.

    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
    %sum = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
    ```
    becomes
    ```mlir
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<64x512xf32>, tensor<f32>) -> tensor<64xf32>
    ```
    """

    NAME: ClassVar[str] = "order-reductions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Order the dimensions of the reductions of ``block``."""
        known: Known = {}
        for op in operations_of(block, self.OPERATIONS):
            if is_reduction(op):
                order = _order_in_memory(op, known) or _order_by_parts(op, known)
                if order is not None and _may_be_ordered(op, order):
                    with op.location:
                        order_operands(op, order)


def _order_in_memory(op: ir.Operation, known: Known) -> tuple[int, ...] | None:
    """Return the dimensions of what a reduction reads from the farthest apart in memory to the nearest.

    None if arrays of its size lie in different orders, or in no order of dimensions.
    """
    shape = shape_of(op.operands[0])
    orders: set[tuple[int, ...]] = set()
    # What has fewer elements than the reduction cannot tell one dimension from another.
    for operand in list(op.operands)[: len(op.results)]:
        for array, map_ in arrays_read(operand, math.prod(shape), known):
            strides = _strides(array, map_, shape)
            if strides is not None:
                # Dimensions of one element do not matter: they stay where they are.
                orders.add(tuple(sorted(range(len(shape)), key=lambda i: (-strides[i], i))))
    return orders.pop() if len(orders) == 1 else None


def _order_by_parts(op: ir.Operation, known: Known) -> tuple[int, ...] | None:
    """Return an order that has dimensions of few elements first if what is reduced is put together along them.

    Threads that are neighbours along such a dimension compute elements in different ways, one after the other. None if
    there are none, or if the reduction reads arrays in memory of as many elements as it takes in, or nearly so.
    """
    shape = shape_of(op.operands[0])
    long = [i for i, size in enumerate(shape) if size > 1]
    if not long or shape[long[-1]] >= WARP_SIZE:
        return None
    operands = list(op.operands)[: len(op.results)]
    fewest = math.prod(shape) // _MANY_TIMES
    if any(True for operand in operands for _ in arrays_read(operand, fewest, known)):
        return None
    parted = {i for operand in operands for i in _parted(operand) if 1 < shape[i] < WARP_SIZE}
    return (*sorted(parted), *(i for i in range(len(shape)) if i not in parted)) if long[-1] in parted else None


def _parted(value: ir.Value) -> set[int]:
    """Return the dimensions along which a value is put together, as far as operations keep dimensions what they are."""
    found = set[int]()
    places = tuple(range(len(shape_of(value))))
    pending, seen = [(value, places)], {value}
    while pending:
        each, places = pending.pop()
        op = defining_op(each)
        if op is None:
            continue
        found |= {places[i] for i in _put_together(op)}
        if op.name == TRANSPOSE:
            permutation = integers(op, "permutation")
            places = tuple(places[permutation.index(i)] for i in range(len(places)))
        for operand in op.operands if op.name == TRANSPOSE else carried(op):
            if operand not in seen and len(seen) < _MOST_VISITED:
                seen.add(operand)
                pending.append((operand, places))
    return found


def _put_together(op: ir.Operation) -> set[int]:
    """Return the dimensions along which an operation takes elements of different operands."""
    if op.name == "stablehlo.concatenate":
        return {integer(op, "dimension")}
    if op.name != "stablehlo.pad":
        return set()
    paddings = (integers(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return {i for padding in paddings for i, count in enumerate(padding) if count > 0}


def _strides(array: ir.Value, map_: IndexingMap, shape: Shape) -> list[int] | None:
    """Return how far apart in ``array`` neighbours along each dimension of ``shape`` are.

    None if the array is smaller than ``shape``, or if its positions are no sum of multiples of indices.
    """
    of_array = shape_of(array)
    strides = [0] * len(shape)
    if map_.constraints or map_.is_empty():
        return None
    for atom, factor in linearize(map_.results, of_array).terms:
        if isinstance(atom, Dim):
            strides[atom.index] = factor
        else:
            return None
    if any(size > 1 and stride <= 0 for size, stride in zip(shape, strides, strict=True)):
        return None
    # A dimension of one element goes with the next one, so that arrays in row-major order are in that order.
    for i in reversed(range(len(shape))):
        if shape[i] == 1:
            strides[i] = strides[i + 1] * shape[i + 1] if i + 1 < len(shape) else 1
    return strides


def _may_be_ordered(op: ir.Operation, order: Sequence[int]) -> bool:
    """Whether an order is another than that of the dimensions, and elements may be combined in it."""
    shape = ReductionShape.of(op)
    reduced = [i for i in order if i in shape.dimensions]
    if list(order) == sorted(order) or _moves_lines(op, shape, order):
        return False
    return is_commutative(op) or reduced == sorted(reduced)


def _moves_lines(op: ir.Operation, shape: ReductionShape, order: Sequence[int]) -> bool:
    """Whether an order is another one of rows alone, each of which is a line of memory or more."""
    first = len(order) - len(shape.dimensions)
    if list(order[first:]) != list(range(first, len(order))) or set(order[first:]) != set(shape.dimensions):
        return False
    moved = canonical(shape.shape, order)
    operands = list(op.operands)[: len(op.results)]
    return moved is not None and all(moves_lines(moved, dtype_of(each).storage_bits) for each in operands)

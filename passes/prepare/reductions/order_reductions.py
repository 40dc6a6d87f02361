"""The pass `order-reductions`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import is_reduction
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.fusion.memory_reads import Known, arrays_read
from xgpu.hlo.stablehlo_builder import hlo, tensor
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.affine import Dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.structure import element_of


@dataclass(frozen=True)
class OrderReductions(BlockRewrite):
    """Transposes operands of reductions so that neighbours in memory are reduced together, and the results back.

    A sum over the columns of a transposed array is one over rows: two transposes one after the other cancel. Needs:
    order-extremes, which makes more reductions commutative.

    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
    %sum = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<512x64xf32>, tensor<f32>) -> tensor<64xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x512xf32>) -> tensor<512x64xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<512x64xf32>) -> tensor<64x512xf32>
    %sum = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
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
                order = _order_in_memory(op, known)
                if order is not None and _may_be_ordered(op, order):
                    with op.location:
                        _transpose(op, order)


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
    return list(order) != sorted(order) and (is_commutative(op) or reduced == sorted(reduced))


def _transpose(op: ir.Operation, order: Sequence[int]) -> None:
    """Reorder the dimensions of a reduction's operands by ``order``; its results are transposed back."""
    shape = ReductionShape.of(op)
    kept = [i for i in order if i not in shape.dimensions]
    with ir.InsertionPoint(op):
        for number in range(len(op.results)):
            op.operands[number] = hlo.transpose(op.operands[number], list(order))
    positions = [position for position, i in enumerate(order) if i in shape.dimensions]
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(positions)
    if kept == sorted(kept):
        return
    with ir.InsertionPoint.after(op):
        for result in op.results:
            result.set_type(tensor([shape.shape[i] for i in kept], element_of(result)))
            back = hlo.TransposeOp(result, [kept.index(i) for i in sorted(kept)]).operation
            result.replace_all_uses_except(back.results[0], back)

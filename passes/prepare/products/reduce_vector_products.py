"""The pass `reduce-vector-products`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.costs.values import elements
from xgpu.fusion.fallback import PRODUCT, fallback_reason
from xgpu.hlo.stablehlo_builder import broadcast, convert, fill_region, hlo, reshape, splat, tensor
from xgpu.indexing.access import integers, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.structure import dtype_of, element_of, is_result_of, producer

_MOST_ELEMENTS = 10_000_000
"""Elements of operands and result up to which XLA sums products of a vector and a matrix by loops too."""


@dataclass(frozen=True)
class ReduceVectorProducts(OperationRewrite):
    """Makes sums of products out of products with a vector, and products out of those of two vectors without a sum.

    No element of the matrix is needed twice, so a library gains nothing, and XLA calls none: a kernel that reads the
    matrix once computes the vector as it goes, and what follows. Left are products with a vector that have more
    elements than XLA does this for, and those that kernels compute anyway. Floats of at most 32 bits are multiplied and
    added in f32. Needs: nothing. Run it before layouts are chosen for libraries, and before reductions are ordered.

    ```mlir
    %0 = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256xf32>) -> ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<256xf32>) -> tensor<512x256xf32>
    %2 = stablehlo.multiply %w, %1 : tensor<512x256xf32>
    %0 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] ...
    ```
    """

    NAME: ClassVar[str] = "reduce-vector-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a product if one of its operands is a vector, or nothing is summed."""
        accumulator = _accumulator(op)
        if accumulator is None or "algorithm" in op.attributes or fallback_reason(op) is None:
            return
        if not all(map(elements, (*op.operands, op.results[0]))):
            return
        sides = [_Side.of(op, number) for number in (0, 1)]
        if sides[0].contracted_size == 1:
            made = _multiplied(op, sides, accumulator)
        elif _is_reduced(op, sides):
            made = _reduced(sides, accumulator)
        else:
            return
        op.results[0].replace_all_uses_with(convert(reshape(made, shape_of(op.results[0])), element_of(op.results[0])))
        op.erase()


@dataclass(frozen=True)
class _Side:
    """An operand of a product, and its dimensions, in the order of the product's: batch, contracted, all others."""

    value: ir.Value
    batch: Sequence[int]
    contracted: Sequence[int]
    free: Sequence[int]

    @classmethod
    def of(cls, op: ir.Operation, number: int) -> "_Side":
        """Return what operand ``number`` is."""
        numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
        batch = (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)[number]
        contracted = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)[number]
        free = [i for i in range(len(shape_of(op.operands[number]))) if i not in (*batch, *contracted)]
        return cls(op.operands[number], batch, contracted, free)

    @property
    def shape(self) -> Sequence[int]:
        """The operand's shape."""
        return shape_of(self.value)

    @property
    def contracted_size(self) -> int:
        """Products that a sum has."""
        return math.prod(self.shape[i] for i in self.contracted)

    @property
    def is_vector(self) -> bool:
        """Whether it is a vector, or one for each index of the batch."""
        return math.prod(self.shape[i] for i in self.free) == 1

    def untransposed(self) -> "_Side":
        """Return the array that is transposed, if this is one, so that it is read as it is in memory."""
        if not is_result_of(self.value, "stablehlo.transpose"):
            return self
        op = producer(self.value)
        source = integers(op, "permutation")
        batch, contracted, free = ([source[i] for i in each] for each in (self.batch, self.contracted, self.free))
        return _Side(op.operands[0], batch, contracted, free)

    def at(self, places: Mapping[int, int], shape: Sequence[int], element: ir.Type) -> ir.Value:
        """Return the converted operand at every index of ``shape``, whose dimensions are at ``places``.

        The dimensions that have no place are of size 1.
        """
        kept = sorted(places)
        value = reshape(convert(self.value, element), [self.shape[i] for i in kept])
        order = sorted(range(len(kept)), key=lambda number: places[kept[number]])
        ordered = value if order == sorted(order) else hlo.transpose(value, order)
        return broadcast(ordered, shape, sorted(places.values()))


def _accumulator(op: ir.Operation) -> ir.Type | None:
    """Return the type that products and sums have; None for types that are left."""
    element = element_of(op.results[0])
    dtypes = [dtype_of(value) for value in (*op.operands, op.results[0])]
    if all(dtype.is_integer for dtype in dtypes):
        return element
    if not all(dtype.is_float for dtype in dtypes):
        return None
    widest = max(dtype.bits for dtype in dtypes)
    return ir.F64Type.get(op.context) if widest == 64 else ir.F32Type.get(op.context)


def _is_reduced(op: ir.Operation, sides: Sequence[_Side]) -> bool:
    """Whether XLA has no library for a product either."""
    if all(side.is_vector for side in sides):
        return True
    is_small = sum(map(elements, (*op.operands, op.results[0]))) < _MOST_ELEMENTS
    return any(side.is_vector for side in sides) and is_small


def _multiplied(op: ir.Operation, sides: Sequence[_Side], element: ir.Type) -> ir.Value:
    """Return the products of all pairs of elements."""
    factors, start = [], len(sides[0].batch)
    for side in sides:
        places = {dimension: number for number, dimension in enumerate(side.batch)}
        places |= {dimension: start + number for number, dimension in enumerate(side.free)}
        start += len(side.free)
        factors.append(side.at(places, shape_of(op.results[0]), element))
    return hlo.multiply(*factors)


def _reduced(sides: Sequence[_Side], element: ir.Type) -> ir.Value:
    """Return the sums of products of a matrix, as it is in memory, with a vector."""
    number = 1 if sides[0].is_vector and not sides[1].is_vector else 0
    matrix, vector = sides[number].untransposed(), sides[1 - number]
    places = dict(zip((*vector.batch, *vector.contracted), (*matrix.batch, *matrix.contracted), strict=True))
    factors = [convert(matrix.value, element), vector.at(places, matrix.shape, element)]
    summed = _sum(hlo.multiply(*factors[:: -1 if number else 1]), sorted(matrix.contracted))
    left = [i for i in range(len(matrix.shape)) if i not in matrix.contracted]
    order = [left.index(i) for i in (*matrix.batch, *matrix.free)]
    return summed if order == sorted(order) else hlo.transpose(summed, order)


def _sum(value: ir.Value, dimensions: Sequence[int]) -> ir.Value:
    """Return the sums of ``value`` along dimensions."""
    element = element_of(value)
    shape = [size for i, size in enumerate(shape_of(value)) if i not in dimensions]
    reduce = ir.Operation.create(
        "stablehlo.reduce",
        results=[tensor(shape, element)],
        operands=[value, splat(0, tensor((), element))],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(dimensions)},
        regions=1,
    )
    fill_region(reduce, [tensor((), element)] * 2, lambda values: [hlo.add(*values)])
    return reduce.results[0]

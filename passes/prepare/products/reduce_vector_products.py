"""The pass `reduce-vector-products`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.costs.values import elements
from xgpu.fusion.fallback import PRODUCT, fallback_reason
from xgpu.fusion.loops.sums_of_products import array_of, length_of_sums, sum_of_products, uses_elements_once
from xgpu.hlo.tensor_cores import ALGORITHM
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import replace_op

_MOST_ELEMENTS = 10_000_000
"""Elements of operands and result, for an index of a batch, up to which XLA has loops for products with vectors too."""
_FEW_TERMS = 32
"""Terms of a sum up to which a thread adds them up by itself, while tiles of a library are mostly empty."""


@dataclass(frozen=True)
class ReduceVectorProducts(OperationRewrite):
    """Rewrites products with a vector as sums of products, and those of two vectors without a sum as multiplications.

    No element of the matrix is needed twice, so a library gains nothing, and XLA calls none: a kernel that reads the
    matrix once computes the vector as it goes, and what follows. Products with a vector of more elements than XLA's
    limit for this stay, unless their sums are short, and so do sums that kernels compute anyway; a product that sums
    nothing is no sum to build a kernel around. Floats of at most 32 bits are multiplied and added in f32. Needs:
    nothing. Run it before layouts are chosen for libraries, and before reductions are ordered.

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
        if ALGORITHM in op.attributes or not uses_elements_once(op):
            return
        if length_of_sums(op) == 1:
            replace_op(op, [sum_of_products(op)])
        elif fallback_reason(op) is not None and _is_reduced(op):
            replace_op(op, [sum_of_products(op, _in_memory(op))])


def _is_reduced(op: ir.Operation) -> bool:
    """Whether a library is no faster at a product with a vector: it is small, of short sums, or of two vectors."""
    arrays = (*op.operands, op.results[0])
    per_result = [elements(operand) // length_of_sums(op) for operand in op.operands]
    batch = math.prod(shape_of(op.operands[0])[each] for each in operand_dimensions(op)[0].batching)
    is_of_vectors = per_result[0] == per_result[1] == elements(op.results[0])
    is_plain = length_of_sums(op) <= _FEW_TERMS or sum(map(elements, arrays)) < _MOST_ELEMENTS * batch
    return is_of_vectors or is_plain


def _in_memory(op: ir.Operation) -> Sequence[int]:
    """Return the dimensions of the larger operand in their order, which the products have, so that it is read in it."""
    return array_of(op, int(elements(op.operands[1]) > elements(op.operands[0])))[1]

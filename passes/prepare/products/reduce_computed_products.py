"""The pass `reduce-computed-products`."""

from typing import ClassVar, Literal

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, DeviceName
from xgpu.emit.families.products.prologue import best_tile, computed_product
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.computed_matrices import matrix_for_sums, sums_seconds
from xgpu.fusion.fallback import PRODUCT, fallback_reason
from xgpu.fusion.loops.sums_of_products import array_of, sum_of_products
from xgpu.hlo.stablehlo_builder import hlo, tensor
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import attributes_of, dtype_of, element_of, replace_op


@dataclass(frozen=True)
class ReduceComputedProducts(OperationRewrite):
    """Makes sums of products out of products of few rows with a matrix that a kernel computes of smaller arrays.

    Weights of 8 or 4 bits with scales are such a matrix. A library needs it in memory, where it is written and read
    with elements of 16 bits. A kernel of reductions reads the weights as they are, computes each element once and
    multiplies it by all rows, a sum for each. That is done where it is expected to be clearly faster; with more rows
    the instructions take longer than memory, and a kernel of the product that computes the matrix on tiles does not.
    Needs: products with vectors reduced. Run it before layouts are chosen for libraries, and before reductions are
    ordered.

    ```mlir
    %w = stablehlo.multiply %weights, %scales : tensor<4096x14336xbf16>
    %0 = stablehlo.dot_general %x, %w, ... : (tensor<2x4096xbf16>, tensor<4096x14336xbf16>) -> tensor<2x14336xbf16>
    ```
    becomes, with one such sum for each row
    ```mlir
    %1 = stablehlo.multiply %row, %w : tensor<4096x14336xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] ...
    ...
    %0 = stablehlo.concatenate ...
    ```
    """

    NAME: ClassVar[str] = "reduce-computed-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the estimates are for."""
    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products of which nothing is chosen."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a product if one of its operands has few rows, and a kernel computes the other."""
        if fallback_reason(op) is None or (number := matrix_for_sums(op, self.target.device)) is None:
            return
        if self.products == "library" or not self._is_faster_by_tiles(op, number):
            replace_op(op, [_sums(op, number)])

    def _is_faster_by_tiles(self, op: ir.Operation, number: int) -> bool:
        """Whether a kernel of the product computes the operand on its way, and is expected to be faster than sums."""
        target = self.target.device
        product = computed_product(op) if device_problem(target) is None else None
        if product is None or product.batch > 1:
            return False
        result_bytes = -(-dtype_of(op.results[0]).storage_bits // 8)
        return best_tile(product, result_bytes, target)[0] < sums_seconds(op, number, target)


def _sums(op: ir.Operation, number: int) -> ir.Value:
    """Return a product as sums, one for each of the few rows that the operand other than ``number`` has."""
    few = op.operands[1 - number]
    own = operand_dimensions(op)[1 - number].own
    long = [dimension for dimension in own if shape_of(few)[dimension] > 1]
    order = array_of(op, number)[1]
    if not long:
        return sum_of_products(op, order)
    (dimension,) = long
    along = _place(op, 1 - number, dimension)
    rows = []
    for row in range(shape_of(few)[dimension]):
        product = _of_row(op, 1 - number, dimension, row, along)
        rows.append(sum_of_products(product, order))
        product.erase()
    return hlo.concatenate(rows, along)


def _place(op: ir.Operation, number: int, dimension: int) -> int:
    """Return the dimension of the result that is ``dimension`` of an operand, one of its own."""
    left, right = operand_dimensions(op)
    before = len(left.batching) + (len(left.own) if number == 1 else 0)
    return before + (left, right)[number].own.index(dimension)


def _of_row(op: ir.Operation, number: int, dimension: int, row: int, along: int) -> ir.Operation:
    """Return the product of one row of an operand."""
    few = op.operands[number]
    shape = list(shape_of(few))
    low, high = [0] * len(shape), list(shape)
    low[dimension], high[dimension] = row, row + 1
    operands = list(op.operands)
    operands[number] = hlo.slice(few, low, high, [1] * len(shape))
    result = list(shape_of(op.results[0]))
    result[along] = 1
    type_ = tensor(result, element_of(op.results[0]))
    return ir.Operation.create(PRODUCT, results=[type_], operands=operands, attributes=attributes_of(op))

"""The pass `choose-product-layouts`."""

from typing import ClassVar

from xgpu import ir
from xgpu.fusion.fallback import PRODUCT, fallback_reason
from xgpu.fusion.product_operands import TRANSPOSE, behind_transposes, labelled_product, transposes_behind
from xgpu.fusion.product_orders import LabelledProduct, Order, best_order
from xgpu.hlo.stablehlo_builder import hlo, tensor, transpose
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION
from xgpu.indexing.access import integers, shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import element_of, is_result_of, is_shared, producer, replace_op, users_of

_CONVERT = "stablehlo.convert"
type _Transposed = dict[tuple[ir.Value, tuple[int, ...]], ir.Value]
"""Transposes that were written, by what they transpose and how: equal ones are one."""


@dataclass(frozen=True)
class ChooseProductLayouts(BlockRewrite):
    """Writes each of XLA's matrix products in the order of dimensions with the cheapest transposes.

    A product's result has the dimensions (batch, free ones of the first operand, free ones of the second). Libraries
    read an operand whose dimensions are (batch, free, contracted) or (batch, contracted, free) in memory order; XLA
    transposes any other. JAX takes a product's operands as they come, and transposes the result. Of the equivalent
    products the cheapest is taken: operands may be exchanged, and a kernel can store an operand that it computes in any
    order, which in turn orders the result. Transposes of operands become part of the product, also of those that are
    converted afterwards. Needs: nothing; run it before leave-epilogues, which looks at the uses of a product.

    ```mlir
    %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<512x64xf32>, tensor<64x256xf32>) -> ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<512x64xf32>, tensor<256x64xf32>) -> ...
    ```
    """

    NAME: ClassVar[str] = "choose-product-layouts"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the products of ``block``, which share the transposes that they need."""
        transposed: _Transposed = {}
        for op in operations_of(block, self.OPERATIONS):
            if ALGORITHM not in op.attributes and fallback_reason(op) is not None:
                _convert_first(op)
                _rewrite(op, block, transposed)


def _convert_first(op: ir.Operation) -> None:
    """Have operands transposed after they are converted, as weights of 8 bits are: the product is then as of others."""
    for number, operand in enumerate(op.operands):
        if not is_result_of(operand, _CONVERT) or is_shared(operand):
            continue
        old = producer(operand)
        chain = transposes_behind(old.operands[0])
        if not chain:
            continue
        source = chain[-1].operands[0]
        with ir.InsertionPoint(old), old.location:
            made = hlo.convert(tensor(shape_of(source), element_of(operand)), source)
            for each in reversed(chain):
                made = hlo.transpose(made, integers(each, "permutation"))
        op.operands[number] = made
        old.erase()
        _erase_unread([chain])


def _rewrite(op: ir.Operation, block: ir.Block, transposed: _Transposed) -> None:
    """Replace a product by the best one, if that is another."""
    uses = users_of(op.results[0])
    wanted = tuple(range(len(shape_of(op.results[0]))))
    permutations = {tuple(integers(use, "permutation")) for use in uses if use.name == TRANSPOSE}
    transposes = uses if len(permutations) == 1 and all(use.name == TRANSPOSE for use in uses) else []
    if transposes:
        (wanted,) = permutations
    values = [behind_transposes(operand) for operand in op.operands]
    product = labelled_product(op, block, wanted, transposes)
    order = best_order(product)
    if order is None:
        return
    operands = []
    with ir.InsertionPoint(op), op.location:
        for value, operand, labels in zip(values, product.operands, order.operands, strict=True):
            key = value, tuple(operand.memory.index(label) for label in labels)
            if key not in transposed:
                transposed[key] = transpose(value, list(key[1]))
            operands.append(transposed[key])
        new = _write(op, product, order, operands)
    chains = [transposes_behind(operand) for operand in dict.fromkeys(op.operands)]
    places = [order.result.index(label) for label in wanted]
    for use in transposes or [op]:
        with ir.InsertionPoint(use), use.location:
            replace_op(use, [transpose(new, places)])
    if transposes:
        op.erase()
    _erase_unread(chains)


def _erase_unread(chains: list[list[ir.Operation]]) -> None:
    """Erase transposes that nothing reads any more; ``chains`` are those of each operand, last ones first."""
    # One operand may be the source of the other's transposes, whose chain is then the longer one.
    longest = [
        chain for chain in chains if chain and not any(other is not chain and chain[0] in other for other in chains)
    ]
    for chain in longest:
        for each in chain:
            if list(each.results[0].uses):
                break
            each.erase()


def _write(op: ir.Operation, product: LabelledProduct, order: Order, operands: list[ir.Value]) -> ir.Value:
    """Write a product of operands that are stored as ``order`` says."""
    sides = [
        ([labels.index(i) for i in order.batch], [labels.index(i) for i in order.contracted])
        for labels in order.operands
    ]
    precision = list(ir.ArrayAttr(op.attributes[PRECISION])) if PRECISION in op.attributes else None
    if order.swap:
        operands, sides = operands[::-1], sides[::-1]
        precision = precision and precision[::-1]
    lhs, rhs = operands
    (lhs_batching, lhs_contracting), (rhs_batching, rhs_contracting) = sides
    numbers = hlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=lhs_batching,
        rhs_batching_dimensions=rhs_batching,
        lhs_contracting_dimensions=lhs_contracting,
        rhs_contracting_dimensions=rhs_contracting,
    )
    type_ = tensor([product.sizes[label] for label in order.result], element_of(op.results[0]))
    config = None if precision is None else ir.ArrayAttr.get(precision)
    new: ir.Value = hlo.dot_general(type_, lhs, rhs, numbers, precision_config=config)
    return new

"""Transposes of matrix products: the product of the operands in the other order takes no kernel to transpose it."""

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.stablehlo_builder import hlo
from xgpu.fusion.left import reason_to_leave
from xgpu.fusion.regions import maker, planned_blocks
from xgpu.indexing.access import shape_of
from xgpu.options import Options

_PRODUCT = "stablehlo.dot_general"
_ALGORITHM = "algorithm"


def swap_transposed_products(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Write a transpose of a product that XLA makes, and that nothing else reads, as the product of ``b`` and ``a``.

    The gradient of a product by its weights is such a transpose.
    """
    for block in planned_blocks(main.entry_block):
        for op in [view.operation for view in block.operations]:
            if op.name == "stablehlo.transpose" and _is_swapped_product(op):
                product = maker(op.operands[0])
                with ir.InsertionPoint(op), product.location:
                    op.results[0].replace_all_uses_with(_swapped(product, op.results[0].type))
                op.erase()
                product.erase()


def _is_swapped_product(op: ir.Operation) -> bool:
    """Whether a transpose exchanges the dimensions that a product has from one operand and from the other."""
    operand = op.operands[0]
    if isinstance(operand.owner, ir.Block):
        return False
    product = maker(operand)
    # A product from around a loop must not get into it.
    if product.name != _PRODUCT or product.block != op.block:
        return False
    if _ALGORITHM in product.attributes or len(list(operand.uses)) != 1:
        return False
    dims = hlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    batch, contracted = len(dims.lhs_batching_dimensions), len(dims.lhs_contracting_dimensions)
    first, second = (len(shape_of(each)) - batch - contracted for each in product.operands)
    swapped = [*range(batch), *range(batch + first, batch + first + second), *range(batch, batch + first)]
    return list(ir.DenseI64ArrayAttr(op.attributes["permutation"])) == swapped and reason_to_leave(product) is not None


def _swapped(product: ir.Operation, type_: ir.Type) -> ir.Value:
    dims = hlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    swapped = hlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=dims.rhs_batching_dimensions,
        rhs_batching_dimensions=dims.lhs_batching_dimensions,
        lhs_contracting_dimensions=dims.rhs_contracting_dimensions,
        rhs_contracting_dimensions=dims.lhs_contracting_dimensions,
    )
    precision = None
    if "precision_config" in product.attributes:
        precision = ir.ArrayAttr.get(list(reversed(list(ir.ArrayAttr(product.attributes["precision_config"])))))
    first, second = product.operands
    result: ir.Value = hlo.dot_general(type_, second, first, swapped, precision_config=precision)
    return result

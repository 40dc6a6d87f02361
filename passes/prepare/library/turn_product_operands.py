"""The pass `turn-product-operands`."""

from typing import ClassVar, Literal

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, DeviceName
from xgpu.emit.families.products.meetings import by_warp_groups
from xgpu.emit.families.products.product import DOT
from xgpu.fusion.fallback import fallback_reason, has_library, is_short
from xgpu.hlo.stablehlo_builder import Value, hlo
from xgpu.indexing.dot_dimensions import DIMENSIONS, OperandDimensions, operand_dimensions
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import (
    attributes_of,
    block_of,
    body_of,
    is_argument,
    owning_op,
    producer,
    replace_op,
    terminator_of,
)


@dataclass(frozen=True)
class TurnProductOperands(OperationRewrite):
    """Transposes operands of matrix products that tensor cores read only along the dimension that is summed.

    Such are f32, as tf32, and elements of 8 bits. Only where no library computes the product, that is with
    ``products=all``, or of integers: a transpose of an operand takes less than a product without tensor cores. Few
    products of short sums stay. What a loop
    never changes is turned before the loop. Needs: products in their final form, as transposes before them would
    otherwise become a part of them again.

    ```mlir
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x64xf32>) -> ...
    ```
    becomes
    ```mlir
    %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %0 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [1] : (tensor<512x256xf32>, tensor<64x256xf32>) -> ...
    ```
    """

    NAME: ClassVar[str] = "turn-product-operands"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((DOT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["auto", "library", "kernels", "all"] = "all"
    """The code that computes matrix products."""

    def rewrite(self, op: ir.Operation) -> None:
        """Turn the operands of a product, if warp groups then multiply it."""
        target = self.target.device
        if self.products != "all" and (self.products == "library" or has_library(op)):
            return
        if fallback_reason(op) is None or is_short(op) or by_warp_groups(op, target):
            return
        dimensions = operand_dimensions(op)
        operands = [_turned(op, *pair) for pair in zip(op.operands, dimensions, strict=True)]
        turned = ir.Operation.create(DOT, [op.results[0].type], operands, attributes_of(op) | _numbers(*dimensions))
        if by_warp_groups(turned, target):
            replace_op(op, list(turned.results))
            return
        turned.erase()
        for operand, old in zip(operands, op.operands, strict=True):
            if operand != old:
                producer(operand).erase()


def _turned(op: ir.Operation, value: Value, dimensions: OperandDimensions) -> Value:
    """Return an operand with its batch first and what is summed last."""
    order = [*dimensions.batching, *dimensions.own, *dimensions.contracting]
    if order == sorted(order):
        return value
    value, before = _outside(value, op)
    with ir.InsertionPoint(before):
        return hlo.transpose(value, order)


def _outside(value: Value, op: ir.Operation) -> tuple[Value, ir.Operation]:
    """Return the value that ``value`` has in all iterations of the loops around ``op``, and before what to read it."""
    while is_argument(value):
        block, loop = block_of(value), owning_op(value)
        number = ir.BlockArgument(value).arg_number
        is_in_body = loop.name == "stablehlo.while" and block == body_of(loop, 1)
        if not is_in_body or terminator_of(block).operands[number] != value:
            break
        value = loop.operands[number]
    while op.block != block_of(value):
        around = op.parent
        assert around is not None
        op = around.operation
    return value, op


def _numbers(left: OperandDimensions, right: OperandDimensions) -> dict[str, ir.Attribute]:
    """Return the attribute of a product whose operands have their batch first and what is summed last."""
    batch = list(range(len(left.batching)))

    def sums(each: OperandDimensions) -> list[int]:
        first = len(batch) + len(each.own)
        return list(range(first, first + len(each.contracting)))

    return {DIMENSIONS: hlo.DotDimensionNumbers.get(batch, batch, sums(left), sums(right))}

"""The pass `invert-divisors`."""

from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.hlo.stablehlo_builder import hlo
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, replace_op

_CONSTANT, _DIVIDE = "stablehlo.constant", "stablehlo.divide"
_SPREADS = frozenset(("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"))
"""Operations that give an element of their operand for each of the result."""
_SMALLEST = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class InvertDivisors(OperationRewrite):
    """Multiplies by the inverses of constant arrays of f32 in place of dividing by them, as XLA does.

    The numbers of an array are looked up in memory, so that no later pass sees constants; those by which images are
    normalised, say. All of them and their inverses have to be normal numbers. A division by a single number stays for
    `expand-math`, as the host divides exactly. Needs: sink-constants, fold-constants.

    ```mlir
    %c = stablehlo.constant dense<[2.0, 3.0]> : tensor<2xf32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.divide %x, %0 : tensor<8x2xf32>
    ```
    becomes
    ```mlir
    %c = stablehlo.constant dense<[0.5, 0.333333343]> : tensor<2xf32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<2xf32>) -> tensor<8x2xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<8x2xf32>
    ```
    """

    NAME: ClassVar[str] = "invert-divisors"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_DIVIDE,))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one division, if its divisor is such an array."""
        dividend, divisor = op.operands
        if not isinstance(element_of(divisor), ir.F32Type):
            return
        behind = list[ir.Operation]()
        made = defining_op(divisor)
        while made is not None and made.name in _SPREADS:
            behind.append(made)
            made = defining_op(made.operands[0])
        numbers = None if made is None or made.name != _CONSTANT else made.attributes["value"]
        if made is None or not isinstance(numbers, ir.DenseElementsAttr) or numbers.is_splat:
            return
        values = np.array(numbers)
        if not ((abs(values) >= _SMALLEST) & (abs(values) <= 1 / _SMALLEST)).all():
            return
        inverse: ir.Value = hlo.constant(ir.DenseElementsAttr.get(1 / values, type=made.results[0].type))
        for each in reversed(behind):
            copy = each.clone()
            copy.operands[0] = inverse
            inverse = copy.results[0]
        replace_op(op, [hlo.multiply(dividend, inverse)])
        erase_unused([made, *reversed(behind)])

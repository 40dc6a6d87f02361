"""The pass `expand-powers`."""

import math
from collections.abc import Callable
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.places import SPREADS, number_of
from xgpu.hlo.stablehlo_builder import convert, hlo, splat_like
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, element_of, replace_op


@dataclass(frozen=True)
class ExpandPowers(OperationRewrite):
    """Writes powers of floats with some constant exponents as products, quotients and square roots.

    The exponents are -1, -0.5, 0.5, 1, 2, 3 and 4, also as the difference of two constants, as which JAX's gradients
    have them. A power of any exponent takes some 80 instructions in f32. Those of 16-bit floats are computed in f32, so
    that they are rounded once. Special cases are those of a power: the square roots of -0 and of -inf are 0 and inf.
    Needs: sink-constants, so that every block has its own.

    ```mlir
    %exponent = stablehlo.constant dense<3.0> : tensor<8xf32>
    %0 = stablehlo.power %x, %exponent : tensor<8xf32>
    ```
    becomes
    ```mlir
    %1 = stablehlo.multiply %x, %x : tensor<8xf32>
    %0 = stablehlo.multiply %1, %x : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "expand-powers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.power",))

    def rewrite(self, op: ir.Operation) -> None:
        """Write one power in simpler operations, if its exponent is known to be one of those."""
        base, exponent = op.operands
        number = _difference(exponent)
        if number in _POWERS and dtype_of(base).is_float and dtype_of(base).bits >= 16:
            own = element_of(base)
            wide = convert(base, ir.F32Type.get() if dtype_of(base).bits == 16 else own)
            replace_op(op, [convert(_POWERS[number](wide), own)])


def _difference(value: ir.Value) -> float | None:
    """Return the number that all elements of a value are, if they are a constant, or one constant less another."""
    op = defining_op(value)
    while op is not None and op.name in SPREADS - {"stablehlo.convert"}:
        op = defining_op(op.operands[0])
    if op is None or op.name != "stablehlo.subtract":
        return number_of(value)
    left, right = map(number_of, op.operands)
    return None if left is None or right is None else left - right


def _square(x: ir.Value) -> ir.Value:
    return hlo.multiply(x, x)


def _root(x: ir.Value, root: Callable[[ir.Value], ir.Value], of_infinity: float) -> ir.Value:
    """Return a square root, or its inverse, with a power's value at -0, that at 0, and at -inf."""
    is_infinite = hlo.compare(x, splat_like(-math.inf, x), hlo.ComparisonDirectionAttr.get("EQ"))
    without_sign = hlo.add(x, splat_like(0.0, x))
    return hlo.select(is_infinite, splat_like(of_infinity, x), root(without_sign))


_POWERS: dict[float | None, Callable[[ir.Value], ir.Value]] = {
    -1.0: lambda x: hlo.divide(splat_like(1.0, x), x),
    -0.5: lambda x: _root(x, hlo.rsqrt, 0.0),
    0.5: lambda x: _root(x, hlo.sqrt, math.inf),
    1.0: lambda x: x,
    2.0: _square,
    3.0: lambda x: hlo.multiply(_square(x), x),
    4.0: lambda x: _square(_square(x)),
}

"""The modified Bessel functions of the first kind of orders 0 and 1, times e^-|x|.

Both are polynomials of s = (|x| - c) / (|x| + c), which takes all numbers to [-1, 1], over sqrt(|x| + a): so they do
not grow or vanish at infinity, and a and c are chosen for the polynomials to be short.
"""

from xgpu import ir
from xgpu.passes.math.bessel_coefficients import I0E, I1E, Ratio
from xgpu.passes.math.builder import MathBuilder

_LARGEST = 2.0**100
"""From here on |x| / (|x| + c) is 1 in every format, and the inverse is still in the normal range."""


def bessel_i0e(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^-|x| I0(x): 1 at 0, 0 at infinity."""
    size, ratio = b.abs(x), b.of(I0E)
    return b.mul(_polynomial(b, _ratio(b, size, ratio), ratio), b.inverse_root(b.add(size, ratio.shift)))


def bessel_i1e(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^-|x| I1(x), which is odd: |x| / (|x| + c) times a polynomial of s over sqrt(|x| + a), with the sign of x."""
    size, ratio = b.abs(x), b.of(I1E)
    t = _ratio(b, size, ratio)
    factor = b.mul(_polynomial(b, t, ratio), b.inverse_root(b.add(size, ratio.shift)))
    return b.with_sign(b.mul(t, factor), x)


def _ratio(b: MathBuilder, size: ir.Value, ratio: Ratio) -> ir.Value:
    """size / (size + c): as exact as its quotient near 0, where s is not, and 1 for infinity."""
    bounded = b.at_most(size, _LARGEST)
    return b.mul(bounded, b.reciprocal(b.add(bounded, ratio.centre)))


def _polynomial(b: MathBuilder, t: ir.Value, ratio: Ratio) -> ir.Value:
    return b.polynomial(b.fma(t, 2.0, -1.0), ratio.coefficients)

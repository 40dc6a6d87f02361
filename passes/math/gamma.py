"""lgamma, the logarithm of |gamma(x)|, and digamma, its derivative.

Both are known from their values at 1 + |x|, where they are smooth: gamma(1 + x) is x gamma(x), and for a negative x
gamma(x) gamma(1 - x) is pi / sin(pi x). The distance f of x to the nearest integer is exact, and sin(pi f) and
pi f cot(pi f) are polynomials of f^2. Near the zeros of both functions, errors are absolute: a few units in the last
place of 1.
"""

import math

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder, Pair
from xgpu.passes.math.gamma_coefficients import COTANGENT, DIGAMMA, LGAMMA, LGAMMA_OF_INVERSE, SINE, STIRLING
from xgpu.passes.math.logarithm import plus_log_of_normal, plus_rough_log, precise_log

FAR_LGAMMA = "far_lgamma"
"""The helper for lgamma where `_FAR` and other ends are passed."""
_FAR = 4.0
"""Beyond it, lgamma is Stirling's series."""
_DIGAMMA_CENTRE = 2.0 / 3.0
_STIRLING_START = math.log(2.0 * math.pi) / 2.0 - 0.5


def lgamma(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log |gamma(x)|; infinite at 0, at negative integers, and at both infinities.

    With G(z) = lgamma(1 + z), it is G(x) - log(x), and for a negative x -G(-x) - log(|sin(pi x)| / pi).
    """
    size = b.abs(x)
    is_negative, f = _below_zero(b, x)
    sine = b.mul(b.abs(f), b.polynomial(b.mul(f, f), b.of(SINE)))
    rest = b.select(is_negative, sine, size)
    if b.grade == 16:
        return _lgamma_for_16_bits(b, size, is_negative, rest)
    u = b.fma(size, size, b.neg(size))
    near = b.mul(u, b.polynomial(b.sub(size, _FAR / 2.0), b.of(LGAMMA)))
    value = plus_log_of_normal(b, b.select(is_negative, b.neg(near), near), rest, -1.0)
    is_rare = b.either(b.compare("ogt", size, _FAR), b.compare("olt", rest, b.layout.smallest_normal))
    return b.if_rare(is_rare, lambda: b.call(FAR_LGAMMA, [x, rest]), [value])[0]


def far_lgamma(b: MathBuilder, x: ir.Value, rest: ir.Value) -> list[ir.Value]:
    """Return lgamma of a large or a subnormal number or a negative integer; ``rest`` is |x|, or |sin(pi x)| / pi.

    Near zeros of large negative numbers, where two sums cancel, the logarithms' lower halves count.
    """
    size, is_negative = b.abs(x), b.compare("olt", x, 0.0)
    logarithm, logarithm_rest = precise_log(b, size)
    large, large_rest = _stirling(b, size, logarithm, logarithm_rest)
    other, other_rest = precise_log(b, rest)
    one_more = b.add(large, logarithm)
    lost = b.add(b.sub(large, one_more), logarithm)
    reflected_rest = b.add(b.add(lost, b.add(large_rest, logarithm_rest)), other_rest)
    reflected = b.neg(b.add(b.add(one_more, other), reflected_rest))
    value = b.select(is_negative, reflected, b.add(large, large_rest))
    value = b.select(b.compare("olt", size, 1.0), b.neg(logarithm), value)
    return [b.select(b.compare("oeq", rest, 0.0), math.inf, value)]


def _stirling(b: MathBuilder, x: ir.Value, logarithm: ir.Value, logarithm_rest: ir.Value) -> Pair:
    """lgamma(x) of a large x as a sum, given its logarithm as one: (x - 1/2) (log(x) - 1) and a series."""
    inverse = b.reciprocal(x)
    series = b.polynomial(b.mul(inverse, inverse), b.of(STIRLING))
    factor = b.sub(x, 0.5)
    less, less_rest = b.sum(logarithm, -1.0)
    large, rest = b.product(factor, less)
    rest = b.fma(factor, b.add(less_rest, logarithm_rest), rest)
    rest = b.add(rest, b.fma(inverse, series, _STIRLING_START))
    # The first number may be infinite, and the other is then not a number.
    return large, b.select(b.compare("ogt", x, 2.0**b.bits), 0.0, rest)


def _lgamma_for_16_bits(b: MathBuilder, size: ir.Value, is_negative: ir.Value, rest: ir.Value) -> ir.Value:
    """lgamma by the series of 1 + |x| everywhere: what cancels in it costs no bit that is kept."""
    next_ = b.add(size, 1.0)
    logarithm = plus_rough_log(b, -1.0, next_, is_normal=True)
    value = b.fma(b.add(size, 0.5), logarithm, b.polynomial(b.reciprocal(next_), b.of(LGAMMA_OF_INVERSE)))
    value = plus_rough_log(b, b.select(is_negative, b.neg(value), value), rest, -1.0)
    # The difference of two infinities otherwise.
    return b.select(b.either(b.compare("oeq", rest, 0.0), b.compare("oeq", size, math.inf)), math.inf, value)


def digamma(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The derivative of lgamma; NaN at negative integers and -infinity, -infinity at 0.

    With D(z) = digamma(1 + z), it is D(x) - 1 / x, and for a negative x D(-x) - pi cot(pi x).
    """
    size = b.abs(x)
    inverse = b.reciprocal(b.add(size, 0.75))
    centred = b.sub(inverse, _DIGAMMA_CENTRE) if b.bits == 64 else inverse
    series, shifted = b.polynomial(centred, b.of(DIGAMMA)), b.add(size, 0.5)
    is_negative, f = _below_zero(b, x)
    pole = b.select(is_negative, f, size)
    square = b.select(is_negative, b.mul(f, f), 0.0)
    over = b.polynomial(square, b.of(COTANGENT))
    if b.grade == 16:
        smooth = plus_rough_log(b, series, shifted, is_normal=True)
        value = b.fma(b.neg(over), b.inverse(pole), smooth)
        return b.select(b.both(is_negative, b.compare("oeq", f, 0.0)), math.nan, value)
    value = b.sub(plus_log_of_normal(b, series, shifted), b.quotient(over, pole))
    is_rare = b.not_(b.is_positive_normal(b.abs(pole)))
    return b.if_rare(is_rare, lambda: [_digamma_elsewhere(b, x, size)], [value])[0]


def _digamma_elsewhere(b: MathBuilder, x: ir.Value, size: ir.Value) -> ir.Value:
    """digamma of 0 and subnormal numbers, of negative integers and infinities."""
    near = b.select(b.compare("oeq", x, 0.0), -math.inf, b.div(-1.0, x))
    far = b.select(b.compare("ogt", x, 0.0), x, math.nan)
    return b.select(b.compare("olt", size, 1.0), near, far)


def _below_zero(b: MathBuilder, x: ir.Value) -> Pair:
    """Whether x is negative, and x less the nearest integer if it is: from -1/2 to 1/2, exact."""
    unit = 2.0**b.layout.mantissa
    # From this number on, all are integers.
    bounded = b.at_least(x, -unit)
    nearest = b.add(b.sub(bounded, unit), unit)
    return b.compare("olt", x, 0.0), b.sub(bounded, nearest)

"""Functions whose results are rounded to bf16 afterwards, so that relative errors of 2^-18 are no errors at all.

Near 0 they are short polynomials, and elsewhere simple formulas around the GPU's instructions for logarithms, powers of
two and roots, whose errors do not count where a result is not small.
"""

import math

from xgpu import ir
from xgpu.passes.math import exponential
from xgpu.passes.math.builder import MathBuilder
from xgpu.passes.math.exponential import exp_of_moderate
from xgpu.passes.math.logarithm import plus_rough_log, rough_log
from xgpu.passes.math.short_coefficients import ACOSH, ASIN, ASINH, ATANH, ERF, ERF_INV, ERFC, LOG1P, LOG_ERFC, TANH

_NEAR_1 = 0.125
"""Up to this distance from 1, the instruction for logarithms is not exact enough."""
_LARGE = 2.0**20
"""From here on, 1 does not count beside the square of a number."""
_HUGE = 2.0**64
"""Up to here, and from its inverse on, the inverse of a number is far from the ends of the range."""
_TANH_SPLIT = 0.3
"""Up to here, 1 - 2 / (e^2x + 1) loses bits."""
_ERF_IS_ONE = 4.0
_ERFC_IS_ZERO = 10.1
_ERFC_CENTRE = 2.0


def exp(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x as the square of e^(x/2), whose range has all results; subnormal ones are then rounded once."""
    if not b.has_fast_instructions:
        return exponential.exp(b, x)
    root = b.instruction("exp2", b.mul(x, math.log2(math.e) / 2))
    return b.mul(root, root)


def tanh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """1 - 2 / (e^2x + 1); near 0, x times a polynomial of x^2."""
    if not b.has_fast_instructions:
        return exponential.tanh(b, x)
    square = b.mul(x, x)
    near = b.mul(x, b.polynomial(square, TANH))
    power = b.instruction("exp2", b.mul(x, math.log2(math.e) * 2))
    far = b.fma(b.reciprocal(b.add(power, 1.0)), -2.0, 1.0)
    return b.select(b.compare("olt", b.abs(x), _TANH_SPLIT), near, far)


def log(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The natural logarithm of a number of bf16; of a negative number NaN, of zero -infinity.

    By the instruction. Next to 1 its error counts more than 2^-18, but no logarithm of a number of bf16 is so near to
    the middle between two that it matters, unless the error for 127/128 is all but 4 percent of what it may be.
    """
    return rough_log(b, x)


def log1p(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(1 + x); -infinity at -1, NaN below."""
    near = b.mul(x, b.polynomial(x, LOG1P))
    far = rough_log(b, b.add(x, 1.0), is_normal=True)
    return b.select(b.compare("olt", b.abs(x), _NEAR_1), near, far)


def asinh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(|x| + sqrt(x^2 + 1)) with the sign of x; near 0, x times a polynomial of x^2."""
    size = b.abs(x)
    square = b.mul(size, size)
    near = b.mul(size, b.polynomial(square, ASINH))
    far = _log_of_sum_with_root(b, size, b.add(square, 1.0))
    return b.with_sign(b.select(b.compare("olt", size, 0.5), near, far), x)


def acosh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(x + sqrt(x^2 - 1)); near 1, sqrt(2t) times a polynomial of t = x - 1. NaN below 1."""
    t = b.sub(x, 1.0)
    root, _ = b.root(b.add(t, t))
    near = b.mul(root, b.polynomial(t, ACOSH))
    far = _log_of_sum_with_root(b, x, b.fma(x, x, -1.0))
    return b.select(b.compare("olt", t, 0.5), near, far)


def quotient(b: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x / y by the instruction for inverses, within 2^-22 of it or one subnormal unit, of any numbers.

    The instruction takes and gives normal numbers only, so both are scaled where y is very large or small. Where one
    divides many, only two multiplications are left for each.
    """
    if not b.has_fast_instructions:
        return b.div(x, y)
    size = b.abs(y)
    small = b.select(b.compare("olt", size, 1 / _HUGE), _HUGE, 1.0)
    scale = b.select(b.compare("ogt", size, _HUGE), 1 / _HUGE, small)
    return b.mul(b.mul(x, scale), b.reciprocal(b.mul(y, scale)))


def _log_of_sum_with_root(b: MathBuilder, x: ir.Value, square: ir.Value) -> ir.Value:
    """log(x + sqrt(square)) of a square next to that of x; if it may be infinite, log(2x)."""
    is_large = b.compare("ogt", x, _LARGE)
    total = b.add(x, b.mul(square, b.inverse_root(square)))
    start = b.select(is_large, math.log(2.0), 0.0)
    return plus_rough_log(b, start, b.select(is_large, x, total), is_normal=True)


def atanh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log((1 + x) / (1 - x)) / 2; near 0, x times a polynomial of x^2. Infinite at 1 and -1, NaN beyond."""
    size = b.abs(x)
    near = b.mul(size, b.polynomial(b.mul(size, size), ATANH))
    # Negative beyond 1, but without an end its inverse would be zero.
    bounded = b.at_most(size, 2.0)
    ratio = b.mul(b.add(bounded, 1.0), b.reciprocal(b.sub(1.0, bounded)))
    far = rough_log(b, ratio, 0.5, is_normal=True)
    return b.with_sign(b.select(b.compare("olt", size, 0.5), near, far), x)


def asin(b: MathBuilder, x: ir.Value) -> ir.Value:
    """asin(|x|), or beyond 1/2 pi/2 - 2 asin(sqrt((1 - |x|) / 2)), with the sign of x; NaN beyond 1."""
    is_near, angle = _asin_or_half(b, b.abs(x))
    value = b.select(is_near, angle, b.fma(angle, -2.0, math.pi / 2.0))
    return b.with_sign(value, x)


def acos(b: MathBuilder, x: ir.Value) -> ir.Value:
    """pi/2 - asin(x), or beyond 1/2 2 asin(sqrt((1 - |x|) / 2)), from pi if x < 0; NaN beyond 1."""
    is_near, angle = _asin_or_half(b, b.abs(x))
    near = b.sub(math.pi / 2.0, b.with_sign(angle, x))
    far = b.select(b.compare("olt", x, 0.0), b.fma(angle, -2.0, math.pi), b.add(angle, angle))
    return b.select(is_near, near, far)


def _asin_or_half(b: MathBuilder, size: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether a number is less than 1/2, and its asin if it is, else asin(sqrt((1 - size) / 2))."""
    is_near = b.compare("olt", size, 0.5)
    y = b.fma(size, -0.5, 0.5)
    root, _ = b.root(y)
    square = b.select(is_near, b.mul(size, size), y)
    return is_near, b.mul(b.select(is_near, size, root), b.polynomial(square, ASIN))


def erf(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x times a polynomial of x^2 below 1, else 1 - e^p(|x|)."""
    size = b.abs(x)
    near = b.mul(size, b.polynomial(b.mul(size, size), ERF))
    far = b.sub(1.0, exp_of_moderate(b, b.polynomial(b.at_most(size, _ERF_IS_ONE), LOG_ERFC)))
    return b.with_sign(b.select(b.compare("olt", size, 1.0), near, far), x)


def erfc(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^(-x^2) / (1 + 2|x|) times a polynomial of (|x| - c) / (|x| + c), and 2 less that for a negative x.

    The square is exact, as the argument has 8 bits.
    """
    size = b.at_most(b.abs(x), _ERFC_IS_ZERO)
    t = b.fma(b.mul(size, b.reciprocal(b.add(size, _ERFC_CENTRE))), 2.0, -1.0)
    factor = b.mul(b.polynomial(t, ERFC), b.reciprocal(b.fma(size, 2.0, 1.0)))
    value = b.mul(exp(b, b.neg(b.mul(size, size))), factor)
    return b.select(b.compare("olt", x, 0.0), b.sub(2.0, value), value)


def erf_inv(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x times a polynomial of w = -log(1 - x^2), which is at most 4.9 or, at 1 and -1, infinite; NaN beyond."""
    w = rough_log(b, b.fma(b.neg(x), x, 1.0), -1.0, is_normal=True)
    return b.mul(x, b.polynomial(w, ERF_INV))

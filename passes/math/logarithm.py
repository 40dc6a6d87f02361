"""log and the functions made of it: log2, log1p, asinh, acosh and atanh.

A positive number is m 2^e with m in [3/4, 3/2), so that e is 0 around 1 and nothing cancels there. With f = m - 1,
log(m) = f + a tail of the order of f^2. In f32 the tail is a polynomial of f. In f64 it comes from
s = f / (2 + f), as log(m) = 2 atanh(s), with far fewer terms.
"""

import math

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder, Number, Pair
from xgpu.passes.math.coefficients import ATANH, ATANH_TAIL, LN2, LN2_SHORT, LOG1P, LOG2E, TWO_THIRDS

_WINDOW = 0.75
"""The lower end of the range of m; the upper one is twice that."""


def log(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The natural logarithm; of a negative number NaN, of zero -infinity."""
    raised, f, e = _decompose(b, x)
    return _at_the_ends(b, raised, _log_of_parts(b, f, e))


def log_of_normal(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The same of a positive number that is no subnormal one."""
    f, exponent_bits = _normal_parts(b, x)
    return _at_infinity(b, x, _log_of_parts(b, f, b.from_signed(exponent_bits), 2.0**b.layout.mantissa))


def _log_of_parts(b: MathBuilder, f: ir.Value, e: ir.Value, unit: float = 1.0) -> ir.Value:
    """log(1 + f) + e log(2) / unit, of a power of two that is the unit of e."""
    high, low = LN2[b.bits]
    if b.has_fast_instructions:
        # What the upper part lacks counts 2^-28 at most.
        return b.fma(e, high / unit, b.fma(b.mul(f, f), _log1p_series(b, f), f))
    return b.fma(e, high / unit, b.add(f, b.fma(e, low / unit, _log1p_tail(b, f))))


def rough_log(b: MathBuilder, x: ir.Value, times: float = 1.0, is_normal: bool = False) -> ir.Value:
    """times * log(x), with a logarithm as exact as the GPU's instruction is in f32.

    That is within 2^-22 of log2(x) for x from 1/2 to 2, and as much of log2(x) elsewhere. ``is_normal``: x is known not
    to be subnormal.
    """
    value, factor = _rough_log(b, x, times, is_normal)
    return b.mul(value, factor)


def plus_rough_log(b: MathBuilder, start: Number, x: ir.Value, times: float = 1.0, is_normal: bool = False) -> ir.Value:
    """start + times * log(x), with the logarithm of `rough_log`."""
    value, factor = _rough_log(b, x, times, is_normal)
    return b.fma(value, factor, start)


def _rough_log(b: MathBuilder, x: ir.Value, times: float, is_normal: bool) -> tuple[ir.Value, float]:
    """Return two factors of times * log(x)."""
    if not b.has_fast_instructions:
        return log(b, x), times
    return b.instruction("log2_of_normal" if is_normal else "log2", x), times * math.log(2.0)


def plus_log_of_normal(b: MathBuilder, start: Number, x: ir.Value, times: float = 1.0) -> ir.Value:
    """start + times * log(x) for a positive normal number, the instruction's error being that of a number near 1."""
    if not b.has_fast_instructions:
        return b.fma(log(b, x), times, start)
    bits = b.to_bits(x)
    exponent_bits = exponent_bits_of(b, bits)
    binary = b.instruction("log2_of_normal", b.from_bits(b.integer_sub(bits, exponent_bits)))
    factor = times * math.log(2.0)
    value = b.fma(binary, factor, start)
    return b.fma(b.from_signed(exponent_bits), factor * 2.0**-b.layout.mantissa, value)


def log2(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The logarithm to base 2: that of f is divided by log(2) with f's product kept exactly."""
    raised, f, e = _decompose(b, x)
    return _at_the_ends(b, raised, _log2_of_parts(b, f, e))


def log2_of_normal(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The same of a positive number that is no subnormal one."""
    return _at_infinity(b, x, _log2_of_parts(b, *normal_parts(b, x)))


def _log2_of_parts(b: MathBuilder, f: ir.Value, e: ir.Value) -> ir.Value:
    high, low = LOG2E[b.bits]
    product, rest = b.product(f, high)
    rest = b.fma(_log1p_tail(b, f), high, b.fma(f, low, rest))
    return b.add(e, b.add(product, rest))


def _decompose(b: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return a multiple of x that is no subnormal number, and f and e of a positive x; anything of another."""
    layout = b.layout
    is_subnormal = b.compare("olt", x, layout.smallest_normal)
    by = layout.mantissa + 1
    raised = b.select(is_subnormal, b.mul(x, 2.0**by), x)
    f, exponent_bits = _normal_parts(b, raised)
    e = b.fma(b.from_signed(exponent_bits), 2.0**-layout.mantissa, b.select(is_subnormal, float(-by), 0.0))
    return raised, f, e


def normal_parts(b: MathBuilder, x: ir.Value) -> Pair:
    """Return f and e of a positive normal number (1 + f) 2^e."""
    f, exponent_bits = _normal_parts(b, x)
    return f, b.mul(b.from_signed(exponent_bits), 2.0**-b.layout.mantissa)


def _normal_parts(b: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return f, and e shifted to where exponents are stored."""
    bits = b.to_bits(x)
    exponent_bits = exponent_bits_of(b, bits)
    return b.sub(b.from_bits(b.integer_sub(bits, exponent_bits)), 1.0), exponent_bits


def exponent_bits_of(b: MathBuilder, bits: ir.Value) -> ir.Value:
    """Return e of a normal number, shifted to where exponents are stored."""
    mantissa = b.layout.mantissa
    return b.integer_and(b.integer_sub(bits, b.layout.field(_WINDOW)), -(1 << mantissa))


def _log1p_tail(b: MathBuilder, f: ir.Value) -> ir.Value:
    """log(1 + f) - f for f in [-1/4, 1/2)."""
    square = b.mul(f, f)
    if b.bits == 32:
        return b.mul(square, _log1p_series(b, f))
    s = b.div(f, b.add(f, 2.0))
    s_square = b.mul(s, s)
    half_square = b.mul(square, 0.5)
    # 2s = f - f^2/2 + s f^2/2: the terms of the order of f^3 are added first.
    return b.sub(b.mul(s, b.fma(s_square, b.polynomial(s_square, ATANH[64]), half_square)), half_square)


def _log1p_series(b: MathBuilder, f: ir.Value) -> ir.Value:
    """(log(1 + f) - f) / f^2 in f32."""
    return b.fma(f, b.polynomial(f, LOG1P[32]), -0.5)


def _at_the_ends(b: MathBuilder, x: ir.Value, value: ir.Value) -> ir.Value:
    """The logarithm of x: ``value`` if x is positive and finite."""
    if b.has_fast_instructions:
        return b.select(b.is_positive_finite(x), value, b.instruction("log2_of_normal", x))
    is_special = b.compare_integers("uge", b.to_bits(x), b.layout.field_of_infinity)
    value = b.select(is_special, b.fma(x, math.inf, math.inf), value)
    return b.select(b.compare("oeq", x, 0.0), -math.inf, value)


def _at_infinity(b: MathBuilder, x: ir.Value, value: ir.Value) -> ir.Value:
    """The logarithm of a positive x: ``value`` if it is finite, itself if it is infinite or NaN."""
    is_special = b.compare_integers("uge", b.to_bits(x), b.layout.field_of_infinity)
    return b.select(is_special, x, value)


def log1p(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(1 + x); -infinity at -1, NaN below."""
    # The sums lose the sign of zero.
    value = b.with_sign(_log1p_of_regular(b, x), x)
    return _at_the_ends(b, _one_more(b, x), value)


def _log1p_of_regular(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(1 + x) of a finite x above -1.

    The exponent e is that of 1 + x, but f is x 2^-e + (2^-e - 1): no bit of x is lost, as the sum is exact for every e.
    """
    exponent_bits = exponent_bits_of(b, b.to_bits(_one_more(b, x)))
    # Four times 2^-e, which is a normal number for every e.
    scale = b.from_bits(b.integer_sub(b.layout.field(4.0), exponent_bits))
    f = b.add(b.from_bits(b.integer_sub(b.to_bits(x), exponent_bits)), b.fma(scale, 0.25, -1.0))
    return _log_of_parts(b, f, b.from_signed(exponent_bits), 2.0**b.layout.mantissa)


def _one_more(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x + 1, if possible rounded down: the number before 1/2 is not exact with the exponent of 3/2."""
    return b.instruction("add_down", x, 1.0) if b.has_fast_instructions else b.add(x, 1.0)


def asinh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(|x| + sqrt(x^2 + 1)) with the sign of x."""
    size = b.abs(x)
    square = b.mul(size, size)
    root, _ = b.root(b.add(square, 1.0))
    near = b.add(size, b.ratio(square, b.add(root, 1.0)))
    value = _log1p_or_log_of_double(b, near, size)
    return b.select(b.compare("olt", size, math.inf), b.with_sign(value, x), x)


def acosh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(x + sqrt(x^2 - 1)); NaN below 1."""
    t = b.sub(x, 1.0)
    square = b.fma(t, t, b.add(t, t))
    root, inverse = b.root(square)
    root = b.fma(b.fma(b.neg(root), root, square), b.mul(inverse, 0.5), root)
    value = _log1p_or_log_of_double(b, b.add(t, root), x)
    value = b.select(b.compare("olt", x, math.inf), value, x)
    return b.select(b.compare("olt", x, 1.0), math.nan, value)


def _log1p_or_log_of_double(b: MathBuilder, near: ir.Value, x: ir.Value) -> ir.Value:
    """log1p(near), or log(2x) for an x so large that 1 does not count beside it, as its square may be infinite."""
    is_large = b.compare("ogt", x, 2.0 ** (b.layout.mantissa + 2))
    value = _log1p_of_regular(b, b.select(is_large, x, near))
    return b.add(value, b.select(is_large, math.log(2.0), 0.0))


def atanh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log((1 + x) / (1 - x)) / 2; infinite at 1 and -1, NaN beyond."""
    size = b.abs(x)
    rest = b.sub(1.0, size)
    ratio = b.ratio(b.add(size, size), rest)
    value = b.mul(_log1p_of_regular(b, ratio), 0.5)
    # Halving loses bits of subnormal numbers, which are their own atanh.
    tiny = b.compare("olt", size, 2.0 ** -(b.layout.mantissa // 2 + 1))
    value = b.select(tiny, size, value)
    # Infinite at 1, as the inverse of zero is, and NaN beyond, as roots of negative numbers are.
    return b.with_sign(b.select(b.compare("olt", size, 1.0), value, b.inverse_root(rest)), x)


def precise_log(b: MathBuilder, x: ir.Value) -> Pair:
    """log(x) of a positive finite number as a sum."""
    _, f, e = _decompose(b, x)
    s = _precise_quotient(b, f)
    w = _precise_series(b, s)
    log_high, log_low = b.sum(b.mul(s[0], 2.0), w[0])
    log_low = b.add(log_low, b.fma(s[1], 2.0, w[1]))
    high, low = LN2_SHORT[b.bits]
    total, rest = b.sum(b.mul(e, high), log_high)
    rest = b.add(rest, b.fma(e, low, log_low))
    return b.sum(total, rest)


def _precise_quotient(b: MathBuilder, f: ir.Value) -> Pair:
    """f / (2 + f) as a sum: the rounded quotient, and its remainder divided likewise."""
    denominator = b.add(f, 2.0)
    denominator_rest = b.sub(f, b.sub(denominator, 2.0))
    reciprocal = b.reciprocal(denominator)
    high = b.mul(f, reciprocal)
    minus_high = b.neg(high)
    remainder = b.fma(minus_high, denominator_rest, b.fma(minus_high, denominator, f))
    return high, b.mul(remainder, reciprocal)


def _precise_series(b: MathBuilder, s: Pair) -> Pair:
    """2 atanh(s) - 2s as a sum: s^3 (2/3 + s^2 times a polynomial of s^2)."""
    square, square_rest = b.product(s[0], s[0])
    square_rest = b.fma(b.mul(s[0], 2.0), s[1], square_rest)
    third, third_rest = TWO_THIRDS[b.bits]
    factor, factor_rest = b.sum(third, b.mul(square, b.polynomial(square, ATANH_TAIL[b.bits])))
    factor_rest = b.add(factor_rest, third_rest)
    cube, cube_rest = b.product(s[0], square)
    cube_rest = b.fma(s[0], square_rest, b.fma(s[1], square, cube_rest))
    high, rest = b.product(factor, cube)
    return high, b.fma(factor, cube_rest, b.fma(factor_rest, cube, rest))

"""powf, x^y = 2^(y log2|x|), with the logarithm and the product kept to half as many bits again as the type has.

In f32, ordinary arguments with ordinary results take a short way, and so does +0 with a positive exponent. A function
of the module computes the others, and everything in f64.
"""

import math

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder, Pair
from xgpu.passes.math.coefficients import ATANH_TAIL, EXP2M1, LOG1P_REST, LOG2E, TWO_THIRDS
from xgpu.passes.math.exponential import OVERFLOW, UNDERFLOW, exp_of_sum
from xgpu.passes.math.logarithm import normal_parts, precise_log

GENERAL_POWER = "general_power"
"""The helper for all arguments, whose results are all numbers there are."""
_LARGEST_RESULT = 125.0
"""Up to this size of its exponent, a power of two and one twice or half as large are normal numbers."""
_LARGEST_EXPONENT = 2.0**22
"""Below this size, a number's integer part can be read from a sum."""


def powf(b: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x^y as IEEE 754's pow."""
    if b.bits == 64:
        return general_power(b, x, y)[0]
    shifted = b.add(y, b.layout.rounder)
    is_whole = b.compare("oeq", b.sub(shifted, b.layout.rounder), y)
    # Negative numbers have powers with whole exponents only; a constant exponent leaves one of the two.
    base = b.select(is_whole, b.abs(x), x)
    log_high, log_low = (_log2_for_16_bits if b.grade == 16 else _log2)(b, base)
    high, rest = b.product(y, log_high)
    low = b.fma(y, log_low, rest)
    # For bf16, the lower part of the logarithm is not that small.
    total = b.add(high, low) if b.grade == 16 else high
    sign = b.integer_and(b.shift_left(b.to_bits(shifted), b.bits - 1), b.to_bits(x))
    value = b.from_bits(b.integer_xor(b.to_bits(_power_of_two(b, total, high, low)), sign))
    is_ordinary = b.both(b.compare("olt", b.abs(total), _LARGEST_RESULT), b.is_positive_normal(base))
    # Zeros are what a clip or a ReLU leaves of many numbers.
    is_zero = b.both(b.compare_integers("eq", b.to_bits(x), 0), b.compare("ogt", y, 0.0))
    value, is_ordinary = b.select(is_zero, 0.0, value), b.either(is_ordinary, is_zero)
    is_ordinary = b.both(is_ordinary, b.compare("olt", b.abs(y), _LARGEST_EXPONENT))
    return b.if_rare(b.not_(is_ordinary), lambda: b.call(GENERAL_POWER, [x, y]), [value])[0]


def _log2(b: MathBuilder, x: ir.Value) -> Pair:
    """log2(x) of a positive normal number as a sum.

    With s = 2f / (2 + f), log(1 + f) is 2 atanh(s / 2) = s + s^3 / 12 + s^5 times a polynomial of s^2. s is a sum too;
    its smaller part counts as that of the first term times the derivative.
    """
    f, e = normal_parts(b, x)
    half = b.mul(f, 0.5)
    inverse = b.reciprocal(b.add(half, 1.0))
    s = b.mul(f, inverse)
    s_rest = b.mul(b.fma(b.neg(s), half, b.sub(f, s)), inverse)
    square, square_rest = b.product(s, s)
    s_rest = b.fma(b.mul(square, 0.25), s_rest, s_rest)
    tail, tail_rest = _atanh_tail(b, s, square, square_rest)
    high, high_rest = b.sum(s, tail)
    return _in_base_two(b, e, high, b.add(high_rest, b.add(s_rest, tail_rest)))


def _atanh_tail(b: MathBuilder, s: ir.Value, square: ir.Value, square_rest: ir.Value) -> Pair:
    """s^3 / 12 + s^5 times a polynomial as a sum, given s^2 as one."""
    coefficients = [coefficient / 2.0 ** (5 + 2 * k) for k, coefficient in enumerate(ATANH_TAIL[b.bits])]
    first, first_rest = (part / 8.0 for part in TWO_THIRDS[b.bits])
    series = b.polynomial(square, coefficients)
    factor = b.fma(square, series, first)
    factor_rest = b.fma(square, series, b.sub(first, factor))
    factor_rest = b.add(factor_rest, first_rest)
    cube, cube_rest = b.product(s, square)
    cube_rest = b.fma(s, square_rest, cube_rest)
    high, rest = b.product(factor, cube)
    return high, b.fma(factor, cube_rest, b.fma(factor_rest, cube, rest))


def _log2_for_16_bits(b: MathBuilder, x: ir.Value) -> Pair:
    """log2(x) of a positive normal bf16 as a sum: f has so few bits that f - f^2 / 2 is exact."""
    f, e = normal_parts(b, x)
    square = b.mul(f, f)
    rest = b.mul(b.mul(f, square), b.polynomial(f, LOG1P_REST))
    return _in_base_two(b, e, b.fma(square, -0.5, f), rest)


def _in_base_two(b: MathBuilder, e: ir.Value, high: ir.Value, low: ir.Value) -> Pair:
    """e + (high + low) / log(2) as a sum."""
    factor, factor_rest = LOG2E[b.bits]
    product, rest = b.product(high, factor)
    rest = b.fma(low, factor, b.fma(high, factor_rest, rest))
    total, total_rest = b.sum(e, product)
    return total, b.add(total_rest, rest)


def _power_of_two(b: MathBuilder, total: ir.Value, high: ir.Value, low: ir.Value) -> ir.Value:
    """2^total of a sum if it is a normal number; else anything."""
    shifted = b.add(total, b.layout.rounder)
    fraction = b.add(b.sub(high, b.sub(shifted, b.layout.rounder)), low)
    if b.has_fast_instructions and b.grade == 16:
        power = b.instruction("exp2", fraction)
    else:
        power = b.fma(fraction, b.polynomial(fraction, b.of(EXP2M1)), 1.0)
    return b.from_bits(b.integer_add(b.to_bits(power), b.shift_left(b.to_bits(shifted), b.layout.mantissa)))


def general_power(b: MathBuilder, x: ir.Value, y: ir.Value) -> list[ir.Value]:
    """x^y of all numbers."""
    size = b.abs(x)
    log_high, log_low = precise_log(b, size)
    # An exponent beyond this only says: infinity or zero. Infinite ones would make NaN of infinity - infinity.
    limit = 2.0 ** (2 * b.layout.mantissa)
    exponent = b.clamp(y, -limit, limit)
    high, rest = b.product(exponent, log_high)
    low = b.fma(exponent, log_low, rest)
    # With the tail's share, still beyond the range of finite results.
    high = b.clamp(high, UNDERFLOW[b.bits] - 2.0, OVERFLOW[b.bits] + 2.0)
    value = exp_of_sum(b, high, b.clamp(low, -1.0, 1.0))
    is_special = b.either(b.not_(b.is_positive_finite(x)), b.compare("uno", y, y))
    return b.if_rare(is_special, lambda: [_power_at_the_ends(b, x, y, size, value)], [value])


def _power_at_the_ends(b: MathBuilder, x: ir.Value, y: ir.Value, size: ir.Value, value: ir.Value) -> ir.Value:
    """x^y, given |x|^y for a finite |x| other than 0 and a y that is a number."""
    is_infinite = b.compare("oeq", size, math.inf)
    is_zero = b.compare("oeq", size, 0.0)
    grows = b.differ(is_infinite, b.compare("olt", y, 0.0))
    value = b.select(b.either(is_infinite, is_zero), b.select(grows, math.inf, 0.0), value)
    is_whole = b.compare("oeq", b.trunc(y), y)
    half = b.mul(y, 0.5)
    # Half of an odd integer is none. Large numbers are all even, and so is infinity, as 0.5 * infinity is "whole".
    is_odd = b.both(is_whole, b.compare("une", b.trunc(half), half))
    value = b.select(is_odd, b.with_sign(value, x), value)
    has_no_value = b.both(b.compare("olt", x, 0.0), b.both(b.not_(is_whole), b.not_(is_infinite)))
    value = b.select(has_no_value, math.nan, value)
    value = b.select(b.compare("uno", x, y), b.add(x, y), value)
    is_one = b.either(b.compare("oeq", x, 1.0), b.compare("oeq", y, 0.0))
    return b.select(is_one, 1.0, value)

"""exp and the functions made of it: exp2, expm1, tanh, sinh, cosh.

With k the integer nearest to x / ln 2 and r = x - k ln 2, exp(x) = 2^k exp(r), and exp(r) - 1 is r + r^2 times a
polynomial. The two constants whose sum is ln 2 make r right to the last bit or two, as each product with k is rounded
only after it was added.
"""

import math

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder, Pair
from xgpu.passes.math.coefficients import EXPM1, LN2, LOG2E, SINH, TANH

OVERFLOW = {32: 89.0, 64: 710.0}
"""Above this, exp is infinite."""
UNDERFLOW = {32: -104.0, 64: -746.0}
"""Below this, exp is less than half the smallest positive number."""
_SMALLEST_NORMAL_LOG = {32: -87.0, 64: -708.0}
"""From here to its opposite, exp is a normal number."""
_EXPM1_IS_MINUS_ONE = {32: -20.0, 64: -40.0}
_TANH_SPLIT = 0.7
"""The argument from which on tanh is computed from exp, which loses no bits there, not from its own polynomial."""


def exp(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x, subnormal results included."""
    if b.has_fast_instructions:
        return _exp_by_instruction(b, x)
    if b.machine.fast_instructions:
        return _exp_with_rare_ends(b, x)
    return exp_of_sum(b, b.clamp(x, UNDERFLOW[b.bits], OVERFLOW[b.bits]))


def _exp_with_rare_ends(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x where a rare branch costs little: most results are normal numbers, to whose exponent k is added."""
    code, k, first = _reduce_once(b, x)
    r = b.fma(k, -LN2[b.bits][1], first)
    value = b.fma(r, b.fma(r, b.polynomial(r, EXPM1[b.bits]), 1.0), 1.0)
    # The bits above those of k go nowhere.
    usual = b.from_bits(b.integer_add(b.to_bits(value), b.shift_left(code, b.layout.mantissa)))

    def at_the_ends() -> list[ir.Value]:
        scaled = b.select(b.compare("ogt", x, OVERFLOW[b.bits]), math.inf, _scaled(b, value, code))
        return [b.select(b.compare("olt", x, UNDERFLOW[b.bits]), 0.0, scaled)]

    is_usual = b.compare("olt", b.abs(x), -_SMALLEST_NORMAL_LOG[b.bits])
    return b.if_rare(b.not_(is_usual), at_the_ends, [usual])[0]


def exp_of_sum(b: MathBuilder, x: ir.Value, tail: ir.Value | None = None) -> ir.Value:
    """e^(x + tail) for a sum a little beyond the range of finite results at most, and a tail far less than 1."""
    k, r = _reduce(b, x)
    return _scaled(b, b.add(_expm1_of_reduced(b, r if tail is None else b.add(r, tail)), 1.0), k)


def _reduce(b: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the integer k and x - k ln 2."""
    code, k, first = _reduce_once(b, x)
    return code, b.fma(k, -LN2[b.bits][1], first)


def _reduce_to_sum(b: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return the integer k, and x - k ln 2 as a sum."""
    code, k, first = _reduce_once(b, x)
    low = LN2[b.bits][1]
    r = b.fma(k, -low, first)
    return code, r, b.fma(k, -low, b.sub(first, r))


def _reduce_once(b: MathBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return the integer k, as an integer and as a float, and x less k times the upper part of ln 2."""
    rounder = b.layout.rounder
    shifted = b.fma(x, LOG2E[b.bits][0], rounder)
    k = b.sub(shifted, rounder)
    first = b.fma(k, -LN2[b.bits][0], x)
    return b.integer_sub(b.to_bits(shifted), b.layout.field(rounder)), k, first


def _expm1_of_reduced(b: MathBuilder, r: ir.Value) -> ir.Value:
    return b.fma(b.mul(r, r), b.polynomial(r, EXPM1[b.bits]), r)


def _scaled(b: MathBuilder, value: ir.Value, k: ir.Value) -> ir.Value:
    """value * 2^k, rounded once; k may be twice what an exponent can be."""
    half = b.shift_right(k, 1, signed=True)
    return b.mul(b.mul(value, b.power_of_two(half)), b.power_of_two(b.integer_sub(k, half)))


def _exp_by_instruction(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x on the GPU: the instruction for 2^f takes the fraction f of x / ln 2."""
    power, scale = _power_and_scale(b, x)
    return b.mul(power, scale)


def _power_and_scale(b: MathBuilder, x: ir.Value) -> Pair:
    """Return 2^f and 2^k, whose product is e^x.

    A product that is saturated to [0, 1] keeps k within the exponents of normal numbers. A result beyond them comes
    from a fraction beyond [0, 1]: it overflows, or becomes subnormal when it is multiplied by 2^k, so that it is
    rounded once. k is rounded down: 2^f is most exact for a positive f.
    """
    high, low = LOG2E[b.bits]
    least, exponents = 1 - b.layout.bias, 2 * b.layout.bias - 1
    share = b.instruction("fma_saturated", x, high / exponents, -least / exponents)
    shifted = b.instruction("fma_down", share, exponents, _biased_rounder(b) + least)
    minus_k, scale = _integer_part(b, shifted)
    fraction = b.fma(x, low, b.fma(x, high, minus_k))
    return b.instruction("exp2", fraction), scale


def _biased_rounder(b: MathBuilder) -> float:
    """Return what added to a number leaves an integer in the low bits that is an exponent as floats store it."""
    return b.layout.rounder + b.layout.bias


def _integer_part(b: MathBuilder, shifted: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return -k and 2^k, given an integer k plus the biased rounder."""
    return b.sub(_biased_rounder(b), shifted), b.from_bits(b.shift_left(b.to_bits(shifted), b.layout.mantissa))


def exp2(b: MathBuilder, x: ir.Value) -> ir.Value:
    """2^x, subnormal results included."""
    if b.has_fast_instructions:
        # Kept within the exponents of normal numbers, as for e^x.
        bias, rounder = b.layout.bias, _biased_rounder(b)
        shifted = b.clamp_number(b.instruction("add_down", x, rounder), rounder + 1 - bias, rounder + bias)
        minus_k, scale = _integer_part(b, shifted)
        return b.mul(b.instruction("exp2", b.add(x, minus_k)), scale)
    layout = b.layout
    clamped = b.clamp(x, float(-layout.bias - layout.mantissa - 1), float(layout.bias + 2))
    shifted = b.add(clamped, layout.rounder)
    fraction = b.sub(clamped, b.sub(shifted, layout.rounder))
    k = b.integer_sub(b.to_bits(shifted), layout.field(layout.rounder))
    return _scaled(b, b.add(_expm1_of_reduced(b, b.mul(fraction, math.log(2.0))), 1.0), k)


def expm1(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x - 1 without cancellation: 2^k (exp(r) - 1) + (2^k - 1), with r as a sum."""
    bounded = b.clamp(x, _EXPM1_IS_MINUS_ONE[b.bits], OVERFLOW[b.bits])
    k, r, rest = _reduce_to_sum(b, bounded)
    rest = b.fma(b.mul(r, r), b.polynomial(r, b.of(EXPM1)), rest)
    # Half of everything: 2^k itself can be one more than the largest power of two that there is.
    half = b.power_of_two(b.integer_sub(k, 1))
    large = b.mul(b.fma(half, rest, b.fma(half, r, b.sub(half, 0.5))), 2.0)
    value = b.select(b.compare_integers("eq", k, 0), b.add(r, rest), large)
    # The sum that makes the reduced value loses the sign of zero.
    return b.with_sign(value, x)


def logistic(b: MathBuilder, x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x): with e = e^-|x|, it is e / (1 + e) for a negative x, as e^-x is infinite before that is 0."""
    power = exp(b, b.neg(b.abs(x)))
    over = b.select(b.compare("olt", x, 0.0), power, 1.0)
    return b.quotient(over, b.add(power, 1.0))


def tanh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x times a polynomial of x^2 near 0, else 1 - 2 / (e^2|x| + 1)."""
    size = b.abs(x)
    square = b.mul(size, size)
    near = b.fma(b.mul(size, square), b.polynomial(square, TANH[b.bits]), size)
    power = exp_of_moderate(b, b.add(size, size))
    far = b.fma(b.reciprocal(b.add(power, 1.0)), -2.0, 1.0)
    return b.with_sign(b.select(b.compare("olt", size, _TANH_SPLIT), near, far), x)


def exp_of_moderate(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x for x > -80, less exact than `exp`, and for x > 80 only large: for sums with larger numbers and quotients."""
    if b.has_fast_instructions:
        return b.instruction("exp2", b.mul(x, LOG2E[b.bits][0]))
    k, r = _reduce(b, b.at_most(x, 80.0))
    return b.mul(b.add(_expm1_of_reduced(b, r), 1.0), b.power_of_two(k))


def weight(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^x where errors of 2^-18 do not count, of x up to 0: they are of the order of |x| e^x 2^-24."""
    return b.instruction("exp2", b.mul(x, LOG2E[b.bits][0])) if b.has_fast_instructions else exp(b, x)


def weight_of_two(b: MathBuilder, x: ir.Value) -> ir.Value:
    """2^x, as `weight` is of e^x."""
    return b.instruction("exp2", x) if b.has_fast_instructions else exp2(b, x)


def cap(b: MathBuilder, x: ir.Value) -> ir.Value:
    """tanh(x) where errors of 2^-21 do not count, however small the result is: 1 - 2 / (e^2x + 1)."""
    if not b.has_fast_instructions:
        return tanh(b, x)
    power = b.instruction("exp2", b.mul(x, 2 * LOG2E[b.bits][0]))
    return b.fma(b.reciprocal(b.add(power, 1.0)), -2.0, 1.0)


def _half_exp(b: MathBuilder, size: ir.Value) -> ir.Value:
    """e^x / 2, which is finite for a little longer than e^x."""
    if b.has_fast_instructions:
        power, scale = _power_and_scale(b, size)
        return b.mul(b.mul(power, 0.5), scale)
    k, r = _reduce(b, b.at_most(size, OVERFLOW[b.bits] + 1.0))
    return _scaled(b, b.add(_expm1_of_reduced(b, r), 1.0), b.integer_sub(k, 1))


def sinh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x and x^3 times a polynomial of x^2 below 1, else (e^|x| - e^-|x|) / 2."""
    size = b.abs(x)
    square = b.mul(size, size)
    near = b.fma(b.mul(size, square), b.polynomial(square, SINH[b.bits]), size)
    half = _half_exp(b, size)
    far = b.fma(b.reciprocal(half), -0.25, half)
    return b.with_sign(b.select(b.compare("olt", size, 1.0), near, far), x)


def cosh(b: MathBuilder, x: ir.Value) -> ir.Value:
    """(e^x + e^-x) / 2."""
    half = _half_exp(b, b.abs(x))
    return b.fma(b.reciprocal(half), 0.25, half)

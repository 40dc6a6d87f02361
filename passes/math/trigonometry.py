"""sin, cos, tan and their inverses.

An angle is reduced to r in [-pi/4, pi/4] and the number q of quarter turns taken off. Up to a limit, q is the nearest
integer to |x| 2/pi, and r comes from three constants whose sum is pi/2. Beyond it, a helper function of the module
multiplies x by as many bits of 2/pi as matter (Payne and Hanek's method), in integers of twice the width.
"""

import math
from functools import cache
from itertools import pairwise

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder, Pair
from xgpu.passes.math.coefficients import ASIN, ATAN, COS, HALF_PI, SIN, TAN, THREE_QUARTERS_PI, TWO_OVER_PI
from xgpu.passes.math.short_coefficients import ATAN as SHORT_ATAN

_LARGE = {32: 17, 64: 30}
"""Angles from this power of two on are large."""
REDUCE_LARGE = "reduce_large"
"""The helper that takes a large positive angle and returns r and q."""

_Angle = tuple[ir.Value, ir.Value | None]
"""A reduced angle: a number and what it lacks, which does not count for results of 16 bits."""


def sin(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The sine; NaN of infinity."""
    # The polynomials lose the sign of zero, so it is given back last.
    r, q = _reduce(b, b.abs(x))
    return b.flip_sign(_sine_after_turns(b, r, q), x)


def cos(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The cosine; NaN of infinity."""
    r, q = _reduce(b, b.abs(x))
    return _sine_after_turns(b, r, b.integer_add(q, 1))


def tan(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The tangent; NaN of infinity."""
    angle, q = _reduce(b, b.abs(x))
    is_odd = _is_odd(b, q)
    if b.grade == 32:
        tangent = _tangent(b, angle)
        value = b.select(is_odd, b.neg(b.reciprocal(tangent)), tangent)
    else:
        sine, cosine = _sine(b, angle), _cosine(b, angle)
        value = b.ratio(b.select(is_odd, b.neg(cosine), sine), b.select(is_odd, sine, cosine))
    return b.flip_sign(value, x)


def _tangent(b: MathBuilder, angle: _Angle) -> ir.Value:
    """The tangent of a reduced angle of f32. What r lacks is taken for what its tangent lacks."""
    r, rest = angle
    assert rest is not None
    square = b.mul(r, r)
    return b.add(r, b.fma(b.mul(r, square), b.polynomial(square, TAN), rest))


def _sine_after_turns(b: MathBuilder, r: _Angle, q: ir.Value) -> ir.Value:
    """sin(r + q pi/2)."""
    value = b.select(_is_odd(b, q), _cosine(b, r), _sine(b, r))
    flip = b.shift_left(b.integer_and(q, 2), b.bits - 2)
    return b.from_bits(b.integer_xor(b.to_bits(value), flip))


def _is_odd(b: MathBuilder, q: ir.Value) -> ir.Value:
    return b.compare_integers("ne", b.integer_and(q, 1), 0)


def _sine(b: MathBuilder, angle: _Angle) -> ir.Value:
    r, rest = angle
    square = b.mul(r, r)
    cube, series = b.mul(r, square), b.polynomial(square, b.of(SIN))
    return b.fma(cube, series, r) if rest is None else b.add(b.fma(cube, series, rest), r)


def _cosine(b: MathBuilder, angle: _Angle) -> ir.Value:
    r, rest = angle
    square = b.mul(r, r)
    fourth, series = b.mul(square, square), b.polynomial(square, b.of(COS))
    large = b.fma(square, -0.5, 1.0)
    if rest is None:
        return b.fma(fourth, series, large)
    large_rest = b.fma(square, -0.5, b.sub(1.0, large))
    return b.add(b.fma(fourth, series, b.fma(b.neg(r), rest, large_rest)), large)


def _reduce(b: MathBuilder, size: ir.Value) -> tuple[_Angle, ir.Value]:
    """Return r and q (its lowest two bits count) of a positive angle."""
    rounder = b.layout.rounder
    shifted = b.fma(size, TWO_OVER_PI[b.bits], rounder)
    turns = b.sub(shifted, rounder)
    high, middle, low = HALF_PI[b.bits]
    # Exact, since it has no bits below those of ``high``.
    first = b.fma(turns, -high, size)
    is_large = b.compare("oge", size, 2.0 ** _LARGE[b.bits])
    if b.grade == 16:
        r = b.fma(turns, -low, b.fma(turns, -middle, first))
        r, q = b.if_rare(is_large, lambda: [*b.call(REDUCE_LARGE, [size])][::2], [r, b.to_bits(shifted)])
        return (r, None), q
    r = b.sub(first, b.mul(turns, middle))
    # What r has taken off is exact, so only its difference to the product is rounded.
    rest = b.fma(turns, -low, b.fma(turns, -middle, b.sub(first, r)))
    r, rest, q = b.if_rare(is_large, lambda: b.call(REDUCE_LARGE, [size]), [r, rest, b.to_bits(shifted)])
    return (r, rest), q


def reduce_large(b: MathBuilder, size: ir.Value) -> list[ir.Value]:
    """Return r as a sum and q of an angle not less than the limit; r is NaN for infinity.

    size = m 2^e. Of the bits of 2/pi 2^e, those of weight 4 and more add whole turns; m times the next 3 words is kept
    to 2 words modulo 4. Its part after the point, taken from the nearest integer q, has at least as many significant
    bits as the format, since no number comes closer to a multiple of pi/2.
    """
    mantissa, bits = b.layout.mantissa, b.bits
    code = b.to_bits(size)
    m = b.integer_or(b.integer_and(code, (1 << mantissa) - 1), 1 << mantissa)
    # The exponent from that of the smallest large angle on.
    offset = b.integer_sub(b.shift_right(code, mantissa), b.layout.bias + _LARGE[bits])
    products = [b.integer_mul(b.widen(m), b.widen(word)) for word in _window(b, offset)]
    total = b.integer_add(b.shift_left(products[0], bits), products[1])
    total = b.integer_add(total, b.shift_right(products[2], bits))
    upper = b.narrow(b.shift_right(total, bits))
    q = b.shift_right(b.integer_add(upper, 1 << bits - 3), bits - 2)
    fraction = b.integer_sub(total, b.shift_left(b.widen(q), 2 * bits - 2))
    r, rest = _fraction_to_angle(b, fraction)
    return [b.add(r, b.sub(size, size)), rest, q]


def _fraction_to_angle(b: MathBuilder, fraction: ir.Value) -> Pair:
    """pi/2 times a signed fixed-point number with two bits before the point, as a sum."""
    bits = b.bits
    is_negative = b.compare_integers("slt", fraction, 0)
    size = b.integer_select(is_negative, b.integer_sub(0, fraction), fraction)
    zeros = b.leading_zeros(size)
    word = b.narrow(b.shift_right(b.shift_left(size, zeros), bits))
    # In two parts that are exact as floats.
    kept = -(1 << bits - b.layout.mantissa - 1)
    upper = b.from_unsigned(b.integer_and(word, kept))
    lower = b.from_unsigned(b.integer_and(word, ~kept))
    high, low, _ = HALF_PI[bits]
    product, rest = b.product(upper, high)
    angle, rest = b.sum(product, b.add(rest, b.fma(upper, low, b.mul(lower, high))))
    scale = b.power_of_two(b.integer_sub(2 - bits, b.narrow(zeros)))
    scale = b.select(is_negative, b.neg(scale), scale)
    return b.mul(angle, scale), b.mul(rest, scale)


def _window(b: MathBuilder, offset: ir.Value) -> list[ir.Value]:
    """Return three words of 2/pi 2^e, from the bit of weight 2 on; ``offset`` counts e from that of the limit."""
    bits = b.bits
    # Exponents are at most bias: this many word positions, and four words to cut three from at any bit.
    last = (b.layout.bias - _LARGE[bits]) // bits
    words: list[ir.Value] = [b.whole(word) for word in _words(bits, last + 4)]
    steps = b.shift_right(offset, bits.bit_length() - 1)
    for bit in reversed(range(last.bit_length())):
        is_set = b.compare_integers("ne", b.integer_and(steps, 1 << bit), 0)
        needed = min(len(words), 4 + (1 << bit) - 1)
        pairs = [(words[min(i + (1 << bit), len(words) - 1)], words[i]) for i in range(needed)]
        words = [b.integer_select(is_set, far, near) for far, near in pairs]
    shift = b.integer_and(offset, bits - 1)
    # A shift by the width is undefined: one bit, then the rest.
    rest = b.integer_sub(bits - 1, shift)
    return [
        b.integer_or(b.shift_left(word, shift), b.shift_right(b.shift_right(after, 1), rest))
        for word, after in pairwise(words)
    ]


@cache
def _words(bits: int, count: int) -> list[int]:
    """Return the bits of 2/pi in words of ``bits``, the first starting with the one of weight 2 for the first offset.

    m is an integer, so for the smallest large angle e = limit - mantissa, and the first weight is 2^(1 - e).
    """
    mantissa = {32: 23, 64: 52}[bits]
    places = bits * count - 2 - (mantissa - _LARGE[bits])
    guard = 64
    value = (1 << 2 * (places + guard)) * 2 // _pi(places + guard) >> guard
    return [value >> bits * (count - 1 - i) & (1 << bits) - 1 for i in range(count)]


def _pi(places: int) -> int:
    """Return pi 2^places rounded down, but for the last bits: Machin's 16 atan(1/5) - 4 atan(1/239)."""

    def atan_of_inverse(n: int) -> int:
        power = (1 << places) // n
        total, k = power, 1
        while power:
            power //= -n * n
            k += 2
            total += power // k
        return total

    return 16 * atan_of_inverse(5) - 4 * atan_of_inverse(239)


def asin(b: MathBuilder, x: ir.Value) -> ir.Value:
    """A polynomial up to 1/2, beyond it pi/2 - 2 asin(sqrt((1 - |x|) / 2)); NaN beyond 1."""
    size = b.abs(x)
    is_near = b.compare("ole", size, 0.5)
    high, low, _ = HALF_PI[b.bits]
    twice, rest = _twice_asin_of_root(b, size)
    start, start_rest = b.sum(high, b.neg(twice))
    far = b.sub(start, b.sub(b.sub(rest, low), start_rest))
    return b.with_sign(b.select(is_near, _asin_polynomial(b, size), far), x)


def acos(b: MathBuilder, x: ir.Value) -> ir.Value:
    """pi/2 - asin(x) up to |x| = 1/2, beyond it 2 asin(sqrt((1 - |x|) / 2)), from pi if x < 0; NaN beyond 1."""
    size = b.abs(x)
    is_near = b.compare("ole", size, 0.5)
    high, low, _ = HALF_PI[b.bits]
    if b.bits == 32:
        s, tail = _near_or_root(b, size, is_near)
        times = b.flip_sign(b.select(is_near, -1.0, 2.0), x)
        end = b.select(b.compare("olt", x, 0.0), 2 * high, 0.0)
        start = b.select(is_near, high, end)
        return b.add(b.fma(s, times, start), b.fma(tail, times, b.mul(start, low / high)))
    near = b.sub(high, b.sub(_asin_polynomial(b, x), low))
    twice, rest = _twice_asin_of_root(b, size)
    left = b.sub(b.sub(2 * high, twice), b.sub(rest, 2 * low))
    far = b.select(b.compare("olt", x, 0.0), left, b.add(twice, rest))
    return b.select(is_near, near, far)


def _near_or_root(b: MathBuilder, size: ir.Value, is_near: ir.Value) -> Pair:
    """s and what asin adds to it in f32: s is size if that is near, else about the root of (1 - size) / 2.

    What a root lacks is in the second number.
    """
    y = b.fma(size, -0.5, 0.5)
    root, inverse = b.root(y)
    lacking = b.mul(b.fma(b.neg(root), root, y), b.mul(inverse, 0.5))
    s = b.select(is_near, size, root)
    square = b.mul(s, s)
    return s, b.fma(b.mul(s, square), b.polynomial(square, ASIN[32]), b.select(is_near, 0.0, lacking))


def _twice_asin_of_root(b: MathBuilder, size: ir.Value) -> Pair:
    """2 asin(sqrt(y)) of y = (1 - size) / 2, which is exact, as a sum.

    The first number is twice the rounded root; what it lacks, (y - root^2) / root, is in the second.
    """
    y = b.fma(size, -0.5, 0.5)
    root, inverse = b.root(y)
    twice = b.add(root, root)
    lacking = b.mul(b.fma(b.neg(root), root, y), inverse)
    return twice, b.fma(b.mul(twice, y), b.polynomial(y, ASIN[b.bits]), lacking)


def _asin_polynomial(b: MathBuilder, x: ir.Value) -> ir.Value:
    square = b.mul(x, x)
    return b.fma(b.mul(x, square), b.polynomial(square, ASIN[b.bits]), x)


def atan(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The arc tangent. In f32, beyond 1 it is pi/2 + atan(-1 / |x|)."""
    size, one = b.abs(x), b.number(1.0)
    if b.grade == 32:
        is_steep = b.compare("ogt", size, 1.0)
        t = b.select(is_steep, b.neg(b.reciprocal(size)), size)
        angle = _plus_atan(b, b.select(is_steep, HALF_PI[32][0], 0.0), t)
    else:
        angle = (_short_atan_of_quotient if b.grade == 16 else _atan_of_quotient)(b, size, one)
    return b.with_sign(angle, x)


def atan2(b: MathBuilder, y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y), in [-pi, pi]; zeros and infinities as C's atan2 has them."""
    over, under = b.abs(y), b.abs(x)
    total = b.add(over, under)
    is_regular = b.is_between(total, 2.0 ** (b.layout.mantissa + 2 - b.layout.bias), 2.0 ** (b.layout.bias - 3))
    over, under = b.if_rare(b.not_(is_regular), lambda: _scaled(b, over, under, total), [over, under])
    is_left = b.compare_integers("slt", b.to_bits(x), 0)
    if b.grade == 32:
        return b.with_sign(_angle_of_point(b, over, under, is_left), y)
    if b.grade != 16:
        return b.with_sign(_atan_of_quotient(b, over, under, x), y)
    angle = _short_atan_of_quotient(b, over, under)
    return b.with_sign(b.select(is_left, b.sub(math.pi, angle), angle), y)


def _scaled(b: MathBuilder, over: ir.Value, under: ir.Value, total: ir.Value) -> list[ir.Value]:
    """Return two positive numbers of the same angle, so that their sum is of moderate size.

    If any is infinite, infinities are taken for 1 and other numbers for 0. Two zeros are treated as 0 and 1. Subnormal
    numbers gain bits.
    """
    are_infinite = [b.compare("oeq", each, math.inf) for each in (over, under)]
    is_any = b.either(*are_infinite)
    scale = b.select(b.compare("olt", total, 1.0), 2.0 ** (b.layout.mantissa + 1), 2.0**-6)
    over, under = (
        b.select(is_any, b.select(is_infinite, 1.0, b.mul(each, 0.0)), b.mul(each, scale))
        for each, is_infinite in zip((over, under), are_infinite, strict=True)
    )
    return [over, b.select(b.compare("oeq", total, 0.0), 1.0, under)]


def _angle_of_point(b: MathBuilder, over: ir.Value, under: ir.Value, is_left: ir.Value) -> ir.Value:
    """The angle of (under, over), or of (-under, over) if that is to the left: of f32, in [0, pi].

    It is that of the smaller one over the larger one, from the nearest multiple of pi/2 on.
    """
    is_steep = b.compare("ogt", over, under)
    t = b.quotient(b.select(is_steep, under, over), b.select(is_steep, over, under))
    t = b.select(b.differ(is_steep, is_left), b.neg(t), t)
    half = HALF_PI[32][0]
    return _plus_atan(b, b.select(is_steep, half, b.select(is_left, 2 * half, 0.0)), t)


def _plus_atan(b: MathBuilder, start: ir.Value, t: ir.Value) -> ir.Value:
    """start + atan(t) of |t| <= 1 and a rounded multiple of pi/2, which lacks a share that all of them lack."""
    high, low, _ = HALF_PI[32]
    square = b.mul(t, t)
    rest = b.fma(b.mul(t, square), b.polynomial(square, ATAN[32]), b.mul(start, low / high))
    return b.add(start, b.add(t, rest))


def _atan_of_quotient(b: MathBuilder, over: ir.Value, under: ir.Value, side: ir.Value | None = None) -> ir.Value:
    """atan(over / under) of positive numbers whose sum, if finite, has an inverse in the normal range.

    With t = over / under: a polynomial of t below tan(1/2) = 0.546, pi/2 + atan(-1/t) above 1 / 0.546, and
    pi/4 + atan((t - 1) / (t + 1)) between them, where results are 1/2 and more: the error of the quotient counts less.
    With the sign bit of ``side`` set, pi less that: pi, pi/2 or 3 pi/4 and the polynomial of -t, rounded once like the
    others, so that straight up is pi/2 whatever the sign of ``side``.
    """
    is_middle = b.compare("ogt", over, b.mul(under, 0.5463025))
    is_steep = b.compare("ogt", over, b.mul(under, 1.8304877))
    top = b.select(is_steep, b.neg(under), b.select(is_middle, b.sub(over, under), over))
    bottom = b.select(is_steep, over, b.select(is_middle, b.add(over, under), under))
    t = b.ratio(top, bottom)
    steeps = HALF_PI[b.bits][:2]
    middles, flats = [b.number(half / 2) for half in steeps], [b.number(0.0)] * 2
    if side is not None:
        t = b.flip_sign(t, side)
        is_left = b.compare_integers("slt", b.to_bits(side), 0)
        middles = [b.select(is_left, *each) for each in zip(THREE_QUARTERS_PI[b.bits], middles, strict=True)]
        flats = [b.select(is_left, 2 * half, 0.0) for half in steeps]
    start, start_rest = (
        b.select(is_steep, steep, b.select(is_middle, middle, flat))
        for steep, middle, flat in zip(steeps, middles, flats, strict=True)
    )
    square = b.mul(t, t)
    rest = b.fma(b.mul(t, square), b.polynomial(square, ATAN[b.bits]), start_rest)
    return b.add(start, b.add(t, rest))


def _short_atan_of_quotient(b: MathBuilder, over: ir.Value, under: ir.Value) -> ir.Value:
    """The same for results that are rounded to bf16: a polynomial of t up to 1, pi/2 - atan(1/t) above."""
    is_steep = b.compare("ogt", over, under)
    t = b.ratio(b.select(is_steep, under, over), b.select(is_steep, over, under))
    angle = b.mul(t, b.polynomial(b.mul(t, t), SHORT_ATAN))
    return b.select(is_steep, b.sub(math.pi / 2.0, angle), angle)

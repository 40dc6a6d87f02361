"""Roots, quotients, erf, erfc and the inverse of erf."""

import math
from collections.abc import Sequence

from xgpu import ir
from xgpu.passes.math.builder import MathBuilder
from xgpu.passes.math.error_coefficients import ERF, ERF_INV, ERFC, LOG_ERFC, PolynomialPiece
from xgpu.passes.math.exponential import exp_of_moderate, exp_of_sum
from xgpu.passes.math.logarithm import log

_ERF_IS_ONE = {32: 4.0, 64: 6.0}
_ERFC_IS_ZERO = {32: 10.1, 64: 27.3}
_ERFC_CENTRE = {32: 3.0, 64: 4.0}
_LARGE_DIVISOR = 2.0**126
"""Inverses of larger numbers of f32 are subnormal."""
_BEFORE_HALF = 0.49999997
"""The number of f32 before 1/2."""
_CBRT_STEP = (1.0, 1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0)
"""(1 - h)^(-1/3) as a series."""


def rsqrt(b: MathBuilder, x: ir.Value) -> ir.Value:
    """1 / sqrt(x); infinite at zero with its sign, NaN below."""
    if b.has_fast_instructions:
        return b.instruction("rsqrt", x)
    if b.machine.fast_instructions:
        return b.instruction("rsqrt_of_f64", x)
    return b.div(1.0, b.sqrt(x))


def rsqrt_of_normal(b: MathBuilder, x: ir.Value) -> ir.Value:
    """1 / sqrt(x) of a positive x that is no subnormal number."""
    return b.inverse_root(x) if b.has_fast_instructions else rsqrt(b, x)


def cbrt(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The real cube root: a guess of the root and of its inverse square, and a step of Newton's that rounds well."""
    layout = b.layout
    is_subnormal = b.compare("olt", b.abs(x), layout.smallest_normal)
    # A power of two that is a cube.
    third = layout.mantissa // 3 + 1
    raised = b.select(is_subnormal, b.mul(x, 2.0 ** (3 * third)), x)
    if b.has_fast_instructions:
        inverse = b.instruction("exp2", b.mul(b.instruction("log2_of_normal", b.abs(raised)), -1.0 / 3.0))
    else:
        inverse = _inverse_cbrt(b, b.abs(raised))
    inverse_square = b.mul(inverse, inverse)
    root = b.mul(raised, inverse_square)
    square, rest = b.product(root, root)
    error = b.fma(b.neg(root), rest, b.fma(b.neg(root), square, raised))
    root = b.fma(error, b.mul(inverse_square, 1.0 / 3.0), root)
    value = b.mul(root, b.select(is_subnormal, 2.0**-third, 1.0))
    if b.has_fast_instructions:
        # Zero and infinity times the other.
        return b.select(b.compare("uno", value, value), x, value)
    return b.select(b.is_positive_finite(b.abs(x)), value, x)


def _inverse_cbrt(b: MathBuilder, size: ir.Value) -> ir.Value:
    """1 / cbrt(size) of a normal number, to all but the last bits.

    A third of the bits, taken from a constant, is a guess that is right to a few percent. Two steps each leave the
    fourth power of the error.
    """
    # With the bits of y near 2^mantissa (log2(y) + bias - 0.043), those of y^(-1/3) are this less their third.
    start = int((b.layout.bias - 0.043) * 4 / 3 * 2**b.layout.mantissa)
    inverse = b.from_bits(b.integer_sub(start, b.divide_by(b.to_bits(size), 3)))
    for _ in range(2):
        error = b.fma(b.neg(b.mul(size, inverse)), b.mul(inverse, inverse), 1.0)
        inverse = b.mul(inverse, b.polynomial(error, _CBRT_STEP))
    return inverse


def erf(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x + x times a polynomial of x^2 below 1, else 1 - e^p(|x|)."""
    size = b.abs(x)
    square = b.mul(size, size)
    near = b.fma(size, b.polynomial(square, ERF[b.bits]), size)
    logarithm = b.polynomial(b.at_most(size, _ERF_IS_ONE[b.bits]), LOG_ERFC[b.bits])
    far = b.sub(1.0, exp_of_moderate(b, logarithm))
    return b.with_sign(b.select(b.compare("olt", size, 1.0), near, far), x)


def erfc(b: MathBuilder, x: ir.Value) -> ir.Value:
    """e^(-x^2) / (1 + 2|x|) times a polynomial of (|x| - c) / (|x| + c), and 2 less that for a negative x."""
    size = b.at_most(b.abs(x), _ERFC_IS_ZERO[b.bits])
    centre = _ERFC_CENTRE[b.bits]
    t = b.fma(b.mul(size, b.reciprocal(b.add(size, centre))), 2.0, -1.0)
    factor = _split_polynomial(b, t, *ERFC[b.bits])
    square, rest = b.product(size, size)
    power = exp_of_sum(b, b.neg(square), b.neg(rest))
    value = b.mul(power, b.mul(factor, b.reciprocal(b.fma(size, 2.0, 1.0))))
    return b.select(b.compare("olt", x, 0.0), b.sub(2.0, value), value)


def erf_inv(b: MathBuilder, x: ir.Value) -> ir.Value:
    """x times a polynomial of w = -log(1 - x^2), or of sqrt(w) where w is large; NaN beyond 1.

    1 - x^2 is rounded once. An error of w counts half of what it is relative to w.
    """
    rest = b.fma(b.neg(x), x, 1.0)
    w = b.neg(_log_of_at_most_one(b, rest))
    near, *others = ERF_INV[b.bits]

    def far() -> list[ir.Value]:
        root, _ = b.root(w)
        value = b.number(math.inf)
        for piece in reversed(others):
            value = b.select(b.compare("olt", w, piece.limit), _piece(b, piece, root), value)
        return [value]

    (factor,) = b.if_rare(b.compare("oge", w, near.limit), far, [_piece(b, near, w)])
    return b.mul(factor, x)


def _piece(b: MathBuilder, piece: PolynomialPiece, x: ir.Value) -> ir.Value:
    return _split_polynomial(b, b.sub(x, piece.centre), piece.coefficients, piece.first_rest)


def _log_of_at_most_one(b: MathBuilder, x: ir.Value) -> ir.Value:
    """log(x) of a number from 2^-60 to 1; of 0 -infinity, of a negative number NaN."""
    if b.has_fast_instructions:
        return b.mul(b.instruction("log2_of_normal", x), math.log(2.0))
    return log(b, x)


def _split_polynomial(b: MathBuilder, x: ir.Value, coefficients: Sequence[float], first_rest: float) -> ir.Value:
    """A polynomial whose first coefficient is a sum; ``first_rest`` is its smaller part."""
    first, *others = coefficients
    return b.add(b.fma(x, b.polynomial(x, others), first_rest), first)


def sqrt(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The square root within a unit in the last place; of a negative number NaN, of a zero itself."""
    return b.instruction("root", x)


def sqrt_of_normal(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The same of a number that is no subnormal one."""
    return b.instruction("root_of_normal", x)


def quotient(b: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x / y within two units in the last place, of all numbers."""
    return b.instruction("quotient", x, y)


def quotient_by_normal(b: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """The same of a positive y that is no subnormal number.

    The inverse of a large y would be subnormal, so it is made of a quarter, and so is x.
    """
    quarter = b.select(b.compare("ogt", y, _LARGE_DIVISOR), 0.25, 1.0)
    return b.mul(b.mul(x, quarter), b.reciprocal(b.mul(y, quarter)))


def quotient_of_narrow(b: MathBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """x / y of two numbers of f16, within 2^-45 before it is rounded once: no inverse of them is subnormal.

    The step that corrects a quotient by its remainder has no value for infinities, and takes the sign from zeros.
    """
    inverse = b.reciprocal(y)
    first = b.mul(x, inverse)
    better = b.fma(b.fma(b.neg(first), y, x), inverse, first)
    return b.select(b.compare("ogt", b.abs(better), 0.0), better, first)


def round_away(b: MathBuilder, x: ir.Value) -> ir.Value:
    """The nearest integer, of two the one farther from zero.

    What is added is the number before 1/2: 1/2 itself would round up the number before it.
    """
    return b.trunc(b.add(x, b.with_sign(b.number(_BEFORE_HALF), x)))

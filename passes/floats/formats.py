"""Small floating-point formats, and their conversion from and to f32 by integer arithmetic.

Every format here is narrower than f32 in both exponent and mantissa or, as bf16, in the mantissa alone, so widening is
exact, and narrowing rounds once, to the nearest and ties to even.
"""

from typing import Literal

from xgpu import ir
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.refusals import refuse_type
from xgpu.records import dataclass

_F32_MANTISSA = 23
_F32_BIAS = 127
_F32_INFINITY = 0x7F800000
_F32_NAN = 0x7FC00000


@dataclass(frozen=True)
class FloatFormat:
    """Layout of a format: sign, exponent, mantissa.

    ``specials``: "ieee" has infinities and NaNs at the largest exponent; "fn" has no infinity and one NaN (all ones);
    "fnuz" has no infinity, no negative zero and one NaN (the code of negative zero); "finite" has neither infinity
    nor NaN; "powers" has no sign, no mantissa, no zero and no infinity, and one NaN (all ones).
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Literal["ieee", "fn", "fnuz", "finite", "powers"] = "ieee"

    @property
    def bits(self) -> int:
        """Width of a value."""
        return int(self.has_sign) + self.exponent_bits + self.mantissa_bits

    @property
    def has_sign(self) -> bool:
        """Whether there is a sign bit, so that negating is flipping it (but for zero and NaN of "fnuz")."""
        return self.specials != "powers"

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The code with all ones in the exponent and a mantissa of zero: infinity in an "ieee" format."""
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def largest(self) -> int:
        """The largest code without sign."""
        return self.sign - 1


FORMATS: dict[str, FloatFormat] = {
    "f16": FloatFormat(5, 10, 15),
    "bf16": FloatFormat(8, 7, 127),
    "f8E5M2": FloatFormat(5, 2, 15),
    "f8E4M3": FloatFormat(4, 3, 7),
    "f8E3M4": FloatFormat(3, 4, 3),
    "f8E4M3FN": FloatFormat(4, 3, 7, "fn"),
    "f8E5M2FNUZ": FloatFormat(5, 2, 16, "fnuz"),
    "f8E4M3FNUZ": FloatFormat(4, 3, 8, "fnuz"),
    "f8E4M3B11FNUZ": FloatFormat(4, 3, 11, "fnuz"),
    "f8E8M0FNU": FloatFormat(8, 0, 127, "powers"),
    "f4E2M1FN": FloatFormat(2, 1, 1, "finite"),
}
"""The formats by the names of their MLIR types."""


def format_of(type_: ir.Type, op: ir.Operation) -> FloatFormat:
    """Return the format of a scalar type or of a vector's elements; raises `Unsupported` if xgpu does not know it.

    ``op`` is the operation that computes with such values.
    """
    name = str(b.element_type(type_))
    if name not in FORMATS:
        refuse_type(op, "operations on values", b.element_type(type_))
    return FORMATS[name]


def codes(value: ir.Value, layout: FloatFormat) -> ir.Value:
    """Return the bits of a value of a small format as an integer of its width."""
    return b.bitcast(value, b.integer_type(layout.bits))


def widen(value: ir.Value, layout: FloatFormat) -> ir.Value:
    """Return a value of the small format ``layout`` as f32, exactly."""
    code = b.extend(codes(value, layout), 32)
    f32 = ir.F32Type.get()
    up = _F32_MANTISSA - layout.mantissa_bits
    if layout.specials == "powers":
        return _widen_power(code)
    if layout.exponent_bits == 8:
        return b.bitcast(b.shift_left(code, up), f32)
    magnitude = b.and_(code, layout.largest)
    sign = b.shift_left(b.and_(code, layout.sign), 32 - layout.bits)
    shifted = b.shift_left(magnitude, up)
    # As an f32, the shifted code is the value over a power of two, for denormals too: the product is exact.
    factor = b.constant(2.0 ** (_F32_BIAS - layout.bias), b.like(value.type, f32))
    bits = b.bitcast(ir.arith.mulf(b.bitcast(shifted, f32), factor), b.integer_type(32))
    if layout.specials == "ieee":
        is_special = b.compare("uge", magnitude, layout.infinity)
        bits = b.select(is_special, b.or_(shifted, _F32_INFINITY), bits)
    elif layout.specials == "fn":
        bits = _choose(b.compare("eq", magnitude, layout.largest), _F32_NAN, bits)
    elif layout.specials == "fnuz":
        bits = _choose(b.compare("eq", code, layout.sign), _F32_NAN, bits)
    return b.bitcast(b.or_(bits, sign), f32)


def _widen_power(code: ir.Value) -> ir.Value:
    """Return the power of two whose biased exponent is ``code``; the least one is a denormal of f32."""
    bits = _choose(b.compare("eq", code, 0), 1 << (_F32_MANTISSA - 1), b.shift_left(code, _F32_MANTISSA))
    return b.bitcast(_choose(b.compare("eq", code, 0xFF), _F32_NAN, bits), ir.F32Type.get())


def narrow(value: ir.Value, layout: FloatFormat, type_: ir.Type) -> ir.Value:
    """Return an f32 as a value of ``type_``, whose format is ``layout``, rounded to nearest, ties to even.

    Overflow gives infinity, NaN in a format that has none, the largest number in one that has neither. NaN stays NaN
    and becomes a quiet one, or negative zero in a format without, which is what XLA makes of it.
    """
    i32, f32 = b.integer_type(32), ir.F32Type.get()
    bits = b.bitcast(value, i32)
    if layout.specials == "powers":
        return b.bitcast(b.truncate(_nearest_power(bits), layout.bits), b.element_type(type_))
    sign = b.shift_left(b.shift_right(bits, 31), layout.bits - 1)
    magnitude = b.and_(bits, 0x7FFFFFFF)
    down = _F32_MANTISSA - layout.mantissa_bits
    rebias = _F32_BIAS - layout.bias
    rebiased = b.sub(magnitude, rebias << _F32_MANTISSA) if rebias else magnitude
    odd = b.and_(b.shift_right(rebiased, down), 1)
    code = b.shift_right(b.add(b.add(rebiased, (1 << (down - 1)) - 1), odd), down)
    if rebias:
        # Adding a power of two whose last bit has the weight of the format's smallest value rounds a denormal.
        magic_bits = (rebias + 1 + down) << _F32_MANTISSA
        magic = b.bitcast(b.constant(magic_bits, magnitude.type), f32)
        total = ir.arith.addf(b.bitcast(magnitude, f32), magic)
        denormal = b.sub(b.bitcast(total, i32), magic_bits)
        code = b.select(b.compare("ult", magnitude, (rebias + 1) << _F32_MANTISSA), denormal, code)
    code = _specials(code, magnitude, layout)
    signed = b.or_(code, sign)
    if layout.specials == "fnuz":
        # Zero and NaN have no sign: 0 - 1 wraps, so one comparison finds both.
        has_sign = b.compare("ult", b.sub(code, 1), layout.largest)
        signed = b.select(has_sign, signed, code)
    elif layout.specials == "finite":
        signed = _choose(b.compare("ugt", magnitude, _F32_INFINITY), layout.sign, signed)
    return b.bitcast(b.truncate(signed, layout.bits), b.element_type(type_))


def _nearest_power(bits: ir.Value) -> ir.Value:
    """Return the biased exponent of the power of two nearest to an f32, given as its bits.

    Halfway between two powers is rounded up, as XLA does. Zero, negative numbers and NaN, and what rounds beyond the
    largest power, become NaN. Below the least power, 2^-127, a denormal of f32, everything is rounded up to it, and
    between it and the next, the least normal number, to that.
    """
    is_normal = b.extend(b.compare("uge", bits, 1 << _F32_MANTISSA), 32)
    half = (1 << (_F32_MANTISSA - 1)) - 1
    code = b.shift_right(b.add(b.add(bits, half), is_normal), _F32_MANTISSA)
    # Zero minus one wraps, so that one comparison finds it among the codes with a sign, and infinity and NaN.
    is_nan = b.compare("uge", b.sub(bits, 1), _F32_INFINITY - 1)
    return _choose(is_nan, 0xFF, code)


def _specials(code: ir.Value, magnitude: ir.Value, layout: FloatFormat) -> ir.Value:
    """Give codes past the largest value, and NaN, their meaning."""
    if layout.specials in ("fn", "finite"):
        return ir.arith.minui(code, b.constant(layout.largest, code.type))
    if layout.specials == "fnuz":
        return _choose(b.compare("ugt", code, layout.largest), layout.sign, code)
    code = ir.arith.minui(code, b.constant(layout.infinity, code.type))
    quiet = layout.infinity | 1 << (layout.mantissa_bits - 1)
    return _choose(b.compare("ugt", magnitude, _F32_INFINITY), quiet, code)


def _choose(condition: ir.Value, value: int, other: ir.Value) -> ir.Value:
    return ir.arith.select(condition, b.constant(value, other.type), other)


def narrow_to_odd(value: ir.Value) -> ir.Value:
    """Return an f64 as f32, an inexact result rounded to the neighbour with an odd last bit.

    Rounding that to a format with at least two bits less gives what rounding the f64 would (Boldo and Melquiond,
    "When double rounding is odd", 2005).
    """
    i32, f32 = b.integer_type(32), ir.F32Type.get()
    nearest = ir.arith.truncf(b.like(value.type, f32), value)
    back = ir.arith.extf(value.type, nearest)
    is_inexact = b.compare_floats("one", back, value)
    is_beyond = b.compare_floats("ogt", ir.math.absf(back), ir.math.absf(value))
    bits = b.sub(b.bitcast(nearest, i32), b.extend(is_beyond, 32))
    return b.bitcast(b.or_(bits, b.extend(is_inexact, 32)), f32)


def integer_to_f64_odd(value: ir.Value, signed: bool) -> ir.Value:
    """Return a 64-bit integer as f64, an inexact result rounded to the neighbour with an odd last bit."""
    convert = ir.arith.sitofp if signed else ir.arith.uitofp
    f64 = b.like(value.type, ir.F64Type.get())
    dropped = 64 - 53
    low = b.and_(value, (1 << dropped) - 1)
    sticky = b.extend(b.compare("ne", low, 0), 64)
    high = b.or_(b.shift_right(value, dropped, signed), sticky)
    rounded = ir.arith.mulf(convert(f64, high), b.constant(float(1 << dropped), f64))
    limit = 1 << 53
    is_large = b.compare("ugt", b.add(value, limit), 2 * limit) if signed else b.compare("ugt", value, limit)
    return ir.arith.select(is_large, rounded, convert(f64, value))


def add_to_odd(x: ir.Value, y: ir.Value) -> ir.Value:
    """Add two f64, an inexact sum rounded to the neighbour with an odd last bit.

    The rounding error is exact (Knuth's TwoSum); its sign tells on which side of the rounded sum the true one lies.
    """
    total = ir.arith.addf(x, y)
    of_y = ir.arith.subf(total, x)
    of_x = ir.arith.subf(total, of_y)
    error = ir.arith.addf(ir.arith.subf(x, of_x), ir.arith.subf(y, of_y))
    bits, error_bits = (b.bitcast(value, b.integer_type(64)) for value in (total, error))
    is_inexact = b.compare_floats("one", error, b.constant(0.0, total.type))
    is_even = b.compare("eq", b.and_(bits, 1), 0)
    is_away = b.compare("sge", b.xor(bits, error_bits), 0)
    neighbour = b.select(is_away, b.add(bits, 1), b.sub(bits, 1))
    return b.bitcast(b.select(ir.arith.andi(is_inexact, is_even), neighbour, bits), ir.F64Type.get())

"""Scalar builders of the arithmetic operations, with HLO's meaning for every operand.

Integers wrap; dividing by zero gives -1 (all ones), its remainder the dividend; the smallest integer divided by -1 is
itself; shifting by the width or more gives 0 (or the sign). Floating-point minimum and maximum give NaN if an operand
is NaN. On pred, addition is or and multiplication is and.
"""

from collections.abc import Callable

from xgpu import ir
from xgpu.dialects.attributes import GRADE
from xgpu.emit.scalar.op import Builder, ScalarOp, compare_floats, compare_integers, constant
from xgpu.hlo.operations import direction_of, is_total_order
from xgpu.structure import producer

Binary = Callable[[ir.Value, ir.Value], ir.Value]

_arith = ir.arith


def _by_kind(floating: Binary, signed: Binary, unsigned: Binary, boolean: Binary) -> Builder:
    """Return a builder that picks the operation by the kind of its operands' type."""

    def build(op: ScalarOp) -> ir.Value:
        dtype = op.operand_dtype
        if dtype.is_float:
            return floating(*op.operands)
        if dtype.kind == "bool":
            return boolean(*op.operands)
        return unsigned(*op.operands) if dtype.is_unsigned else signed(*op.operands)

    return build


add = _by_kind(_arith.addf, _arith.addi, _arith.addi, _arith.ori)
subtract = _by_kind(_arith.subf, _arith.subi, _arith.subi, _arith.xori)
multiply = _by_kind(_arith.mulf, _arith.muli, _arith.muli, _arith.andi)
maximum = _by_kind(_arith.maximumf, _arith.maxsi, _arith.maxui, _arith.ori)
minimum = _by_kind(_arith.minimumf, _arith.minsi, _arith.minui, _arith.andi)


def _safe_divisor(left: ir.Value, right: ir.Value, signed: bool) -> tuple[ir.Value, ir.Value, ir.Value | None]:
    """Return a divisor that cannot trap, whether the true one is zero, and whether the quotient overflows."""
    type_ = right.type
    one = constant(type_, 1)
    is_zero = compare_integers("eq", right, constant(type_, 0))
    unsafe, overflows = is_zero, None
    if signed:
        smallest = constant(type_, -(2 ** (ir.IntegerType(type_).width - 1)))
        overflows = _arith.andi(
            compare_integers("eq", left, smallest), compare_integers("eq", right, constant(type_, -1))
        )
        unsafe = _arith.ori(is_zero, overflows)
    return _arith.select(unsafe, one, right), is_zero, overflows


def _divide_signed(left: ir.Value, right: ir.Value) -> ir.Value:
    # With the divisor replaced by 1, an overflowing quotient is the dividend itself, which is what wrapping gives.
    divisor, is_zero, _ = _safe_divisor(left, right, signed=True)
    return _arith.select(is_zero, constant(left.type, -1), _arith.divsi(left, divisor))


def _divide_unsigned(left: ir.Value, right: ir.Value) -> ir.Value:
    divisor, is_zero, _ = _safe_divisor(left, right, signed=False)
    return _arith.select(is_zero, constant(left.type, -1), _arith.divui(left, divisor))


def _remainder_signed(left: ir.Value, right: ir.Value) -> ir.Value:
    divisor, is_zero, _ = _safe_divisor(left, right, signed=True)
    return _arith.select(is_zero, left, _arith.remsi(left, divisor))


def _remainder_unsigned(left: ir.Value, right: ir.Value) -> ir.Value:
    divisor, is_zero, _ = _safe_divisor(left, right, signed=False)
    return _arith.select(is_zero, left, _arith.remui(left, divisor))


_divide = _by_kind(_arith.divf, _divide_signed, _divide_unsigned, _divide_unsigned)


def divide(op: ScalarOp) -> ir.Value:
    """Divide, less exactly where the planner says that the result is only rounded to a narrower type."""
    value = _divide(op)
    if GRADE in op.op.attributes:
        producer(value).attributes[GRADE] = op.op.attributes[GRADE]
    return value


remainder = _by_kind(_arith.remf, _remainder_signed, _remainder_unsigned, _remainder_unsigned)


def _shift(operation: Binary, past_the_end: Callable[[ir.Value], ir.Value]) -> Builder:
    """Return the builder of a shift; ``past_the_end`` gives the result for a shift by the width or more."""

    def build(op: ScalarOp) -> ir.Value:
        value, amount = op.operands
        width = ir.IntegerType(value.type).width
        if width == 1:
            in_range = compare_integers("eq", amount, constant(amount.type, 0))
            return _arith.select(in_range, value, past_the_end(value))
        in_range = compare_integers("ult", amount, constant(amount.type, width))
        safe = _arith.select(in_range, amount, constant(amount.type, 0))
        return _arith.select(in_range, operation(value, safe), past_the_end(value))

    return build


def _logical_shift(operation: Binary) -> Builder:
    """Return the builder of a shift that fills with zeros.

    A 64-bit value is shifted in two steps of at most 32: of a single shift under a test of its amount, LLVM 22 makes
    one PTX shift that looks at the lower 32 bits of the amount alone (llvm-project #201165).
    """
    short = _shift(operation, _zero_like)

    def build(op: ScalarOp) -> ir.Value:
        value, amount = op.operands
        width = ir.IntegerType(value.type).width
        if width < 64:
            return short(op)
        bounded = _arith.minui(amount, constant(amount.type, width))
        half = _arith.shrui(bounded, constant(amount.type, 1))
        return operation(operation(value, half), _arith.subi(bounded, half))

    return build


def _zero_like(value: ir.Value) -> ir.Value:
    return constant(value.type, 0)


def _sign_fill(value: ir.Value) -> ir.Value:
    width = ir.IntegerType(value.type).width
    return value if width == 1 else _arith.shrsi(value, constant(value.type, width - 1))


shift_left = _logical_shift(_arith.shli)
shift_right_logical = _logical_shift(_arith.shrui)
shift_right_arithmetic = _shift(_arith.shrsi, _sign_fill)


def bitwise(operation: Binary) -> Builder:
    """Return the builder of a binary operation on bits."""
    return lambda op: operation(*op.operands)


def not_(op: ScalarOp) -> ir.Value:
    """All bits flipped."""
    return _arith.xori(op.operands[0], op.constant(-1))


def negate(op: ScalarOp) -> ir.Value:
    """Floats flip the sign, also of NaN and zero; integers wrap."""
    (value,) = op.operands
    return _arith.negf(value) if op.dtype.is_float else _arith.subi(op.constant(0), value)


def absolute(op: ScalarOp) -> ir.Value:
    """The smallest integer is its own absolute value; unsigned integers are unchanged."""
    (value,) = op.operands
    if op.dtype.is_float:
        return ir.math.absf(value)
    return ir.math.absi(value) if op.dtype.is_signed else value


def sign(op: ScalarOp) -> ir.Value:
    """-1, 0 or 1; NaN and signed zeros are themselves."""
    (value,) = op.operands
    zero = op.constant(0)
    if op.dtype.is_float:
        unchanged = compare_floats("ueq", value, zero)
        return _arith.select(unchanged, value, ir.math.copysign(op.constant(1.0), value))
    is_zero = compare_integers("eq", value, zero)
    magnitude = op.constant(1)
    if op.dtype.is_signed:
        magnitude = _arith.select(compare_integers("slt", value, zero), op.constant(-1), magnitude)
    return _arith.select(is_zero, zero, magnitude)


def clamp(op: ScalarOp) -> ir.Value:
    """min(max(value, low), high); NaN in any operand gives NaN."""
    low, value, high = op.operands
    if op.dtype.is_float:
        return _arith.minimumf(_arith.maximumf(value, low), high)
    if op.dtype.is_unsigned:
        return _arith.minui(_arith.maxui(value, low), high)
    return _arith.minsi(_arith.maxsi(value, low), high)


def select(op: ScalarOp) -> ir.Value:
    """The second operand where the first holds, else the third."""
    return _arith.select(*op.operands)


def is_finite(op: ScalarOp) -> ir.Value:
    """Neither infinite nor NaN."""
    (value,) = op.operands
    if op.operand_dtype.bits < 16:
        # Some of the narrow types have no infinity to compare with.
        value = _arith.extf(ir.F32Type.get(), value)
    magnitude = ir.math.absf(value)
    return compare_floats("olt", magnitude, constant(value.type, float("inf")))


def popcnt(op: ScalarOp) -> ir.Value:
    """Number of set bits."""
    return ir.math.ctpop(op.operands[0])


def count_leading_zeros(op: ScalarOp) -> ir.Value:
    """Number of zero bits above the highest set one; the width for 0."""
    return ir.math.ctlz(op.operands[0])


def compare(op: ScalarOp) -> ir.Value:
    """Compare two values; on floats only NE holds for NaN, unless the order is total."""
    left, right = op.operands
    direction = direction_of(op.op)
    if not op.operand_dtype.is_float:
        return _compare_integers(direction, left, right, op.operand_dtype.is_unsigned)
    if is_total_order(op.op):
        return _compare_integers(direction, _total_order_key(left), _total_order_key(right), False)
    return compare_floats("une" if direction == "NE" else f"o{direction.lower()}", left, right)


def _compare_integers(direction: str, left: ir.Value, right: ir.Value, unsigned: bool) -> ir.Value:
    sign_prefix = "" if direction in ("EQ", "NE") else "u" if unsigned else "s"
    return compare_integers(sign_prefix + direction.lower(), left, right)


def _total_order_key(value: ir.Value) -> ir.Value:
    """Return a signed integer that orders as -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    width = ir.FloatType(value.type).width
    integer = ir.IntegerType.get_signless(width)
    bits = _arith.bitcast(integer, value)
    flipped = _arith.xori(bits, constant(integer, 2 ** (width - 1) - 1))
    return _arith.select(compare_integers("slt", bits, constant(integer, 0)), flipped, bits)


def power(op: ScalarOp) -> ir.Value:
    """Floats as IEEE 754 pow; an integer to a negative power is 0, unless its base is 1 or -1."""
    base, exponent = op.operands
    if op.dtype.is_float:
        return ir.math.powf(base, exponent)
    return _integer_power(base, exponent, op.dtype.is_signed)


def _integer_power(base: ir.Value, exponent: ir.Value, signed: bool) -> ir.Value:
    """Square and multiply over the bits of the exponent, the lowest first."""
    type_ = base.type
    zero, one = constant(type_, 0), constant(type_, 1)
    result, square = one, base
    for bit in range(ir.IntegerType(type_).width):
        if bit:
            square = _arith.muli(square, square)
        is_set = compare_integers("ne", _arith.andi(exponent, constant(type_, 1 << bit)), zero)
        result = _arith.muli(result, _arith.select(is_set, square, one))
    if not signed:
        return result
    minus_one = constant(type_, -1)
    is_odd = compare_integers("ne", _arith.andi(exponent, one), zero)
    of_minus_one = _arith.select(is_odd, minus_one, one)
    reciprocal = _arith.select(compare_integers("eq", base, minus_one), of_minus_one, zero)
    reciprocal = _arith.select(compare_integers("eq", base, one), one, reciprocal)
    return _arith.select(compare_integers("slt", exponent, zero), reciprocal, result)

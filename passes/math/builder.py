"""Writes arithmetic on scalars of f32 or f64, and on their bits: the vocabulary that the math functions are told in.

Operands are values or Python numbers; a number becomes a constant of the function, made once at its beginning. No
method fuses or reorders anything: every rounding is one that the caller wrote.
"""

from collections.abc import Callable, Mapping, Sequence

from xgpu import ir
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.records import dataclass
from xgpu.target_machine import TargetMachine

Number = ir.Value | float
"""An operand of a floating-point operation."""
Integer = ir.Value | int
"""An operand of an integer operation."""
Pair = tuple[ir.Value, ir.Value]
"""An unevaluated sum of a value and a much smaller one."""

_FLOAT_PREDICATES = {
    name: getattr(ir.arith.CmpFPredicate, name.upper()) for name in "olt ole ogt oge oeq une uno".split()
}
_PREDICATES = {name: getattr(ir.arith.CmpIPredicate, name) for name in "eq ne slt uge".split()}


@dataclass(frozen=True)
class FloatLayout:
    """The parts of an IEEE binary format: the exponent field of 1.0 is ``bias``; ``mantissa`` bits are stored."""

    bits: int
    mantissa: int
    bias: int

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its bits of precision."""
        return 2.0 ** (1 - self.bias)

    @property
    def rounder(self) -> float:
        """A number whose unit in the last place is 1: what is added to it is rounded to an integer, in its low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def field_of_infinity(self) -> int:
        """The bits of infinity as an integer."""
        return 2 * self.bias + 1 << self.mantissa

    def field(self, value: float) -> int:
        """Return the bits of a value as an integer. The value has few enough bits to be exact in the format."""
        mantissa, exponent = _split(value)
        return (exponent + self.bias << self.mantissa) + int((mantissa - 1) * 2**self.mantissa)


def _split(value: float) -> tuple[float, int]:
    """Return the mantissa in [1, 2) and the exponent of a positive number."""
    mantissa, _, exponent = value.hex().partition("p")
    return float.fromhex(mantissa), int(exponent)


LAYOUTS = {32: FloatLayout(32, 23, 127), 64: FloatLayout(64, 52, 1023)}
"""The layouts of f32 and f64 by width."""


class Constants:
    """The constants of one function, each created once at the beginning of its first block."""

    def __init__(self, block: ir.Block):
        self._block = block
        self._values: dict[tuple[ir.Type, str], ir.Value] = {}

    def get(self, type_: ir.Type, value: float) -> ir.Value:
        """Return a constant of a float or integer type."""
        key = type_, repr(value)
        found = self._values.get(key)
        if found is None:
            integer = isinstance(type_, ir.IntegerType)
            attribute = ir.IntegerAttr.get(type_, int(value)) if integer else ir.FloatAttr.get(type_, value)
            op = ir.Operation.create(
                "arith.constant",
                results=[type_],
                attributes={"value": attribute},
                ip=ir.InsertionPoint.at_block_begin(self._block),
            )
            found = self._values[key] = op.results[0]
        return found


class MathBuilder:
    """Creates operations at the current insertion point and location, on the float type and integers of its width.

    ``call`` calls a helper function of the module by name, which is made on demand. ``grade`` is how exact results have
    to be: the width of the type itself, or 16 in f32 if what is computed is then rounded to bf16.
    """

    def __init__(
        self,
        machine: TargetMachine,
        type_: ir.Type,
        constants: Constants,
        call: Callable[[str, Sequence[ir.Value]], Sequence[ir.Value]],
        grade: int | None = None,
    ):
        self.machine = machine
        self.type = type_
        self.layout = LAYOUTS[ir.FloatType(type_).width]
        self.bits = self.layout.bits
        self.grade = grade or self.bits
        self.integer = ir.IntegerType.get_signless(self.bits)
        self.call = call
        self._constants = constants

    @property
    def has_fast_instructions(self) -> bool:
        """Whether the target has instructions for approximate functions of this type."""
        return bool(self.machine.fast_instructions) and self.bits == 32

    def of[T](self, table: Mapping[int, T]) -> T:
        """Return the entry for this grade of a table, else that for the type."""
        return table[self.grade] if self.grade in table else table[self.bits]

    def number(self, value: Number) -> ir.Value:
        """Return a float operand as a value."""
        return value if isinstance(value, ir.Value) else self._constants.get(self.type, float(value))

    def whole(self, value: Integer, type_: ir.Type | None = None) -> ir.Value:
        """Return an integer operand as a value; numbers are taken modulo the type's range."""
        if isinstance(value, ir.Value):
            return value
        integer = ir.IntegerType(type_ or self.integer)
        code = value & ((1 << integer.width) - 1)
        return self._constants.get(integer, code - (code >> integer.width - 1 << integer.width))

    def add(self, a: Number, b: Number) -> ir.Value:
        """a + b, rounded."""
        return ir.arith.addf(self.number(a), self.number(b))

    def sub(self, a: Number, b: Number) -> ir.Value:
        """a - b, rounded."""
        return ir.arith.subf(self.number(a), self.number(b))

    def mul(self, a: Number, b: Number) -> ir.Value:
        """a * b, rounded."""
        return ir.arith.mulf(self.number(a), self.number(b))

    def div(self, a: Number, b: Number) -> ir.Value:
        """a / b, rounded."""
        return ir.arith.divf(self.number(a), self.number(b))

    def reciprocal(self, a: ir.Value) -> ir.Value:
        """1 / a of a number in the normal range, within one unit in the last place; 0 for infinity."""
        return self.instruction("reciprocal", a) if self.has_fast_instructions else self.div(1.0, a)

    def inverse(self, a: ir.Value) -> ir.Value:
        """1 / a within two units in the last place, of any number: infinite for zero, 0 for infinity."""
        return self.instruction("divide", 1.0, a) if self.has_fast_instructions else self.div(1.0, a)

    def fma(self, a: Number, b: Number, c: Number) -> ir.Value:
        """a * b + c, rounded once."""
        return ir.math.fma(self.number(a), self.number(b), self.number(c))

    def quotient(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """a / b of a finite b in the normal range, other than 0, within about one unit in the last place."""
        if not self.has_fast_instructions:
            return self.div(a, b)
        inverse = self.reciprocal(b)
        first = self.mul(a, inverse)
        return self.fma(self.fma(self.neg(first), b, a), inverse, first)

    def ratio(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """a / b within two units in the last place, of a b whose inverse is in the normal range; 0 if b is infinite."""
        return self.mul(a, self.reciprocal(b)) if self.has_fast_instructions else self.div(a, b)

    def root(self, a: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The square root and its inverse of 0 or a number from 2^-55 to 2^60, within two units in the last place.

        The inverse of 0 is some large number; a negative number has NaN for both.
        """
        if self.has_fast_instructions:
            inverse = self.instruction("rsqrt_of_normal", self.add(a, 2.0**-80))
            return self.mul(a, inverse), inverse
        root = self.sqrt(a)
        return root, self.div(1.0, self.add(root, 2.0**-80))

    def inverse_root(self, a: ir.Value) -> ir.Value:
        """1 / sqrt(a) of a positive normal number, within one unit in the last place; 0 for infinity."""
        if self.has_fast_instructions:
            return self.instruction("rsqrt_of_normal", a)
        return self.div(1.0, self.sqrt(a))

    def neg(self, a: Number) -> ir.Value:
        """-a, exact."""
        return ir.arith.negf(self.number(a))

    def abs(self, a: Number) -> ir.Value:
        """|a|, exact."""
        return ir.math.absf(self.number(a))

    def with_sign(self, a: ir.Value, sign: ir.Value) -> ir.Value:
        """The second operand's sign given to a number that is positive, a zero of any sign, or has that sign."""
        # No copysign: LLVM moves it behind a conversion to 16 bits, where it costs more.
        return self.from_bits(self.integer_or(self.to_bits(a), self.sign_bit(sign)))

    def flip_sign(self, a: ir.Value, sign: ir.Value) -> ir.Value:
        """a with its sign changed where the second operand's sign bit is set."""
        return self.from_bits(self.integer_xor(self.to_bits(a), self.sign_bit(sign)))

    def sign_bit(self, a: ir.Value) -> ir.Value:
        """The sign bit of a float, the others 0, as an integer."""
        return self.integer_and(self.to_bits(a), 1 << self.bits - 1)

    def sqrt(self, a: Number) -> ir.Value:
        """The square root, rounded."""
        return ir.math.sqrt(self.number(a))

    def trunc(self, a: Number) -> ir.Value:
        """The integer part."""
        return ir.math.trunc(self.number(a))

    def clamp(self, a: Number, low: float, high: float) -> ir.Value:
        """The nearest value in [low, high]; NaN stays NaN."""
        return self.at_most(self.at_least(a, low), high)

    def at_least(self, a: Number, low: float) -> ir.Value:
        """The larger of the two; NaN stays NaN."""
        return ir.arith.maximumf(self.number(a), self.number(low))

    def at_most(self, a: Number, high: float) -> ir.Value:
        """The smaller of the two; NaN stays NaN."""
        return ir.arith.minimumf(self.number(a), self.number(high))

    def clamp_number(self, a: Number, low: float, high: float) -> ir.Value:
        """The nearest value in [low, high]; NaN becomes ``low``."""
        return ir.arith.minnumf(ir.arith.maxnumf(self.number(a), self.number(low)), self.number(high))

    def compare(self, predicate: str, a: Number, b: Number) -> ir.Value:
        """Compare floats."""
        return ir.arith.cmpf(_FLOAT_PREDICATES[predicate], self.number(a), self.number(b))

    def select(self, condition: ir.Value, a: Number, b: Number) -> ir.Value:
        """a where the condition holds, else b."""
        return ir.arith.select(condition, self.number(a), self.number(b))

    def both(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether both conditions hold (or: the bits set in both integers)."""
        return ir.arith.andi(a, b)

    def either(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether one of the conditions holds."""
        return ir.arith.ori(a, b)

    def differ(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Whether exactly one of the conditions holds."""
        return ir.arith.xori(a, b)

    def not_(self, a: ir.Value) -> ir.Value:
        """Whether the condition does not hold."""
        return ir.arith.xori(a, self.whole(1, a.type))

    def to_bits(self, a: Number) -> ir.Value:
        """The bits of a float as an integer."""
        return ir.arith.bitcast(self.integer, self.number(a))

    def from_bits(self, a: Integer) -> ir.Value:
        """The float with these bits."""
        return ir.arith.bitcast(self.type, self.whole(a))

    def from_signed(self, a: ir.Value) -> ir.Value:
        """A signed integer's value, rounded."""
        return ir.arith.sitofp(self.type, a)

    def integer_add(self, a: ir.Value, b: Integer) -> ir.Value:
        """a + b, wrapping."""
        return ir.arith.addi(a, self.whole(b, a.type))

    def integer_sub(self, a: Integer, b: Integer) -> ir.Value:
        """a - b, wrapping."""
        type_ = a.type if isinstance(a, ir.Value) else b.type if isinstance(b, ir.Value) else None
        return ir.arith.subi(self.whole(a, type_), self.whole(b, type_))

    def integer_mul(self, a: ir.Value, b: Integer) -> ir.Value:
        """a * b, wrapping."""
        return ir.arith.muli(a, self.whole(b, a.type))

    def divide_by(self, a: ir.Value, divisor: int) -> ir.Value:
        """An unsigned integer divided by a constant, rounded down."""
        return ir.arith.divui(a, self.whole(divisor, a.type))

    def integer_and(self, a: ir.Value, b: Integer) -> ir.Value:
        """Bitwise and."""
        return ir.arith.andi(a, self.whole(b, a.type))

    def integer_or(self, a: ir.Value, b: Integer) -> ir.Value:
        """Bitwise or."""
        return ir.arith.ori(a, self.whole(b, a.type))

    def integer_xor(self, a: ir.Value, b: Integer) -> ir.Value:
        """Bitwise exclusive or."""
        return ir.arith.xori(a, self.whole(b, a.type))

    def shift_left(self, a: ir.Value, amount: Integer) -> ir.Value:
        """a << amount."""
        return ir.arith.shli(a, self.whole(amount, a.type))

    def shift_right(self, a: ir.Value, amount: Integer, signed: bool = False) -> ir.Value:
        """a >> amount, filled with zeros or with the sign."""
        shift = ir.arith.shrsi if signed else ir.arith.shrui
        return shift(a, self.whole(amount, a.type))

    def compare_integers(self, predicate: str, a: ir.Value, b: Integer) -> ir.Value:
        """Compare integers."""
        return ir.arith.cmpi(_PREDICATES[predicate], a, self.whole(b, a.type))

    def integer_select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """a where the condition holds, else b."""
        return ir.arith.select(condition, a, b)

    def leading_zeros(self, a: ir.Value) -> ir.Value:
        """The number of zero bits above the highest set one."""
        return ir.math.ctlz(a)

    def is_positive_finite(self, a: ir.Value) -> ir.Value:
        """Whether a number is neither zero, infinite, NaN nor negative."""
        return self._has_code_in(a, 1, self.layout.field_of_infinity)

    def is_positive_normal(self, a: ir.Value) -> ir.Value:
        """Whether a number is positive, finite and not subnormal."""
        return self._has_code_in(a, 1 << self.layout.mantissa, self.layout.field_of_infinity)

    def is_between(self, a: ir.Value, low: float, high: float) -> ir.Value:
        """Whether low <= a < high, of two powers of two."""
        return self._has_code_in(a, self.layout.field(low), self.layout.field(high))

    def _has_code_in(self, a: ir.Value, low: int, high: int) -> ir.Value:
        """Whether the bits are in a range of those of positive numbers: one comparison."""
        codes = self.integer_sub(self.to_bits(a), low)
        return ir.arith.cmpi(ir.arith.CmpIPredicate.ult, codes, self.whole(high - low))

    def from_unsigned(self, a: ir.Value) -> ir.Value:
        """An unsigned integer's value, rounded."""
        return ir.arith.uitofp(self.type, a)

    def widen(self, a: ir.Value) -> ir.Value:
        """An integer of the float's width in twice that width."""
        return ir.arith.extui(ir.IntegerType.get_signless(2 * self.bits), a)

    def narrow(self, a: ir.Value) -> ir.Value:
        """The lower half of an integer of twice the float's width."""
        return ir.arith.trunci(self.integer, a)

    def if_rare(
        self, condition: ir.Value, compute: Callable[[], Sequence[ir.Value]], otherwise: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The values that ``compute`` creates if the condition holds, else the given ones; a branch, not a select."""
        types = [value.type for value in otherwise]
        branch = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            ir.scf.yield_(list(compute()))
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            ir.scf.yield_(list(otherwise))
        return list(branch.results)

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """c0 + c1 x + c2 x^2 + ..., one rounding per coefficient but the last."""
        value = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, coefficient)
        return value

    def product(self, a: Number, b: Number) -> Pair:
        """a * b exactly, as its rounded value and the rounding error."""
        high = self.mul(a, b)
        return high, self.fma(a, b, self.neg(high))

    def sum(self, a: Number, b: Number) -> Pair:
        """a + b exactly, as its rounded value and the rounding error; |a| >= |b| or a = 0."""
        high = self.add(a, b)
        return high, self.add(self.sub(a, high), b)

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """2^n of an integer in the range of normal exponents."""
        return self.from_bits(self.shift_left(self.integer_add(exponent, self.layout.bias), self.layout.mantissa))

    def instruction(self, name: str, *operands: Number) -> ir.Value:
        """Call the machine's fast instruction of this name, one of `FAST_INSTRUCTIONS`."""
        intrinsic = self.machine.fast_instructions[name]
        return call_intrinsic(intrinsic, self.type, [self.number(operand) for operand in operands])

"""Formulas over floating-point scalars, written with operators."""

from xgpu import ir
from xgpu.emit.scalar.op import compare_floats, constant
from xgpu.records import dataclass


@dataclass(frozen=True, eq=False)
class Real:
    """A scalar of a floating-point type. Operators emit code; a number stands for a constant of the same type."""

    value: ir.Value

    def __add__(self, other: "Real | float") -> "Real":
        return Real(ir.arith.addf(self.value, self.like(other).value))

    def __sub__(self, other: "Real | float") -> "Real":
        return Real(ir.arith.subf(self.value, self.like(other).value))

    def __mul__(self, other: "Real | float") -> "Real":
        return Real(ir.arith.mulf(self.value, self.like(other).value))

    def __truediv__(self, other: "Real | float") -> "Real":
        return Real(ir.arith.divf(self.value, self.like(other).value))

    def __neg__(self) -> "Real":
        return Real(ir.arith.negf(self.value))

    def __abs__(self) -> "Real":
        return Real(ir.math.absf(self.value))

    def like(self, other: "Real | float") -> "Real":
        """Return ``other``, made a constant of this type if it is a number."""
        return other if isinstance(other, Real) else Real(constant(self.value.type, other))

    def with_sign_of(self, other: "Real") -> "Real":
        """Return this magnitude with the sign of ``other``, also of a zero and of NaN."""
        return Real(ir.math.copysign(self.value, other.value))

    def compare(self, predicate: str, other: "Real | float") -> ir.Value:
        """Return whether ``oeq``, ``olt``, ``une``, ... holds."""
        return compare_floats(predicate, self.value, self.like(other).value)

    @property
    def is_nan(self) -> ir.Value:
        """Whether it is NaN."""
        return compare_floats("uno", self.value, self.value)

    @property
    def is_zero(self) -> ir.Value:
        """Whether it is a zero of either sign."""
        return self.compare("oeq", 0.0)

    @property
    def is_infinite(self) -> ir.Value:
        """Whether it is an infinity of either sign."""
        return abs(self).compare("oeq", float("inf"))


def select(condition: ir.Value, then: Real, otherwise: Real | float) -> Real:
    """Return one of two numbers."""
    return Real(ir.arith.select(condition, then.value, then.like(otherwise).value))


def both(first: ir.Value, *others: ir.Value) -> ir.Value:
    """Return whether all conditions hold."""
    for other in others:
        first = ir.arith.andi(first, other)
    return first


def either(first: ir.Value, *others: ir.Value) -> ir.Value:
    """Return whether any condition holds."""
    for other in others:
        first = ir.arith.ori(first, other)
    return first


def negated(condition: ir.Value) -> ir.Value:
    """Return whether a condition does not hold."""
    return ir.arith.xori(condition, constant(condition.type, 1))

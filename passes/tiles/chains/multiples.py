"""Products with numbers, and quotients by them, in fewer instructions, rounded as the program rounds them."""

import math

import numpy as np

from xgpu import ir
from xgpu.emit.scalar.op import constant
from xgpu.indexing.access import shape_of
from xgpu.passes.tiles.chains.powers import number_of
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, is_constant, is_result_of, producer, users_of

_LEAST = 2.0**-20
"""Factors below are not moved: what they are moved to may be too small for all of its bits."""


def quotient(value: ir.Value, divisor: float) -> ir.Value:
    """Write a quotient of f32 by a normal number, rounded as a division rounds it unless it is next to underflow.

    What the product with the inverse leaves corrects it, unless that is infinite. (Source: P. Markstein, IA-64 and
    Elementary Functions. Divisors whose fraction has no bit that is zero may round one dividend of 2^23 otherwise.)
    """
    inverse = constant(value.type, float(np.float32(1) / np.float32(divisor)))
    near = ir.arith.mulf(value, inverse)
    rest = ir.math.fma(ir.arith.negf(near), constant(value.type, divisor), value)
    is_number = ir.arith.cmpf(ir.arith.CmpFPredicate.ORD, rest, rest)
    corrected: ir.Value = ir.arith.select(is_number, ir.math.fma(rest, inverse, near), near)
    return corrected


def fused(op: ir.Operation) -> "Sum | SumTimes | None":
    """Return how an operation on a tile of f32 is written together with products that it needs; None if by itself."""
    if len(shape_of(op.results[0])) != 2 or not isinstance(element_of(op.results[0]), ir.F32Type):
        return None
    return Sum.of(op) or SumTimes.of(op)


@dataclass(frozen=True)
class Multiple:
    """A ``factor`` up to 1 times a value where a condition holds, and elsewhere times ``other``."""

    value: ir.Value
    factor: float
    condition: ir.Value | None = None
    other: float = 0.0

    @classmethod
    def of(cls, value: ir.Value) -> "Multiple | None":
        """Return what a tile of f32 is the multiple of, None if it is none."""
        op = defining_op(_plain(value))
        if op is None:
            return None
        if op.name == "stablehlo.select":
            return cls._chosen(op)
        if op.name != "stablehlo.multiply":
            return None
        for left, right in (op.operands, list(op.operands)[::-1]):
            number = _number(right)
            if number is not None and _LEAST <= number <= 1:
                return cls(left, number)
        return None

    @classmethod
    def _chosen(cls, op: ir.Operation) -> "Multiple | None":
        condition, chosen, other = op.operands
        found, number = cls.of(chosen), _number(other)
        if found is None or number is None or found.condition is not None:
            return None
        if len(users_of(chosen)) != 1 or len(shape_of(condition)) != 2:
            return None
        before = number / found.factor
        # A number that would be infinite then is another one.
        is_held = math.isinf(number) or abs(before) <= float(np.finfo(np.float32).max)
        return cls(found.value, found.factor, condition, before) if is_held else None

    @property
    def is_exact(self) -> bool:
        """Whether it is not rounded unless it is next to underflow: it is the same earlier, or later."""
        return math.frexp(self.factor)[0] == 1 / 2


@dataclass(frozen=True)
class Sum:
    """An exact multiple and a tile that is added to it, or ``subtracted``: one instruction."""

    multiple: Multiple
    rest: ir.Value
    subtracted: bool

    @classmethod
    def of(cls, op: ir.Operation) -> "Sum | None":
        """Return an operation as such a sum, None if it is none."""
        if op.name not in ("stablehlo.add", "stablehlo.subtract"):
            return None
        subtracted, (left, right) = op.name == "stablehlo.subtract", op.operands
        for value, rest in ((left, right),) if subtracted else ((left, right), (right, left)):
            found = Multiple.of(value) if len(users_of(value)) == 1 else None
            if found is not None and found.is_exact:
                return cls(found, rest, subtracted)
        return None

    @property
    def operands(self) -> list[ir.Value]:
        """The tiles of whose elements each element is made."""
        condition = self.multiple.condition
        return [self.multiple.value, self.rest, *([] if condition is None else [condition])]

    def element(self, value: ir.Value, rest: ir.Value, asked: ir.Value | None = None) -> ir.Value:
        """Write an element."""
        if asked is not None:
            value = ir.arith.select(asked, value, constant(value.type, self.multiple.other))
        added = ir.arith.negf(rest) if self.subtracted else rest
        made: ir.Value = ir.math.fma(value, constant(value.type, self.multiple.factor), added)
        return made


@dataclass(frozen=True)
class SumTimes:
    """A multiple of a product of which one operand is a sum, of ``value`` and ``rest``: the factor goes to the sum.

    That is (f value + f rest) times ``times``, where a condition holds if there is one, and else zero. It is rounded as
    often as it is the other way round.
    """

    factor: float
    value: ir.Value
    rest: ir.Value
    times: ir.Value
    condition: ir.Value | None

    @classmethod
    def of(cls, op: ir.Operation) -> "SumTimes | None":
        """Return an operation as such a product, None if it is none, or if its parts are needed by others, too."""
        found = Multiple.of(op.results[0])
        if found is None or found.condition is not None:
            return None
        product, condition = _plain(found.value), None
        if is_result_of(product, "stablehlo.select") and _number(producer(product).operands[2]) == 0:
            condition, chosen, _ = producer(product).operands
            product = _plain(chosen)
        if condition is not None and len(shape_of(condition)) != 2:
            return None
        if not is_result_of(product, "stablehlo.multiply") or len(users_of(product)) != 1:
            return None
        for left, right in (producer(product).operands, list(producer(product).operands)[::-1]):
            if is_result_of(left, "stablehlo.add") and len(users_of(left)) == 1:
                value, rest = producer(left).operands
                return cls(found.factor, value, rest, right, condition)
        return None

    @property
    def operands(self) -> list[ir.Value]:
        """The tiles of whose elements each element is made."""
        return [self.value, self.rest, self.times, *([] if self.condition is None else [self.condition])]

    def element(self, value: ir.Value, rest: ir.Value, times: ir.Value, asked: ir.Value | None = None) -> ir.Value:
        """Write an element."""
        factor = constant(value.type, self.factor)
        made: ir.Value = ir.arith.mulf(ir.math.fma(value, factor, ir.arith.mulf(rest, factor)), times)
        return made if asked is None else ir.arith.select(asked, made, constant(value.type, 0.0))


def _plain(value: ir.Value) -> ir.Value:
    """Return what a value is converted from if nothing changes by that."""
    while is_result_of(value, "stablehlo.convert") and element_of(producer(value).operands[0]) == element_of(value):
        value = producer(value).operands[0]
    return value


def _number(value: ir.Value) -> float | None:
    plain = _plain(value)
    return number_of(plain) if is_constant(plain) else None

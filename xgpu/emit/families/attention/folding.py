"""Weights whose logits' factor is left to the exponential: one multiplication and addition of an exponent for each.

Weights are 2^(x g - r) for what logits are before their factor, x, with its product g with log2 e, and for the rounded
product r of g and the largest x of the row so far. They and their sums are relative to 2^r, which the next step takes
off again, so that no rounding remains. Where r is large, rounding it would matter beside the difference of two logits:
such rows are taken relative to their largest logit before, as the program has it.
"""

import math

from xgpu import ir
from xgpu.analysis.attention.factors import Factored
from xgpu.dialects.attributes import RARE, WEIGHT
from xgpu.emit.families.attention.writing import compare
from xgpu.hlo.stablehlo_builder import broadcast, hlo, shape_of, splat_like
from xgpu.records import dataclass
from xgpu.structure import producer

_MOST = 2.0**12
"""Below this r is rounded by 2^-13 at most, as logits of that size are by their own factor."""


@dataclass(frozen=True)
class Folding:
    """Logits that are ``factored``, of rows whose weights were relative to ``before`` and are to ``base`` now.

    These are logits without their factor, each row's largest one or another.
    """

    factored: Factored
    before: ir.Value
    base: ir.Value

    def powers(self, values: ir.Value, highest: ir.Value | None = None) -> tuple[ir.Value, ir.Value, ir.Value | None]:
        """Return the weights of logits without their factor, and what the sums of those before are multiplied by.

        And the weights of the ``highest`` ones of rows, as a tile, if these are given.
        """
        is_large, shape = self._is_large(), shape_of(values)
        near = rarely(broadcast(is_large, shape, [0]), self._less(values, broadcast(self.base, shape, [0])), values)
        before, rounded = self._rows(is_large)
        weights, scale = self._power(near, broadcast(rounded, shape, [0])), self._power(before, rounded)
        if highest is None:
            return weights, scale, None
        near = rarely(is_large, self._less(highest, self.base), highest)
        return weights, scale, self._power(broadcast(near, shape, [0]), broadcast(rounded, shape, [0]))

    def scale(self) -> ir.Value:
        """Return what the sums of weights before are multiplied by."""
        return self._power(*self._rows(self._is_large()))

    def _is_large(self) -> ir.Value:
        """Return which rows have logits so large that r is not to be rounded."""
        return compare("GE", hlo.abs(self.base), splat_like(_MOST / self._exponents, self.base))

    def _rows(self, is_large: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return what the largest logits before count as, and what is subtracted from exponents."""
        before = rarely(is_large, self._less(self.before, self.base), self.before)
        base = rarely(is_large, splat_like(0, self.base), self.base)
        return before, times(base, self._exponents)

    @property
    def _exponents(self) -> float:
        """The factor that turns logits without their own factor into exponents of two."""
        return exponents_of(self.factored)

    def _less(self, values: ir.Value, largest: ir.Value) -> ir.Value:
        """Return what values are without the ``largest`` of a row, from logits as they are rounded in the program."""
        product = scaled(largest, self.factored)
        return times(hlo.subtract(scaled(values, self.factored), product), 1 / self.factored.factor)

    def _power(self, value: ir.Value, rounded: ir.Value) -> ir.Value:
        exponent = hlo.subtract(times(value, self._exponents), rounded)
        power: ir.Value = hlo.power(splat_like(2, exponent), exponent)
        producer(power).attributes[WEIGHT] = ir.UnitAttr.get()
        return power


def exponents_of(factored: Factored) -> float:
    """Return what logits without their factor are multiplied by for powers of two."""
    return factored.factor * math.log2(math.e)


def scaled(value: ir.Value, factored: Factored) -> ir.Value:
    """Return logits, as they are rounded in the program, from what they are without their factor."""
    if not factored.divides:
        return times(value, factored.number)
    quotient: ir.Value = hlo.divide(value, splat_like(factored.number, value))
    return quotient


def times(value: ir.Value, factor: float) -> ir.Value:
    """Return a value times a number."""
    product: ir.Value = value if factor == 1 else hlo.multiply(value, splat_like(factor, value))
    return product


def rarely(condition: ir.Value, value: ir.Value, other: ir.Value) -> ir.Value:
    """Return one value where a condition of rows holds, which it hardly ever does, and the other elsewhere."""
    chosen: ir.Value = hlo.select(condition, value, other)
    producer(chosen).attributes[RARE] = ir.UnitAttr.get()
    return chosen

"""Lower bounds of scalars of floats, as far as the operations that compute them say."""

import math
from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.structure import is_argument, producer

_MOST_STEPS = 12
"""Operations on the way to a value that are looked at."""
_POSITIVE = frozenset(
    ("math.absf", "math.sqrt", "math.exp", "math.exp2", "math.erfc", "xgpu.bessel_i0e", "xgpu.logistic")
)


class LeastValues:
    """Answers for the values of one function; keeps what was asked for."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, float] = {}

    def of(self, value: ir.Value) -> float:
        """Return a number that a value is never less than, unless it is NaN; -infinity if nothing is known."""
        return self._of(value, _MOST_STEPS)

    def _of(self, value: ir.Value, steps: int) -> float:
        if is_argument(value) or not steps or not isinstance(value.type, ir.FloatType):
            return -math.inf
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._of_operation(producer(value), steps - 1)
        return found

    def _of_operation(self, op: ir.Operation, steps: int) -> float:
        if op.name == "arith.constant":
            number = ir.FloatAttr(op.attributes["value"]).value
            return -math.inf if math.isnan(number) else float(number)
        if op.name in _POSITIVE:
            return 0.0
        if op.name == "math.cosh":
            return 1.0
        rule = _RULES.get(op.name)
        return -math.inf if rule is None else rule(list(op.operands), lambda value: self._of(value, steps))


_Ask = Callable[[ir.Value], float]


def _sum(operands: list[ir.Value], least: _Ask) -> float:
    return _add(*(least(each) for each in operands))


def _add(first: float, second: float) -> float:
    return -math.inf if -math.inf in (first, second) else first + second


def _product(operands: list[ir.Value], least: _Ask) -> float:
    if operands[0] == operands[1]:
        return 0.0
    first, second = (least(each) for each in operands)
    # Of two large numbers it is infinite, which is not less than any.
    return 0.0 if min(first, second) >= 0 else -math.inf


def _fused(operands: list[ir.Value], least: _Ask) -> float:
    return _add(_product(operands[:2], least), least(operands[2]))


def _largest(operands: list[ir.Value], least: _Ask) -> float:
    return max(least(each) for each in operands)


def _smallest(operands: list[ir.Value], least: _Ask) -> float:
    return min(least(each) for each in operands)


def _quotient(operands: list[ir.Value], least: _Ask) -> float:
    # Zero may be a negative one, whose inverse is -infinity.
    return 0.0 if least(operands[0]) >= 0 and least(operands[1]) > 0 else -math.inf


def _converted(operands: list[ir.Value], least: _Ask) -> float:
    """Of a value that may be rounded to a narrower type: zero and one are numbers of each."""
    found = least(operands[0])
    return 1.0 if found >= 1 else 0.0 if found >= 0 else -math.inf


_RULES: Mapping[str, Callable[[list[ir.Value], _Ask], float]] = {
    "arith.addf": _sum,
    "arith.mulf": _product,
    "arith.divf": _quotient,
    "math.fma": _fused,
    "arith.maximumf": _largest,
    "arith.minimumf": _smallest,
    "arith.select": lambda operands, least: _smallest(operands[1:], least),
    "arith.extf": _converted,
    "arith.truncf": _converted,
}

"""Weights of powers that a mask chooses, written as those of logits that are -inf where it hides them.

Programs choose zeros of powers because of rows without keys: there the finite numbers that stand for hidden logits are
the largest ones.
"""

import math
from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.analysis.attention.hiding import hiding
from xgpu.analysis.attention.places import REDUCE, SPREADS, Place, behind, number_of, reducing_function, then
from xgpu.analysis.attention.weight_factors import Condition
from xgpu.hlo.operations import direction_of
from xgpu.hlo.stablehlo_builder import hlo, splat_like
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.passes.prepare.chains.lifting import reading_of
from xgpu.records import dataclass
from xgpu.structure import backward_slice, copy_operation, defining_op, dtype_of, in_order, is_result_of, producer

_EXPONENTIAL, _COMPARE = "stablehlo.exponential", "stablehlo.compare"
_SELECT, _MULTIPLY, _CONVERT = "stablehlo.select", "stablehlo.multiply", "stablehlo.convert"
_HIDDEN = -1e9
"""Numbers up to this stand for hidden logits: no other is as low."""
_MOST_OPERATIONS = 32
"""Operations by which a row's reference, or its divisor, is computed, at most."""
_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "EQ": float.__eq__,
    "NE": float.__ne__,
    "LT": float.__lt__,
    "LE": float.__le__,
    "GT": float.__gt__,
    "GE": float.__ge__,
}
_COMPUTED: Mapping[str, Callable[[float, float], float]] = {
    "stablehlo.add": float.__add__,
    "stablehlo.multiply": float.__mul__,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
}


@dataclass(frozen=True)
class MaskedPowers:
    """A ``value`` that has ``powers`` where a ``condition`` holds, and zeros elsewhere.

    Powers are those of logits without a ``reference`` of each row, the largest of the ``hidden`` ones: logits that are
    chosen to be a low number where the condition does not hold.
    """

    value: ir.Value
    powers: ir.Value
    condition: Condition
    reference: ir.Value
    hidden: ir.Value

    @classmethod
    def of(cls, value: ir.Value) -> "MaskedPowers | None":
        """Return what a value is, None if it is anything else."""
        found = _chosen(value, 0.0, 0.0) or _multiplied(value)
        if found is None:
            return None
        powers, condition = found
        difference = defining_op(producer(powers).operands[0]) if is_result_of(powers, _EXPONENTIAL) else None
        if difference is None or difference.name != "stablehlo.subtract":
            return None
        logits, reference = difference.operands
        hidden = _largest_of(reference)
        chosen = None if hidden is None else _chosen(hidden, -math.inf, _HIDDEN)
        if hidden is None or chosen is None or chosen[1] != condition:
            return None
        is_shown = logits == chosen[0] and is_result_of(value, _SELECT)
        # Where all that a row sees is -inf, powers are zeros in one form, and no numbers in the other.
        if (logits != hidden and not is_shown) or hiding(_place(chosen[0])).infinite:
            return None
        return cls(value, powers, condition, reference, hidden)

    def weights(self, divisor: ir.Value, spread: Callable[[ir.Value], ir.Value]) -> ir.Value | None:
        """Write the powers, divided by what is made of their sums: that is ``spread`` of the ``divisor``.

        None if it is not known what that is of a sum of zero.
        """
        at_zero = _at_zero(divisor, self.value, {})
        if at_zero is None:
            return None
        chosen = producer(self.hidden)
        operands = [splat_like(-math.inf, each) if number_of(each) is not None else each for each in chosen.operands]
        hidden = copy_operation(chosen, dict(zip(chosen.operands, operands, strict=True))).results[0]
        reference = _copied(self.reference, {self.hidden: hidden})
        powers = hlo.exponential(hlo.subtract(hidden, reference))
        quotients = hlo.divide(powers, spread(_copied(divisor, {self.value: powers})))
        return self._masked(quotients) if at_zero else quotients

    def _masked(self, value: ir.Value) -> ir.Value:
        """Write zeros where the condition does not hold."""
        shape, ((mask, map_), keeps) = shape_of(value), self.condition
        reading = reading_of(map_, shape, shape_of(mask))
        assert reading is not None
        both = (value, splat_like(0, value))
        chosen: ir.Value = hlo.select(reading.write(mask, shape), *(both if keeps else both[::-1]))
        return chosen


def _place(value: ir.Value) -> Place:
    return value, identity_map(shape_of(value)).with_simple_results()


def _chosen(value: ir.Value, lowest: float, highest: float) -> tuple[ir.Value, Condition] | None:
    """Return what is chosen by a condition, if what is chosen else is a number between two, both included."""
    op = defining_op(value)
    if op is None or op.name != _SELECT or shape_of(op.operands[0]) != shape_of(value):
        return None
    for position in (1, 2):
        number = number_of(op.operands[position])
        if number is not None and lowest <= number <= highest:
            return _readable(
                op.operands[3 - position], Condition(behind(_place(op.operands[0]), SPREADS), position == 2)
            )
    return None


def _multiplied(value: ir.Value) -> tuple[ir.Value, Condition] | None:
    """Return what is multiplied by a condition that is made a number."""
    op = defining_op(value)
    for number in range(2) if op is not None and op.name == _MULTIPLY else ():
        factor, map_ = behind(_place(producer(value).operands[number]), SPREADS)
        made = defining_op(factor)
        if made is not None and made.name == _CONVERT and dtype_of(made.operands[0]).hlo == "pred":
            condition = behind((made.operands[0], then(map_, accesses(made)[0].map)), SPREADS)
            return _readable(producer(value).operands[1 - number], Condition(condition, True))
    return None


def _readable(value: ir.Value, condition: Condition) -> tuple[ir.Value, Condition] | None:
    """Return both if the condition can be written again at the indices of the value."""
    mask, map_ = condition.place
    return None if reading_of(map_, shape_of(value), shape_of(mask)) is None else (value, condition)


def _largest_of(reference: ir.Value) -> ir.Value | None:
    """Return the logits of which a value of each row is computed from the largest, and from nothing else."""
    value, _ = behind(_place(reference), SPREADS)
    found, pending, seen = set[ir.Value](), [value], {value}
    while pending:
        op = defining_op(pending.pop())
        if op is None or len(seen) > _MOST_OPERATIONS:
            return None
        if op.name == REDUCE:
            is_largest = reducing_function(op) == "maximum" and number_of(op.operands[1]) == -math.inf
            found.add(op.operands[0] if is_largest and len(op.results) == 1 else op.results[0])
            continue
        pending += [each for each in op.operands if each not in seen]
        seen.update(op.operands)
    return found.pop() if len(found) == 1 else None


def _copied(value: ir.Value, copies: dict[ir.Value, ir.Value]) -> ir.Value:
    """Write again what a value is computed by from those that there are copies of, and return its copy."""
    for op in in_order(backward_slice([value], lambda each: each in copies)):
        if any(operand in copies for operand in op.operands):
            copies.update({operand: operand for operand in op.operands if operand not in copies})
            copy_operation(op, copies)
    return copies.get(value, value)


def _at_zero(value: ir.Value, powers: ir.Value, known: dict[ir.Value, float | bool | None]) -> float | bool | None:
    """Return what a value of each row is where the sum of the powers is zero; None if it is not known.

    What was looked at is ``known``; no more is than a few operations.
    """
    value, _ = behind(_place(value), SPREADS)
    if value not in known and len(known) < _MOST_OPERATIONS:
        known[value] = None
        found = _computed_at_zero(value, powers, known)
        known[value] = None if found != found else found  # Neither zeros nor their quotients are known of NaN.
    return known.get(value)


def _computed_at_zero(
    value: ir.Value, powers: ir.Value, known: dict[ir.Value, float | bool | None]
) -> float | bool | None:
    op, number = defining_op(value), number_of(value)
    if number is not None or op is None:
        return number
    if op.name == REDUCE:
        elements, _ = behind(_place(op.operands[0]), frozenset((_CONVERT,)))
        is_sum = reducing_function(op) == "add" and len(op.results) == 1 and number_of(op.operands[1]) == 0
        return 0.0 if is_sum and elements == powers else None
    if op.name not in (*_COMPUTED, _SELECT, _COMPARE):
        return None
    operands = [_at_zero(each, powers, known) for each in op.operands]
    numbers = [each for each in operands if each is not None]
    if len(numbers) < len(operands):
        return None
    if op.name == _SELECT:
        return numbers[1] if numbers[0] else numbers[2]
    function = _COMPARED[direction_of(op)] if op.name == _COMPARE else _COMPUTED[op.name]
    return function(float(numbers[0]), float(numbers[1]))

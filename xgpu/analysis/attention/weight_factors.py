"""Finds the factors of attention's weights after the softmax, one for each weight, as of a dropout.

A dropout writes zero where a condition does not hold, and divides by the share of weights that are kept. Programs say
so as a choice, or as a product with a condition that is made a number.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from xgpu import ir
from xgpu.analysis.attention.places import MOVES, SPREADS, Place, behind, number_of, then
from xgpu.hlo.operations import direction_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of

_MULTIPLY, _DIVIDE, _SELECT = "stablehlo.multiply", "stablehlo.divide", "stablehlo.select"
_ADD, _SUBTRACT = "stablehlo.add", "stablehlo.subtract"
_ARITHMETIC = (_MULTIPLY, _DIVIDE, _ADD, _SUBTRACT)
_SPREADS_ALONE = SPREADS - {"stablehlo.convert"}
_LEAST_NUMBER, _MOST_NUMBER = 2.0**-20, 2.0**20
"""Bounds of the number by which results may be multiplied instead of weights."""
_MOST_PLACES = 32
"""Values that are looked at behind a product's operand, to find a softmax."""
_DEEPEST = 8
"""Operations on the way to a condition or a number, at most."""


class Condition(NamedTuple):
    """A condition, and whether weights are kept where it holds, or where it does not."""

    place: Place
    keeps: bool


class Factor(NamedTuple):
    """A value that weights are multiplied by, or divided by."""

    place: Place
    divides: bool


@dataclass(frozen=True)
class WeightFactors:
    """Weights are multiplied by ``number`` and ``others``, and zero where one of the ``conditions`` drops them.

    By those that are ``chosen`` they are zero even if they would not be numbers. If all is ``nan_as_zero``, whatever is
    not a number is zero; and if it is ``bounded``, infinite ones are the largest there are.
    """

    number: float = 1.0
    conditions: frozenset[Condition] = frozenset()
    others: tuple[Factor, ...] = ()
    chosen: frozenset[Condition] = frozenset()
    nan_as_zero: bool = False
    bounded: bool = False

    def __bool__(self) -> bool:
        return not self.are_as(NO_FACTORS)

    @property
    def places(self) -> list[Place]:
        """The values that they are computed from, and where they are."""
        return [*(each.place for each in self.conditions), *(each.place for each in self.others)]

    @property
    def values(self) -> list[ir.Value]:
        """The values that they are computed from."""
        return [value for value, _ in self.places]

    def others_along(self, dimension: int, is_along: bool) -> list[Factor]:
        """Return the other factors that differ along a dimension of the weights, or those that do not."""
        return [each for each in self.others if _differs(each.place, dimension) is is_along]

    def conditions_along(self, dimension: int, is_along: bool) -> list[Condition]:
        """Return the conditions that differ along a dimension of the weights, or those that do not, in an order."""
        return in_order(each for each in self.conditions if _differs(each.place, dimension) is is_along)

    @property
    def has_normal_number(self) -> bool:
        """Whether the number is such that products with it, and with its inverse, are as exact as any."""
        return _LEAST_NUMBER <= self.number <= _MOST_NUMBER

    def times(self, other: "WeightFactors") -> "WeightFactors":
        """Return the factors of both."""
        return WeightFactors(
            self.number * other.number,
            self.conditions | other.conditions,
            self.others + other.others,
            self.chosen | other.chosen,
            self.nan_as_zero or other.nan_as_zero,
            self.bounded or other.bounded,
        )

    def after(self, map_: IndexingMap) -> "WeightFactors":
        """Return the factors found at the indices that a map leads to."""

        def moved(place: Place) -> Place:
            return place[0], then(map_, place[1])

        conditions, chosen = (
            frozenset(each._replace(place=moved(each.place)) for each in part)
            for part in (self.conditions, self.chosen)
        )
        others = tuple(each._replace(place=moved(each.place)) for each in self.others)
        return replace(self, conditions=conditions, others=others, chosen=chosen)

    def are_as(self, other: "WeightFactors") -> bool:
        """Whether weights that have the other factors are the same, but for rounding."""
        return (
            math.isclose(self.number, other.number, rel_tol=2.0**-22)
            and self.conditions == other.conditions
            and Counter(self.others) == Counter(other.others)
        )


def in_order(conditions: Iterable[Condition]) -> list[Condition]:
    """Return conditions in the order of their text: sets have none, and programs are to be the same each time."""
    return sorted(conditions, key=lambda each: (str(each.place[0]), str(each.place[1]), each.keeps))


def _differs(place: Place, dimension: int) -> bool:
    return any(dimension in result.variables()[0] for result in place[1].results)


NO_FACTORS = WeightFactors()
"""Those of weights that are a softmax."""


def unfactored(place: Place) -> Iterator[tuple[Place, WeightFactors]]:
    """Yield a value, and those that it is made of by multiplication, each with the factors that it is multiplied by."""
    pending, seen = [(place, NO_FACTORS)], set[Place]()
    while pending:
        place, factors = pending.pop()
        value, map_ = place = behind(place, MOVES)
        if place in seen or len(seen) > _MOST_PLACES:
            continue
        seen.add(place)
        yield place, factors
        op = defining_op(value)
        if op is None or op.name not in (_MULTIPLY, _DIVIDE, _SELECT):
            continue
        read = [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
        pending += [(read[number], factors.times(factor)) for number, factor in _taken_off(op, read)]


def taken_off(place: Place) -> tuple[list[Place], WeightFactors] | None:
    """Return what a value is of others by division, or by conditions; None if by nothing of that kind.

    If it is nothing but numbers and conditions itself, there is no other.
    """
    if (plain := _plain(place, _DEEPEST)) is not None:
        return [], plain
    value, map_ = place
    op = defining_op(value)
    if op is None or op.name not in (_DIVIDE, _SELECT):
        return None
    read = [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
    return next((([read[number]], factor) for number, factor in _taken_off(op, read)), None)


def _taken_off(op: ir.Operation, read: list[Place]) -> Iterator[tuple[int, WeightFactors]]:
    """Yield which of an operation's operands its result may be said to be, times which factors."""
    if op.name == _DIVIDE:
        yield 0, _factor(read[1], divides=True)
    elif op.name == _MULTIPLY:
        yield from ((number, _factor(read[1 - number], divides=False)) for number in range(2))
    elif (cleaned := _cleaned(read)) is not None:
        yield cleaned
    else:
        yield from ((number, WeightFactors(conditions=each, chosen=each)) for number, each in _chosen(read))


def _cleaned(read: list[Place]) -> tuple[int, WeightFactors] | None:
    """Return which operand of a choice its result is, unless that is not a number, or infinite."""
    kind, is_chosen, place = cleaning(read[0]) or (None, False, read[0])
    number = 1 if is_chosen else 2
    if kind is None or behind(read[number], MOVES) != behind(place, MOVES):
        return None
    if kind == "infinite":
        return number, WeightFactors(bounded=True)
    return (number, WeightFactors(nan_as_zero=True)) if number_of(read[3 - number][0]) == 0 else None


def cleaning(condition: Place) -> tuple[str, bool, Place] | None:
    """Return which numbers a condition tells from others, ``nan`` or ``infinite``: and whether it holds for the others.

    Also the value that is told; None if it is another condition.
    """
    value, map_ = behind(condition, _SPREADS_ALONE)
    op = defining_op(value)
    if op is None or op.name != "stablehlo.compare":
        return None
    direction = direction_of(op)
    if direction not in ("EQ", "NE") or not dtype_of(op.operands[0]).is_float:
        return None
    left, right = ((op.operands[each.operand], then(map_, each.map)) for each in accesses(op))
    if left == right:
        return "nan", direction == "EQ", left
    number = number_of(right[0])
    return ("infinite", direction == "NE", left) if number is not None and math.isinf(number) else None


def _chosen(read: list[Place]) -> Iterator[tuple[int, frozenset[Condition]]]:
    """Yield which operand of a choice its result is, unless a condition makes it zero."""
    for number, other in ((1, 2), (2, 1)):
        if number_of(read[other][0]) == 0:
            yield number, frozenset((Condition(behind(read[0], SPREADS), number == 1),))


def _factor(place: Place, divides: bool) -> WeightFactors:
    """Return what a value is as a factor: if nothing else is known of it, the value."""
    plain = _plain(place, _DEEPEST)
    if plain is None or (divides and (plain.conditions or not plain.has_normal_number)):
        return WeightFactors(others=(Factor(behind(place, SPREADS), divides),))
    return WeightFactors(1 / plain.number) if divides else plain


def _plain(place: Place, depth: int) -> WeightFactors | None:
    """Return the number that a value is, and the conditions where it is not zero instead; None if it is another value.

    Numbers are rounded as they are in the program.
    """
    value, map_ = behind(place, _SPREADS_ALONE)
    if (number := number_of(value)) is not None:
        return _rounded(number, value) if number > 0 else None
    op = defining_op(value)
    if op is None or not depth:
        return None
    if op.name == "stablehlo.convert" and dtype_of(op.operands[0]).kind == "bool":
        condition = behind((op.operands[0], then(map_, accesses(op)[0].map)), SPREADS)
        return WeightFactors(conditions=frozenset((Condition(condition, True),)))
    if op.name not in (*_ARITHMETIC, _SELECT, "stablehlo.convert") or not dtype_of(value).is_float:
        return None
    read = [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]
    if op.name == _SELECT:
        for chosen, conditions in _chosen(read):
            if (found := _plain(read[chosen], depth - 1)) is not None:
                return found.times(WeightFactors(conditions=conditions))
        return None
    parts = list[WeightFactors]()
    for each in read:
        if (found := _plain(each, depth - 1)) is None:
            return None
        parts.append(found)
    return _combined(op, parts)


def _combined(op: ir.Operation, parts: Sequence[WeightFactors]) -> WeightFactors | None:
    """Return what arithmetic, or a conversion, makes of numbers, and of conditions where that can be said."""
    (value,), (left, *others) = op.results, parts
    conditions = left.conditions.union(*(each.conditions for each in others))
    if not others:
        return _rounded(left.number, value, conditions)
    (right,) = others
    if op.name == _MULTIPLY:
        return _rounded(left.number * right.number, value, conditions)
    if op.name == _DIVIDE and not right.conditions:
        return _rounded(left.number / right.number, value, conditions)
    if conditions or op.name == _DIVIDE:
        return None
    number = left.number + right.number if op.name == _ADD else left.number - right.number
    return _rounded(number, value) if number > 0 else None


def _rounded(number: float, value: ir.Value, conditions: frozenset[Condition] = frozenset()) -> WeightFactors:
    """Return a number as one of a value's type."""
    return WeightFactors(float(dtype_of(value).numpy.type(number)), conditions)

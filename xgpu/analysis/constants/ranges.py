"""Range analysis of arrays of integers: an interval that holds all elements, for each value of a program.

What is known of a program's arguments is their type. Numbers that are known beyond that come from constants, from
``iota`` (and so from sorts and searches for extremes, that return where elements were), from remainders, counts and
the counters of loops.
"""

import math
from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.analysis.constants.arrays import array_of, is_readable
from xgpu.analysis.constants.counters import condition_of, constant_integer, step_of, unchanging
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import direction_of
from xgpu.indexing import interval as rules
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.interval import Interval
from xgpu.structure import defining_op, dtype_of, made, owning_op

_MOST_ELEMENTS = 1 << 16
"""Elements of a constant that are looked at, unless all are the same."""
_WHILE = "stablehlo.while"
_BEYOND = {"LT": 1, "LE": 1, "GT": -1, "GE": -1}
"""By the comparison of a counter with its bound, the way in which it comes to the bound."""


def whole_range(value: ir.Value) -> Interval | None:
    """Return every integer that elements of an array can be (i1: 0 and 1); None if they are no integers."""
    if not isinstance(value.type, ir.RankedTensorType):
        return None
    element = ir.RankedTensorType(value.type).element_type
    if not isinstance(element, ir.IntegerType):
        return None
    bits = element.width
    if bits == 1 or element.is_unsigned:
        return Interval(0, (1 << bits) - 1)
    return Interval(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


class IntegerRanges:
    """The ranges of values, each found once; good while the operations are there that the values are results of."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Interval | None] = {}

    def range_of(self, value: ir.Value) -> Interval | None:
        """Return an interval that holds all elements of ``value``: at worst its type's; None if they are no integers.

        It is empty for an array without elements.
        """
        if value in self._known:
            return self._known[value]
        return made(value, self._known, _inputs, self._compute)

    def point_of(self, value: ir.Value) -> int | None:
        """Return the number that all elements of ``value`` are, if that is known."""
        found = self.range_of(value)
        return found.lower if found is not None and found.is_point else None

    def is_positive(self, value: ir.Value) -> bool:
        """Whether all elements of ``value`` are known to be integers above zero."""
        found = self.range_of(value)
        return found is not None and found.lower > 0

    def is_natural(self, value: ir.Value) -> bool:
        """Whether all elements of ``value`` are known to be integers of at least zero."""
        found = self.range_of(value)
        return found is not None and found.lower >= 0

    def _compute(self, value: ir.Value, operands: list[Interval | None]) -> Interval | None:
        whole = whole_range(value)
        if whole is None:
            return None
        op = defining_op(value)
        if op is None:
            found = _counted(value, operands)
        elif op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
            found = self._reduced(op, value, operands)
        else:
            found = _of_result(op, value, operands)
        # Arithmetic beyond the type may wrap around.
        return found if found is not None and whole.contains_interval(found) else whole

    def _reduced(self, op: ir.Operation, value: ir.Value, operands: list[Interval | None]) -> Interval | None:
        """Return the range of a reduction: of a sum, or of what keeps to the range of the elements, as extremes do."""
        number, count = ir.OpResult(value).result_number, len(op.results)
        ends = list(zip(operands[:count], operands[count:], strict=True))
        elements = [None if a is None or b is None else a.union(b) for a, b in ends]
        own = elements[number]
        body = op.regions[0].blocks[0]
        *inside, terminator = (view.operation for view in body.operations)
        if own is None:
            return None
        if count == 1 and _is_sum(inside, body, terminator):
            return _summed(op, *ends[0])
        for argument, interval in zip(body.arguments, elements * 2, strict=True):
            self._known[argument] = interval
        # Of several results each is taken to be in its range while one is combined.
        found = [self.range_of(each) for each in terminator.operands]
        kept = [b is None or (a is not None and b.contains_interval(a)) for a, b in zip(found, elements, strict=True)]
        return own if all(kept) else None


def _inputs(value: ir.Value) -> Sequence[ir.Value]:
    """Return the values whose ranges that of ``value`` follows from."""
    if whole_range(value) is None:
        return ()
    op = defining_op(value)
    if op is None:
        parent = owning_op(value)
        return [parent.operands[ir.BlockArgument(value).arg_number]] if parent.name == _WHILE else ()
    if op.name in _RULES or op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return list(op.operands)
    if op.name in _KEEPING:
        return [op.operands[each] for each in _KEEPING[op.name](op)]
    if op.name in _BY_RESULT:
        return [op.operands[ir.OpResult(value).result_number]]
    return ()


def _of_result(op: ir.Operation, value: ir.Value, operands: list[Interval | None]) -> Interval | None:
    if op.name == "stablehlo.constant":
        return _constant(op)
    if op.name == "stablehlo.iota":
        return Interval(0, shape_of(value)[integer(op, "iota_dimension")] - 1)
    known = [each for each in operands if each is not None]
    if len(known) < len(operands) or not operands:
        return None
    if op.name in _RULES:
        return _RULES[op.name](op, known)
    found = known[0]
    for each in known[1:]:
        found = found.union(each)
    return found


def _constant(op: ir.Operation) -> Interval | None:
    splat = splat_of(op)
    if splat is None and math.prod(shape_of(op.results[0])) > _MOST_ELEMENTS:
        return None
    array = array_of(op) if is_readable(op.results[0].type) else None
    return Interval(int(array.min()), int(array.max())) if array is not None and array.size else None


def _is_sum(inside: Sequence[ir.Operation], body: ir.Block, terminator: ir.Operation) -> bool:
    """Whether a reduction's region returns the sum of its arguments."""
    if [each.name for each in inside] != ["stablehlo.add"]:
        return False
    (add,) = inside
    return {*add.operands} == {*body.arguments} and list(terminator.operands) == list(add.results)


def _summed(op: ir.Operation, elements: Interval | None, begin: Interval | None) -> Interval | None:
    """Return the range of sums of at most as many elements as there are."""
    assert elements is not None
    assert begin is not None
    if op.name == "stablehlo.reduce":
        most = math.prod(shape_of(op.operands[0])) // max(1, math.prod(shape_of(op.results[0])))
    else:
        most = math.prod(integers(op, "window_dimensions"))
    # Compilers may add the initial value to each of several parts.
    if not begin.is_point or begin.lower != 0:
        return None
    return Interval(min(elements.lower, 0) * most, max(elements.upper, 0) * most)


def _counted(value: ir.Value, operands: list[Interval | None]) -> Interval | None:
    """Return the range of a counter in the body of a loop, which goes up while it is below a constant, or down."""
    loop = owning_op(value)
    if loop.name != _WHILE or value.owner != loop.regions[1].blocks[0]:
        return None
    (start,), number, compared = operands, ir.BlockArgument(value).arg_number, condition_of(loop)
    if start is None or compared is None or compared.number != number or compared.direction not in _BEYOND:
        return None
    bound, step = constant_integer(unchanging(compared.bound, loop)), step_of(loop, number)
    whole, beyond = whole_range(value), _BEYOND[compared.direction]
    if bound is None or step is None or step * beyond <= 0 or whole is None:
        return None
    last = bound if compared.direction in ("LE", "GE") else bound - beyond
    if not whole.lower <= last + step <= whole.upper:
        return None
    return Interval(start.lower, max(start.lower, last)) if step > 0 else Interval(min(start.upper, last), start.upper)


def _bits(op: ir.Operation) -> int:
    return dtype_of(op.results[0]).bits


def _pair(rule: Callable[[Interval, Interval], Interval | None]) -> "_Rule":
    return lambda op, ranges: rule(ranges[0], ranges[1])


def _shift(rule: Callable[[Interval, Interval, int], Interval | None]) -> "_Rule":
    return lambda op, ranges: rule(ranges[0], ranges[1], _bits(op))


def _clamp(op: ir.Operation, ranges: list[Interval]) -> Interval:
    low, number, high = ranges
    return number.max(low).min(high)


def _select(op: ir.Operation, ranges: list[Interval]) -> Interval:
    condition, chosen, other = ranges
    if condition.is_point:
        return chosen if condition.lower else other
    return chosen.union(other)


def _compare(op: ir.Operation, ranges: list[Interval]) -> Interval | None:
    found = rules.comparison(direction_of(op), *ranges)
    return None if found is None else Interval(int(found), int(found))


def _absolute(op: ir.Operation, ranges: list[Interval]) -> Interval:
    (number,) = ranges
    return number if number.lower >= 0 else Interval(0, max(-number.lower, number.upper))


def _sign(op: ir.Operation, ranges: list[Interval]) -> Interval:
    (number,) = ranges
    return Interval(max(-1, min(number.lower, 1)), max(-1, min(number.upper, 1)))


def _halved(op: ir.Operation, ranges: list[Interval]) -> Interval | None:
    """Return the range of numbers moved to the right with their first bit before them, which is a sign here."""
    number, places = ranges
    bits = _bits(op)
    return rules.halved(number, places, bits) if number.upper < 1 << (bits - 1) else None


def _bit_count(op: ir.Operation, ranges: list[Interval]) -> Interval | None:
    """Return the range of a count of bits; numbers that share bytes are counted in ways of their own."""
    return Interval(0, _bits(op)) if _bits(op) >= 8 else None


def _not(op: ir.Operation, ranges: list[Interval]) -> Interval | None:
    return 1 - ranges[0] if _bits(op) == 1 else None


_Rule = Callable[[ir.Operation, list[Interval]], Interval | None]
_RULES: dict[str, _Rule] = {
    "stablehlo.abs": _absolute,
    "stablehlo.add": lambda op, ranges: ranges[0] + ranges[1] if _bits(op) > 1 else None,
    "stablehlo.and": _pair(rules.conjunction),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.count_leading_zeros": _bit_count,
    "stablehlo.divide": _pair(rules.quotient),
    "stablehlo.maximum": _pair(Interval.max),
    "stablehlo.minimum": _pair(Interval.min),
    "stablehlo.multiply": lambda op, ranges: ranges[0] * ranges[1],
    "stablehlo.negate": lambda op, ranges: -ranges[0],
    "stablehlo.not": _not,
    "stablehlo.or": _pair(rules.disjunction),
    "stablehlo.popcnt": _bit_count,
    "stablehlo.remainder": _pair(rules.remainder),
    "stablehlo.select": _select,
    "stablehlo.shift_left": _shift(rules.shifted_left),
    "stablehlo.shift_right_arithmetic": _halved,
    "stablehlo.shift_right_logical": _shift(rules.shifted_right),
    "stablehlo.sign": _sign,
    "stablehlo.subtract": lambda op, ranges: ranges[0] - ranges[1] if _bits(op) > 1 else None,
    "stablehlo.xor": _pair(rules.difference),
}
"""The range of a result, from those of all operands; None, or one beyond the type: nothing is known but the type."""


def _first(op: ir.Operation) -> Sequence[int]:
    return (0,)


def _first_two(op: ir.Operation) -> Sequence[int]:
    return (0, 1)


_KEEPING: dict[str, Callable[[ir.Operation], Sequence[int]]] = {
    **dict.fromkeys(
        (
            *("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.slice"),
            *("stablehlo.dynamic_slice", "stablehlo.reverse", "stablehlo.gather", "stablehlo.convert"),
        ),
        _first,
    ),
    "stablehlo.concatenate": lambda op: range(len(op.operands)),
    "stablehlo.dynamic_update_slice": _first_two,
    "stablehlo.pad": _first_two,
}
"""Operations whose results have elements of some operands, by the operands' numbers, and no others."""
_BY_RESULT = frozenset(("stablehlo.sort", "stablehlo.optimization_barrier"))
"""Operations each of whose results has the elements of the operand of the same number."""

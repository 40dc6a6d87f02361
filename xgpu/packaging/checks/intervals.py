"""Intervals of integers that are known at run time only: what clamps and conversions leave of their types' ranges.

Also those of the results of maps, where conditions say more of them than the ranges of variables do.
"""

from collections.abc import Callable, Mapping, Sequence

from xgpu import ir
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import defining_op, made

type _Rule = Callable[[ir.Operation, Sequence[Interval | None]], Interval | None]


def interval_of(value: ir.Value, known: dict[ir.Value, Interval | None] | None = None) -> Interval | None:
    """Return an interval that holds an integer or index, taken as signed; None if nothing bounds it.

    ``known`` keeps what was found of other values.
    """
    return made(value, {} if known is None else known, _needs, _interval)


def result_intervals(map_: IndexingMap) -> list[Interval]:
    """Return an interval for each result, from the ranges of variables and from constraints of the same expression."""
    found = []
    for result, interval in zip(map_.results, map_.result_ranges(), strict=True):
        for expr, within in map_.constraints:
            apart = result - expr
            if not apart.terms:
                interval = interval.intersect(Interval(within.lower + apart.constant, within.upper + apart.constant))
        found.append(interval)
    return found


def _needs(value: ir.Value) -> Sequence[ir.Value]:
    op = defining_op(value)
    return [] if op is None or op.name not in _RULES else list(op.operands)


def _interval(value: ir.Value, operands: Sequence[Interval | None]) -> Interval | None:
    op = defining_op(value)
    found = None if op is None or op.name not in _RULES else _RULES[op.name](op, operands)
    limits = _limits(value.type)
    if found is None or (limits is not None and not limits.contains_interval(found)):
        return limits
    return found


def _limits(type_: ir.Type) -> Interval | None:
    if not isinstance(type_, ir.IntegerType):
        return None
    return Interval(-(1 << type_.width - 1), (1 << type_.width - 1) - 1) if type_.width > 1 else Interval(-1, 0)


def _constant(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
    value = op.attributes["value"]
    return Interval(value.value, value.value) if isinstance(value, ir.IntegerAttr) else None


def _binary(combine: Callable[[Interval, Interval], Interval]) -> _Rule:
    def rule(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
        left, right = operands
        return None if left is None or right is None else combine(left, right)

    return rule


def _extended(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
    return operands[0]


def _extended_unsigned(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
    given, type_ = operands[0], op.operands[0].type
    if given is not None and given.lower >= 0:
        return given
    return Interval(0, (1 << type_.width) - 1) if isinstance(type_, ir.IntegerType) else None


def _selected(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
    _, first, second = operands
    return None if first is None or second is None else first.union(second)


def _least_unsigned(op: ir.Operation, operands: Sequence[Interval | None]) -> Interval | None:
    """A negative number is a large one here: the smaller of two is not above one that is none."""
    bounds = [each for each in operands if each is not None and each.lower >= 0]
    if not bounds:
        return None
    lower = min(each.lower for each in bounds) if len(bounds) == len(operands) else 0
    return Interval(lower, min(each.upper for each in bounds))


_RULES: Mapping[str, _Rule] = {
    "arith.constant": _constant,
    "arith.maxsi": _binary(lambda a, b: a.max(b)),
    "arith.minsi": _binary(lambda a, b: a.min(b)),
    "arith.minui": _least_unsigned,
    "arith.addi": _binary(lambda a, b: a + b),
    "arith.subi": _binary(lambda a, b: a - b),
    "arith.muli": _binary(lambda a, b: a * b),
    "arith.index_cast": _extended,
    "arith.index_castui": _extended_unsigned,
    "arith.extsi": _extended,
    "arith.extui": _extended_unsigned,
    "arith.select": _selected,
    "arith.trunci": _extended,
}
"""The bounds of operations' results; a result that its type cannot hold has wrapped, and is any of the type."""

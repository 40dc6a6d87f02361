"""Intervals of integers that are known at run time only: what clamps and conversions leave of their types' ranges."""

from collections.abc import Callable, Mapping

from xgpu import ir
from xgpu.indexing.interval import Interval
from xgpu.structure import defining_op


def interval_of(value: ir.Value) -> Interval | None:
    """Return an interval that holds an integer or index, taken as signed; None if nothing bounds it."""
    op = defining_op(value)
    found = None
    if op is not None and op.name in _RULES:
        found = _RULES[op.name](op)
    limits = _limits(value.type)
    if found is None or (limits is not None and not limits.contains_interval(found)):
        return limits
    return found


def _limits(type_: ir.Type) -> Interval | None:
    if not isinstance(type_, ir.IntegerType):
        return None
    return Interval(-(1 << type_.width - 1), (1 << type_.width - 1) - 1) if type_.width > 1 else Interval(-1, 0)


def _operands(op: ir.Operation) -> list[Interval] | None:
    found = [interval_of(each) for each in op.operands]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _constant(op: ir.Operation) -> Interval | None:
    value = op.attributes["value"]
    return Interval(value.value, value.value) if isinstance(value, ir.IntegerAttr) else None


def _binary(combine: Callable[[Interval, Interval], Interval]) -> Callable[[ir.Operation], Interval | None]:
    def rule(op: ir.Operation) -> Interval | None:
        known = _operands(op)
        return None if known is None else combine(*known)

    return rule


def _extended(op: ir.Operation) -> Interval | None:
    return interval_of(op.operands[0])


def _extended_unsigned(op: ir.Operation) -> Interval | None:
    given = interval_of(op.operands[0])
    type_ = op.operands[0].type
    if given is not None and given.lower >= 0:
        return given
    return Interval(0, (1 << type_.width) - 1) if isinstance(type_, ir.IntegerType) else None


def _selected(op: ir.Operation) -> Interval | None:
    either = [interval_of(each) for each in list(op.operands)[1:]]
    first, second = either
    return None if first is None or second is None else first.union(second)


_RULES: Mapping[str, Callable[[ir.Operation], Interval | None]] = {
    "arith.constant": _constant,
    "arith.maxsi": _binary(lambda a, b: a.max(b)),
    "arith.minsi": _binary(lambda a, b: a.min(b)),
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
"""How operations bound their results; a result that its type cannot hold has wrapped, and is any of the type."""

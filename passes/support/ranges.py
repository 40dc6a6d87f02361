"""Range analysis of integers and indices: an interval for each value.

Ranges come from where values are made: thread and block ids, ``xgpu.range`` of arguments, loop bounds, indexing maps,
constants, and the arithmetic between them. They hold wherever the value is defined, whatever branch it is used in.
"""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dialects.attributes import RANGE, int_array_of, int_of, map_of
from xgpu.indexing.interval import (
    Interval,
    comparison,
    conjunction,
    difference,
    disjunction,
    quotient,
    remainder,
    shifted_left,
    shifted_right,
)
from xgpu.structure import defining_op, made, owning_op

INDEX_RANGE = Interval(-(1 << 63), (1 << 63) - 1)
"""Range of an index of which nothing is known."""
BOOL_RANGE = Interval(0, 1)
"""Range of an i1; true counts as 1."""

_HARDWARE = {
    "gpu.thread_id": Interval(0, 1023),
    "gpu.block_id": Interval(0, (1 << 31) - 2),
    "gpu.block_dim": Interval(1, 1024),
    "gpu.grid_dim": Interval(1, (1 << 31) - 1),
}


def type_range(type_: ir.Type) -> Interval | None:
    """Return every value that ``type_`` holds, integers read as signed (i1: 0 and 1); None if it is not an integer."""
    if isinstance(type_, ir.IndexType):
        return INDEX_RANGE
    if not isinstance(type_, ir.IntegerType):
        return None
    bits = type_.width
    return BOOL_RANGE if bits == 1 else Interval(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def constant_of(value: ir.Value) -> int | None:
    """Return the integer that ``value`` is if an ``arith.constant`` makes it, else None; true counts as 1."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr):
        return int(attribute.value)
    return None


class KnownRanges:
    """The ranges of values, each computed once. Good as long as the IR that defines the values does not change."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, Interval | None] = {}

    def range_of(self, value: ir.Value) -> Interval | None:
        """Return an interval that holds ``value``: at worst all that its type holds; None if it is not an integer."""
        if value in self._known:
            return self._known[value]
        return made(value, self._known, _inputs, lambda each, _: self._compute(each))

    def index_range(self, value: ir.Value) -> Interval:
        """Return the range of an integer or index."""
        found = self.range_of(value)
        return INDEX_RANGE if found is None else found

    def _compute(self, value: ir.Value) -> Interval | None:
        whole = type_range(value.type)
        if whole is None:
            return None
        found = self._raw_range(value, whole)
        # An empty range means code that is never reached, and one beyond the type that arithmetic may wrap around.
        return found if found and not found.is_empty and whole.contains_interval(found) else whole

    def _raw_range(self, value: ir.Value, whole: Interval) -> Interval | None:
        owner = defining_op(value)
        if owner is None:
            return self._argument_range(ir.BlockArgument(value))
        name = owner.name
        if name == "arith.constant":
            constant = constant_of(value)
            return None if constant is None else Interval(constant, constant)
        if name in _HARDWARE:
            return _hardware_range(owner, name)
        if name == "xgpu.apply_indexing":
            map_ = map_of(owner.attributes["map"])
            pairs = zip(owner.operands, map_.dims + map_.symbols, strict=True)
            ranges = [self.index_range(variable).intersect(interval) for variable, interval in pairs]
            if any(interval.is_empty for interval in ranges):
                return None
            expr = map_.results[ir.OpResult(value).result_number]
            return expr.interval(ranges[: len(map_.dims)], ranges[len(map_.dims) :])
        if name == "scf.if":
            branches = [self.index_range(v) for v in _yielded(owner, ir.OpResult(value).result_number)]
            return branches[0].union(branches[1])
        rule = _RULES.get(name)
        return rule(owner, [self.index_range(v) for v in owner.operands], whole) if rule else None

    def _argument_range(self, value: ir.BlockArgument) -> Interval | None:
        parent = owning_op(value)
        number = value.arg_number
        if parent.name == "func.func":
            is_parameter = value.owner == parent.regions[0].blocks[0]
            return _function_argument_range(parent, number) if is_parameter else None
        if parent.name == "scf.for" and number == 0:
            lower, upper, step = (self.index_range(v) for v in list(parent.operands)[:3])
            # A step that is not above zero is no defined loop.
            points = lower.is_point and upper.is_point and step.is_point and step.lower > 0
            if points and upper.lower > lower.lower:
                trips = (upper.lower - 1 - lower.lower) // step.lower
                return Interval(lower.lower, lower.lower + trips * step.lower)
            return Interval(lower.lower, upper.upper - 1)
        if parent.name == "xgpu.loop":
            map_ = map_of(parent.attributes["map"])
            position = number - len(map_.symbols)
            if position < 0:
                return map_.symbols[number]
            if position < len(map_.results):
                return map_.results[position].interval(map_.dims, map_.symbols)
        return None


def _inputs(value: ir.Value) -> Sequence[ir.Value]:
    """The values whose ranges the range of ``value`` follows from."""
    owner = defining_op(value)
    if owner is None:
        parent = owning_op(value)
        is_induction = parent.name == "scf.for" and ir.BlockArgument(value).arg_number == 0
        return list(parent.operands)[:3] if is_induction else ()
    if owner.name in _RULES or owner.name == "xgpu.apply_indexing":
        return list(owner.operands)
    if owner.name == "scf.if" and type_range(value.type) is not None:
        return _yielded(owner, ir.OpResult(value).result_number)
    return ()


def _yielded(conditional: ir.Operation, number: int) -> list[ir.Value]:
    blocks = [region.blocks[0] for region in conditional.regions]
    return [block.operations[len(block.operations) - 1].operation.operands[number] for block in blocks]


def _hardware_range(op: ir.Operation, name: str) -> Interval:
    known = _HARDWARE[name]
    if "upper_bound" not in op.attributes:
        return known
    bound = int_of(op.attributes["upper_bound"])
    return Interval(known.lower, bound if known.lower else bound - 1)


def _function_argument_range(function: ir.Operation, number: int) -> Interval | None:
    if "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])
    return Interval(*int_array_of(attributes[RANGE])) if RANGE in attributes else None


Rule = Callable[[ir.Operation, list[Interval], Interval], Interval | None]


def _bits(op: ir.Operation, number: int = 0) -> int:
    type_ = op.operands[number].type
    return type_.width if isinstance(type_, ir.IntegerType) else 64


def _both_nonnegative(rule: Callable[[Interval, Interval], Interval | None]) -> Rule:
    """An unsigned operation agrees with the signed one where both operands are nonnegative."""

    def apply(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
        return rule(ranges[0], ranges[1]) if ranges[0].lower >= 0 and ranges[1].lower >= 0 else None

    return apply


def _remainder(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    a, b = ranges
    # Of an unsigned dividend that is negative if it is read as signed, the remainder is anything below the divisor.
    return Interval(0, b.upper - 1) if a.lower < 0 < b.lower else remainder(a, b)


def _unsigned_min(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    a, b = ranges
    if a.lower >= 0 and b.lower >= 0:
        return a.min(b)
    uppers = [interval.upper for interval in ranges if interval.lower >= 0]
    return Interval(0, min(uppers)) if uppers else None


def _sign_extend(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    return -ranges[0] if _bits(op) == 1 else ranges[0]


def _zero_extend(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    return ranges[0] if ranges[0].lower >= 0 else Interval(0, (1 << _bits(op)) - 1)


def _select(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    condition, a, b = ranges
    if condition.is_point:
        return a if condition.lower else b
    return a.union(b)


_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def predicate_of(op: ir.Operation) -> str:
    """Return the predicate of an ``arith.cmpi``: ``slt``, ``uge``..."""
    return _PREDICATES[int_of(op.attributes["predicate"])]


def decide(predicate: str, a: Interval, b: Interval) -> bool | None:
    """Return what ``a predicate b`` is for all values of these ranges, read as signed; None if it depends on them."""
    if predicate[0] == "u" and (a.lower < 0 or b.lower < 0):
        return None
    return comparison(predicate.removeprefix("u").removeprefix("s"), a, b)


def _compare(op: ir.Operation, ranges: list[Interval], whole: Interval) -> Interval | None:
    predicate = predicate_of(op)
    if _bits(op) == 1 and predicate[0] == "s":
        return None
    found = decide(predicate, *ranges)
    return None if found is None else Interval(int(found), int(found))


def _plain(rule: Callable[[Interval, Interval], Interval | None]) -> Rule:
    return lambda op, ranges, whole: rule(ranges[0], ranges[1]) if _bits(op) > 1 else None


def _shift(rule: Callable[[Interval, Interval, int], Interval | None]) -> Rule:
    return lambda op, ranges, whole: rule(ranges[0], ranges[1], _bits(op))


_RULES: dict[str, Rule] = {
    "arith.addi": _plain(lambda a, b: a + b),
    "arith.subi": _plain(lambda a, b: a - b),
    "arith.muli": _plain(lambda a, b: a * b),
    "arith.minsi": _plain(lambda a, b: a.min(b)),
    "arith.maxsi": _plain(lambda a, b: a.max(b)),
    "arith.minui": _unsigned_min,
    "arith.maxui": _both_nonnegative(lambda a, b: a.max(b)),
    "arith.andi": lambda op, ranges, whole: conjunction(*ranges),
    "arith.ori": lambda op, ranges, whole: disjunction(*ranges),
    "arith.xori": lambda op, ranges, whole: difference(*ranges),
    "arith.divui": _both_nonnegative(quotient),
    "arith.divsi": _plain(quotient),
    "arith.floordivsi": _both_nonnegative(quotient),
    "arith.remui": _remainder,
    "arith.remsi": _plain(remainder),
    "arith.shli": _shift(shifted_left),
    "arith.shrui": _shift(shifted_right),
    "arith.extsi": _sign_extend,
    "arith.extui": _zero_extend,
    "arith.index_cast": _sign_extend,
    "arith.index_castui": _zero_extend,
    "arith.trunci": lambda op, ranges, whole: ranges[0],
    "arith.select": _select,
    "arith.cmpi": _compare,
}
"""The range of a result, from the ranges of the operands; None: nothing beyond the type is known. A range that
goes beyond the type is replaced by the type's, so rules need not care about wrapping."""

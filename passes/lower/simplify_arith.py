"""The pass `simplify-arith`."""

from collections.abc import Callable
from typing import ClassVar

from xgpu import ir
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.index_ops import IndexConstants, erase_unused
from xgpu.passes.support.ranges import KnownRanges, type_range
from xgpu.records import dataclass
from xgpu.structure import defining_op, walk


@dataclass(frozen=True)
class SimplifyArith(Pass):
    """Removes integer arithmetic that the ranges of its operands make redundant.

    What can have one value only becomes a constant: comparisons that always hold or never do, divisions of what is
    smaller than the divisor. Minima, maxima, remainders and masks that change nothing are replaced by their operand,
    pairs of casts that lose nothing by what they began with. Floating-point arithmetic stays as it is: each operation
    rounds for itself.
    Needs: lower-indexing for the index arithmetic to be there; canonicalize afterwards folds what the constants allow.

    ```mlir
    %i = gpu.thread_id x upper_bound 32
    %j = arith.remui %i, %c32 : index
    %inside = arith.cmpi ult, %j, %c64 : index
    ```
    becomes `%i` for `%j` and `true` for `%inside`.
    """

    NAME: ClassVar[str] = "simplify-arith"

    def apply(self, module: ir.Module) -> None:
        """Simplify the arithmetic of every function of ``module``."""
        for function in functions(module):
            _simplify(function.operation)


def _simplify(function: ir.Operation) -> None:
    ranges, constants = KnownRanges(), IndexConstants(function)
    replaced: list[ir.Operation] = []
    for op in walk(function, post_order=False):
        if not op.name.startswith("arith.") or op.name == "arith.constant" or len(op.results) != 1:
            continue
        result = op.results[0]
        interval = ranges.range_of(result)
        if interval is None:
            continue
        if interval.is_point:
            new = constants.get(interval.lower, result.type)
        else:
            operand = _equal_operand(op, ranges)
            if operand is None:
                continue
            new = operand
        result.replace_all_uses_with(new)
        replaced.append(op)
    # Nothing is erased before this: ranges are known by the addresses of operations.
    erase_unused(replaced)


def _equal_operand(op: ir.Operation, ranges: KnownRanges) -> ir.Value | None:
    """Return a value that ``op`` always gives: an operand, or what a pair of casts began with; None if unknown."""
    name = op.name
    if name in _CASTS:
        return _uncast(op, ranges)
    if name not in _CHOOSES_FIRST:
        return None
    a, b = op.operands
    chooses_first = _CHOOSES_FIRST[name]
    if chooses_first(ranges.index_range(a), ranges.index_range(b)):
        return a
    if name in _COMMUTATIVE and chooses_first(ranges.index_range(b), ranges.index_range(a)):
        return b
    return None


def _within_mask(a: Interval, mask: Interval) -> bool:
    """Whether ``mask`` has all bits that numbers in ``a`` can have."""
    bits = (1 << a.upper.bit_length()) - 1
    return a.lower >= 0 and mask.is_point and mask.lower & bits == bits


_CHOOSES_FIRST: dict[str, Callable[[Interval, Interval], bool]] = {
    "arith.minsi": lambda a, b: a.upper <= b.lower,
    "arith.minui": lambda a, b: a.lower >= 0 and a.upper <= b.lower,
    "arith.maxsi": lambda a, b: a.lower >= b.upper,
    "arith.maxui": lambda a, b: b.lower >= 0 and a.lower >= b.upper,
    "arith.remsi": lambda a, b: a.lower >= 0 and a.upper < b.lower,
    "arith.remui": lambda a, b: a.lower >= 0 and a.upper < b.lower,
    "arith.andi": _within_mask,
}
"""The condition for the result to be the first operand, for operands in these ranges."""
_COMMUTATIVE = frozenset(("arith.minsi", "arith.minui", "arith.maxsi", "arith.maxui", "arith.andi"))
_CASTS = frozenset(("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci"))
_UNSIGNED_CASTS = frozenset(("arith.index_castui", "arith.extui"))


def _uncast(op: ir.Operation, ranges: KnownRanges) -> ir.Value | None:
    """Return what a cast and the cast of its operand began with if both keep its value and the types agree."""
    inner = defining_op(op.operands[0])
    if inner is None or inner.name not in _CASTS:
        return None
    source = inner.operands[0]
    interval, between = ranges.range_of(source), type_range(inner.results[0].type)
    if source.type != op.results[0].type or interval is None or between is None or _is_bool(source.type):
        return None
    if interval.lower < 0 and not _UNSIGNED_CASTS.isdisjoint((op.name, inner.name)):
        return None
    return source if between.contains_interval(interval) else None


def _is_bool(type_: ir.Type) -> bool:
    """Whether casts of ``type_`` extend by the value's only bit, so that true does not count as 1."""
    return isinstance(type_, ir.IntegerType) and type_.width == 1

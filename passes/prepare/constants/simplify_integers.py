"""The pass `simplify-integers`."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.ranges import IntegerRanges
from xgpu.hlo.operations import direction_of
from xgpu.hlo.stablehlo_builder import compared, hlo, splat_like
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import defining_op

_Simplified = Callable[[ir.Operation, IntegerRanges], ir.Value | None]


@dataclass(frozen=True)
class SimplifyIntegers(BlockRewrite):
    """Leaves out of arithmetic on integers what their ranges make needless.

    JAX adds a dimension's size to negative indices, and has no operation for a quotient rounded down nor for the
    remainder of one: each takes five to ten operations on values of any sign, whatever is known of them. Here
    comparisons and other operations whose result is one number become that number, and what is chosen by it takes its
    place; quotients and remainders of numbers that are not negative lose what was for negative ones, and by a power of
    two they are a shift or a mask for all numbers. What indices cannot be is not asked: bounds of a gather too.
    Erases nothing. Needs: constants in the blocks that use them.

    ```mlir
    %0 = stablehlo.iota dim = 0 : tensor<8xi32>
    %1 = stablehlo.compare LT, %0, %zero : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %2 = stablehlo.add %0, %eight : tensor<8xi32>
    %3 = stablehlo.select %1, %2, %0 : tensor<8xi1>, tensor<8xi32>
    ```
    becomes, where ``%3`` is used,
    ```mlir
    %0 = stablehlo.iota dim = 0 : tensor<8xi32>
    ```
    """

    NAME: ClassVar[str] = "simplify-integers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(
        f"stablehlo.{name}"
        for name in ("and", "clamp", "compare", "maximum", "minimum", "not", "or", "reduce", "remainder", "select")
    )
    WITH_CONDITIONS: ClassVar[bool] = True  # Bodies of loops under `jax.vmap` are compared with them.

    def rewrite_block(self, block: ir.Block) -> None:
        """Simplify the operations of ``block``, in their order: what is decided decides more."""
        ranges = IntegerRanges()
        for op in operations_of(block, self.OPERATIONS):
            with ir.InsertionPoint(op), op.location:
                _simplify(op, ranges)


def _simplify(op: ir.Operation, ranges: IntegerRanges) -> None:
    """Replace what ``op`` returns, if that is simpler. Values stay where they are: others may be known by them."""
    is_known = False
    for result in op.results:
        number = ranges.point_of(result)
        if number is not None:
            is_known = True
            result.replace_all_uses_with(splat_like(number, result))
    if not is_known and op.name in _RULES:
        found = _RULES[op.name](op, ranges)
        if found is not None:
            op.results[0].replace_all_uses_with(found)


def _compare(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    """Return the truth that is compared with a known one, or its opposite."""
    direction = direction_of(op)
    if not _is_truth(op.operands[0]) or direction not in ("EQ", "NE"):
        return None
    for value, other in _either_way(op):
        known = ranges.point_of(other)
        if known is not None:
            return value if (direction == "EQ") == bool(known) else hlo.not_(value)
    return None


def _and(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    for value, other in _either_way(op):
        if _is_truth(value) and ranges.point_of(other) == 1:
            return value
        # What is below zero is not zero.
        if _is_below_zero(value, ranges) and _is_other_than_zero(other, _compared(value), ranges):
            return value
        if (dividend := _with_other_sign(value, other, ranges)) is not None:
            if ranges.is_natural(dividend):
                return splat_like(0, value)
            return hlo.and_(compared(dividend, splat_like(0, dividend), "LT"), other)
    return None


def _or(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    return next((value for value, other in _either_way(op) if ranges.point_of(other) == 0), None)


def _select(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    condition, chosen, other = op.operands
    known = ranges.point_of(condition)
    if known is not None:
        return chosen if known else other
    if chosen == other:
        return other
    return _masked(op, ranges) or _shifted(op, ranges)


def _maximum(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    return next((value for value, other in _either_way(op) if _never_exceeds(other, value, ranges)), None)


def _minimum(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    return next((value for value, other in _either_way(op) if _never_exceeds(value, other, ranges)), None)


def _never_exceeds(value: ir.Value, other: ir.Value, ranges: IntegerRanges) -> bool:
    """Whether no element of ``value`` is larger than any of ``other``."""
    first, second = ranges.range_of(value), ranges.range_of(other)
    return first is not None and second is not None and first.upper <= second.lower


def _clamp(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    low, number, high = op.operands
    return number if _never_exceeds(low, number, ranges) and _never_exceeds(number, high, ranges) else None


def _remainder(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    dividend, divisor = map(ranges.range_of, op.operands)
    if dividend is None or divisor is None:
        return None
    return op.operands[0] if dividend.lower >= 0 and dividend.upper < divisor.lower else None


_RULES: Mapping[str, _Simplified] = {
    "stablehlo.and": _and,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.maximum": _maximum,
    "stablehlo.minimum": _minimum,
    "stablehlo.or": _or,
    "stablehlo.remainder": _remainder,
    "stablehlo.select": _select,
}
"""A value that is what an operation returns, and takes less; None if none is known."""


def _masked(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    """Return the remainder by a power of two of a quotient rounded down: ``r < 0 ? r + c : r`` is ``x & (c - 1)``."""
    condition, chosen, other = op.operands
    rest, added = _made(other, "stablehlo.remainder"), _made(chosen, "stablehlo.add")
    if rest is None or added is None or not _is_below_zero(condition, ranges) or _compared(condition) != other:
        return None
    size = ranges.point_of(rest.operands[1])
    sizes = [ranges.point_of(second) for first, second in _either_way(added) if first == other]
    if size is None or size not in sizes or not _is_power_of_two(size):
        return None
    return hlo.and_(rest.operands[0], splat_like(size - 1, other))


def _shifted(op: ir.Operation, ranges: IntegerRanges) -> ir.Value | None:
    """Return a quotient by a power of two, rounded down: ``x < 0 and x % c != 0 ? x / c - 1 : x / c`` is a shift."""
    condition, chosen, other = op.operands
    quotient, less, both = _made(other, "stablehlo.divide"), _made(chosen, "stablehlo.subtract"), defining_op(condition)
    if quotient is None or less is None or both is None or both.name != "stablehlo.and":
        return None
    dividend, divisor = quotient.operands
    size = ranges.point_of(divisor)
    if less.operands[0] != other or ranges.point_of(less.operands[1]) != 1:
        return None
    if size is None or not _is_power_of_two(size):
        return None
    for negative, uneven in _either_way(both):
        rest = _made(_compared(uneven), "stablehlo.remainder")
        if rest is None or rest.operands[0] != dividend or ranges.point_of(rest.operands[1]) != size:
            continue
        if not _is_other_than_zero(uneven, rest.results[0], ranges):
            continue
        if _is_below_zero(negative, ranges) and _compared(negative) == dividend:
            return hlo.shift_right_arithmetic(dividend, splat_like(size.bit_length() - 1, dividend))
    return None


def _with_other_sign(value: ir.Value, uneven: ir.Value, ranges: IntegerRanges) -> ir.Value | None:
    """Return the ``x`` of ``sign(x) != 1`` if that is asked beside ``x % c != 0``, so that ``x`` is no zero."""
    op = _made(value, "stablehlo.compare")
    rest = _made(_compared(uneven), "stablehlo.remainder")
    if op is None or rest is None or direction_of(op) != "NE":
        return None
    if not _is_other_than_zero(uneven, rest.results[0], ranges):
        return None
    for sign, other in _either_way(op):
        signed = _made(sign, "stablehlo.sign")
        if signed is not None and signed.operands[0] == rest.operands[0] and ranges.point_of(other) == 1:
            return signed.operands[0]
    return None


def _is_below_zero(value: ir.Value, ranges: IntegerRanges) -> bool:
    """Whether ``value`` says which numbers are below zero."""
    op = _made(value, "stablehlo.compare")
    return op is not None and direction_of(op) == "LT" and ranges.point_of(op.operands[1]) == 0


def _is_other_than_zero(value: ir.Value, number: ir.Value | None, ranges: IntegerRanges) -> bool:
    """Whether ``value`` says where ``number`` is not zero."""
    op = _made(value, "stablehlo.compare")
    if op is None or direction_of(op) != "NE":
        return False
    return op.operands[0] == number and ranges.point_of(op.operands[1]) == 0


def _compared(value: ir.Value) -> ir.Value | None:
    """Return the first of two values whose comparison ``value`` is."""
    op = _made(value, "stablehlo.compare")
    return None if op is None else op.operands[0]


def _made(value: ir.Value | None, name: str) -> ir.Operation | None:
    """Return the operation that makes ``value`` if it has this name."""
    op = None if value is None else defining_op(value)
    return op if op is not None and op.name == name else None


def _either_way(op: ir.Operation) -> list[tuple[ir.Value, ir.Value]]:
    first, second = op.operands
    return [(first, second), (second, first)]


def _is_truth(value: ir.Value) -> bool:
    element = ir.RankedTensorType(value.type).element_type
    return isinstance(element, ir.IntegerType) and element.width == 1


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)

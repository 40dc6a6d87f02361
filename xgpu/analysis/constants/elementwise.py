"""Elementwise operations on NumPy arrays, where the result is the same to the last bit as that of any machine.

These are integer arithmetic, comparisons, conversions and what IEEE 754 says of floats. A function returns None where
machines differ, as in a division by zero.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.analysis.constants.arrays import Array, dtype_of_array
from xgpu.hlo.operations import direction_of, is_total_order

Function = Callable[..., Any]


def _divide(left: Array, right: Array) -> Array | None:
    """The quotient of integers, rounded to zero; of floats the nearest."""
    if left.dtype.kind == "f":
        return left / right
    rest = _remainder(left, right)
    return None if rest is None else (left - rest) // right


def _remainder(left: Array, right: Array) -> Array | None:
    """The rest of a division of integers, of the sign of what is divided."""
    return np.fmod(left, right) if left.dtype.kind != "f" and np.all(right != 0) else None


def _shifted(shift: Function, fill: Function) -> Function:
    """Shift by as many bits as there are at most; ``fill`` is what more leave of each element."""

    def whole(left: Array, right: Array) -> Array:
        bits = 8 * left.dtype.itemsize
        amount = right.astype(f"u{right.dtype.itemsize}")
        within = np.minimum(amount, bits - 1).astype(left.dtype)
        shifted: Array = shift(left, within)
        return np.where(amount < bits, shifted, fill(left))

    return whole


def _logical_right(left: Array, right: Array) -> Array:
    return np.right_shift(left.view(f"u{left.dtype.itemsize}"), right.astype(f"u{left.dtype.itemsize}")).view(
        left.dtype
    )


def _extreme(choose: Function) -> Function:
    """Choose one of two floats; machines differ in the sign of a zero that both are, and in NaN."""

    def chosen(left: Array, right: Array) -> Array | None:
        either = (left == right) & (np.signbit(left) != np.signbit(right))
        result: Array | None = None if (either | (left != left) | (right != right)).any() else choose(left, right)
        return result

    return chosen


_MAXIMUM, _MINIMUM = _extreme(np.maximum), _extreme(np.minimum)


def _clamp(least: Array, array: Array, most: Array) -> Array | None:
    """Clamp floats."""
    raised = _MAXIMUM(least, array)
    return None if raised is None else _MINIMUM(raised, most)


_INTEGERS: Mapping[str, Function] = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "remainder": _remainder,
    "sign": np.sign,
    "popcnt": lambda array: np.bitwise_count(array.view(f"u{array.dtype.itemsize}")).astype(array.dtype),
    "not": np.invert,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "clamp": lambda least, array, most: np.minimum(np.maximum(least, array), most),
    "shift_left": _shifted(np.left_shift, np.zeros_like),
    "shift_right_logical": _shifted(_logical_right, np.zeros_like),
    "shift_right_arithmetic": _shifted(np.right_shift, lambda array: np.where(array < 0, -1, 0).astype(array.dtype)),
}
_NUMBERS: Mapping[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": _divide,
    "negate": np.negative,
    "abs": np.abs,
}
_FLOATS: Mapping[str, Function] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_even": np.rint,
    "maximum": _MAXIMUM,
    "minimum": _MINIMUM,
    "clamp": _clamp,
}
_COMPARISONS: Mapping[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
_BOOLEANS = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and", "and": "and", "or": "or", "xor": "xor"}
"""The bitwise operations that arithmetic on truth values is."""


def _function(op: ir.Operation) -> Function | None:
    """Return what computes the results of ``op`` of those of its operands; None if nothing does exactly."""
    name = op.name.removeprefix("stablehlo.")
    kind = dtype_of_array(op.operands[0].type).kind
    if name == "compare":
        return _comparison(op)
    if name == "select":
        return np.where
    if name == "convert":
        return _conversion(op)
    if name == "bitcast_convert":
        return _bitcast(op)
    if kind == "bool":
        return _INTEGERS.get(_BOOLEANS.get(name, name if name == "not" else ""))
    return _NUMBERS.get(name, _FLOATS.get(name) if kind == "float" else _INTEGERS.get(name))


def is_exact(op: ir.Operation) -> bool:
    """Whether `computed` knows the operation, on arrays of readable types."""
    return _function(op) is not None


def computed(op: ir.Operation, operands: list[Array]) -> Array | None:
    """Return the result of an elementwise operation that is known; None where machines differ."""
    function = _function(op)
    assert function is not None
    with np.errstate(all="ignore"):
        result = function(*operands)
    if result is None or (result.dtype.kind == "f" and op.name in _ARITHMETIC and np.isnan(result).any()):
        # The sign of a NaN that is made is the machine's.
        return None
    return result


_ARITHMETIC = {f"stablehlo.{name}" for name in (*_NUMBERS, *_FLOATS)}


def _comparison(op: ir.Operation) -> Function:
    direction = _COMPARISONS[direction_of(op)]
    if not is_total_order(op):
        return direction
    width = dtype_of_array(op.operands[0].type).bits
    return lambda left, right: direction(_order(left, width), _order(right, width))


def _order(array: Array, width: int) -> Array:
    """Return integers that are ordered as all floats of ``width`` bits are, zeros and NaN by their signs."""
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    # Of a type of fewer bits than a byte NumPy has the others above them.
    bits = np.left_shift(bits, 8 * array.dtype.itemsize - width)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _conversion(op: ir.Operation) -> Function:
    target = dtype_of_array(op.results[0].type)

    def converted(array: Array) -> Array | None:
        if target.kind == "bool":
            return array != 0
        if array.dtype.kind == "f" and target.is_integer:
            limits = np.iinfo(target.numpy)
            inside = (array > float(limits.min) - 1) & (array < float(limits.max))
            return array.astype(target.numpy) if inside.all() else None
        return array.astype(target.numpy)

    return converted


def _bitcast(op: ir.Operation) -> Function | None:
    given, target = (dtype_of_array(value.type) for value in (op.operands[0], op.results[0]))
    if given.bits != target.bits or "bool" in (given.kind, target.kind):
        return None
    return lambda array: np.asarray(array, order="C").view(target.numpy)

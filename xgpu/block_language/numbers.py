"""Numbers of blocks and steps, and positions in tiles, as functions of block programs see them."""

import sys
from collections.abc import Callable
from operator import index
from types import FrameType
from typing import Any

from xgpu.errors import InvalidInput, SourceLocation
from xgpu.frontend.jax_function import is_library
from xgpu.frontend.user_source import expression_text
from xgpu.indexing.affine import DIVISION_BY_INDEX, PRODUCT_OF_INDICES, AffineExpr, constant


def _user_frame() -> FrameType:
    """Return the user's function that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def here() -> SourceLocation:
    """Return the user's line that is being run."""
    frame = _user_frame()
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno, function=frame.f_code.co_name)


def wrong(message: str) -> InvalidInput:
    """Return an error at the user's line that is being run."""
    return InvalidInput(message, here())


class Number:
    """An affine index: that of a block, of a step, or of a position in a tile, and expressions of these.

    It has a value only when the kernel runs. Expressions are sums, products with constants, and ``//`` and ``%`` by
    constants. ``steps`` are the steps whose index it depends on, None for none.
    """

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: AffineExpr, steps: object | None = None):
        self.expression = expression
        self.steps = steps

    def __neg__(self) -> "Number":
        return Number(-self.expression, self.steps)

    def __add__(self, other: Any) -> "Number":
        return _combined("+", self, other, lambda left, right: left + right)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        return _combined("-", self, other, lambda left, right: left - right)

    def __rsub__(self, other: Any) -> "Number":
        return _combined("-", other, self, lambda left, right: left - right)

    def __mul__(self, other: Any) -> "Number":
        return _combined("*", self, other, _product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> "Number":
        return _combined("//", self, _divisor("//", other), lambda left, right: left // right)

    def __rfloordiv__(self, other: Any) -> "Number":
        return as_number(other, "operand of // in an index") // self

    def __mod__(self, other: Any) -> "Number":
        return _combined("%", self, _divisor("%", other), lambda left, right: left % right)

    def __rmod__(self, other: Any) -> "Number":
        return as_number(other, "operand of % in an index") % self

    def __repr__(self) -> str:
        return f"Number({self.expression})"

    def __bool__(self) -> bool:
        raise wrong(_NOT_KNOWN)

    def __index__(self) -> int:
        raise wrong(_NOT_KNOWN)

    def __jax_array__(self) -> Any:
        raise wrong(
            "a number of a block or step is no array: block.index makes a tile of such numbers, for example"
            " block.index((128, 64), lambda row, column: i * 128 + row)"
        )


_NOT_KNOWN = (
    "a number of a block or step is known only when the kernel runs: it can be added, multiplied and divided by"
    " constants; for masks, block.index makes a tile of such numbers"
)


def _unknown(self: Number, other: object) -> bool:
    raise wrong(_NOT_KNOWN)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _unknown)


def as_number(value: Any, what: str) -> Number:
    """Return an index as a number; ``what`` it is stands in the error for what is none."""
    if isinstance(value, Number):
        return value
    try:
        return Number(constant(index(value)))
    except TypeError:
        kind = f"{value!r} of type {type(value).__name__}"
        raise wrong(f"{what}: expected an integer, or a number of a block or step, got {kind}") from None


def _combined(operator: str, left: Any, right: Any, combine: Callable[[AffineExpr, AffineExpr], AffineExpr]) -> Number:
    first, second = (as_number(each, f"operand of {operator} in an index") for each in (left, right))
    if first.steps is not None and second.steps is not None and first.steps is not second.steps:
        raise wrong("an index depends on the numbers of steps of two loops, of which one is over")
    steps = first.steps if first.steps is not None else second.steps
    return Number(combine(first.expression, second.expression), steps)


def _product(left: AffineExpr, right: AffineExpr) -> AffineExpr:
    if not (left.is_constant or right.is_constant):
        raise wrong(f"{_written('this product')} {PRODUCT_OF_INDICES}")
    return left * right


def _divisor(operator: str, value: Any) -> int:
    if isinstance(value, Number):
        raise wrong(f"{_written('this division')} {DIVISION_BY_INDEX}")
    try:
        divisor = index(value)
    except TypeError:
        raise wrong(f"operand of {operator} in an index: expected a whole number to divide by, got {value!r}") from None
    if divisor < 1:
        raise wrong(f"{_written('this division')}: expected a divisor of at least 1, got {divisor}")
    return divisor


def _written(otherwise: str) -> str:
    """Return the expression that is being computed as the user wrote it, or what to call it ``otherwise``."""
    text = expression_text(_user_frame())
    return f"'{text}'" if text else otherwise

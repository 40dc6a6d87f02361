"""Closed integer intervals: the ranges of index variables and of the expressions made from them."""

from xgpu.records import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from ``lower`` to ``upper``, both included; empty if ``lower > upper``.

    Arithmetic gives the hull: the smallest interval that holds every result of the operation on members of the
    operands. An operation on an empty interval gives an empty interval.
    """

    lower: int
    upper: int

    @property
    def is_empty(self) -> bool:
        """Whether no integer is in the interval."""
        return self.lower > self.upper

    @property
    def is_point(self) -> bool:
        """Whether exactly one integer is in the interval."""
        return self.lower == self.upper

    @property
    def size(self) -> int:
        """The number of integers in the interval."""
        return max(0, self.upper - self.lower + 1)

    def contains(self, value: int) -> bool:
        """Whether ``value`` is in the interval."""
        return self.lower <= value <= self.upper

    def contains_interval(self, other: "Interval") -> bool:
        """Whether every member of ``other`` is in this interval; an empty ``other`` always is."""
        return other.is_empty or (self.lower <= other.lower and other.upper <= self.upper)

    def intersect(self, other: "Interval") -> "Interval":
        """The members of both."""
        return Interval(max(self.lower, other.lower), min(self.upper, other.upper))

    def union(self, other: "Interval") -> "Interval":
        """The hull of the members of either."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return Interval(min(self.lower, other.lower), max(self.upper, other.upper))

    def __add__(self, other: "Interval | int") -> "Interval":
        rhs = _as_interval(other)
        return EMPTY if self.is_empty or rhs.is_empty else Interval(self.lower + rhs.lower, self.upper + rhs.upper)

    __radd__ = __add__

    def __neg__(self) -> "Interval":
        return Interval(-self.upper, -self.lower)

    def __sub__(self, other: "Interval | int") -> "Interval":
        return self + -other

    def __rsub__(self, other: int) -> "Interval":
        return -self + other

    def __mul__(self, other: "Interval | int") -> "Interval":
        rhs = _as_interval(other)
        if self.is_empty or rhs.is_empty:
            return EMPTY
        corners = [x * y for x in (self.lower, self.upper) for y in (rhs.lower, rhs.upper)]
        return Interval(min(corners), max(corners))

    __rmul__ = __mul__

    def floordiv(self, divisor: int) -> "Interval":
        """The hull of ``x floordiv divisor``, rounding down. ``divisor`` must be positive."""
        _check_divisor(divisor)
        return EMPTY if self.is_empty else Interval(self.lower // divisor, self.upper // divisor)

    def mod(self, divisor: int) -> "Interval":
        """The hull of ``x mod divisor``, in ``[0, divisor)``. ``divisor`` must be positive."""
        _check_divisor(divisor)
        if self.is_empty:
            return EMPTY
        if self.lower // divisor == self.upper // divisor:
            return Interval(self.lower % divisor, self.upper % divisor)
        return Interval(0, divisor - 1)

    def min(self, other: "Interval | int") -> "Interval":
        """The hull of the smaller of two members."""
        rhs = _as_interval(other)
        if self.is_empty or rhs.is_empty:
            return EMPTY
        return Interval(min(self.lower, rhs.lower), min(self.upper, rhs.upper))

    def max(self, other: "Interval | int") -> "Interval":
        """The hull of the larger of two members."""
        rhs = _as_interval(other)
        if self.is_empty or rhs.is_empty:
            return EMPTY
        return Interval(max(self.lower, rhs.lower), max(self.upper, rhs.upper))

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


EMPTY = Interval(0, -1)
"""The empty interval that operations give."""


def _as_interval(value: Interval | int) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def _check_divisor(divisor: int) -> None:
    if divisor <= 0:
        raise ValueError(f"the divisor of an interval must be positive, got {divisor}")

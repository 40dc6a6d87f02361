"""Closed integer intervals: the ranges of index variables, of integers, and of what is computed from them."""

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


# What operations on integers return, from the intervals of their operands; None where these say nothing.


def quotient(a: Interval, b: Interval) -> Interval | None:
    """Return the range of quotients rounded to zero, of divisors that are positive."""
    if b.lower <= 0:
        return None
    corners = [_rounded_to_zero(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Interval(min(corners), max(corners))


def _rounded_to_zero(x: int, y: int) -> int:
    return x // y if x >= 0 else -(-x // y)


def remainder(a: Interval, b: Interval) -> Interval | None:
    """Return the range of remainders that have the dividend's sign, of divisors that are positive."""
    if b.lower <= 0:
        return None
    if a.lower >= 0:
        return a.mod(b.lower) if b.is_point else Interval(0, min(a.upper, b.upper - 1))
    return Interval(max(a.lower, 1 - b.upper), min(max(a.upper, 0), b.upper - 1))


def conjunction(a: Interval, b: Interval) -> Interval | None:
    """Return the range of ``a & b``."""
    if a.is_point and b.is_point:
        return Interval(a.lower & b.lower, a.lower & b.lower)
    uppers = [interval.upper for interval in (a, b) if interval.lower >= 0]
    return Interval(0, min(uppers)) if uppers else None


def disjunction(a: Interval, b: Interval) -> Interval | None:
    """Return the range of ``a | b``."""
    return Interval(max(a.lower, b.lower), _all_ones(a, b)) if a.lower >= 0 and b.lower >= 0 else None


def difference(a: Interval, b: Interval) -> Interval | None:
    """Return the range of ``a ^ b``."""
    if a.is_point and b.is_point:
        return Interval(a.lower ^ b.lower, a.lower ^ b.lower)
    return Interval(0, _all_ones(a, b)) if a.lower >= 0 and b.lower >= 0 else None


def _all_ones(a: Interval, b: Interval) -> int:
    """Return the largest number with no more bits than ``a`` and ``b`` have."""
    return (1 << max(a.upper.bit_length(), b.upper.bit_length())) - 1


def shifted_left(a: Interval, b: Interval, bits: int) -> Interval | None:
    """Return the range of numbers of so many bits moved to the left."""
    return a * Interval(1 << b.lower, 1 << b.upper) if b.lower >= 0 and b.upper < bits else None


def shifted_right(a: Interval, b: Interval, bits: int) -> Interval | None:
    """Return the range of numbers of so many bits moved to the right, zeros before them."""
    if b.lower < 0 or b.upper >= bits:
        return None
    if a.lower >= 0:
        return Interval(a.lower >> b.upper, a.upper >> b.lower)
    return Interval(0, ((1 << bits) - 1) >> b.lower) if b.lower else None


def halved(a: Interval, b: Interval, bits: int) -> Interval | None:
    """Return the range of numbers of so many bits moved to the right, copies of their signs before them."""
    if b.lower < 0 or b.upper >= bits:
        return None
    corners = [x >> y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Interval(min(corners), max(corners))


def comparison(direction: str, a: Interval, b: Interval) -> bool | None:
    """Return what ``a direction b`` is for all numbers of these ranges (``LT``, ``ge``); None if it depends on them."""
    direction = direction.lower()
    if direction in ("gt", "ge"):
        a, b, direction = b, a, {"gt": "lt", "ge": "le"}[direction]
    if direction == "lt":
        return True if a.upper < b.lower else False if a.lower >= b.upper else None
    if direction == "le":
        return True if a.upper <= b.lower else False if a.lower > b.upper else None
    same = a.is_point and a == b
    different = a.intersect(b).is_empty
    if not (same or different):
        return None
    return same == (direction == "eq")


def _as_interval(value: Interval | int) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def _check_divisor(divisor: int) -> None:
    if divisor <= 0:
        raise ValueError(f"the divisor of an interval must be positive, got {divisor}")

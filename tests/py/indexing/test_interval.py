"""Interval arithmetic gives exact hulls: checked against all members."""

import random

import pytest
from hypothesis import given

from tests.py.indexing.indexing_strategies import DIVISORS, decisions, hundreds, make_interval
from xgpu.indexing import Interval


def members(interval: Interval) -> range:
    return range(interval.lower, interval.upper + 1)


def hull(values: list[int]) -> Interval:
    return Interval(min(values), max(values))


def test_properties() -> None:
    assert Interval(3, 2).is_empty and Interval(3, 2).size == 0 and not Interval(3, 2).contains(3)
    assert Interval(3, 3).is_point and Interval(3, 3).size == 1
    assert not Interval(3, 4).is_point and Interval(-1, 4).size == 6
    assert str(Interval(-1, 4)) == "[-1, 4]"


@hundreds
@given(decisions)
def test_binary_operations_are_hulls_of_members(rng: random.Random) -> None:
    a, b = make_interval(rng), make_interval(rng)
    pairs = [(x, y) for x in members(a) for y in members(b)]
    assert a + b == hull([x + y for x, y in pairs])
    assert a - b == hull([x - y for x, y in pairs])
    assert a * b == hull([x * y for x, y in pairs])
    assert a.min(b) == hull([min(p) for p in pairs])
    assert a.max(b) == hull([max(p) for p in pairs])
    assert a.union(b) == hull([*members(a), *members(b)])


@hundreds
@given(decisions)
def test_operations_with_an_integer(rng: random.Random) -> None:
    a, k = make_interval(rng), rng.randint(-9, 9)
    assert a + k == k + a == a + Interval(k, k)
    assert a - k == a + -k
    assert k - a == hull([k - x for x in members(a)])
    assert a * k == k * a == hull([x * k for x in members(a)])
    assert -a == hull([-x for x in members(a)])
    assert a.min(k) == hull([min(x, k) for x in members(a)])
    assert a.max(k) == hull([max(x, k) for x in members(a)])


@hundreds
@given(decisions)
def test_division_by_a_constant(rng: random.Random) -> None:
    a, k = make_interval(rng, -40, 40, 40), rng.choice(DIVISORS)
    assert a.floordiv(k) == hull([x // k for x in members(a)])
    assert a.mod(k) == hull([x % k for x in members(a)])


@hundreds
@given(decisions)
def test_set_operations(rng: random.Random) -> None:
    a, b = make_interval(rng), make_interval(rng)
    both = set(members(a)) & set(members(b))
    assert set(members(a.intersect(b))) == both
    assert a.contains_interval(b) == (both == set(members(b)))
    assert all(a.contains(x) == (x in members(a)) for x in members(b))


def test_empty_operands_give_empty_results() -> None:
    empty, full = Interval(5, 1), Interval(0, 3)
    for result in (empty + full, full - empty, empty * full, -empty, empty.floordiv(2), empty.mod(2)):
        assert result.is_empty
    for result in (empty.min(full), full.max(empty), empty.intersect(full), empty.min(1)):
        assert result.is_empty
    assert empty.union(full) == full.union(empty) == full
    assert full.contains_interval(empty)


@pytest.mark.parametrize("divisor", [0, -2])
def test_a_divisor_must_be_positive(divisor: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Interval(0, 3).floordiv(divisor)
    with pytest.raises(ValueError, match="must be positive"):
        Interval(0, 3).mod(divisor)

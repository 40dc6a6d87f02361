"""Index expressions: the linear form, evaluation, substitution, ranges."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.indexing_strategies import (
    DIVISORS,
    brute_force,
    decisions,
    grid,
    hundreds,
    make_box,
    make_expr,
    make_interval,
)
from xgpu.indexing import AffineExpr, Interval, constant, delinearize, dim, linearize, symbol

d0, d1, s0 = dim(0), dim(1), symbol(0)


def python_value(expr: AffineExpr, dims: tuple[int, ...], symbols: tuple[int, ...]) -> Any:
    """The value of the printed text by Python's own arithmetic, whose division has the same meaning."""
    names = {f"d{i}": v for i, v in enumerate(dims)} | {f"s{i}": v for i, v in enumerate(symbols)}
    return eval(str(expr).replace("floordiv", "//").replace("mod", "%"), {}, names)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (d0 + d1 + d0, "d0 * 2 + d1"),
        (d0 - d0, "0"),
        ((d0 + 2) * 3 - 6, "d0 * 3"),
        (2 * (d1 + d0 * 4), "d0 * 8 + d1 * 2"),
        (-d0 + 1, "-d0 + 1"),
        (-(d0 // 4), "-(d0 floordiv 4)"),
        ((d0 // 4) * 8 - s0 % 3 - 5, "(d0 floordiv 4) * 8 - (s0 mod 3) - 5"),
        ((d0 + d1) // 4, "(d0 + d1) floordiv 4"),
        ((d0 * 2) % 4, "(d0 * 2) mod 4"),
        ((d0 // 4) % 3, "(d0 floordiv 4) mod 3"),
        (5 - d0, "-d0 + 5"),
        (constant(7) // 2 + constant(-7) // 2 + constant(-7) % 4, "0"),
        (d0 // 1 + d0 % 1, "d0"),
        (7 // constant(2) + 7 % constant(4), "6"),
        (constant(3) * d0 + d0 * constant(0), "d0 * 3"),
    ],
)
def test_linear_form(expr: AffineExpr, text: str) -> None:
    assert str(expr) == text


def test_equal_expressions_hash_equally() -> None:
    left, right = (d0 * 2 + s0 // 3) % 5, (s0 // 3 + d0 + d0) % 5
    assert left == right and hash(left) == hash(right) and left is not right
    assert left != right + 1 and left != 3 and d0 != s0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: d0 * d1, r"not affine: \(d0\) \* \(d1\)"),
        (lambda: d0 // d1, "not affine: division by d1"),
        (lambda: d0 // 0, "the divisor must be positive, got 0"),
        (lambda: d0 % -3, "the divisor must be positive, got -3"),
        (lambda: linearize([d0], (2, 3)), "1 indices for an array of rank 2"),
    ],
)
def test_refusals(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@hundreds
@given(decisions)
def test_evaluation_is_that_of_the_text(rng: random.Random) -> None:
    expr, dims, symbols = make_expr(rng), (rng.randint(-12, 12), rng.randint(-12, 12)), (rng.randint(-12, 12),)
    assert expr.evaluate(dims, symbols) == python_value(expr, dims, symbols)


@hundreds
@given(decisions)
def test_operators_mean_what_they_say(rng: random.Random) -> None:
    a, b, points = make_expr(rng), make_expr(rng), grid(*make_box(rng))
    x, y = a.evaluate(*points), b.evaluate(*points)
    c, k = rng.randint(-12, 12), rng.choice(DIVISORS)
    cases = [(a + b, x + y), (a - b, x - y), (a * c, x * c), (c * a, x * c), (-a, -x), (a + c, x + c)]
    cases += [(c - a, c - x), (a // k, x // k), (a % k, x % k), (a // constant(k), x // k)]
    for expr, expected in cases:
        assert not np.not_equal(expr.evaluate(*points), expected).any(), expr


@hundreds
@given(decisions)
def test_substitution(rng: random.Random) -> None:
    expr, values, points = make_expr(rng), [make_expr(rng, depth=2) for _ in range(3)], grid(*make_box(rng))
    inner = [value.evaluate(*points) for value in values]
    expected = expr.evaluate(inner[:2], inner[2:])
    assert not np.not_equal(expr.substitute(values[:2], values[2:]).evaluate(*points), expected).any()


def test_substitution_by_a_mapping_leaves_the_rest() -> None:
    expr = d0 // 2 + d1 + s0
    assert expr.substitute({0: d1 * 2}) == (d1 * 2) // 2 + d1 + s0
    assert expr.substitute(symbols={0: constant(3)}) == d0 // 2 + d1 + 3
    assert expr.substitute() == expr


@hundreds
@given(decisions)
def test_interval_holds_all_values(rng: random.Random) -> None:
    expr, box = make_expr(rng), make_box(rng)
    values = brute_force(expr, *box)
    interval = expr.interval(*box)
    assert interval.lower <= values.min() and values.max() <= interval.upper


@hundreds
@given(decisions)
def test_interval_is_exact_for_sums_of_different_variables(rng: random.Random) -> None:
    a, b, x, y = make_interval(rng), make_interval(rng), rng.randint(-5, 5), rng.randint(-5, 5)
    k = rng.choice(DIVISORS)
    for expr in (d0 * x + d1 * y, (d0 * x) // k + d1 * y, d0 % k + d1 * y):
        values = brute_force(expr, (a, b))
        assert expr.interval((a, b)) == Interval(values.min(), values.max())


def test_interval_of_multiples_and_empty_ranges() -> None:
    assert ((d0 * 4 + 1) % 64).interval((Interval(0, 100),)) == Interval(1, 61)
    assert (d0 + 1).interval((Interval(3, 2),)).is_empty


@hundreds
@given(decisions)
def test_divisor_divides_all_values(rng: random.Random) -> None:
    expr, box = make_expr(rng), make_box(rng)
    divisor = expr.divisor()
    if divisor == 0:
        assert expr == constant(0)
    else:
        assert not (brute_force(expr, *box) % divisor).any()


@pytest.mark.parametrize(
    ("expr", "divisor"),
    [(d0 * 6 + 4, 2), ((d0 * 8) // 4, 2), ((d0 * 12) % 8, 4), ((d0 * 6) // 4, 1), (constant(0), 0), (constant(-6), 6)],
)
def test_divisor_examples(expr: AffineExpr, divisor: int) -> None:
    assert expr.divisor() == divisor


def test_variables_and_size() -> None:
    assert ((d0 + symbol(3)) // 4 + dim(5) % 2).variables() == ({0, 5}, {3})
    assert [e.size() for e in (constant(4), d0, d0 * 2, d0 + 1, d0 + d1, (d0 * 2 + 1) // 4)] == [1, 1, 3, 3, 3, 7]


@hundreds
@given(decisions)
def test_delinearize_inverts_linearize(rng: random.Random) -> None:
    shape = [rng.randint(1, 9) for _ in range(rng.randint(0, 4))]
    positions = np.arange(math.prod(shape))
    expected = list(np.unravel_index(positions, shape)) if shape else []
    for index, values in zip(delinearize(d0, shape), expected, strict=True):
        assert (index.evaluate((positions,)) == values).all()
    position = linearize([dim(i) for i in range(len(shape))], shape)
    assert (position.evaluate(expected) == positions).all()


def test_delinearize_has_no_more_than_needed() -> None:
    assert [str(i) for i in delinearize(d0, (1, 8, 1, 4))] == ["0", "d0 floordiv 4", "0", "d0 mod 4"]
    assert delinearize(d0, (4, 0)) == (constant(0), constant(0))
    assert delinearize(d0, (6,)) == (d0,)

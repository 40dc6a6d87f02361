"""Simplification of expressions: each rule by example and by property, and everything against brute force."""

import math
import random

import pytest
from hypothesis import given, settings

from tests.py.indexing.indexing_strategies import (
    Box,
    assert_same_values,
    brute_force,
    decisions,
    has_division,
    hundreds,
    make_box,
    make_expr,
    make_interval,
)
from xgpu.indexing import AffineExpr, Interval, constant, delinearize, dim, linearize, simplify_expr, symbol
from xgpu.indexing.affine import Division
from xgpu.indexing.simplify import Simplifier

d0, d1, s0 = dim(0), dim(1), symbol(0)

Ranges = dict[str, tuple[int, int]]


def simplify(expr: AffineExpr, **ranges: tuple[int, int]) -> AffineExpr:
    """Simplifies for ``d0=(low, high)`` and so on (``[-50, 50]`` if not given), and compares all values."""
    dims = [Interval(*ranges.get(name, (-50, 50))) for name in ("d0", "d1")]
    symbols = [Interval(*ranges.get("s0", (0, 3)))]
    result = simplify_expr(expr, dims, symbols)
    assert_same_values(result, expr, dims, symbols)
    return result


@hundreds
@given(decisions)
def test_any_expression_keeps_its_values(rng: random.Random) -> None:
    expr, box = make_expr(rng, depth=5), make_box(rng)
    result = simplify_expr(expr, *box)
    assert_same_values(result, expr, *box)
    values = brute_force(expr, *box)
    interval = result.interval(*box)
    assert interval.lower <= values.min() and values.max() <= interval.upper


@pytest.mark.parametrize(
    ("expr", "ranges", "expected"),
    [
        (d0 * 3 + d1, {"d0": (2, 2)}, "d1 + 6"),  # point range
        (d0 % 8, {"d0": (0, 7)}, "d0"),  # no wrap
        (d0 % 8, {"d0": (8, 12)}, "d0 - 8"),  # no wrap, in another period
        ((d0 * 8 + d1) % 4, {}, "d1 mod 4"),  # multiples of the divisor dropped
        ((d0 * 6) % 9, {}, "((d0 * 2) mod 3) * 3"),  # common factor
        ((d0 * 6) // 9, {}, "(d0 * 2) floordiv 3"),
        ((d0 * 4 + s0) % 64, {}, "s0 + (d0 mod 16) * 4"),  # low digit out of mod
        (d0 // 3 // 4, {}, "d0 floordiv 12"),  # nested
        ((d0 * 11 + d1) // 10, {"d0": (0, 3), "d1": (0, 6)}, "d0"),  # rows of 10 read as rows of 11
        ((d0 * 11 + d1) % 10, {"d0": (0, 3), "d1": (0, 6)}, "d0 + d1"),
        ((d1 - d0 * 11) // 10, {"d0": (0, 3), "d1": (3, 9)}, "-d0"),
        ((d0 // 3 + d1) // 4, {}, "(d0 + d1 * 3) floordiv 12"),
        ((d1 - d0 // 3) // 4, {}, "-((d0 - d1 * 3 + 9) floordiv 12)"),
        ((d0 % 12) // 4, {}, "(d0 floordiv 4) mod 3"),
        ((d0 * 8 + d1) // 4, {}, "d0 * 2 + d1 floordiv 4"),  # multiples extracted
        ((d0 + 13) // 4, {}, "(d0 + 1) floordiv 4 + 3"),
        ((d0 * 6 + d1) // 9, {"d1": (0, 2)}, "(d0 * 2) floordiv 3"),  # remainder too small to matter
        ((d0 * 6 + d1) // 9, {"d1": (3, 5)}, "(d0 * 2 + 1) floordiv 3"),
        ((d0 * 7) // 3, {}, "d0 * 2 + d0 floordiv 3"),  # smaller coefficient
        ((d0 * 7) // 4, {"d0": (0, 1)}, "d0"),
        ((d0 * 47 + 3) // 4, {"d0": (0, 3)}, "d0 * 12"),
        ((15 - d0) // 4, {}, "-(d0 floordiv 4) + 3"),  # backwards
        ((15 - d0) % 4, {}, "-(d0 mod 4) + 3"),
        ((d0 % 5) * 3 + (d0 // 5) * 15, {}, "d0 * 3"),  # digits joined
        ((d0 // 12) * 3 + (d0 // 4) % 3, {}, "d0 floordiv 4"),
        (d0 - (d0 // 5) * 5, {}, "d0 mod 5"),  # remainder found
        (d0 // 4 - (d0 // 12) * 3, {}, "(d0 floordiv 4) mod 3"),
        ((d0 % 64 + d1) % 8, {}, "(d0 + d1) mod 8"),  # remainder of a remainder
        ((d0 % 64 + d1) // 8, {}, "(d1 + d0 mod 64) floordiv 8"),
        (((d0 // 4) * 33 + d0 % 4) // 33, {}, "d0 floordiv 4"),  # digits with a padded stride
        (((d0 // 4) * 33 + d0 % 4) % 33, {}, "d0 mod 4"),
        ((d0 // 4) * 33 + d0 % 4, {}, "d0 + (d0 floordiv 4) * 29"),
        ((d0 // 4) * 2 + (d0 % 4) * 5, {}, "(d0 floordiv 4) * 2 + (d0 mod 4) * 5"),
        ((d0 * 4 + d1 * 512 + s0) // 64, {"d0": (0, 127)}, "d1 * 8 + d0 floordiv 16"),
        ((d0 * 4 + d1 * 128) // 32 % 8, {"d0": (0, 31)}, "d0 floordiv 8 + (d1 mod 2) * 4"),
        (  # dividing by the common factor 3 gives more divisions, so it is not done
            (d1 + (d0 % 6) * 2 + (d0 // 6 % 13) * 9 + 15) // 39,
            {"d0": (1280, 4211), "d1": (0, 1)},
            "(d1 + (d0 mod 6) * 2 + ((d0 floordiv 6) mod 13) * 9 + 15) floordiv 39",
        ),
    ],
)
def test_examples(expr: AffineExpr, ranges: Ranges, expected: str) -> None:
    assert str(simplify(expr, **ranges)) == expected


@hundreds
@given(decisions)
def test_point_ranges_become_constants(rng: random.Random) -> None:
    value, expr = rng.randint(-9, 9), make_expr(rng, depth=2)
    point = Interval(value, value)
    assert simplify_expr(expr, (point, point), (point,)) == constant(expr.evaluate((value, value), (value,)))


@hundreds
@given(decisions)
def test_mod_without_wrap(rng: random.Random) -> None:
    k, period = rng.randint(2, 12), rng.randint(-9, 9)
    low = rng.randrange(k)
    high = rng.randint(low, k - 1)
    assert simplify(d0 % k, d0=(period * k + low, period * k + high)) == (
        d0 - period * k if low < high else low + d0 * 0
    )


@hundreds
@given(decisions)
def test_multiples_of_the_divisor_leave_mod(rng: random.Random) -> None:
    k, a, b = rng.randint(2, 12), rng.randint(-9, 9), rng.randint(-9, 9)
    assert simplify((d0 * (a * k) + d1 + b * k) % k) == simplify(d1 % k)


@hundreds
@given(decisions)
def test_common_factor_leaves_mod_and_div(rng: random.Random) -> None:
    g, a, k = (rng.randint(2, 12) for _ in range(3))
    assert simplify((d0 * (g * a)) % (g * k)) == simplify((d0 * a) % k * g)
    assert simplify((d0 * (g * a)) // (g * k)) == simplify((d0 * a) // k)


def make_sum_of_digits(rng: random.Random) -> AffineExpr:
    """Return a sum of digits of a variable, over a divisor that has factors in common with their sizes and strides."""
    g, low, high = rng.choice([2, 3, 4]), rng.randint(2, 4), rng.choice([3, 4, 5, 13])
    stride = rng.choice([low, low, 1, 3])
    total = d1 * rng.randint(0, 2) + (d0 % (low * g)) * stride + rng.randint(-9, 9)
    total += (d0 // (low * g) % high) * (g * rng.randint(1, 5) * rng.choice([1, 1, -1]))
    return total // (g * rng.choice([high, high, low, low * high]))


@hundreds
@given(decisions)
def test_sums_of_digits_keep_their_values(rng: random.Random) -> None:
    expr, start = make_sum_of_digits(rng), rng.randint(-50, 1280)
    simplify(expr, d0=(start, start + 999), d1=(0, rng.randint(0, 3)))


@hundreds
@given(decisions)
def test_low_digit_leaves_mod_and_div(rng: random.Random) -> None:
    g, a, k = (rng.randint(2, 9) for _ in range(3))
    low = rng.randrange(g)
    high = rng.randint(low, g - 1)
    high_digit = d0 * a
    assert simplify((high_digit * g + s0) % (g * k), s0=(low, high)) == simplify(
        high_digit % k * g + s0, s0=(low, high)
    )
    assert simplify((high_digit * g + s0) // (g * k), s0=(low, high)) == simplify(high_digit // k)


@hundreds
@given(decisions)
def test_nested_divisions_merge(rng: random.Random) -> None:
    a, b, c = rng.randint(2, 12), rng.randint(2, 12), rng.randint(-9, 9)
    assert simplify((d0 // a) // b) == simplify(d0 // (a * b))
    assert simplify((d0 // a + d1 * c) // b) == simplify((d0 + d1 * (a * c)) // (a * b))


@hundreds
@given(decisions)
def test_division_of_a_remainder(rng: random.Random) -> None:
    a, b = rng.randint(2, 40), rng.randint(2, 40)
    result = simplify((d0 % (a * b)) // a)
    assert result == simplify((d0 // a) % b)
    assert str(result) == f"(d0 floordiv {a}) mod {b}"


@hundreds
@given(decisions)
def test_multiples_leave_div(rng: random.Random) -> None:
    k, a, b = rng.randint(2, 12), rng.randint(-9, 9), rng.randint(-9, 9)
    assert simplify((d0 * (a * k) + d1 + b * k) // k) == simplify(d0 * a + d1 // k + b)


@hundreds
@given(decisions)
def test_large_coefficients_shrink(rng: random.Random) -> None:
    k, c, b, interval = rng.randint(2, 12), rng.randint(-40, 40), rng.randint(-9, 9), make_interval(rng)
    result = simplify((d0 * c + b) // k, d0=(interval.lower, interval.upper))
    for atom, _ in result.terms:
        assert not isinstance(atom, Division) or all(abs(inner) < atom.divisor for _, inner in atom.expr.terms)


@hundreds
@given(decisions)
def test_small_remainder_leaves_div(rng: random.Random) -> None:
    g, k, a = rng.randint(2, 9), rng.randint(2, 9), rng.randint(1, 4)
    offset = rng.randint(-3, 3) * g
    low = rng.randrange(g)
    high = rng.randint(low, g - 1)
    result = simplify((d0 * (a * g) + d1) // (g * k), d1=(offset + low, offset + high))
    assert result == simplify((d0 * a + offset // g) // k)


@hundreds
@given(decisions)
def test_digits_join(rng: random.Random) -> None:
    c, d = rng.randint(2, 60), rng.choice([-1, 1]) * rng.randint(1, 40)
    assert simplify((d0 % c) * d + (d0 // c) * (c * d)) == d0 * d
    assert simplify(d0 - (d0 // c) * c) == simplify(d0 % c)


@hundreds
@given(decisions)
def test_digits_of_a_quotient_join(rng: random.Random) -> None:
    a, b = rng.randint(2, 40), rng.randint(2, 40)
    assert simplify((d0 // (a * b)) * b + (d0 // a) % b) == simplify(d0 // a)


@hundreds
@given(decisions)
def test_digits_of_any_expression_join(rng: random.Random) -> None:
    x, a, b, box = make_expr(rng, depth=2), rng.randint(2, 12), rng.randint(2, 12), make_box(rng)
    simplifier = Simplifier(*box)
    whole = simplifier.expand(x)
    assert simplifier.expand(x // a * a + x % a) == whole
    assert simplifier.expand(x - x // a * a) == simplifier.expand(x % a)
    joined = simplify_expr(x // a // b * b + x // a % b, *box)
    assert_same_values(joined, x // a, *box)


@hundreds
@given(decisions)
def test_reversed_indices_divide_like_forward_ones(rng: random.Random) -> None:
    size, k, extra = rng.randint(1, 60), rng.randint(2, 12), rng.randint(0, 3)
    n = size * k
    last = (0, n - 1)
    assert simplify((n - 1 - d0) // k, d0=last) == simplify(size - 1 - d0 // k, d0=last)
    assert simplify((n - 1 - d0) % k, d0=last) == simplify(k - 1 - d0 % k, d0=last)
    simplify((n + extra - d0) // k, d0=last)


@hundreds
@given(decisions)
def test_remainder_of_a_remainder(rng: random.Random) -> None:
    k, a, b = (rng.randint(2, 12) for _ in range(3))
    assert simplify((d0 % (k * a) + d1 * b) % k) == simplify((d0 + d1 * b) % k)


@hundreds
@given(decisions)
def test_padded_stride_divides_like_a_digit(rng: random.Random) -> None:
    n = rng.randint(2, 60)
    stride = n + rng.randint(0, 40)
    position = (d0 // n) * stride + d0 % n
    assert simplify(position // stride) == simplify(d0 // n)
    assert simplify(position % stride) == simplify(d0 % n)


def factorizations(n: int, rng: random.Random) -> list[int]:
    """A shape of rank 1 to 4 with ``n`` elements."""
    shape = [1] * rng.randint(1, 4)
    for factor in (2, 3, 5, 7):
        while n % factor == 0:
            shape[rng.randrange(len(shape))] *= factor
            n //= factor
    return shape


def make_position(rng: random.Random) -> tuple[AffineExpr, Box, int]:
    """Return a position in an array as threads or a transposed array give it, its ranges, and the array's size."""
    n = math.prod(rng.choice([2, 3, 4, 5, 7]) for _ in range(rng.randint(2, 6)))
    shape = factorizations(n, rng)
    kind = rng.choice(["linear", "threads", "reversed", "transposed"])
    if kind == "threads":
        vector = rng.choice([1, 2, 4])
        threads = (Interval(0, 127), Interval(0, (n - 1) // (128 * vector)))
        return d0 * vector + d1 * 128 * vector + s0, (threads, (Interval(0, vector - 1),)), n
    dims = tuple(Interval(0, size - 1) for size in shape)
    if kind == "transposed":
        order = rng.sample(range(len(shape)), len(shape))
        found = delinearize(d0, [shape[i] for i in order])
        indices = [found[order.index(i)] for i in range(len(shape))]
        return linearize(indices, shape), ((Interval(0, n - 1),), ()), n
    indices = [dim(i) for i in range(len(shape))]
    if kind == "reversed":
        indices = [size - 1 - i if rng.random() < 0.5 else i for i, size in zip(indices, shape, strict=True)]
    return linearize(indices, shape), (dims, ()), n


@settings(hundreds, derandomize=True)
@given(decisions)
def test_reshapes_of_reshapes_give_back_the_position(rng: random.Random) -> None:
    # Always the same cases: of a few in ten thousand, with strides that do not divide each other, some terms are left.
    position, box, n = make_position(rng)
    current = original = simplify_expr(position, *box)
    for _ in range(4):
        shape = factorizations(n, rng)
        indices = [simplify_expr(index, *box) for index in delinearize(current, shape)]
        current = simplify_expr(linearize(indices, shape), *box)
        assert current == original, (shape, [str(i) for i in indices])


@hundreds
@given(decisions)
def test_simplified_positions_are_simple(rng: random.Random) -> None:
    position, box, n = make_position(rng)
    for index in delinearize(position, factorizations(n, rng)):
        once = simplify_expr(index, *box)
        assert simplify_expr(once, *box) == once


@hundreds
@given(decisions)
def test_compatible_reshapes_have_no_divisions(rng: random.Random) -> None:
    split = [rng.randint(1, 6) for _ in range(rng.randint(2, 5))]
    dims = tuple(Interval(0, size - 1) for size in split)
    indices = [dim(i) for i in range(len(split))]
    merged = simplify_expr(linearize(indices, split), dims)
    assert not has_division(merged)
    assert [simplify_expr(i, dims) for i in delinearize(merged, split)] == [
        index if size > 1 else constant(0) for index, size in zip(indices, split, strict=True)
    ]


@hundreds
@given(decisions)
def test_facts_bound_expressions(rng: random.Random) -> None:
    form, dims = d0 + d1 * 4, (Interval(0, 9), Interval(-3, 9))
    fact, k = make_interval(rng, -14, 45, 30), rng.randint(2, 9)
    simplifier = Simplifier(dims, (), {form.terms: fact})
    for expr in (form // k, (form * 3 + 1) % k, (form * -2) // k):
        known = brute_force(form, dims)
        assert_same_values(simplifier.simplify(expr), expr, dims, where=(known >= fact.lower) & (known <= fact.upper))


def test_facts_remove_divisions() -> None:
    form = d0 + d1 * 128
    dims = (Interval(0, 127), Interval(0, 999))
    simplifier = Simplifier(dims, (Interval(0, 3),), {form.terms: Interval(0, 99)})
    assert simplifier.simplify(form % 100) == form
    assert simplifier.simplify((form * 4 + s0) // 400) == constant(0)


def test_an_expression_with_a_huge_simple_form_stays() -> None:
    expr = d0
    for i in range(32):
        expr = (expr + d0) % (500 - i * 3) if i % 2 else (expr * 3 + d0) // 2
    assert simplify_expr(expr, (Interval(0, 1023),)).size() <= 4 * expr.size()

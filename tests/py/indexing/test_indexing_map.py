"""Indexing maps: domains, composition, simplification with constraints."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.indexing_strategies import (
    assert_same_map,
    decisions,
    grid,
    has_division,
    holds,
    hundreds,
    in_domain,
    make_box,
    make_interval,
    make_map,
    more_decisions,
)
from xgpu.indexing import IndexingMap, Interval, constant, delinearize, dim, linearize, symbol
from xgpu.indexing.access import identity_map

d0, d1, s0 = dim(0), dim(1), symbol(0)


def parse(text: str) -> IndexingMap:
    return IndexingMap.parse(text)


@hundreds
@given(decisions)
def test_simplified_maps_are_the_same_maps(rng: random.Random) -> None:
    indexing_map = make_map(rng)
    simplified = indexing_map.simplify()
    assert_same_map(simplified, indexing_map)


@hundreds
@given(decisions)
def test_simplification_is_at_a_fixpoint(rng: random.Random) -> None:
    indexing_map = make_map(rng)
    once = indexing_map.simplify()
    twice = once.simplify()
    assert (twice.dims, twice.symbols, len(twice.constraints)) == (once.dims, once.symbols, len(once.constraints))


@hundreds
@given(decisions)
def test_known_empty_domains_are_empty_and_canonical(rng: random.Random) -> None:
    indexing_map = make_map(rng)
    has_points = in_domain(indexing_map, indexing_map.dims, indexing_map.symbols).any()
    simplified = indexing_map.simplify()
    assert not (has_points and (indexing_map.is_empty() or simplified.is_empty()))
    if simplified.is_empty():
        empty = Interval(0, -1)
        expected = IndexingMap((empty,) * 2, (empty,), (constant(0),) * 2, ((constant(0), empty),))
        assert simplified == expected == simplified.simplify()


@pytest.mark.parametrize(
    ("constraints", "ranges", "left"),
    [
        # Before, d0, d1 and s0 are in [0, 99], [0, 99] and [0, 3].
        ("d0 in [3, 120]", {"d0": "[3, 99]"}, ""),  # a single variable
        ("d0 * -4 + 8 in [-29, 3]", {"d0": "[2, 9]"}, ""),  # with a coefficient
        ("d0 + d1 in [0, 198]", {}, ""),  # implied by the ranges
        ("d0 * 4 + s0 in [0, 39]", {"d0": "[0, 9]"}, ""),  # the remainder decides nothing
        ("d0 * 4 + s0 in [8, 39]", {"d0": "[2, 9]"}, ""),
        ("d0 * 4 + s0 in [0, 37]", {"d0": "[0, 9]"}, "d0 * 4 + s0 in [0, 37]"),  # here it does
        ("d0 * 8 + d1 * 4 + s0 in [0, 79]", {"d0": "[0, 9]", "d1": "[0, 19]"}, "d0 * 2 + d1 in [0, 19]"),
        ("d0 * 6 + d1 * 4 in [0, 31]", {"d0": "[0, 5]", "d1": "[0, 7]"}, "d0 * 3 + d1 * 2 in [0, 15]"),
        ("d0 + d1 in [0, 120], d0 + d1 + 5 in [15, 300]", {}, "d0 + d1 in [10, 120]"),  # same form
        ("d0 - d1 in [-5, 99], d1 - d0 in [-7, 99]", {}, "d0 - d1 in [-5, 7]"),  # negated
        ("d0 floordiv 8 in [2, 3]", {"d0": "[16, 31]"}, ""),
        ("(d0 * 4 + s0) floordiv 20 in [0, 1]", {"d0": "[0, 9]"}, ""),
        ("d0 mod 8 in [0, 7]", {}, ""),
        ("d0 mod 8 in [2, 3], d0 in [0, 9]", {"d0": "[2, 3]"}, ""),  # in one period
        ("d0 mod 8 in [2, 3], d0 in [5, 25]", {"d0": "[10, 19]"}, "d0 mod 8 in [2, 3]"),  # in several
        ("d0 mod 8 in [-4, 0], d0 in [15, 17]", {"d0": "[16, 16]"}, ""),
        ("d0 floordiv 16 + d1 in [0, 1], d1 in [0, 0]", {"d0": "[0, 31]", "d1": "[0, 0]"}, ""),
        ("d0 + d1 in [0, 10]", {"d0": "[0, 10]", "d1": "[0, 10]"}, "d0 + d1 in [0, 10]"),
    ],
)
def test_constraint_examples(constraints: str, ranges: dict[str, str], left: str) -> None:
    def text(ranges: dict[str, str], constraints: str) -> str:
        all_ranges = {"d0": "[0, 99]", "d1": "[0, 99]", "s0": "[0, 3]"} | ranges
        parts = [f"{name} in {interval}" for name, interval in all_ranges.items()]
        return ", ".join(["(d0, d1)[s0] -> (d1)", *parts, *([constraints] if constraints else [])])

    original = parse(text({}, constraints))
    expected = parse(text(ranges, left))
    result = original.simplify()
    assert (result.dims, result.symbols, result.constraints) == (expected.dims, expected.symbols, expected.constraints)
    assert_same_map(result, original)


@hundreds
@given(decisions)
def test_remainder_that_decides_nothing_leaves_a_constraint(rng: random.Random) -> None:
    g, a, first = rng.randint(2, 9), rng.randint(1, 4), rng.randint(-4, 4)
    bounds = Interval(first * g, (first + rng.randint(1, 9)) * g - 1)
    box = (Interval(-20, 20),), (Interval(0, rng.randrange(g)),)
    original = IndexingMap(*box, (d0,), ((d0 * (a * g) + s0, bounds),))
    result = original.simplify()
    assert_same_map(result, original)
    assert result.is_empty() or not result.constraints


@hundreds
@given(decisions)
def test_constrained_quotients_constrain_the_dividend(rng: random.Random) -> None:
    a, b, c = (rng.randint(-9, 9) for _ in range(3))
    quotient = (d0 * a + d1 * b + s0 * c) // rng.randint(2, 9)
    original = IndexingMap(*make_box(rng), (d0,), ((quotient, make_interval(rng)),))
    result = original.simplify()
    assert_same_map(result, original)
    assert not any(has_division(expr) for expr, _ in result.constraints)


@hundreds
@given(decisions)
def test_constrained_remainders_narrow_to_the_hull(rng: random.Random) -> None:
    k, own, bounds = rng.randint(2, 9), make_interval(rng), make_interval(rng)
    original = IndexingMap((own,), (), (d0,), ((d0 % k, bounds),))
    result = original.simplify()
    assert_same_map(result, original)
    members = [x for x in range(own.lower, own.upper + 1) if bounds.contains(x % k)]
    if members:
        assert result.dims == (Interval(members[0], members[-1]),)
    else:
        assert result.is_empty()


@hundreds
@given(decisions)
def test_constraints_on_the_same_form_become_one(rng: random.Random) -> None:
    box = (Interval(-9, 9), Interval(-9, 9))
    exprs = [rng.choice([d0 + d1, d0 * 3 - d1, -d0 - d1]) + rng.randint(-9, 9) for _ in range(rng.randint(0, 5))]
    original = IndexingMap(box, (), (d0,), tuple((expr, make_interval(rng)) for expr in exprs))
    result = original.simplify()
    assert_same_map(result, original)
    assert result.is_empty() or len(result.constraints) <= 2


def test_results_use_the_constraints() -> None:
    ranges = "d0 in [0, 127], d1 in [0, 1953], s0 in [0, 3]"
    position = "d0 * 4 + d1 * 512 + s0"
    results = f"({position}) floordiv 1000003, ({position}) mod 1000003"
    original = parse(f"(d0, d1)[s0] -> ({results}), {ranges}, {position} in [0, 999990]")
    assert [str(result) for result in original.simplify().results] == ["0", position]


def test_bounds_that_chase_each_other_end() -> None:
    domain = "(d0, d1) -> (d0), d0 in [0, 1000000], d1 in [0, 1000000], d0 - d1 in [1, 9]"
    assert parse(f"{domain}, d1 - d0 in [1, 9]").simplify().is_empty()
    chasing = parse(f"{domain}, d0 * 2 - d1 * 2 + d0 mod 2 in [0, 2]")
    for point in ((1, 0), (2, 1), (1000000, 999999), (2, 0)):
        assert chasing.simplify().contains(point) == chasing.contains(point)


@hundreds
@given(more_decisions)
def test_composition(rng: random.Random) -> None:
    consumer, producer = make_map(rng), make_map(rng)
    composed = consumer.compose(producer)
    assert composed.dims == consumer.dims and composed.symbols == consumer.symbols + producer.symbols
    box = composed.dims, composed.symbols
    dims, (inner, outer) = grid(*box)
    middle = [result.evaluate(dims, [inner]) for result in consumer.results]
    inside = in_domain(composed, *box)
    reached = holds(consumer, dims, [inner]) & holds(producer, middle, [outer])
    np.testing.assert_array_equal(inside, np.broadcast_to(reached, inside.shape))
    for found, result in zip(composed.results, producer.results, strict=True):
        differs = np.not_equal(found.evaluate(dims, [inner, outer]), result.evaluate(middle, [outer]))
        assert not (differs & inside).any()
    assert_same_map(composed.simplify(), composed)


def test_composition_drops_implied_constraints() -> None:
    consumer = parse("(d0) -> (d0 mod 4, d0), d0 in [0, 20]")
    producer = parse("(d0, d1)[s0] -> (d0 + d1 + s0), d0 in [0, 3], d1 in [0, 9], s0 in [0, 1], d1 + s0 in [0, 8]")
    expected = "(d0)[s0] -> (d0 + s0 + d0 mod 4), d0 in [0, 20], s0 in [0, 1], d0 in [0, 9], d0 + s0 in [0, 8]"
    assert str(consumer.compose(producer)) == expected
    with pytest.raises(ValueError, match="2 results do not feed 1 dimensions"):
        consumer.compose(consumer)


def test_reshapes_compose_to_the_identity() -> None:
    shapes = [(4, 6, 10), (24, 10), (2, 12, 2, 5), (240,), (4, 6, 10)]
    current = identity_map(shapes[0])
    for old, new in itertools.pairwise(shapes):
        step = identity_map(old)
        step = IndexingMap(step.dims, (), delinearize(linearize(step.results, old), new))
        current = current.compose(step).simplify()
    assert current == identity_map(shapes[0])


def test_points_contains_and_evaluate() -> None:
    indexing_map = parse("(d0)[s0] -> (d0 * 2 + s0), d0 in [0, 2], s0 in [0, 1], d0 + s0 in [1, 2]")
    assert list(indexing_map.points()) == [((0,), (1,)), ((1,), (0,)), ((1,), (1,)), ((2,), (0,))]
    assert indexing_map.evaluate((1,), (1,)) == (3,)
    assert indexing_map.evaluate((0,), (0,)) is None
    assert not indexing_map.contains((3,), (0,)) and not indexing_map.contains((2,), (1,))
    assert indexing_map.box_size() == 6


@hundreds
@given(decisions)
def test_unused_variables_are_removed(rng: random.Random) -> None:
    indexing_map = make_map(rng)
    if indexing_map.simplify().is_empty():
        return
    for remove, position in ((IndexingMap.remove_unused_dims, 0), (IndexingMap.remove_unused_symbols, 1)):
        removed, kept = remove(indexing_map)
        for point in itertools.islice(indexing_map.points(), 20):
            shorter = [point[0], point[1]]
            shorter[position] = tuple(point[position][i] for i in kept)
            assert removed.evaluate(*shorter) == indexing_map.evaluate(*point)
        assert remove(removed) == (removed, tuple(range(len(kept))))


def test_what_is_unused() -> None:
    text = "(d0, d1, d2)[s0, s1] -> (d2, s1), d0 in [0, 3], d1 in [0, 4], d2 in [0, 5], s0 in [0, 6], s1 in [0, 7]"
    without, kept = parse(text + ", d0 + d2 in [0, 6]").remove_unused_dims()
    assert kept == (0, 2)
    without, kept = without.remove_unused_symbols()
    assert kept == (1,)
    assert str(without) == "(d0, d1)[s0] -> (d1, s0), d0 in [0, 3], d1 in [0, 5], s0 in [0, 7], d0 + d1 in [0, 6]"
    empty = parse("(d0)[s0] -> (d0), d0 in [0, 3], s0 in [0, -1]")
    assert empty.remove_unused_symbols() == (empty, (0,))


@hundreds
@given(decisions)
def test_domain_checks_decide_membership(rng: random.Random) -> None:
    indexing_map = make_map(rng)
    simplified = indexing_map.simplify()
    checks = simplified.domain_checks(indexing_map.dims, indexing_map.symbols)
    box = indexing_map.dims, indexing_map.symbols
    checked = IndexingMap(*box, (), checks)
    np.testing.assert_array_equal(in_domain(checked, *box), in_domain(indexing_map, *box))


def test_domain_checks_are_only_those_needed() -> None:
    indexing_map = parse("(d0)[s0] -> (d0), d0 in [0, 9], s0 in [0, 3], d0 * 4 + s0 in [0, 37]")
    assert indexing_map.domain_checks(indexing_map.dims, indexing_map.symbols) == indexing_map.constraints
    checks = indexing_map.domain_checks([Interval(0, 31)], [Interval(1, 2)])
    assert checks == ((d0, Interval(0, 9)), *indexing_map.constraints)


def test_with_constraint() -> None:
    indexing_map = identity_map((4, 8)).with_constraint(d0 + d1, Interval(0, 5))
    assert str(indexing_map) == "(d0, d1) -> (d0, d1), d0 in [0, 3], d1 in [0, 7], d0 + d1 in [0, 5]"

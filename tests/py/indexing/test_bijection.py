"""Whether maps reach every element once: by reasoning where the domain is huge, by enumeration where that fails."""

import math
import random

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.indexing_strategies import brute_force, decisions, hundreds, in_domain, make_map
from xgpu.indexing import IndexingMap, Interval, constant, delinearize, dim, linearize, symbol
from xgpu.indexing.access import identity_map

Shape = tuple[int, ...]

THREADS = "d0 in [0, 127], d1 in [0, 131071], s0 in [0, 3]"
POSITION = "d1 * 512 + d0 * 4 + s0"
ROW = "(d1 mod 320) * 32 + d0 floordiv 32 + s0 * 4"
COLUMN = "(d1 floordiv 320) * 32 + d0 mod 32"
TILES = "d0 in [0, 127], d1 in [0, 102399], s0 in [0, 7]"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        # Threads over rows, over all of an array, and over arrays that threads do not divide.
        (f"(d0, d1)[s0] -> (({POSITION}) floordiv 64, (d0 * 4 + s0) mod 64), {THREADS}", (1 << 20, 64)),
        (f"(d0, d1)[s0] -> ({POSITION}), {THREADS}", (1 << 26,)),
        (f"(d0, d1)[s0] -> ({POSITION}), {THREADS}, {POSITION} in [0, 67108000]", (67108001,)),
        (
            f"(d0, d1)[s0] -> (({POSITION}) floordiv 1001, ({POSITION}) mod 1001), {THREADS}, "
            f"{POSITION} in [0, 67066999]",
            (67000, 1001),
        ),
        (
            f"(d0, d1)[s0] -> (({POSITION}) mod 1001, ({POSITION}) floordiv 1001), {THREADS}, "
            f"{POSITION} in [0, 67066999]",
            (1001, 67000),
        ),
        # Transposed tiles of 32 x 32, inside and across the edges.
        (f"(d0, d1)[s0] -> ({ROW}, {COLUMN}), {TILES}", (10240, 10240)),
        (
            f"(d0, d1)[s0] -> ({ROW}, {COLUMN}), {TILES}, {ROW} in [0, 9999], {COLUMN} in [0, 10002]",
            (10000, 10003),
        ),
        ("(d0, d1) -> (99 - d0, d1), d0 in [0, 99], d1 in [0, 99999]", (100, 100000)),
        ("(d0, d1) -> (d1 - 5, d0 + 7), d0 in [-7, 992], d1 in [5, 99999]", (99995, 1000)),
        ("(d0) -> ((d0 floordiv 10) mod 1000, d0 mod 10, d0 floordiv 10000), d0 in [0, 99999999]", (1000, 10, 10000)),
        ("(d0, d1) -> (d0, 0, d1), d0 in [0, 9999], d1 in [0, 9999]", (10000, 1, 10000)),
    ],
)
def test_huge_bijections_are_known(text: str, shape: Shape) -> None:
    assert IndexingMap.parse(text).is_bijection(shape) is True


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        (f"(d0, d1)[s0] -> ({POSITION}), {THREADS}", (1 << 25,), False),  # another number of elements
        ("(d0, d1) -> (d0 * 2 floordiv 2, d1), d0 in [0, 9999], d1 in [0, 9999]", (10000, 10000), True),
        ("(d0)[s0] -> (d0, (s0 + d0) mod 32), d0 in [0, 31], s0 in [0, 31]", (32, 32), True),  # swizzle
        ("(d0)[s0] -> (d0, (s0 + d0 * 2) mod 31), d0 in [0, 31], s0 in [0, 31]", (32, 32), False),
        ("(d0) -> (d0 floordiv 2), d0 in [0, 9]", (10,), False),
        ("(d0) -> (d0 * 2), d0 in [0, 9]", (10,), False),  # outside
        ("(d0) -> (d0), d0 in [0, 9], d0 mod 3 in [0, 0]", (10,), False),
        ("(d0) -> (d0 floordiv 3), d0 in [0, 9], d0 mod 3 in [0, 0]", (4,), True),
        ("(d0) -> (), d0 in [0, 0]", (), True),
        ("(d0) -> (), d0 in [0, 1]", (), False),
        ("(d0) -> (d0), d0 in [0, -1]", (0,), True),
        ("(d0) -> (d0), d0 in [0, -1]", (3,), False),
        ("(d0)[s0] -> (d0, s0), d0 in [0, 3], s0 in [0, 0]", (4, 0), False),
        # Too many points to enumerate, and nothing to reason with.
        ("(d0, d1) -> (d0, (d0 + d1) mod 65536), d0 in [0, 65535], d1 in [0, 65535]", (65536, 65536), None),
    ],
)
def test_examples(text: str, shape: Shape, expected: bool | None) -> None:
    assert IndexingMap.parse(text).is_bijection(shape) is expected


def factorize(n: int, parts: int, rng: random.Random) -> list[int]:
    sizes = [1] * parts
    for factor in (2, 3, 5):
        while n % factor == 0:
            sizes[rng.randrange(parts)] *= factor
            n //= factor
    return sizes


def make_mixed_radix_map(rng: random.Random) -> tuple[IndexingMap, list[int]]:
    """Return a map of threads to elements: variables in any order, bounds that do not divide, transposes, mistakes."""
    n = math.prod(rng.choice([2, 3, 4, 5]) for _ in range(rng.randint(1, 5)))
    sizes = factorize(n, rng.randint(2, 4), rng)
    order = rng.sample(range(len(sizes)), len(sizes))
    variables = [*[dim(i) for i in range(len(sizes) - 1)], symbol(0)]
    position = linearize([variables[i] for i in order], [sizes[i] for i in order])
    constraints = []
    if rng.random() < 0.4:
        n = 2 ** rng.randint(0, 3) * 3 ** rng.randint(0, 2)
        constraints.append((position, Interval(0, n - 1)))
    if rng.random() < 0.6:
        shape = factorize(n, rng.randint(1, 3), rng)
        indices = delinearize(position, shape)
        order = rng.sample(range(len(shape)), len(shape))
        position = linearize([indices[i] for i in order], [shape[i] for i in order])
    if rng.random() < 0.2:
        position = constant(n - 1) - position
    if rng.random() < 0.15:
        position = position * rng.choice([1, 2, 3]) + rng.randint(-1, 1)
    shape = factorize(n, rng.randint(1, 3), rng)
    ranges = [Interval(0, size - 1) for size in sizes]
    results = delinearize(position, shape)
    return IndexingMap(tuple(ranges[:-1]), (ranges[-1],), results, tuple(constraints)), shape


@hundreds
@given(decisions.map(make_mixed_radix_map))
def test_reasoning_agrees_with_counting(case: tuple[IndexingMap, list[int]]) -> None:
    indexing_map, shape = case
    box = indexing_map.dims, indexing_map.symbols
    points = in_domain(indexing_map, *box)
    indices = [brute_force(result, *box)[points] for result in indexing_map.results]
    in_bounds = np.all([(i >= 0) & (i < size) for i, size in zip(indices, shape, strict=True)], axis=0)
    counts = np.zeros(shape, int)
    np.add.at(counts, tuple(i[in_bounds] for i in indices), 1)
    outside = np.count_nonzero(~in_bounds)
    coverage = indexing_map.coverage(shape)
    np.testing.assert_array_equal(coverage.counts, counts)
    assert coverage.outside == outside
    assert coverage.is_exact == (not outside and bool((counts == 1).all()))
    assert indexing_map.is_bijection(shape) is coverage.is_exact


@hundreds
@given(decisions)
def test_any_map_is_decided_as_counted(rng: random.Random) -> None:
    indexing_map, shape = make_map(rng), (rng.randint(0, 6), rng.randint(1, 6))
    assert indexing_map.is_bijection(shape) is indexing_map.coverage(shape).is_exact


def test_refusals() -> None:
    indexing_map = identity_map((4, 8))
    with pytest.raises(ValueError, match="2 results does not index an array of rank 1"):
        indexing_map.is_bijection((32,))
    with pytest.raises(ValueError, match="too many points or too large numbers"):
        identity_map((1 << 23,)).coverage((1 << 23,))
    with pytest.raises(ValueError, match="too many points or too large numbers"):
        IndexingMap((Interval(0, 3),), (), (dim(0) * (1 << 62),)).coverage((4,))

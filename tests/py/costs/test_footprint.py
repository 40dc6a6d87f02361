"""Footprints: as many as there are different results, found in little time."""

import math
import random
import re

import pytest
from hypothesis import given

from tests.py.fusion.planning_effort import counted_calls
from tests.py.indexing.hlo_programs import build, type_of
from tests.py.indexing.indexing_strategies import decisions, hundreds, make_interval, make_map
from xgpu.costs import footprint as counting
from xgpu.costs.footprint import elements_read, footprint
from xgpu.indexing import IndexingMap, constant, dim, linearize
from xgpu.indexing.access import identity_map
from xgpu.indexing.hlo_maps import reshape_map


def different_results(map_: IndexingMap) -> int:
    return len({map_.evaluate(*point) for point in map_.points()})


@hundreds
@given(decisions)
def test_footprints_of_few_points_are_exact(rng: random.Random) -> None:
    map_ = make_map(rng)
    assert footprint(map_) == different_results(map_)


@hundreds
@given(decisions)
def test_footprints_are_bounds(rng: random.Random) -> None:
    map_ = make_map(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MOST_ENUMERATED", 0)
        found = footprint.__wrapped__(map_)
    assert different_results(map_) <= found <= map_.box_size()


@hundreds
@given(decisions)
def test_footprints_of_affine_maps_are_exact(rng: random.Random) -> None:
    """Results that are multiples of a variable each, in any order, or that have been told apart by others."""
    ranges = tuple(make_interval(rng, -3, 3, 4) for _ in range(3))
    results = [dim(i) * rng.choice([-7, -2, -1, 1, 2, 5]) + rng.randint(-9, 9) for i in range(3)]
    results = rng.sample(results, rng.randint(1, 3))
    results += [each * rng.randint(-2, 2) + results[0] for each in results[1:]] + [constant(rng.randint(0, 4))]
    rng.shuffle(results)
    map_ = IndexingMap(ranges, (), tuple(results))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MOST_ENUMERATED", 0)
        assert footprint.__wrapped__(map_) == different_results(map_)


@hundreds
@given(decisions)
def test_footprints_of_positions_in_memory_are_exact(rng: random.Random) -> None:
    """Sums whose steps fill each other or keep apart, as those of windows and of parts of arrays do."""
    part = tuple(rng.randint(1, 5) for _ in range(3))
    shape = tuple(size + rng.randint(0, 3) for size in part)
    position = linearize([dim(i) for i in range(3)], shape)
    map_ = IndexingMap(tuple(identity_map(part).dims), (), (position * rng.choice([-3, 1, 2]),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MOST_ENUMERATED", 0)
        assert footprint.__wrapped__(map_) == math.prod(part)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(d0, d1) -> (d1, d0), d0 in [0, 4095], d1 in [0, 1023]", 1 << 22),
        ("(d0, d1) -> (d1), d0 in [0, 4095], d1 in [0, 1023]", 1 << 10),
        ("(d0, d1) -> (d0 + d1, d1, d0 - d1), d0 in [0, 4095], d1 in [0, 1023]", 1 << 22),
        ("(d0, d1) -> (d0, d0), d0 in [0, 4095], d1 in [0, 1023]", 1 << 12),
        ("(d0, d1)[s0] -> (d0, d1 - 64), d0 in [0, 4095], d1 in [0, 1023], s0 in [0, 7], d1 in [64, 127]", 1 << 18),
        # Windows: of three with a step of two, inside an array of 20,001; of two with a step of three; dilated.
        ("(d0)[s0] -> (d0 * 2 + s0 - 1), d0 in [0, 10000], s0 in [0, 2], d0 * 2 + s0 in [1, 20001]", 20001),
        ("(d0)[s0] -> (d0 * 3 + s0), d0 in [0, 9999], s0 in [0, 1]", 20000),
        ("(d0)[s0] -> (d0 + s0 * 100), d0 in [0, 9999], s0 in [0, 2]", 10200),
        ("(d0)[s0] -> (d0 * 2 + s0 * 3), d0 in [0, 9999], s0 in [0, 9999]", 49996),
        ("(d0) -> (d0 floordiv 8), d0 in [0, 99999]", 12500),
        ("(d0) -> (d0 mod 8), d0 in [0, 99999]", 8),
        ("(d0) -> (0), d0 in [0, -1]", 0),
    ],
)
def test_examples(text: str, expected: int) -> None:
    assert footprint(IndexingMap.parse(text)) == expected


@pytest.mark.parametrize("shapes", [((512, 1024), (256, 2048)), ((3, 5, 7000), (7, 15000)), ((100000,), (40, 50, 50))])
def test_reshapes_read_all(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert footprint(reshape_map(*shapes)) == math.prod(shapes[0])


def _calls(map_: IndexingMap) -> int:
    with counted_calls() as calls:
        footprint.__wrapped__(map_)
    return calls()


def test_time_is_linear_in_the_rank() -> None:
    """Windows along every dimension, too many points to enumerate."""

    def windows(rank: int) -> IndexingMap:
        text = ", ".join(f"d{i} * 2 + s{i} - 1" for i in range(rank))
        dims, symbols = (", ".join(f"{name}{i}" for i in range(rank)) for name in "ds")
        ranges = [f"d{i} in [0, 10000]" for i in range(rank)] + [f"s{i} in [0, 2]" for i in range(rank)]
        inside = [f"d{i} * 2 + s{i} in [1, 20001]" for i in range(rank)]
        return IndexingMap.parse(f"({dims})[{symbols}] -> ({text}), {', '.join(ranges + inside)}")

    assert footprint(windows(4)) == 20001**4
    assert _calls(windows(16)) <= 2.5 * _calls(windows(8))


@pytest.mark.parametrize(
    ("text", "operands", "result", "count", "expected"),
    [
        ("stablehlo.add", ((64, 8), (64, 8)), (64, 8), 100, [100, 100]),
        ("stablehlo.slice %0 [8:16:2, 0:8]", ((64, 8),), (4, 8), 32, [32]),
        ('"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 1>}', ((8,),), (64, 8), 512, [8]),
        ('"stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64: 1>}', ((8,),), (64, 8), 3, [3]),
        ('"stablehlo.concatenate"(%0, %1) {dimension = 0 : i64}', ((60, 8), (4, 8)), (64, 8), 512, [480, 32]),
        ("stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]", ((64, 8), (8, 16)), (64, 16), 2, [16, 16]),
        ("stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]", ((64, 8), (8, 16)), (64, 16), 1024, [512, 128]),
        ("stablehlo.dynamic_update_slice %0, %1, %2, %2", ((64, 8), (4, 8), ()), (64, 8), 512, [480, 32, 1, 1]),
    ],
)
def test_elements_that_operations_read(
    text: str, operands: tuple[tuple[int, ...], ...], result: tuple[int, ...], count: int, expected: list[int]
) -> None:
    types = [type_of(shape) for shape in operands]
    if " %" not in text and "(" not in text:
        text += " %0, %1"
    used = [types[int(number)] for number in re.findall(r"%(\d)", text)]
    _, op = build(text, types, type_of(result), used)
    assert elements_read(op, count) == expected

"""The sectors that warps touch, by brute force: the bytes of every element of every access."""

import random

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.indexing_strategies import decisions, hundreds, make_expr
from xgpu.costs.sectors import SECTOR_BYTES, Touched, bank_passes, fills_sectors, overfetch, passes, sectors
from xgpu.indexing import IndexingMap, Interval
from xgpu.target_machine import WARP_SIZE


def by_brute_force(map_: IndexingMap, element_bits: int) -> Touched:
    accesses: dict[tuple[int, ...], set[int]] = {}
    for dims, symbols in map_.points():
        if dims[1] == map_.dims[1].lower:
            found = map_.evaluate(dims, symbols)
            assert found is not None
            accesses.setdefault((dims[0] // WARP_SIZE, *symbols[:-1]), set()).add(found[0])
    touched = least = 0
    for elements in accesses.values():
        bits = {each * element_bits + bit for each in elements for bit in range(element_bits)}
        touched += len({bit // (8 * SECTOR_BYTES) for bit in bits})
        least += -(-len(bits) // (8 * SECTOR_BYTES))
    return Touched(touched, least)


@hundreds
@given(decisions)
def test_touched_sectors(rng: random.Random) -> None:
    dims = Interval(0, rng.choice([31, 32, 63, 70])), Interval(rng.randint(-2, 2), 3)
    symbols = tuple(Interval(0, rng.randint(0, 3)) for _ in range(rng.randint(1, 2)))
    position = make_expr(rng, 2) * rng.choice([1, 1, 4, 7])
    constraint = make_expr(rng, 1)
    constraints = [(constraint, Interval(rng.randint(-5, 5), 20))] if rng.random() < 0.5 else []
    map_ = IndexingMap(dims, symbols, (position,), tuple(constraints))
    bits = rng.choice([4, 8, 16, 32, 64, 128])
    assert sectors(map_, bits) == by_brute_force(map_, bits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 16 bytes of each lane; every other f32; columns of an array of 1024; one number for all.
        ("(d0, d1)[s0] -> (d0 * 4 + s0), d0 in [0, 127], d1 in [0, 9], s0 in [0, 3]", Touched(64, 64)),
        ("(d0, d1)[s0] -> (d0 * 8 + s0 * 2), d0 in [0, 127], d1 in [0, 9], s0 in [0, 3]", Touched(128, 64)),
        ("(d0, d1)[s0] -> (d0 * 4096 + s0 * 1024), d0 in [0, 127], d1 in [0, 9], s0 in [0, 3]", Touched(512, 64)),
        ("(d0, d1)[s0] -> (d1), d0 in [0, 127], d1 in [0, 9], s0 in [0, 0]", Touched(4, 4)),
        ("(d0, d1)[s0] -> (d0), d0 in [0, 127], d1 in [0, 9], s0 in [0, 0], d0 in [96, 99]", Touched(1, 1)),
    ],
)
def test_examples_of_f32(text: str, expected: Touched) -> None:
    assert sectors(IndexingMap.parse(text), 32) == expected


@pytest.mark.parametrize("run_bits", [*range(4, 80, 4), *range(80, 1200, 24), 248, 256, 264, 512])
def test_overfetch_is_the_average_of_many_runs(run_bits: int) -> None:
    sector = 8 * SECTOR_BYTES
    starts = [number * run_bits for number in range(sector)]
    touched = sum((start + run_bits - 1) // sector - start // sector + 1 for start in starts)
    assert overfetch(run_bits) == pytest.approx(touched * sector / (run_bits * len(starts)))


def test_runs_of_a_sector_or_more_fill_sectors() -> None:
    """None of less does, however it is aligned: what is as long on average as twice its bytes is no row."""
    assert [bits for bits in range(1200) if fills_sectors(bits)] == list(range(8 * SECTOR_BYTES, 1200))


def passes_of(lanes: list[int], element_bits: int) -> float:
    """By the definition: a pass for four sectors of a line, and no more for neighbours that a line's end parts."""
    starts = [lane * element_bits for lane in lanes if lane >= 0]
    touched = {start // (8 * SECTOR_BYTES) for start in starts}
    lines = {start // (4 * 8 * SECTOR_BYTES) for start in starts}
    return max(1, len(touched) / 4, len(lines) - 1) if starts else 0


@pytest.mark.parametrize(
    ("lanes", "expected"),
    [
        (list(range(WARP_SIZE)), 1),
        ([7] * WARP_SIZE, 1),
        (list(range(3, 3 + WARP_SIZE)), 1.25),
        ([4 * lane for lane in range(WARP_SIZE)], 4),
        ([32 * lane for lane in range(WARP_SIZE)], 31),
        ([-1] * WARP_SIZE, 0),
    ],
)
def test_passes_of_requests(lanes: list[int], expected: float) -> None:
    assert passes(np.array([lanes, lanes]), 32) == 2 * expected


@hundreds
@given(decisions)
def test_passes(rng: random.Random) -> None:
    bits = rng.choice([8, 16, 32, 64, 128])
    step = rng.choice([0, 1, 2, 5, 64])
    requests = [
        [-1 if rng.random() < 0.1 else start + step * lane + rng.randint(0, 2) for lane in range(WARP_SIZE)]
        for start in (rng.randint(0, 1000), rng.randint(0, 1000))
    ]
    assert passes(np.array(requests), bits) == sum(passes_of(lanes, bits) for lanes in requests)


def bank_passes_of(lanes: list[int], element_bits: int, access_bits: int) -> int:
    """By the definition: lanes are served a line's bytes at a time, what lies in one bank one word after the other."""
    found, together = 0, min(WARP_SIZE, 1024 // max(32, access_bits))
    for first in range(0, WARP_SIZE, together):
        words = {lane * element_bits // 32 for lane in lanes[first : first + together] if lane >= 0}
        found += max((sum(1 for word in words if word % 32 == bank) for bank in range(32)), default=0)
    return found


@pytest.mark.parametrize(
    ("lanes", "access_bits", "expected"),
    [
        (list(range(WARP_SIZE)), 32, 1),
        # The same 16 bytes for all lanes take as long as 16 for each: registers are filled a line at a time.
        ([0] * WARP_SIZE, 128, 4),
        ([4 * lane for lane in range(WARP_SIZE)], 128, 4),
        # Two rows of 2048 elements, lanes in turns, and four: measured on an H200 as 8 and 16 cycles.
        ([2048 * (lane % 2) for lane in range(WARP_SIZE)], 128, 8),
        ([2048 * (lane % 4) for lane in range(WARP_SIZE)], 128, 16),
        ([2048 * (lane // 8) for lane in range(WARP_SIZE)], 128, 4),
        ([-1] * WARP_SIZE, 128, 0),
    ],
)
def test_bank_passes_of_requests(lanes: list[int], access_bits: int, expected: int) -> None:
    assert bank_passes(np.array([lanes, lanes]), 32, access_bits) == 2 * expected


@hundreds
@given(decisions)
def test_bank_passes(rng: random.Random) -> None:
    bits, wide = rng.choice([8, 16, 32, 64]), rng.choice([1, 2, 4, 8])
    step = rng.choice([0, 1, 8, 64, 2048])
    requests = [
        [-1 if rng.random() < 0.1 else wide * (start + step * lane + rng.randint(0, 2)) for lane in range(WARP_SIZE)]
        for start in (rng.randint(0, 1000), rng.randint(0, 1000))
    ]
    expected = sum(bank_passes_of(lanes, bits, bits * wide) for lanes in requests)
    assert bank_passes(np.array(requests), bits, bits * wide) == expected

"""Placements of blocks of memory: none overlap, and the smallest is found."""

import itertools
import random

import pytest

from xgpu.block_plan.cp_sat import cp_sat
from xgpu.block_plan.memory import storage
from xgpu.block_plan.memory.storage import Block, best_of_orders, fit, lower_bound, overlaps, place, size_of

needs_cp_sat = pytest.mark.skipif(cp_sat() is None, reason="OR-tools is not installed (pip install xgpu[plan])")


def drawn(rng: random.Random, count: int, alignments: tuple[int, ...] = (1, 2, 4)) -> list[Block]:
    blocks = []
    for _ in range(count):
        first = rng.randrange(8)
        used = ((1 << rng.randrange(1, 5)) - 1) << first
        # What is in use where a loop begins and where it ends has two runs.
        blocks.append(Block(rng.randrange(1, 9), rng.choice(alignments), used | (rng.random() < 0.2) << 14))
    return blocks


def smallest_of_all(blocks: list[Block]) -> int:
    """Some order of first fit is optimal where all blocks begin anywhere: put those of a best placement as they lie."""
    orders = itertools.permutations(range(len(blocks)))
    return min(size_of(blocks, fit(blocks, order, {}, is_best=False)) for order in orders)


@pytest.mark.parametrize("seed", range(200))
def test_no_blocks_overlap(seed: int) -> None:
    blocks = drawn(random.Random(seed), 1 + seed % 20)
    found = place(blocks, {}, exactly=seed % 10 == 0)
    assert not overlaps(blocks, found.offsets)
    assert all(at % block.alignment == 0 for at, block in zip(found.offsets, blocks, strict=True))
    assert found.bound <= found.size == size_of(blocks, found.offsets)


@needs_cp_sat
@pytest.mark.parametrize("seed", range(30))
def test_cp_sat_finds_the_smallest(seed: int) -> None:
    blocks = drawn(random.Random(seed), 6)
    assert place(blocks, {}).size == smallest_of_all(blocks)


@needs_cp_sat
def test_cp_sat_is_asked_where_orders_miss_the_bound() -> None:
    """Five blocks that no order puts within what is in use at once."""
    for seed in range(1000):
        blocks = drawn(random.Random(seed), 9, (1,))
        if size_of(blocks, best_of_orders(blocks, {})) > lower_bound(blocks) == place(blocks, {}).size:
            return
    pytest.fail("the orders never miss the bound where a placement meets it: CP-SAT is of no use")


def test_without_cp_sat_the_best_order_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "cp_sat", lambda: None)
    blocks = drawn(random.Random(7), 12)
    assert place(blocks, {}).offsets == best_of_orders(blocks, {})


def test_orders_come_close_to_the_bound() -> None:
    """As a whole the orders take less than a tenth more than what is in use at once (1.04 when this was written)."""
    cases = [drawn(random.Random(seed), 20, (1,)) for seed in range(100)]
    sizes = [size_of(blocks, best_of_orders(blocks, {})) for blocks in cases]
    assert sum(sizes) <= 1.1 * sum(map(lower_bound, cases))


def test_given_blocks_stay() -> None:
    blocks = [Block(4, 1, 0b1), Block(4, 1, 0b1), Block(4, 1, 0b10)]
    found = place(blocks, {1: 2})
    assert found.offsets == (6, 2, 0)
    assert overlaps(blocks, place(blocks, {0: 0, 1: 2}).offsets) == [(0, 1)]


def test_runs() -> None:
    assert storage._runs(0b1011100) == [(2, 3), (6, 1)]
    assert storage._runs(0) == []

"""The places of blocks of memory, some of which are in use at the same time (dynamic storage allocation).

Blocks are put one after the other as low as they fit, in several orders, and the best placement is taken. Where that
takes more than what is in use at once, CP-SAT looks for the smallest placement, if it is installed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xgpu.block_plan.cp_sat import cp_sat, solve
from xgpu.records import dataclass


@dataclass(frozen=True)
class Block:
    """A block of memory: its bytes, the multiple at which it begins, and the spans in which it is in use, as bits."""

    size: int
    alignment: int
    used: int

    @property
    def duration(self) -> int:
        """In how many spans it is in use."""
        return self.used.bit_count()


@dataclass(frozen=True)
class MemoryPlan:
    """The first byte of each block, and the bytes that all take; ``bound`` is the least that any placement takes."""

    offsets: tuple[int, ...]
    size: int
    bound: int


_ORDERS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda block: (-block.size,),
    lambda block: (-block.size * block.duration,),
    lambda block: (-block.duration, -block.size),
    lambda block: (block.used & -block.used, -block.size),
    lambda block: (-block.used.bit_length(), -block.size),
)
"""Orders in which blocks are put: the largest first, by area, the longest used, the first and the last used first."""


def place(blocks: Sequence[Block], given: Mapping[int, int], exactly: bool = True) -> MemoryPlan:
    """Return a placement with the ``given`` blocks where they are wanted; the smallest if CP-SAT is there to find it.

    Only what is given can overlap, see `overlaps`.
    """
    bound = lower_bound(blocks)
    best = best_of_orders(blocks, given)
    if exactly and size_of(blocks, best) > bound and cp_sat() is not None and not given:
        best = _smallest(blocks, size_of(blocks, best)) or best
    return MemoryPlan(best, size_of(blocks, best), bound)


def best_of_orders(blocks: Sequence[Block], given: Mapping[int, int]) -> tuple[int, ...]:
    """Return the smallest of the placements by each of the orders, and by whether gaps are filled first or best."""
    numbers = range(len(blocks))
    found = [
        fit(blocks, sorted(numbers, key=lambda number: (*order(blocks[number]), number)), given, is_best)
        for order in _ORDERS
        for is_best in (False, True)
    ]
    return min(found, key=lambda offsets: size_of(blocks, offsets))


def fit(blocks: Sequence[Block], order: Sequence[int], given: Mapping[int, int], is_best: bool) -> tuple[int, ...]:
    """Return where blocks begin, put in this order: in the first gap that is large enough, or the smallest one."""
    offsets = dict(given)
    for number in order:
        if number not in offsets:
            gaps = _gaps(blocks, number, offsets)
            offsets[number] = min(gaps, key=lambda gap: (gap[1], gap[0]))[0] if is_best else gaps[0][0]
    return tuple(offsets[number] for number in range(len(blocks)))


def size_of(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """Return the bytes that a placement takes."""
    return max((offset + block.size for block, offset in zip(blocks, offsets, strict=True)), default=0)


def lower_bound(blocks: Sequence[Block]) -> int:
    """Return the most bytes that are in use at once."""
    spans = max((block.used.bit_length() for block in blocks), default=0)
    return max((sum(block.size for block in blocks if block.used >> span & 1) for span in range(spans)), default=0)


def overlaps(blocks: Sequence[Block], offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of blocks that are in use at once and share bytes."""
    return [
        (i, j)
        for j in range(len(blocks))
        for i in range(j)
        if blocks[i].used & blocks[j].used
        and offsets[i] < offsets[j] + blocks[j].size
        and offsets[j] < offsets[i] + blocks[i].size
    ]


def _gaps(blocks: Sequence[Block], number: int, offsets: Mapping[int, int]) -> list[tuple[int, float]]:
    """Return the gaps in which a block fits, from the lowest: where it would begin, and how large the gap is."""
    block = blocks[number]
    taken = sorted(
        (offset, offset + blocks[other].size) for other, offset in offsets.items() if blocks[other].used & block.used
    )
    found: list[tuple[int, float]] = []
    lowest = 0
    for begin, end in [*taken, (math.inf, math.inf)]:
        if begin >= lowest + block.size:
            found.append((lowest, begin - lowest))
        if end != math.inf:
            lowest = max(lowest, -(-int(end) // block.alignment) * block.alignment)
    return found


def _smallest(blocks: Sequence[Block], most: int) -> tuple[int, ...] | None:
    """Return the smallest placement as CP-SAT finds it; None if it does not."""
    model: Any = cp_sat().CpModel()
    size = model.new_int_var(0, most, "size")
    starts, times, places = [], [], []
    for number, block in enumerate(blocks):
        unit = model.new_int_var(0, most // block.alignment, f"unit{number}")
        starts.append(unit * block.alignment)
        model.add(unit * block.alignment + block.size <= size)
        for first, count in _runs(block.used):
            times.append(model.new_fixed_size_interval_var(first, count, f"time{number}_{first}"))
            places.append(
                model.new_fixed_size_interval_var(unit * block.alignment, block.size, f"place{number}_{first}")
            )
    model.add_no_overlap_2d(times, places)
    model.minimize(size)
    solver = solve(model)
    return None if solver is None else tuple(int(solver.value(start)) for start in starts)


def _runs(used: int) -> list[tuple[int, int]]:
    """Return the runs of bits that are set: the first one of each, and how many there are."""
    found, position = [], 0
    while used >> position:
        rest = used >> position
        position += (rest & -rest).bit_length() - 1
        count = (~(used >> position) & (used >> position) + 1).bit_length() - 1
        found.append((position, count))
        position += count
    return found

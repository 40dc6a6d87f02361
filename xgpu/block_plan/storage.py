"""Where blocks of memory lie, of which some are in use at the same time (dynamic storage allocation)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A block of memory: its bytes, the multiple at which it begins, and the spans in which it is in use, as bits."""

    size: int
    alignment: int
    used: int


@dataclass(frozen=True)
class Placement:
    """Where each block begins, and the bytes that all take. ``bound`` is what no placement takes less than."""

    offsets: tuple[int, ...]
    size: int
    bound: int


def place(blocks: Sequence[Block], given: Mapping[int, int]) -> Placement:
    """Return a placement: first fit, the blocks that are largest first. Those ``given`` are where they are wanted."""
    order = sorted(range(len(blocks)), key=lambda number: (-blocks[number].size, number))
    offsets = first_fit(blocks, order, given)
    return Placement(offsets, size_of(blocks, offsets), lower_bound(blocks))


def first_fit(blocks: Sequence[Block], order: Sequence[int], given: Mapping[int, int]) -> tuple[int, ...]:
    """Return where blocks begin if each, in this order, lies as low as it can beside those before it."""
    offsets = dict(given)
    for number in order:
        if number not in offsets:
            offsets[number] = _lowest(blocks, number, offsets)
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


def _lowest(blocks: Sequence[Block], number: int, offsets: Mapping[int, int]) -> int:
    block = blocks[number]
    taken = sorted(
        (offset, offset + blocks[other].size) for other, offset in offsets.items() if blocks[other].used & block.used
    )
    lowest = 0
    for begin, end in taken:
        if begin >= lowest + block.size:
            break
        lowest = max(lowest, -(-end // block.alignment) * block.alignment)
    return lowest

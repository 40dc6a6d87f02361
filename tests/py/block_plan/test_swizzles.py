"""No access to chunks of swizzled tiles conflicts, along rows or down columns, for all shapes up to 64 x 64 chunks."""

import pytest

from xgpu.block_plan.graph import Tile
from xgpu.block_plan.memory.strides import CHUNK_BYTES, apart
from xgpu.block_plan.memory.swizzles import Swizzle, conflicts, row_chunks, swizzle_of

EACH = 8
"""Elements of 2 bytes of a chunk."""


@pytest.mark.parametrize("chunks", range(1, 65))
def test_no_conflicts(chunks: int) -> None:
    between = apart(chunks)
    swizzle = swizzle_of(between, 2)
    # Accesses to fewer rows are parts of those to 64, and have no more conflicts.
    for rows in (*range(1, 10), 63, 64):
        tile = Tile((rows, chunks * EACH), 16)
        assert conflicts(tile, (between * EACH, 1), swizzle) == (0, 0), rows


@pytest.mark.parametrize("chunks", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_swizzles_permute_chunks_of_rows(chunks: int, element_bytes: int) -> None:
    """Each row stays in its own memory, and chunks stay whole, wherever elements are wide or narrow."""
    swizzle = swizzle_of(chunks, element_bytes)
    assert swizzle is not None
    each = CHUNK_BYTES // element_bytes
    for row in range(16):
        first = row * chunks * each
        places = [swizzle.place(first + n) for n in range(chunks * each)]
        assert sorted(places) == list(range(first, first + chunks * each))
        assert all(place % each == n % each for n, place in enumerate(places))


def test_without_a_swizzle_columns_conflict() -> None:
    """So that a test which finds no conflicts says something."""
    for chunks in (2, 4, 8, 16, 32, 64):
        assert conflicts(Tile((64, chunks * EACH), 16), (chunks * EACH, 1), None)[1] == min(chunks, 8) - 1
    assert conflicts(Tile((64, 6 * EACH), 16), (6 * EACH, 1), None)[1] == 1


def test_numbers_are_those_of_matrix_instructions() -> None:
    """128 bytes a row: the swizzle of TMA and wgmma, chunk c of row r at c xor (r mod 8)."""
    swizzle = swizzle_of(8, 2)
    assert swizzle == Swizzle(3, 3, 6)
    assert [swizzle.place(64 * row + 8 * 5) // 8 - 8 * row for row in range(10)] == [5 ^ row % 8 for row in range(10)]
    assert swizzle_of(2, 2) == Swizzle(1, 3, 6)
    assert [swizzle_of(chunks, 2) for chunks in (1, 3, 6)] == [None] * 3


def test_rows_lie_apart_by_little() -> None:
    assert [apart(chunks) for chunks in range(1, 11)] == [1, 2, 3, 4, 5, 7, 7, 8, 9, 11]
    assert [row_chunks(stride, 2) for stride in (8, 12, 64, 0)] == [1, None, 8, None]

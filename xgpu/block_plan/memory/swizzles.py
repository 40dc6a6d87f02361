"""Swizzles of tiles in shared memory, such that no access conflicts along rows or down columns.

A matrix instruction reads 8 rows of 16 bytes at once, its operand's chunks of one column; copies read or write chunks
side by side. Both touch all 32 banks once if the 8 chunks of a column are in different eighths of 128 bytes. Where the
chunks of a row are a power of two, the number of the chunk is xored with that of the row (Mirage's "xor method",
CUTLASS' swizzles); elsewhere rows are an odd number of chunks apart (its "shift method").
"""

from collections.abc import Sequence

import numpy as np

from xgpu.block_plan.graph import Tile
from xgpu.block_plan.memory.strides import CHUNK_BYTES
from xgpu.indexing.bank_conflicts import extra_wavefronts
from xgpu.records import dataclass

LINE_CHUNKS = 8
"""Chunks of 128 bytes: those of all banks."""


@dataclass(frozen=True)
class Swizzle:
    """Element ``o`` is at ``o xor (((o >> shift) & (2^bits - 1)) << base)``."""

    bits: int
    base: int
    shift: int

    def place(self, offset: int) -> int:
        """Return where the element of an offset is."""
        return offset ^ ((offset >> self.shift & (1 << self.bits) - 1) << self.base)


def row_chunks(stride: int, element_bytes: int) -> int | None:
    """Return how many chunks lie between two rows; None if rows do not begin at chunks."""
    size = stride * element_bytes
    return size // CHUNK_BYTES if size and size % CHUNK_BYTES == 0 else None


def swizzle_of(chunks: int, element_bytes: int) -> Swizzle | None:
    """Return the swizzle of rows that are so many chunks apart; None if that is no power of two, or one chunk."""
    if chunks < 2 or chunks & chunks - 1:
        return None
    base = (CHUNK_BYTES // element_bytes).bit_length() - 1
    bits = min(chunks, LINE_CHUNKS).bit_length() - 1
    return Swizzle(bits, base, base + max(chunks, LINE_CHUNKS).bit_length() - 1)


def order_of(tile: Tile, strides: Sequence[int]) -> list[int]:
    """Return the dimensions of more than one index, from the innermost on."""
    return sorted((n for n, size in enumerate(tile.shape) if size > 1), key=lambda n: (strides[n], -n))


def conflicts(tile: Tile, strides: Sequence[int], swizzle: Swizzle | None) -> tuple[int, int]:
    """Return the extra wavefronts of the worst access to chunks along a row, and down a column of 8 rows."""
    order = order_of(tile, strides)
    if len(order) < 2:
        return 0, 0
    inner, outer = order[:2]
    each = max(1, CHUNK_BYTES // tile.element_bytes)
    chunks, rows = -(-tile.shape[inner] // each), tile.shape[outer]
    at = np.arange(rows)[:, None] * strides[outer] + np.arange(chunks)[None] * each * strides[inner]
    if swizzle is not None:
        at = at ^ ((at >> swizzle.shift & (1 << swizzle.bits) - 1) << swizzle.base)
    places = at * tile.element_bytes
    along = max(_worst(row) for row in places)
    down = max(
        _worst(places[first : first + LINE_CHUNKS, chunk])
        for first in range(0, rows, LINE_CHUNKS)
        for chunk in range(chunks)
    )
    return along, down


def _worst(places: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> int:
    """Return the extra wavefronts of accesses to chunks, 8 at once."""
    groups = [places[first : first + LINE_CHUNKS] for first in range(0, len(places), LINE_CHUNKS)]
    return max(extra_wavefronts(group, CHUNK_BYTES) for group in groups)

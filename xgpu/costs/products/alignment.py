"""A library's time for matrix products whose rows begin at multiples of 16 bytes in memory, or do not."""

import math

from xgpu.costs.products.products import SHARE, SLOWED_CLOCK
from xgpu.device import Device
from xgpu.records import dataclass

ALIGNED_BYTES = 16
"""The divisor of distances between rows with which libraries, TMA and wide loads are fast."""
UNALIGNED_SHARE = 0.3
"""The part of their rate that libraries reach where the rows of an operand are not so: 0.17 to 0.38 on an H200."""
_UNALIGNED_RESULT_SHARE = 0.75
"""The same where those of the result alone are not. An estimate: tiles are read as fast, and stored element by element.
"""
_TILES = {128: 1.0, 64: 0.55}
"""Rows and columns of a library's tiles, and the part of their rate that tensor cores then reach."""
_SMALLEST_TILE = 16
_TYPICAL_BYTES = 2
"""Of the elements that `Device.products_per_cycle` counts."""


@dataclass(frozen=True)
class Matrices:
    """A batch of products of two matrices, m x k by k x n, and the bytes of elements of operands and of the result."""

    batch: int
    m: int
    n: int
    k: int
    element_bytes: int
    result_bytes: int

    @property
    def moved(self) -> int:
        """The bytes that a product reads and writes at least."""
        operands = self.element_bytes * self.k * (self.m + self.n)
        return self.batch * (operands + self.result_bytes * self.m * self.n)


def library_seconds(matrices: Matrices, operands_are_aligned: bool, result_is_aligned: bool, target: Device) -> float:
    """Return how long a library takes for a product: its tiles, wave by wave, or what memory takes."""
    work = min(_tiles_seconds(matrices, tile, target) / share for tile, share in _TILES.items())
    share = 1.0
    if not operands_are_aligned:
        share = UNALIGNED_SHARE
    elif not result_is_aligned:
        share = _UNALIGNED_RESULT_SHARE
    return target.launch_seconds + max(work / share, matrices.moved / target.memory_bandwidth)


def _tiles_seconds(matrices: Matrices, tile: int, target: Device) -> float:
    """Return how long tensor cores take at their full rate, a tile at a time in each multiprocessor."""
    rows, columns = (max(_SMALLEST_TILE, min(tile, 1 << (size - 1).bit_length())) for size in (matrices.m, matrices.n))
    tiles = matrices.batch * -(-matrices.m // rows) * -(-matrices.n // columns)
    multiplied = rows * columns * matrices.k * matrices.element_bytes / _TYPICAL_BYTES
    each = multiplied / (target.products_per_cycle * SHARE * target.clock * SLOWED_CLOCK)
    return math.ceil(tiles / target.sm_count) * each

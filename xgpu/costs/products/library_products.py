"""The time of matrix products of 16-bit floats that are left to XLA, its libraries and kernels.

The numbers are those of an H200, fitted to the times of kernels in docs/decisions.md, "Products by tiles", which they
are within 10 % of.
"""

import math

from xgpu.costs.products.products import MULTIPLIED_PER_CYCLE, SHARE_OF_MEMORY, SLOWED_CLOCK, Computing
from xgpu.device import Device

_SHARE = 0.86
"""The part of what tensor cores multiply that libraries reach."""
_LAUNCHES = 1.3
"""The time of a product besides its work, in launches."""
_SPLIT_LAUNCHES = 1.8
"""The same where its sums are split: a second kernel adds up the parts."""
_SPLIT_WORK = 2
"""The factor by which tensor cores then take longer."""
_TILE = 128
"""Rows and columns of a library's tiles."""
_SPLIT_BELOW = ((64, 1.0), (256, 1 / 4), (math.inf, 1 / 6))
"""Tiles for each multiprocessor below which sums are split, for products of up to so many rows or columns."""
_LEAST_SPLIT, _LEAST_PART = 512, 128
"""Elements that a sum has at least that is split, as far as was seen, and a part of it."""
_MOST_PARTS = 32
_SUM_BYTES = 4
_FUSED_RATE = 0.45
"""The part of the memory's rate, and of the tensor cores', that XLA's kernels reach which convert as they multiply.

On an H100 4096 x 14336 elements of 8 bits took them 31 us for one row, and 41 to 44 for 64.
"""
_CACHE_BYTES_PER_SECOND = 7e12
"""The bytes that the second kernel reads in a second, of the L2 cache."""


def library_product_seconds(
    sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device
) -> float:
    """Return how long a product takes: ``sizes`` are batch, m, n and k, the bytes those of operands' and results'
    elements.
    """
    batch, m, n, k = sizes
    rate = target.sm_count * target.clock * SLOWED_CLOCK * _SHARE * MULTIPLIED_PER_CYCLE / element_bytes
    multiplied = math.prod(sizes) / rate
    moved = batch * (element_bytes * k * (m + n) + result_bytes * m * n)
    memory = moved / (target.memory_bandwidth * SHARE_OF_MEMORY)
    tiles = batch * -(-m // _TILE) * -(-n // _TILE)
    share = next(share for most, share in _SPLIT_BELOW if min(m, n) <= most)
    if k < _LEAST_SPLIT or tiles >= target.sm_count * share:
        return max(multiplied, memory) + _LAUNCHES * target.launch_seconds
    parts = min(-(-target.sm_count // tiles), max(1, k // _LEAST_PART), _MOST_PARTS)
    added = parts * _SUM_BYTES * batch * m * n / _CACHE_BYTES_PER_SECOND
    return max(_SPLIT_WORK * multiplied, memory) + added + _SPLIT_LAUNCHES * target.launch_seconds


def library_computed_seconds(work: Computing, result_bytes: int, is_fused: bool, target: Device) -> float:
    """Return how long a product takes with an operand that a kernel stores, or that XLA computes if it ``is_fused``."""
    product = library_product_seconds(work.sizes, work.element_bytes, result_bytes, target)
    stored = work.store_seconds(target) + product
    if not is_fused:
        return stored
    batch, m, n, k = work.sizes
    moved = work.read + batch * (n * k * work.element_bytes + m * n * result_bytes)
    rate = target.sm_count * target.clock * SLOWED_CLOCK * MULTIPLIED_PER_CYCLE / work.element_bytes
    fused = max(moved / target.memory_bandwidth, math.prod(work.sizes) / rate) / _FUSED_RATE
    return min(stored, fused + target.launch_seconds)

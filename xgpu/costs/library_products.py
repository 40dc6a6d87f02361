"""The time of matrix products of 16-bit floats that are left to XLA, its libraries and kernels.

The numbers are those of an H200, fitted to the times of kernels in docs/decisions.md, "Products by tiles", which they
are within 10 % of.
"""

import math

from xgpu.costs.products import MULTIPLIED_PER_CYCLE, SHARE_OF_MEMORY, SLOWED_CLOCK
from xgpu.device import Device

_SHARE = 0.86
"""The part of what tensor cores multiply that libraries reach."""
_LAUNCHES = 1.3
"""What a product takes besides its work, in launches."""
_SPLIT_LAUNCHES = 1.8
"""The same where its sums are split: a second kernel adds up the parts."""
_SPLIT_WORK = 2
"""How many times as long tensor cores then take."""
_TILE = 128
"""Rows and columns of a library's tiles."""
_SPLIT_BELOW = ((64, 1.0), (256, 1 / 4), (math.inf, 1 / 6))
"""Tiles for each multiprocessor below which sums are split, for products of up to so many rows or columns."""
_LEAST_SPLIT, _LEAST_PART = 512, 128
"""Elements that a sum has at least that is split, as far as was seen, and a part of it."""
_MOST_PARTS = 32
_SUM_BYTES = 4
_CACHE_BYTES_PER_SECOND = 7e12
"""What the second kernel reads in a second, of the L2 cache."""


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

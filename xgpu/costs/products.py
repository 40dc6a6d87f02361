"""How long matrix products take that warp groups compute in blocks of tiles."""

import math

from xgpu.device import Device
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.product_maps import ROW_BYTES

TILE_ROWS = (64, 128)
WARPGROUP_COLUMNS = 256
"""Columns that warp groups multiply by at once, at most."""
TILE_COLUMNS = (32, 64, 96, 128, 160, 192, 224, 256)
"""The tiles that blocks compute if nobody says otherwise."""
MOST_RIGHTS = 4
"""Right operands of products that one kernel computes: with more, tiles are narrower than what is copied at once."""
_SLOWER = 1.25
"""How many times as long as a library a kernel may take, as both are estimates."""
_LIBRARY_LAUNCHES = 1.5
"""What a small product takes by a library besides its work, in launches: 2.8 to 5.3 us were measured."""
_SHARED_BYTES_PER_CYCLE = 128
"""What shared memory of a multiprocessor reads or writes in a cycle."""
_MULTIPLIED_PER_CYCLE = 4096
"""Bytes of rows times columns that the tensor cores of a multiprocessor multiply in a cycle: 2,048 pairs of 16 bits."""
SHARE = 0.89
"""The part of these that is reached, measured with tiles of 128 x 256 x 64 on an H200."""
_ROW_BYTES_OF_PRODUCT = 32
SLOWED_CLOCK = 0.89
"""The clock under the load of tensor cores, as a part of the highest, measured on an H200."""
_RESULT_SECONDS = 1.0e-6
"""What writing a tile's results takes besides their bytes: they meet, and wait for memory once."""


def product_seconds(tile: tuple[int, int, int], steps: int, waves: int, result_bytes: int, target: Device) -> float:
    """Return how long a product takes: each multiprocessor computes ``waves`` tiles, each in some steps.

    ``tile`` is its rows, its columns, and the bytes of a row that a step contracts. A step takes what the tensor cores
    do, or what shared memory does: it is written once, and each product of 64 rows reads both of its operands.
    """
    rows, columns, row_bytes = tile
    clock = target.clock * SLOWED_CLOCK
    multiplied = rows * columns * row_bytes / _MULTIPLIED_PER_CYCLE / SHARE
    products = rows // WARPGROUP_ROWS * (row_bytes // _ROW_BYTES_OF_PRODUCT)
    moved = (rows + columns) * row_bytes + products * (WARPGROUP_ROWS + columns) * _ROW_BYTES_OF_PRODUCT
    step = max(multiplied, moved / _SHARED_BYTES_PER_CYCLE) / clock
    result = _RESULT_SECONDS + 2 * result_bytes / _SHARED_BYTES_PER_CYCLE / clock
    return target.launch_seconds + waves * (steps * step + result)


def least_seconds(
    sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device, rights: int = 1
) -> float:
    """Return how long the kernel of a product takes, in the best tiles; ``sizes`` are batch, m, n and k.

    Or that of all products of a left operand with so many ``rights``.
    """
    batch, m, n, k = sizes
    row = ROW_BYTES // element_bytes
    return min(
        product_seconds(
            (rows, rights * columns, ROW_BYTES),
            -(-k // row),
            -(-batch * -(-m // rows) * -(-n // columns) // target.sm_count),
            rows * columns * result_bytes,
            target,
        )
        for rows in TILE_ROWS
        for columns in TILE_COLUMNS
        if rights * columns <= WARPGROUP_COLUMNS
    )


def pays_joined(
    sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device, rights: int
) -> bool:
    """Whether one kernel of all products is faster than one for each, all but one of whose results are read again."""
    apart = rights * least_seconds(sizes, element_bytes, result_bytes, target)
    batch, m, n, _ = sizes
    moved = 2 * (rights - 1) * batch * m * n * result_bytes
    joined = least_seconds(sizes, element_bytes, result_bytes, target, rights)
    return joined <= apart + moved / target.memory_bandwidth


def is_fast(
    sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device, rights: int = 1
) -> bool:
    """Whether blocks compute products about as fast as a library; ``sizes`` are batch, m, n and k.

    One kernel computes the products of a left operand with so many ``rights``; for a library those that are small are
    merged, which takes a kernel that copies the right ones.

    A library is taken to reach the part of the tensor cores' or of memory's rate that large tiles do. Blocks do not
    where there are fewer tiles than multiprocessors: nothing splits the contracted dimension.
    """
    batch, m, n, k = sizes
    least = least_seconds(sizes, element_bytes, result_bytes, target, rights)
    rate = target.sm_count * target.clock * SLOWED_CLOCK * SHARE * _MULTIPLIED_PER_CYCLE / element_bytes
    moved = batch * (element_bytes * (m * k + k * n) + result_bytes * m * n)
    library = max(math.prod(sizes) / rate, moved / target.memory_bandwidth)
    launches = _LIBRARY_LAUNCHES * (1 if rights == 1 else 2)
    return least <= _SLOWER * (rights * library + launches * target.launch_seconds)

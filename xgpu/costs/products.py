"""How long matrix products take that warp groups compute in blocks of tiles."""

import math
from dataclasses import dataclass

from xgpu.device import Device
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.product_maps import ROW_BYTES

_SLOWER = 1.25
"""How many times as long as a library a kernel may take, as both are estimates."""
_LIBRARY_LAUNCHES = 1.5
"""What a small product takes by a library besides its work, in launches: 2.8 to 5.3 us were measured."""
_SHARED_BYTES_PER_CYCLE = 128
"""What shared memory of a multiprocessor reads or writes in a cycle."""
_CLUSTER_BYTES_PER_CYCLE = 12
"""What a multiprocessor reads in a cycle of the shared memory of others in its cluster."""
_STAGES = 8
"""Steps whose tiles are under way, where shared memory has room for so many."""
_CACHED_BYTES = 32e6
"""Operands that stay in the L2 cache."""
_LOADED = 2
"""How many times as long a load takes where all of them go to memory, at its full rate."""
_PAIR = 2
"""Blocks of clusters that fill a GPU; of larger ones some find no place, as multiprocessors are in groups."""
_PLACED = 0.85
"""The part of the multiprocessors that larger clusters fill: 28 of 4 blocks on an H200, or 14 of 8."""
_MULTIPLIED_PER_CYCLE = 4096
"""Bytes of rows times columns that the tensor cores of a multiprocessor multiply in a cycle: 2,048 pairs of 16 bits."""
_SHARE = 0.89
"""The part of these that is reached, measured with tiles of 128 x 256 x 64 on an H200."""
_SHARE_OF_MEMORY = 0.875
"""The part of the memory's rate that copies reach on an H200."""
_ROW_BYTES_OF_PRODUCT = 32
_SLOWED_CLOCK = 0.89
"""The clock under the load of tensor cores, as a part of the highest, measured on an H200."""
_RESULT_SECONDS = 0.5e-6
"""What writing a tile's results takes besides their bytes: they meet, and wait for memory once."""
_MEETING_SECONDS = 0.8e-6
"""What blocks that add up a tile's sums take to meet, twice, and to wait for each other's. An estimate."""
_HANDED_SECONDS_PER_BYTE = 1.0e-6 / (128 * 256 * 4)
"""What it takes to hand a tile's sums from thread to thread, measured with tiles of 128 x 256 on an H200."""
_SUM_BYTES = 4


@dataclass(frozen=True)
class ProductTile:
    """What a block computes: so many rows and columns of a product, or ``split`` blocks of a cluster together.

    If ``is_swapped``, the rows are columns of the result.
    """

    rows: int
    columns: int
    split: int = 1
    is_swapped: bool = False

    def steps(self, row_bytes: int) -> int:
        """Return how many steps a block takes for sums of rows of so many bytes."""
        whole = -(-row_bytes // ROW_BYTES)
        return -(-whole // self.split)

    def tiles(self, sizes: tuple[int, int, int, int]) -> int:
        """Return how many tiles there are of a product: ``sizes`` are batch, m, n and k."""
        batch, m, n, _ = sizes
        rows, columns = (n, m) if self.is_swapped else (m, n)
        return batch * -(-rows // self.rows) * -(-columns // self.columns)

    def blocks_at_once(self, target: Device) -> int:
        """Return how many blocks run at the same time, those of a cluster all or none."""
        count = target.sm_count if self.split <= _PAIR else int(target.sm_count * _PLACED)
        return max(1, count // self.split * self.split)

    @property
    def step_bytes(self) -> int:
        """What a block reads for a step."""
        return (self.rows + self.columns) * ROW_BYTES

    def step_cycles(self) -> float:
        """Return how long a step takes: what the tensor cores do, or what shared memory does.

        It is written once, and each product of 64 rows reads both of its operands.
        """
        multiplied = self.rows * self.columns * ROW_BYTES / _MULTIPLIED_PER_CYCLE / _SHARE
        products = self.rows // WARPGROUP_ROWS * (ROW_BYTES // _ROW_BYTES_OF_PRODUCT)
        moved = self.step_bytes
        moved += products * (WARPGROUP_ROWS + self.columns) * _ROW_BYTES_OF_PRODUCT
        return max(multiplied, moved / _SHARED_BYTES_PER_CYCLE)

    def result_seconds(self, result_bytes: int, clock: float) -> float:
        """Return how long a block takes for a tile's sums, once it has its part: to add them up, and to write them."""
        size = self.rows * self.columns
        seconds = _RESULT_SECONDS + 2 * size // self.split * result_bytes / _SHARED_BYTES_PER_CYCLE / clock
        if self.split > 1:
            others = size * _SUM_BYTES * (self.split - 1) / self.split
            return seconds + _MEETING_SECONDS + others / _CLUSTER_BYTES_PER_CYCLE / clock
        return seconds + (size * _SUM_BYTES * _HANDED_SECONDS_PER_BYTE if self.is_swapped else 0.0)


TILE_ROWS = (64, 128)
TILE_COLUMNS = (8, 16, 32, 64, 96, 128, 160, 192, 224, 256)
SPLITS = (1, 2, 4, 8)
TILES = tuple(
    ProductTile(rows, columns, split, is_swapped)
    for is_swapped in (False, True)
    for split in SPLITS
    for rows in TILE_ROWS
    for columns in TILE_COLUMNS
)
"""The tiles that blocks compute if nobody says otherwise; of equal ones the first."""


def product_seconds(
    tile: ProductTile,
    sizes: tuple[int, int, int, int],
    bytes_: tuple[int, int],
    target: Device,
    blocks: int | None = None,
) -> float:
    """Return how long a product takes: ``sizes`` are batch, m, n and k, ``bytes_`` those of operands' and results'
    elements.

    There are ``blocks`` that compute tiles in turn, if nothing is said as many as run at the same time. They take what
    their steps do, each of which begins a load's time after one so many stages before; or what memory does for all.
    """
    clock = target.clock * _SLOWED_CLOCK
    element_bytes, result_bytes = bytes_
    parts, at_once = tile.tiles(sizes) * tile.split, tile.blocks_at_once(target)
    waves = -(-parts // (at_once if blocks is None or tile.split > 1 else min(blocks, at_once)))
    moved = _moved(sizes, bytes_)
    latency = target.memory_latency * (_LOADED if moved > _CACHED_BYTES else 1)
    step = max(tile.step_cycles() / clock, latency / min(_STAGES, target.shared_bytes_optin // tile.step_bytes))
    computed = waves * tile.steps(sizes[3] * element_bytes) * step
    memory = moved / (target.memory_bandwidth * _SHARE_OF_MEMORY)
    return target.launch_seconds + max(computed, memory) + waves * tile.result_seconds(result_bytes, clock)


def is_fast(sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device) -> bool:
    """Whether blocks compute products about as fast as a library; ``sizes`` are batch, m, n and k.

    A library is taken to reach the part of the tensor cores' or of memory's rate that large tiles do. Blocks do not
    where there are fewer tiles than multiprocessors, even if clusters share each.
    """
    bytes_ = element_bytes, result_bytes
    steps = -(-sizes[3] * element_bytes // ROW_BYTES)
    least = min(product_seconds(tile, sizes, bytes_, target) for tile in TILES if tile.split <= steps)
    rate = target.sm_count * target.clock * _SLOWED_CLOCK * _SHARE * _MULTIPLIED_PER_CYCLE / element_bytes
    library = max(math.prod(sizes) / rate, _moved(sizes, bytes_) / target.memory_bandwidth)
    return least <= _SLOWER * (library + _LIBRARY_LAUNCHES * target.launch_seconds)


def _moved(sizes: tuple[int, int, int, int], bytes_: tuple[int, int]) -> float:
    """Return the bytes of all operands and results."""
    batch, m, n, k = sizes
    element_bytes, result_bytes = bytes_
    return batch * (element_bytes * (m * k + k * n) + result_bytes * m * n)

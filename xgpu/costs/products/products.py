"""The time of matrix products that warp groups compute in blocks of tiles."""

import functools
import math
from dataclasses import replace

from xgpu.device import Device
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.product_maps import ROW_BYTES, step_of
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

WARPGROUP_COLUMNS = 256
"""Columns that warp groups multiply by at once, at most."""
MOST_RIGHTS = 4
"""Right operands of products that one kernel computes: with more, tiles are narrower than what is copied at once."""
_SLOWER = 1.25
"""The factor by which a kernel may take longer than a library, as both are estimates."""
_LIBRARY_LAUNCHES = 1.5
"""The time of a library's small product besides its work, in launches: 2.8 to 5.3 us were measured."""
_LIBRARY_TILE = 128
"""Rows and columns of a library's tiles."""
_SPLIT_BY_LIBRARY = 2
"""The factor by which a library takes longer where it has few such tiles: 2 to 4.5 were measured."""
_SHARED_BYTES_PER_CYCLE = 128
"""The bytes that a multiprocessor's shared memory reads or writes in a cycle."""
_CLUSTER_BYTES_PER_CYCLE = 12
"""The bytes that a multiprocessor reads in a cycle of shared memory of others in its cluster, measured on an H200."""
_STAGES = 8
"""Steps whose tiles are under way, where shared memory has room for so many."""
_CACHED_BYTES = 12e6
"""Operands that all multiprocessors have near them in the L2 cache: it has two halves of 25 MB on an H200."""
_CACHE_BYTES_PER_SECOND = 11e12
"""The bytes that all multiprocessors read in a second of the rest of the L2 cache, measured on an H200."""
_LOADED = 2.2
"""The factor by which a load of others, or of memory at its full rate, takes longer than one of what is near."""
_PAIR = 2
"""Blocks of clusters that fill a GPU; of larger ones some find no place, as multiprocessors are in groups."""
_PLACED = 0.5
"""The part of the multiprocessors where larger ones find a place for sure: on an H200, 16 clusters of 4 did, 24 not."""
MULTIPLIED_PER_CYCLE = 4096
"""Bytes of rows times columns that the tensor cores of a multiprocessor multiply in a cycle: 2,048 pairs of 16 bits."""
SHARE = 0.89
"""The part of these that is reached, measured with tiles of 128 x 256 x 64 on an H200."""
SHARE_OF_MEMORY = 0.875
"""The part of the memory's rate that copies reach on an H200."""
_ROW_BYTES_OF_PRODUCT = 32
SLOWED_CLOCK = 0.89
"""The clock under the load of tensor cores, as a part of the highest, measured on an H200."""
_LOADED_PART = 0.5
"""The part of the multiprocessors above which that is so."""
_RESULT_SECONDS = 0.5e-6
"""The time of writing a tile's results besides their bytes: they meet, and wait for memory once."""
_MEETING_SECONDS = 0.5e-6
"""The time for blocks that add up a tile's sums to meet, and to wait for each other's, measured on an H200."""
HANDED_SECONDS_PER_BYTE = 1.0e-6 / (128 * 256 * 4)
"""The time of handing a tile's sums from thread to thread, measured with tiles of 128 x 256 on an H200."""
_SUM_BYTES = 4
_SCHEDULERS = 4
_ISSUED = 0.6
"""The part of what a multiprocessor issues in a cycle that so few warps do."""
_INSTRUCTIONS = 3
"""Instructions for an element besides those of the program: half of a load, and its way to a number."""
_PAIRS = 2
"""The factor by which shared memory takes longer for elements that are read two by two than for whole words."""
_IN_TURN = {1: 0.6, 2: 0.3}
"""The part of what takes less time, computing or multiplying, that what takes longest does not hide: of one warp group,
which does half of it in turn, and of two.
"""


@dataclass(frozen=True)
class ProductTile:
    """The tile of a block, or of ``split`` blocks of a cluster together: its rows and columns of a product.

    If ``is_swapped``, the rows are columns of the result. The tile of the left operand is multiplied by those of all
    ``rights``. If the product ``has_groups`` of rows, each matrix is of one, and they have different numbers of rows.
    """

    rows: int
    columns: int
    split: int = 1
    is_swapped: bool = False
    rights: int = 1
    has_groups: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether a block computes a tile alone, of rows of the result."""
        return self.split == 1 and not self.is_swapped

    @property
    def width(self) -> int:
        """The columns of the tiles of all right operands."""
        return self.rights * self.columns

    def steps(self, row_bytes: int) -> int:
        """Return how many steps a block takes for sums of rows of so many bytes."""
        whole = -(-row_bytes // ROW_BYTES)
        return -(-whole // self.split)

    def grid(self, sizes: tuple[int, int, int, int]) -> tuple[float, int]:
        """Return how many tiles a product has along m and n: ``sizes`` are batch, m, n and k.

        A group of rows ends with a part of a tile, half a one on average.
        """
        _, m, n, _ = sizes
        of_m, of_n = (self.columns, self.rows) if self.is_swapped else (self.rows, self.columns)
        return max(1.0, m / of_m + 0.5) if self.has_groups else -(-m // of_m), -(-n // of_n)

    def read_again(self, sizes: tuple[int, int, int, int], element_bytes: int) -> float:
        """Return the bytes of operands that are read again and again, for each tile of the other dimension.

        What is near is not counted.
        """
        batch, m, n, k = sizes
        along_m, along_n = self.grid(sizes)
        both = ((batch * m * k * element_bytes, along_n), (self.rights * batch * n * k * element_bytes, along_m))
        return sum(size * (times - 1) for size, times in both if size > _CACHED_BYTES)

    def blocks_at_once(self, target: Device) -> int:
        """Return how many blocks run at the same time, those of a cluster all or none."""
        count = target.sm_count if self.split <= _PAIR else int(target.sm_count * _PLACED)
        return max(1, count // self.split * self.split)

    @property
    def step_bytes(self) -> int:
        """The bytes that a block reads for a step."""
        return (self.rows + self.width) * ROW_BYTES

    def step_cycles(self) -> float:
        """Return how long a step takes: what the tensor cores do, or what shared memory does.

        It is written once, and each product of 64 rows reads both of its operands.
        """
        multiplied = self.rows * self.width * ROW_BYTES / MULTIPLIED_PER_CYCLE / SHARE
        products = self.rows // WARPGROUP_ROWS * (ROW_BYTES // _ROW_BYTES_OF_PRODUCT)
        moved = self.step_bytes
        moved += products * (WARPGROUP_ROWS + self.width) * _ROW_BYTES_OF_PRODUCT
        return max(multiplied, moved / _SHARED_BYTES_PER_CYCLE)

    def result_seconds(self, result_bytes: int, clock: float) -> float:
        """Return how long a block takes for a tile's sums, once it has its part: to add them up, and to write them."""
        size = self.rows * self.columns
        seconds = _RESULT_SECONDS + 2 * size // self.split * result_bytes / _SHARED_BYTES_PER_CYCLE / clock
        if self.split > 1:
            others = size * _SUM_BYTES * (self.split - 1) / self.split
            return seconds + _MEETING_SECONDS + others / _CLUSTER_BYTES_PER_CYCLE / clock
        return seconds + (size * _SUM_BYTES * HANDED_SECONDS_PER_BYTE if self.is_swapped else 0.0)


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
COMPUTED_TILES = tuple(
    ProductTile(rows, columns, split) for split in SPLITS for rows in TILE_ROWS[::-1] for columns in TILE_COLUMNS
)
"""The same where the left operand is computed."""


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
    element_bytes, result_bytes = bytes_
    parts, at_once = math.ceil(sizes[0] * math.prod(tile.grid(sizes))) * tile.split, tile.blocks_at_once(target)
    is_loaded = min(parts, at_once) > target.sm_count * _LOADED_PART
    clock = target.clock * (SLOWED_CLOCK if is_loaded else 1)
    waves = -(-parts // (at_once if blocks is None or tile.split > 1 else min(blocks, at_once)))
    moved = _moved(sizes, bytes_, tile.rights)
    latency = target.memory_latency * (_LOADED if moved > _CACHED_BYTES else 1)
    step = max(tile.step_cycles() / clock, latency / min(_STAGES, target.shared_bytes_optin // tile.step_bytes))
    computed = waves * tile.steps(sizes[3] * element_bytes) * step
    memory = moved / (target.memory_bandwidth * SHARE_OF_MEMORY)
    memory += tile.read_again(sizes, element_bytes) / _CACHE_BYTES_PER_SECOND
    return target.launch_seconds + max(computed, memory) + waves * tile.result_seconds(result_bytes, clock)


def least_seconds(
    sizes: tuple[int, int, int, int],
    element_bytes: int,
    result_bytes: int,
    target: Device,
    rights: int = 1,
    has_groups: bool = False,
) -> float:
    """Return how long the kernel of a product takes, in the best tiles; ``sizes`` are batch, m, n and k.

    Or that of all products of a left operand with so many ``rights``.
    """
    return timed_tiles(sizes, element_bytes, result_bytes, target, rights, has_groups)[0][0]


@functools.lru_cache(1024)
def timed_tiles(
    sizes: tuple[int, int, int, int],
    element_bytes: int,
    result_bytes: int,
    target: Device,
    rights: int = 1,
    has_groups: bool = False,
) -> tuple[tuple[float, ProductTile], ...]:
    """Return how long the kernel takes in each tile, and the tile, the best first.

    Tiles of several ``rights``, and of rows in groups, are not split or swapped.
    """
    bytes_, steps = (element_bytes, result_bytes), -(-sizes[3] * element_bytes // ROW_BYTES)
    tiles = [replace(tile, rights=rights, has_groups=has_groups) for tile in TILES if tile.split <= steps]
    if rights > 1 or has_groups:
        tiles = [each for each in tiles if each.is_plain and each.width <= WARPGROUP_COLUMNS]
    timed = ((product_seconds(tile, sizes, bytes_, target), tile) for tile in tiles)
    return tuple(sorted(timed, key=lambda each: each[0]))


def pays_joined(
    sizes: tuple[int, int, int, int],
    element_bytes: int,
    result_bytes: int,
    target: Device,
    rights: int,
    has_groups: bool = False,
) -> bool:
    """Whether one kernel of all products is faster than one for each, all but one of whose results are read again."""
    apart = rights * least_seconds(sizes, element_bytes, result_bytes, target, 1, has_groups)
    batch, m, n, _ = sizes
    moved = 2 * (rights - 1) * batch * m * n * result_bytes
    joined = least_seconds(sizes, element_bytes, result_bytes, target, rights, has_groups)
    return joined <= apart + moved / target.memory_bandwidth


@dataclass(frozen=True)
class Computing:
    """The cost of computing an operand: bits of its elements in memory, instructions for each, and all bytes read.

    The multiplied elements have ``element_bytes``. Rows of ``sizes`` (batch, m, n, k) are those of the operand.
    """

    sizes: tuple[int, int, int, int]
    bits: int
    element_bytes: int
    instructions: float
    read: int

    @property
    def operand_bytes(self) -> int:
        """The bytes of the operand once it is computed."""
        batch, m, _, k = self.sizes
        return batch * m * k * self.element_bytes

    @property
    def _step(self) -> int:
        return step_of(self.bits, 8 * self.element_bytes)

    def _step_bytes(self, tile: ProductTile) -> float:
        return self._step * (tile.rows * self.bits / 8 + tile.columns * self.element_bytes)

    def _step_cycles(self, tile: ProductTile) -> float:
        """Return how long a step takes: to compute the operand, to multiply it, and what shared memory does."""
        elements = tile.rows * self._step
        multiplied = elements * tile.columns * self.element_bytes / MULTIPLIED_PER_CYCLE / SHARE
        issued = _SCHEDULERS * WARP_SIZE * _ISSUED
        computed = elements * (_INSTRUCTIONS + self.instructions) / issued
        products = tile.rows // WARPGROUP_ROWS
        moved = self._step_bytes(tile) + _PAIRS * elements * self.bits / 8
        moved += products * self._step * tile.columns * self.element_bytes
        longest = max(multiplied, computed)
        work = longest + _IN_TURN[min(2, products)] * (multiplied + computed - longest)
        return max(work, moved / _SHARED_BYTES_PER_CYCLE)

    def kernel_seconds(self, tile: ProductTile, result_bytes: int, target: Device) -> float:
        """Return how long a kernel takes for a product, with results of so many bytes an element."""
        batch, m, n, k = self.sizes
        down, along = -(-m // tile.rows), -(-n // tile.columns)
        parts, at_once = batch * down * along * tile.split, tile.blocks_at_once(target)
        clock = target.clock * SLOWED_CLOCK
        waves = -(-parts // at_once)
        others = batch * n * k * self.element_bytes
        stages = max(1, min(_STAGES, int(target.shared_bytes_optin // self._step_bytes(tile))))
        step = max(self._step_cycles(tile) / clock, target.memory_latency * _LOADED / stages)
        steps = math.ceil(math.ceil(k / self._step) / tile.split)
        moved = self.read + others + batch * m * n * result_bytes
        memory = moved / (target.memory_bandwidth * SHARE_OF_MEMORY)
        memory += ((along - 1) * self.read + (down - 1) * others) / _CACHE_BYTES_PER_SECOND
        result = waves * tile.result_seconds(result_bytes, clock)
        return target.launch_seconds + max(waves * steps * step, memory) + result

    def store_seconds(self, target: Device) -> float:
        """Return how long a kernel takes that computes the operand and stores it."""
        moved = self.read + self.operand_bytes
        return target.launch_seconds + moved / (target.memory_bandwidth * SHARE_OF_MEMORY)


def is_fast(
    sizes: tuple[int, int, int, int], element_bytes: int, result_bytes: int, target: Device, rights: int = 1
) -> bool:
    """Whether blocks compute products about as fast as a library; ``sizes`` are batch, m, n and k.

    One kernel computes the products of a left operand with so many ``rights``; for a library those that are small are
    merged, which takes a kernel that copies the right ones.

    A library is taken to reach the part of the tensor cores' or of memory's rate that large tiles do, but not where it
    has fewer than a fourth as many as there are multiprocessors.
    """
    bytes_ = element_bytes, result_bytes
    least = least_seconds(sizes, element_bytes, result_bytes, target, rights)
    rate = target.sm_count * target.clock * SLOWED_CLOCK * SHARE * MULTIPLIED_PER_CYCLE / element_bytes
    tiles = sizes[0] * math.prod(ProductTile(_LIBRARY_TILE, _LIBRARY_TILE).grid(sizes))
    multiplied = math.prod(sizes) / rate * (_SPLIT_BY_LIBRARY if tiles < target.sm_count / 4 else 1)
    library = max(multiplied, _moved(sizes, bytes_, 1) / target.memory_bandwidth)
    launches = _LIBRARY_LAUNCHES * (1 if rights == 1 else 2)
    return least <= _SLOWER * (rights * library + launches * target.launch_seconds)


def _moved(sizes: tuple[int, int, int, int], bytes_: tuple[int, int], rights: int) -> float:
    """Return the bytes of all operands, and of a result."""
    batch, m, n, k = sizes
    element_bytes, result_bytes = bytes_
    return batch * (element_bytes * (m * k + rights * k * n) + result_bytes * m * n)

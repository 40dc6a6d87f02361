"""The time of matrix products that single warps multiply, from tiles that all threads of a block copy."""

import math

from xgpu.costs.products.alignment import ALIGNED_BYTES, UNALIGNED_SHARE
from xgpu.device import KIB, Device
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

SHARED_BYTES_PER_CYCLE = 128
"""The bytes that a multiprocessor's shared memory reads or writes in a cycle."""
_SHARE = 0.9
"""The part of its rate that the best of products reach."""
SLOWED_CLOCK = 0.89
"""The clock under the load of tensor cores, as a part of the highest, measured on an H200."""
STEP_CYCLES = 150
"""The time of a block's step besides: its threads meet, and the first fragments come from shared memory."""
CACHED_BYTES_PER_CYCLE = 48
"""The bytes of the L2 cache for a multiprocessor in a cycle while all read, as for products of warp groups (H200)."""
IN_TURN = 0.1
"""The part of what is done in less time, products or copies, that what takes longest does not hide."""
CACHED = 0.5
"""The latency of copies, as a part of that of memory: neighbours have brought most of it into the cache."""
_STAGES = 3
"""Steps that a block has room for, where no schedule says how many."""
_RESULT_SECONDS = 1.0e-6
"""The time of writing a tile's results besides their bytes: they meet, and wait for memory once."""
_ELEMENT_BYTES = 2
_OTHER_REGISTERS = 64
"""The registers that a thread needs besides for fragments and addresses, about."""
MOST_HELD = 176
"""Sums, and elements on their way through registers, that a thread has registers for beside these."""
_MOST_RESIDENT = 4
_SLOWER = 1.25
"""The factor by which a kernel may take longer than a library, as both are estimates."""
_LIBRARY_LAUNCHES = 1.5
"""The time of a library's small product besides its work, in launches."""


@dataclass(frozen=True)
class WarpTile:
    """A block's tile of a step: its sizes, and the warps down and across it."""

    m: int
    n: int
    k: int
    down: int
    across: int

    @property
    def threads(self) -> int:
        """The threads of the block."""
        return self.down * self.across * WARP_SIZE

    @property
    def step_bytes(self) -> int:
        """The bytes of a step's tiles."""
        return (self.m + self.n) * self.k * _ELEMENT_BYTES

    def held(self, units: tuple[int, int]) -> int:
        """Return how many sums a thread holds, and elements of operands on their way, copied in ``units`` of bytes."""
        sizes = ((self.m, units[0]), (self.n, units[1]))
        loaded = sum(size * self.k for size, unit in sizes if unit == _ELEMENT_BYTES)
        return (self.m * self.n + loaded) // self.threads

    def resident(self, units: tuple[int, int], shared_bytes: int, target: Device) -> int:
        """Return how many such blocks, each with so much shared memory, a multiprocessor has room for, up to four."""
        registers = target.registers_per_sm // (self.threads * (self.held(units) + _OTHER_REGISTERS))
        return max(1, min(_MOST_RESIDENT, registers, target.shared_bytes_optin // (shared_bytes + KIB)))


WARP_TILES = tuple(
    WarpTile(m, n, k, down, across)
    for m, n, down, across in (
        (128, 256, 2, 4),
        (256, 128, 4, 2),
        (128, 128, 2, 4),
        (128, 64, 4, 2),
        (64, 128, 2, 4),
        (64, 64, 2, 2),
        (32, 64, 1, 4),
        (64, 32, 4, 1),
        (32, 32, 2, 2),
        (16, 64, 1, 4),
    )
    for k in (32, 64)
)
"""The tiles that blocks compute if nobody says otherwise."""


def warp_product_seconds(
    tile: WarpTile,
    tiles: int,
    k: int,
    units: tuple[int, int],
    stages: int,
    resident: int,
    result_bytes: int,
    target: Device,
) -> float:
    """Return how long a product of 16-bit floats takes, of so many tiles, each of which contracts ``k`` elements.

    ``units`` are the bytes that a thread copies at once, of either operand; a block has room for ``stages`` steps, and
    a multiprocessor for ``resident`` blocks. Their steps take what the tensor cores do, or what shared memory does:
    tiles come in, each warp reads what it multiplies, and loads of single elements pass the same way; or what the cache
    does. The steps of one block take the latency of memory, too.
    """
    clock = target.clock * SLOWED_CLOCK
    at_once = min(resident, -(-tiles // target.sm_count))
    multiplied = tile.m * tile.n * tile.k / (target.products_per_cycle * target.warp_share * _SHARE)
    sizes = (tile.m * tile.k, tile.n * tile.k)
    read = tile.across * sizes[0] + tile.down * sizes[1]
    moved = _ELEMENT_BYTES * (sum(sizes) + read) / SHARED_BYTES_PER_CYCLE
    loads = sum(size / WARP_SIZE for size, unit in zip(sizes, units, strict=True) if unit == _ELEMENT_BYTES)
    parts = (multiplied, moved + loads, tile.step_bytes / CACHED_BYTES_PER_CYCLE)
    work = max(parts) + IN_TURN * (sum(parts) - max(parts))
    ahead = 1 if loads else stages - 1
    latency = CACHED * target.memory_latency / ahead
    step = max(at_once * work / clock, (work + STEP_CYCLES) / clock, latency)
    result = _RESULT_SECONDS + at_once * 2 * result_bytes / SHARED_BYTES_PER_CYCLE / clock
    waves = -(-tiles // (target.sm_count * at_once))
    return target.launch_seconds + waves * (-(-k // tile.k) * step + result)


def is_fast(sizes: tuple[int, int, int, int], units: tuple[int, int], result_bytes: int, target: Device) -> bool:
    """Whether warps compute products of 16-bit floats about as fast as a library; ``sizes`` are batch, m, n and k."""
    batch, m, n, k = sizes
    least = min(
        warp_product_seconds(
            tile,
            batch * -(-m // tile.m) * -(-n // tile.n),
            k,
            units,
            _STAGES,
            tile.resident(units, _STAGES * tile.step_bytes, target),
            tile.m * tile.n * result_bytes,
            target,
        )
        for tile in WARP_TILES
        if tile.held(units) <= MOST_HELD
    )
    share = _SHARE if min(units) >= ALIGNED_BYTES else _SHARE * UNALIGNED_SHARE
    rate = target.sm_count * target.clock * SLOWED_CLOCK * share * target.products_per_cycle
    moved = batch * (_ELEMENT_BYTES * (m * k + k * n) + result_bytes * m * n)
    library = max(math.prod(sizes) / rate, moved / target.memory_bandwidth)
    return least <= _SLOWER * (library + _LIBRARY_LAUNCHES * target.launch_seconds)

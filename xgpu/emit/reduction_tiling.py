"""The division of reductions among the threads of a kernel: numbers for a shape and a device, and their maps.

A *group* of threads, whose number is a power of two, makes the results of a *unit*: one row, or neighbouring columns.
A group is part of a warp or several warps, and a block has one or more groups. Each thread first reduces what it reads,
then lanes of a warp exchange what they have, then warps do through shared memory.
"""

import math
from collections.abc import Iterable, Sequence

from xgpu.costs.occupancy import BYTES_IN_FLIGHT
from xgpu.device import KIB, Device
from xgpu.emit.base import LaunchDimensions
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

WARP = WARP_SIZE
MOST_ELEMENTS = 16
"""Consecutive elements that a thread reads in one step."""
MOST_CODE = 1024
"""Instructions that are unrolled at most."""
MOST_UNROLLED = 16
"""Steps that are unrolled at most, however few bytes each reads."""
BLOCK = 256
"""Threads that a block has if its groups are smaller."""
LEAST_BYTES = 64
"""Neighbouring bytes of columns that a warp reads at least, two sectors of the cache; as a rule it reads a line."""
MOST_TILE_BYTES = 32 * KIB
"""Shared memory in which the warps of a block exchange what they have."""


def vector_length(bits: Iterable[int]) -> int:
    """Return how many consecutive elements a thread reads in a step, a power of two, given the widths of what it reads.

    One access of 16 bytes of the narrowest type, but at most two of the widest.
    """
    widths = list(bits) or [32]
    return max(1, min(MOST_ELEMENTS, 128 // min(widths), 256 // max(widths)))


def stored_vector(bits: Iterable[int], target: Device) -> int:
    """Return how many consecutive elements a thread stores by one access each, given the widths of what it stores.

    Several accesses of one thread lie beside each other, and a warp's first one then writes a part of every sector. For
    loads, a cache makes up for that.
    """
    widest = max(bits, default=0)
    return max(1, 8 * target.max_vector_bytes // widest) if widest else MOST_ELEMENTS


def alignment(starts: Sequence[AffineExpr]) -> int:
    """Return at how many elements, a power of two up to 16, the best aligned of some stretches start."""
    return max(math.gcd(MOST_ELEMENTS, start.divisor()) for start in starts)


def steps_unrolled(steps: int, bytes_per_step: int, code_per_step: int = 1) -> int:
    """Return how many of a thread's steps are unrolled: enough bytes in flight, and few steps beyond the last.

    The instructions of a step bound them too: many hide what a thread waits for, and need its registers.
    """
    wanted = max(1, min(MOST_UNROLLED, BYTES_IN_FLIGHT // max(1, bytes_per_step), MOST_CODE // max(1, code_per_step)))
    return -(-steps // -(-steps // wanted)) if steps > 0 else 1


def power_of_two_below(number: int) -> int:
    """Return the largest power of two that is at most ``number``."""
    return 1 << (max(1, number).bit_length() - 1)


def power_of_two_above(number: int) -> int:
    """Return the smallest power of two that is at least ``number``."""
    return 1 << (max(1, number) - 1).bit_length()


def best_lanes(items: int, least: int = 1) -> int:
    """Return how many lanes of a warp, a power of two, take ``items`` in turn: the most that waste few turns.

    At least ``least``, or as many as take all at once.
    """
    candidates = [1 << i for i in range(WARP.bit_length()) if 1 << i >= min(least, power_of_two_above(items))]
    used = {lanes: items / (-(-items // lanes) * lanes) for lanes in candidates}
    enough = min(0.8, max(used.values()))
    return max(lanes for lanes, share in used.items() if share >= enough)


def distances(first: int, end: int) -> list[int]:
    """Return the powers of two from ``first`` until before ``end``: by what lanes differ that exchange values."""
    return [1 << i for i in range(first.bit_length() - 1, (end - 1).bit_length())]


def groups_per_block(group: int, units: int, target: Device) -> int:
    """Return how many groups a block has: fewer than fill it where that keeps multiprocessors from having nothing.

    Of threads that run in turn a block has no more than there must be.
    """
    if target.in_turn:
        return max(1, WARP // group)
    count = max(1, min(BLOCK, target.max_threads_per_block) // group)
    while count > 1 and group * count > WARP and -(-units // count) < target.sm_count:
        count //= 2
    return count


def whole(size: int) -> Interval:
    """Return the interval of the indices of ``size`` elements."""
    return Interval(0, size - 1)


@dataclass(frozen=True)
class Groups:
    """The threads of a launch: ``count`` groups of ``size`` in a block, as many blocks as ``units`` need groups for."""

    size: int
    count: int
    units: int

    @property
    def launch(self) -> LaunchDimensions:
        """Blocks along x for all units."""
        return LaunchDimensions.along_x(-(-self.units // self.count), self.threads)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.size * self.count

    @property
    def warps(self) -> int:
        """Warps of a group; 1 also for less than a warp."""
        return max(1, self.size // WARP)

    @property
    def thread(self) -> AffineExpr:
        """A thread's number in its block."""
        return dim(0)

    @property
    def lane(self) -> AffineExpr:
        """A thread's number in its group."""
        return self.thread if self.count == 1 else self.thread % self.size

    @property
    def number(self) -> AffineExpr:
        """The number of a thread's group in its block."""
        return constant(0) if self.count == 1 else self.thread // self.size

    @property
    def unit(self) -> AffineExpr:
        """The number of the unit that a thread's group makes; it may be more than there are."""
        return dim(1) * self.count + self.number

    def tile_writing(self) -> IndexingMap:
        """Return (thread, block) -> where its warp's values go in a tile, on the first lane of each warp."""
        return self.map((), [self.thread // WARP], [(self.thread % WARP, whole(1))])

    def tile_reading(self) -> IndexingMap:
        """Return (thread, block) -> which of a tile's values it takes: lanes take in turn those of their group."""
        return self.map((), [self.number * self.warps + self.thread % self.warps], [])

    def map(
        self, symbols: Sequence[int], results: Sequence[AffineExpr], constraints: Sequence[Constraint]
    ) -> IndexingMap:
        """Return (thread, block)[symbols] -> results, where ``constraints`` hold; the symbols have so many values."""
        dims = self.launch.ranges
        ranges = tuple(map(whole, symbols))
        needed = tuple(c for c in constraints if not c[1].contains_interval(c[0].interval(dims, ranges)))
        return IndexingMap(dims, ranges, tuple(results), needed)

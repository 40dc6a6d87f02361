"""The division of scans among the threads of a kernel: numbers for a shape and a device, and the maps from them.

A group of threads takes a scan, or those of neighbouring columns, in *tiles* of as many elements as its threads hold in
registers, one tile after the other. A thread takes vectors of elements of rows, or of columns, in *steps*.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self

from xgpu.analysis.scan_shape import ScanShape
from xgpu.costs.sectors import LINE_BYTES
from xgpu.device import Device
from xgpu.emit.families.reductions.reduce_row import block_problems
from xgpu.emit.families.scans.scan_functions import Scans
from xgpu.emit.families.scans.scan_messages import Messages
from xgpu.emit.reduction_tiling import (
    LEAST_BYTES,
    MOST_TILE_BYTES,
    WARP,
    Groups,
    best_lanes,
    groups_per_block,
    power_of_two_above,
    power_of_two_below,
    vector_length,
    whole,
)
from xgpu.emit.schedule import Schedule, flag, power_of_two, whole_number
from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass

HELD_BYTES = 64
"""Bytes of a scanned array that a thread holds: 16 elements of 32 bits."""
MOST_HELD_BYTES = 128
"""The same where blocks share scans and there are many: the fewer they are, the fewer messages they exchange."""
FEW_BYTES = 8
"""Accumulators of so many bytes leave registers for that: of more, a thread needs as many again to combine them."""
MOST_HELD = 64
"""Elements that a thread holds at most, as a person may have it: more than its registers have no use."""
ALONE = 1 << 15
"""Elements of a row that one block scans as fast as several that have to tell each other what is before."""
LINE = 16
"""Columns that a block scans as a rule, 64 bytes of f32."""
ENOUGH_BLOCKS = 64
"""Blocks that share scans: with fewer elements each, their messages take longer than what they save."""
REGISTER = 4
"""Bytes that a number takes in registers at least."""


def held_elements(accumulators: Sequence[int], held_bytes: int = HELD_BYTES) -> int:
    """Return how many elements a thread holds, a power of two, if accumulators are of so many bytes."""
    return power_of_two_below(held_bytes // sum(max(REGISTER, size) for size in accumulators))


@dataclass(frozen=True)
class RowScanSchedule(Schedule):
    """The division of row scans among threads: ``lanes`` along the row take ``steps`` vectors of ``vector`` elements.

    That is a tile. A row that is longer is taken by one block tile after tile, or each tile by another block.
    """

    vector: int = power_of_two("Consecutive elements that a thread takes in a step.", most=MOST_HELD)
    lanes: int = power_of_two("Threads along a row.", most=1024)
    groups: int = power_of_two("Rows of a block.", most=1024)
    steps: int = whole_number("Vectors of a tile that a thread takes.", most=MOST_HELD)
    spread: bool = flag("Whether each tile of a row has a block of its own; they tell each other what is before.")

    @classmethod
    def of(cls, facts: Scans) -> Self:
        """See `chosen`."""
        return cls.chosen(facts.shape, facts.widths, facts.accumulator_bytes, facts.fusion.device, facts.longest_vector)

    @classmethod
    def chosen(
        cls, shape: ScanShape, widths: Sequence[int], accumulators: Sequence[int], target: Device, limit: int
    ) -> Self:
        """Choose the numbers for arrays whose elements have ``widths`` bits, and accumulators of so many bytes each.

        A vector is no longer than ``limit``, and rows consist of whole vectors.
        """
        held = held_elements(accumulators)
        vector = math.gcd(min(vector_length(widths), limit, held), shape.size)
        vectors, rows, most = shape.size // vector, shape.outer, held // vector
        if leaves_idle(shape, target):
            threads, elements = shared_tile(math.prod(shape.shape), accumulators)
            return cls(vector, threads, 1, max(1, elements // vector), spread=True)
        lanes = 1
        while lanes < target.max_threads_per_block and lanes * most < vectors:
            lanes *= 2
        while 2 * lanes <= min(vectors, target.max_threads_per_block) and 2 * rows * lanes <= target.resident_threads:
            lanes *= 2
        steps = min(most, -(-vectors // lanes))
        return cls(vector, lanes, groups_per_block(lanes, rows, target), steps, spread=False)

    def problems(self, facts: Scans) -> Iterator[str]:
        """Threads fit a block, rows are whole vectors, and a thread holds what it takes."""
        size = facts.shape.size
        if size % self.vector:
            yield self.wrong("vector", f"a divisor of {size} elements")
        yield from spread_problems(self)
        yield from held_problems(self, self.vector * self.steps)
        yield from block_problems(self, self.lanes * self.groups, facts.fusion.device)

    def tiling(self, facts: Scans) -> "RowScanTiling":
        """Return which thread takes what."""
        return RowScanTiling(facts.shape, self)


@dataclass(frozen=True)
class ColumnScanSchedule(Schedule):
    """The division of column scans: ``lanes`` over columns, ``vector`` of them each, ``row_lanes`` along the scan.

    Row lanes take stretches of ``steps`` rows one after the other.
    """

    vector: int = power_of_two("Neighbouring columns of a thread.", most=MOST_HELD)
    lanes: int = power_of_two("Threads over the columns.", most=WARP)
    row_lanes: int = power_of_two("Threads over the rows.", most=1024)
    groups: int = power_of_two("Stretches of columns of a block.", most=1024)
    steps: int = whole_number("Rows of a tile that a thread takes.", most=MOST_HELD)
    spread: bool = flag("Whether each tile of a column has a block of its own; they tell each other what is before.")

    @classmethod
    def of(cls, facts: Scans) -> Self:
        """See `chosen`."""
        return cls.chosen(facts.shape, facts.widths, facts.accumulator_bytes, facts.fusion.device, facts.longest_vector)

    @classmethod
    def chosen(
        cls, shape: ScanShape, widths: Sequence[int], accumulators: Sequence[int], target: Device, limit: int
    ) -> Self:
        """Choose the numbers for arrays whose elements have ``widths`` bits, and accumulators of so many bytes each."""
        held = held_elements(accumulators)
        vector = math.gcd(min(vector_length(widths), limit, held), shape.inner)
        bytes_ = max(1, min(widths, default=32) // 8)
        if leaves_idle(shape, target):
            threads, elements = shared_tile(math.prod(shape.shape), accumulators)
            vectors = shape.inner // vector
            lanes = min(WARP, power_of_two_above(vectors), max(1, LINE_BYTES // (bytes_ * vector)))
            return cls(vector, lanes, threads // lanes, 1, max(1, elements // vector), spread=True)
        around = shape.outer
        # Narrower vectors where there are too few threads otherwise: as long as lanes cover some sectors of the cache.
        while (
            vector > 1
            and 2 * around * shape.inner // vector <= target.resident_threads
            and WARP * bytes_ >= LEAST_BYTES
        ):
            vector //= 2
        vectors = shape.inner // vector
        line, least = (min(WARP, max(1, size // (bytes_ * vector))) for size in (LINE_BYTES, LEAST_BYTES))
        lanes = best_lanes(vectors, least)
        for enough, some in ((2 * target.sm_count, line), (target.sm_count, least)):
            while lanes > some and around * -(-vectors // lanes) < enough:
                lanes //= 2
        units, row_lanes = around * -(-vectors // lanes), 1
        most = max(1, min(held // vector, shape.size))
        bytes_of_lane = vector * sum(accumulators)
        while (
            row_lanes * most < shape.size
            and 2 * lanes * row_lanes <= target.max_threads_per_block
            and 2 * units * lanes * row_lanes <= target.resident_threads
            and 2 * lanes * row_lanes * bytes_of_lane <= MOST_TILE_BYTES
        ):
            row_lanes *= 2
        steps = min(most, -(-shape.size // row_lanes))
        group = lanes * row_lanes
        groups = groups_per_block(group, units, target)
        while groups > 1 and group * groups > WARP and group * groups * bytes_of_lane > MOST_TILE_BYTES:
            groups //= 2
        return cls(vector, lanes, row_lanes, groups, steps, spread=False)

    def problems(self, facts: Scans) -> Iterator[str]:
        """Threads and their tile fit a block, columns are whole vectors, and a thread holds what it takes."""
        if facts.shape.inner % self.vector:
            yield self.wrong("vector", f"a divisor of {facts.shape.inner} columns")
        yield from spread_problems(self)
        yield from held_problems(self, self.vector * self.steps)
        threads, device = self.lanes * self.row_lanes * self.groups, facts.fusion.device
        yield from block_problems(self, threads, device)
        tiling = self.tiling(facts)
        shared = tiling.tile_size * sum(facts.accumulator_bytes) if tiling.column_warps > 1 else 0
        if shared > device.shared_bytes_optin:
            yield self.wrong("vector", f"tiles of at most {device.shared_bytes_optin} bytes, not {shared}")

    def tiling(self, facts: Scans) -> "ColumnScanTiling":
        """Return which thread takes what."""
        return ColumnScanTiling(facts.shape, self)


def leaves_idle(shape: ScanShape, target: Device) -> bool:
    """Tell whether blocks that take whole scans are few, and take longer than several that share a scan."""
    columns, blocks = min(shape.inner, LINE), shape.outer * -(-shape.inner // LINE)
    return shape.size * columns * (1 - blocks / target.sm_count) > ALONE


def shared_tile(elements: int, accumulators: Sequence[int]) -> tuple[int, int]:
    """Return threads and elements of each that blocks have that share scans of so many elements in all."""
    most_bytes = MOST_HELD_BYTES if sum(accumulators) <= FEW_BYTES else HELD_BYTES
    held, most = (min(MOST_HELD, held_elements(accumulators, bytes_)) for bytes_ in (HELD_BYTES, most_bytes))
    tiles = [(256, held), (512, held), (512, most)]
    enough = [tile for tile in tiles if elements >= math.prod(tile) * ENOUGH_BLOCKS]
    return enough[-1] if enough else tiles[0]


def spread_problems(schedule: RowScanSchedule | ColumnScanSchedule) -> Iterator[str]:
    """Yield that blocks which share scans would have several each."""
    if schedule.spread and schedule.groups > 1:
        yield schedule.wrong("groups", "1 where blocks share scans")


def held_problems(schedule: Schedule, elements: int) -> Iterator[str]:
    """Yield that threads of a schedule would take more elements than they can hold."""
    if elements > MOST_HELD:
        yield schedule.wrong("steps", f"at most {MOST_HELD} elements a thread, not {elements}")


@dataclass(frozen=True)
class ScanTiling[S: (RowScanSchedule, ColumnScanSchedule)](ABC):
    """The assignment of elements to threads, in each tile. Positions are counted from where a scan starts."""

    shape: ScanShape
    schedule: S

    @property
    @abstractmethod
    def row_lanes(self) -> int:
        """Threads along the scan where each takes whole vectors of columns; 1 for rows."""

    @property
    @abstractmethod
    def stretches(self) -> int:
        """Stretches of columns along the inner dimensions; 1 for rows."""

    @property
    @abstractmethod
    def thread_columns(self) -> int:
        """Scans that a thread takes part in."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Scans that a group takes part in."""

    @property
    @abstractmethod
    def scan_tiles(self) -> int:
        """The number of tiles of a scan."""

    @abstractmethod
    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> which of the vectors that ``elements`` knows, for those with work."""

    @abstractmethod
    def elements(self) -> IndexingMap:
        """Return (the numbers of a vector)[element] -> indices of the arrays."""

    @property
    def tiles(self) -> int:
        """The number of tiles of a scan that a block takes, one after the other."""
        return 1 if self.schedule.spread else self.scan_tiles

    @property
    def parts(self) -> int:
        """The number of blocks that share a scan."""
        return self.scan_tiles if self.schedule.spread else 1

    @property
    def units(self) -> int:
        """The number of units: each part of each scan, or of each stretch of columns."""
        return self.shape.outer * self.parts * self.stretches

    @property
    def threads(self) -> Groups:
        """A group of threads for each unit."""
        return Groups(self.schedule.lanes * self.row_lanes, self.schedule.groups, self.units)

    @property
    def outer(self) -> AffineExpr:
        """The number of a thread's scan, or column, along the outer dimensions: blocks that share it are neighbours."""
        return self.threads.unit // self.stretches // self.parts

    @property
    def tile(self) -> AffineExpr:
        """The number of a tile, in the maps that have it as their first range variable."""
        return self.messages.part if self.parts > 1 else symbol(0)

    def covering(self) -> IndexingMap:
        """Return (thread, block)[tile, step, element of a vector] -> indices of the arrays."""
        return self.places().compose(self.elements()).simplify()

    @property
    def messages(self) -> Messages:
        """The messages of blocks that share scans."""
        return Messages(self.threads, self.parts, self.stretches, self.columns, self.thread_columns)


def of_one_tile(map_: IndexingMap) -> IndexingMap:
    """Return a map whose first range variable, the tile, is given as the last dimension."""
    rank = len(map_.dims)
    given = {i: symbol(i - 1) if i else dim(rank) for i in range(len(map_.symbols))}
    return IndexingMap(
        (*map_.dims, map_.symbols[0]),
        map_.symbols[1:],
        tuple(expr.substitute(None, given) for expr in map_.results),
        tuple((expr.substitute(None, given), interval) for expr, interval in map_.constraints),
    )


class RowScanTiling(ScanTiling[RowScanSchedule]):
    """Lanes of a warp take neighbouring vectors of a row in each step; warps take stretches one after the other."""

    @property
    def row_lanes(self) -> int:
        """One."""
        return 1

    @property
    def stretches(self) -> int:
        """One."""
        return 1

    @property
    def thread_columns(self) -> int:
        """One."""
        return 1

    @property
    def columns(self) -> int:
        """One."""
        return 1

    @property
    def scan_tiles(self) -> int:
        """Enough for all vectors."""
        return -(-self._vectors // (self.schedule.lanes * self.schedule.steps))

    @property
    def _vectors(self) -> int:
        return self.shape.size // self.schedule.vector

    @property
    def width(self) -> int:
        """Lanes of a warp that share a row."""
        return min(self.schedule.lanes, WARP)

    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> row and vector of it."""
        threads = self.threads
        turn = (self.tile * threads.warps + threads.lane // self.width) * self.schedule.steps + symbol(1)
        vector = turn * self.width + threads.lane % self.width
        inside = [(threads.unit, whole(self.units)), (vector, whole(self._vectors))]
        return threads.map((self.tiles, self.schedule.steps), [self.outer, vector], inside)

    def elements(self) -> IndexingMap:
        """Return (row, vector)[element] -> indices; elements of a vector are always in the order of memory."""
        number: AffineExpr = self._vectors - 1 - dim(1) if self.shape.reverse else dim(1)
        indices = self.shape.indices(dim(0), number * self.schedule.vector + symbol(0), constant(0))
        return IndexingMap((whole(self.shape.outer), whole(self._vectors)), (whole(self.schedule.vector),), indices)


class ColumnScanTiling(ScanTiling[ColumnScanSchedule]):
    """Lanes take neighbouring columns, row lanes stretches of rows one after the other, a step being a row."""

    @property
    def row_lanes(self) -> int:
        """The lanes along a row, as the schedule has them."""
        return self.schedule.row_lanes

    @property
    def stretches(self) -> int:
        """Enough for all columns."""
        return -(-self.shape.inner // self.columns)

    @property
    def thread_columns(self) -> int:
        """A vector of them."""
        return self.schedule.vector

    @property
    def columns(self) -> int:
        """A vector for each lane."""
        return self.schedule.lanes * self.schedule.vector

    @property
    def scan_tiles(self) -> int:
        """Enough for all rows."""
        return -(-self.shape.size // (self.row_lanes * self.schedule.steps))

    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> outer number, position along the scan, vector of columns."""
        threads, lanes = self.threads, self.schedule.lanes
        position = (self.tile * self.row_lanes + threads.lane // lanes) * self.schedule.steps + symbol(1)
        numbers = [self.outer, position, threads.unit % self.stretches * lanes + threads.lane % lanes]
        inside = [(threads.unit, whole(self.units)), (position, whole(self.shape.size))]
        return threads.map((self.tiles, self.schedule.steps), numbers, inside)

    def elements(self) -> IndexingMap:
        """Return (outer number, position, vector of columns)[element] -> indices."""
        shape = self.shape
        index: AffineExpr = shape.size - 1 - dim(1) if shape.reverse else dim(1)
        indices = shape.indices(dim(0), index, dim(2) * self.schedule.vector + symbol(0))
        dims = (whole(shape.outer), whole(shape.size), whole(shape.inner // self.schedule.vector))
        return IndexingMap(dims, (whole(self.schedule.vector),), indices)

    @property
    def warp_row_lanes(self) -> int:
        """Row lanes of a warp that share columns."""
        return min(self.row_lanes, WARP // self.schedule.lanes)

    @property
    def warp_row_lane(self) -> AffineExpr:
        """The number of a thread's row lane among those of its warp that share its columns."""
        return self.threads.thread // self.schedule.lanes % self.warp_row_lanes

    @property
    def last_row_lane(self) -> AffineExpr:
        """The thread of a warp that is the last of those row lanes, in a thread's columns."""
        lanes, together = self.schedule.lanes, self.schedule.lanes * self.warp_row_lanes
        return self.threads.thread // together * together + (together - lanes) + self.threads.thread % lanes

    @property
    def column_warps(self) -> int:
        """Warps that share columns."""
        return self.row_lanes // self.warp_row_lanes

    @property
    def column_warp(self) -> AffineExpr:
        """The number of a thread's warp among those."""
        return self.threads.lane // (self.schedule.lanes * self.warp_row_lanes)

    @property
    def tile_size(self) -> int:
        """Elements of the tile in which warps put what they have of each column, of one accumulator."""
        return self.threads.threads // self.warp_row_lanes * self.schedule.vector

    def tile_writing(self) -> IndexingMap:
        """Return (thread, block)[column] -> where in the tile its warp's are: lanes are neighbours."""
        thread, lanes = self.threads.thread, self.schedule.lanes
        address = symbol(0) * (self.tile_size // self.schedule.vector) + thread // WARP * lanes + thread % lanes
        return self.threads.map((self.schedule.vector,), [address], [(self.warp_row_lane, whole(1))])

    def tile_reading(self) -> IndexingMap:
        """Return (thread, block)[warp, column] -> where in the tile that of a warp of its columns is."""
        threads, lanes = self.threads, self.schedule.lanes
        warp = threads.number * self.column_warps + symbol(0)
        address = symbol(1) * (self.tile_size // self.schedule.vector) + warp * lanes + threads.thread % lanes
        return threads.map((self.column_warps, self.schedule.vector), [address], [])

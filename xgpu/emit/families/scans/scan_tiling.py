"""How the threads of a kernel share scans: numbers for a shape and a device, and the maps that follow from them.

A group of threads takes a scan, or those of neighbouring columns, in *tiles* of as many elements as its threads hold in
registers, one tile after the other. A thread takes vectors of elements of rows, or of columns, in *steps*.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from xgpu.analysis.scan_shape import ScanShape
from xgpu.device import KIB, Device
from xgpu.emit.families.reductions.reduce_row import block_problems
from xgpu.emit.families.scans.scan_functions import Scans
from xgpu.emit.reduction_tiling import (
    WARP,
    Groups,
    best_lanes,
    groups_per_block,
    power_of_two_below,
    vector_length,
    whole,
)
from xgpu.emit.schedule import Schedule, power_of_two, whole_number
from xgpu.indexing.affine import AffineExpr, constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap

HELD_BYTES = 64
"""What a thread holds of what is scanned: 16 elements of 32 bits."""
MOST_HELD = 64
"""Elements that a thread holds at most, as a person may have it: more than its registers have no use."""
LINE_BYTES = 128
"""Neighbouring bytes that lanes of a warp take of the columns, if there are as many: a line of the cache."""
LEAST_BYTES = 64
"""The same where multiprocessors would have nothing to do otherwise: two sectors of the cache."""
MOST_TILE_BYTES = 32 * KIB
"""Shared memory of a block."""
REGISTER = 4
"""Bytes that a number takes in registers at least."""


def held_elements(accumulators: Sequence[int]) -> int:
    """Return how many elements a thread holds, a power of two, if accumulators are of so many bytes."""
    return power_of_two_below(HELD_BYTES // sum(max(REGISTER, size) for size in accumulators))


@dataclass(frozen=True)
class RowScanSchedule(Schedule):
    """How threads share scans of rows: ``lanes`` along the row take ``steps`` vectors of ``vector`` elements."""

    vector: int = power_of_two("Consecutive elements that a thread takes in a step.", most=MOST_HELD)
    lanes: int = power_of_two("Threads along a row.", most=1024)
    groups: int = power_of_two("Rows of a block.", most=1024)
    steps: int = whole_number("Vectors of a tile that a thread takes.", most=MOST_HELD)

    @classmethod
    def of(cls, facts: Scans) -> Self:
        """See `chosen`."""
        return cls.chosen(facts.shape, facts.widths, facts.accumulator_bytes, facts.fusion.device, facts.longest_vector)

    @classmethod
    def chosen(
        cls, shape: ScanShape, widths: Sequence[int], accumulators: Sequence[int], target: Device, limit: int
    ) -> Self:
        """Choose the numbers for arrays whose elements have ``widths`` bits, and accumulators of so many bytes each.

        A vector is no longer than ``limit``, and rows and chunks consist of whole vectors.
        """
        held = held_elements(accumulators)
        vector = math.gcd(min(vector_length(widths), limit, held), shape.size)
        vector = math.gcd(vector, shape.chunk) if shape.chunks > 1 else vector
        vectors, rows, most = shape.chunk // vector, shape.outer * shape.chunks, held // vector
        lanes = 1
        while lanes < target.max_threads_per_block and lanes * most < vectors:
            lanes *= 2
        while 2 * lanes <= min(vectors, target.max_threads_per_block) and 2 * rows * lanes <= target.resident_threads:
            lanes *= 2
        return cls(vector, lanes, groups_per_block(lanes, rows, target), min(most, -(-vectors // lanes)))

    def problems(self, facts: Scans) -> Iterator[str]:
        """Threads fit a block, rows and chunks are whole vectors, and a thread holds what it takes."""
        shape = facts.shape
        elements = math.gcd(shape.size, shape.chunk) if shape.chunks > 1 else shape.size
        if elements % self.vector:
            yield self.wrong("vector", f"a divisor of {elements} elements")
        yield from held_problems(self, self.vector * self.steps)
        yield from block_problems(self, self.lanes * self.groups, facts.fusion.device)

    def tiling(self, facts: Scans) -> "RowScanTiling":
        """Return which thread takes what."""
        return RowScanTiling(facts.shape, self)


@dataclass(frozen=True)
class ColumnScanSchedule(Schedule):
    """How threads share scans of columns: ``lanes`` over them, ``vector`` of them each, ``row_lanes`` along the scan.

    Row lanes take stretches of ``steps`` rows one after the other.
    """

    vector: int = power_of_two("Neighbouring columns of a thread.", most=MOST_HELD)
    lanes: int = power_of_two("Threads over the columns.", most=WARP)
    row_lanes: int = power_of_two("Threads over the rows.", most=1024)
    groups: int = power_of_two("Stretches of columns of a block.", most=1024)
    steps: int = whole_number("Rows of a tile that a thread takes.", most=MOST_HELD)

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
        around = shape.outer * shape.chunks
        # Narrower vectors where there are too few threads otherwise: as long as lanes cover some sectors of the cache.
        bytes_ = max(1, min(widths, default=32) // 8)
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
        most = max(1, min(held // vector, shape.chunk))
        bytes_of_lane = vector * sum(accumulators)
        while (
            row_lanes * most < shape.chunk
            and 2 * lanes * row_lanes <= target.max_threads_per_block
            and 2 * units * lanes * row_lanes <= target.resident_threads
            and 2 * lanes * row_lanes * bytes_of_lane <= MOST_TILE_BYTES
        ):
            row_lanes *= 2
        steps = min(most, -(-shape.chunk // row_lanes))
        group = lanes * row_lanes
        groups = groups_per_block(group, units, target)
        while groups > 1 and group * groups > WARP and group * groups * bytes_of_lane > MOST_TILE_BYTES:
            groups //= 2
        return cls(vector, lanes, row_lanes, groups, steps)

    def problems(self, facts: Scans) -> Iterator[str]:
        """Threads and their tile fit a block, columns are whole vectors, and a thread holds what it takes."""
        if facts.shape.inner % self.vector:
            yield self.wrong("vector", f"a divisor of {facts.shape.inner} columns")
        yield from held_problems(self, self.vector * self.steps)
        threads, device = self.lanes * self.row_lanes * self.groups, facts.fusion.device
        yield from block_problems(self, threads, device)
        shared = threads * self.vector * sum(facts.accumulator_bytes) if self.row_lanes > 1 else 0
        if shared > device.shared_bytes_optin:
            yield self.wrong("vector", f"tiles of at most {device.shared_bytes_optin} bytes, not {shared}")

    def tiling(self, facts: Scans) -> "ColumnScanTiling":
        """Return which thread takes what."""
        return ColumnScanTiling(facts.shape, self)


def held_problems(schedule: Schedule, elements: int) -> Iterator[str]:
    """Yield that threads of a schedule would take more elements than they can hold."""
    if elements > MOST_HELD:
        yield schedule.wrong("steps", f"at most {MOST_HELD} elements a thread, not {elements}")


@dataclass(frozen=True)
class ScanTiling[S: (RowScanSchedule, ColumnScanSchedule)](ABC):
    """Which thread takes what, in each of the tiles. Positions along the scan are counted from where it starts."""

    shape: ScanShape
    schedule: S

    @property
    @abstractmethod
    def row_lanes(self) -> int:
        """Threads along the scan where each takes whole vectors of columns; 1 for rows."""

    @property
    @abstractmethod
    def tiles(self) -> int:
        """How many tiles a chunk has."""

    @property
    @abstractmethod
    def units(self) -> int:
        """Scans, or stretches of columns that a group takes, one chunk of them."""

    @abstractmethod
    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> which of the vectors that ``elements`` knows, for those with work."""

    @abstractmethod
    def elements(self) -> IndexingMap:
        """Return (the numbers of a vector)[element] -> indices of the arrays."""

    @property
    @abstractmethod
    def chunk(self) -> AffineExpr:
        """The number of a thread's chunk, from where the scan starts."""

    @abstractmethod
    def start_places(self) -> IndexingMap:
        """Return (thread, block) -> which of the vectors that ``start_elements`` knows; any for the first chunk."""

    @abstractmethod
    def start_elements(self) -> IndexingMap:
        """Return (the numbers of a vector)[column] -> indices of what chunks go on from."""

    @property
    def _chunk_before(self) -> AffineExpr:
        """The number of the chunk before a thread's, of the last but one for the first."""
        count = self.shape.chunks - 1
        return (self.chunk + (count - 1)) % count

    def _start_index(self, chunk: AffineExpr) -> AffineExpr:
        """Return where along the dimension is what comes after a chunk of this number."""
        return self.shape.chunks - 2 - chunk if self.shape.reverse else chunk

    @property
    def threads(self) -> Groups:
        """A group of threads for each unit."""
        return Groups(self.schedule.lanes * self.row_lanes, self.schedule.groups, self.units)

    def covering(self) -> IndexingMap:
        """Return (thread, block)[tile, step, element of a vector] -> indices of the arrays."""
        return self.places().compose(self.elements()).simplify()


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
    def tiles(self) -> int:
        """As many as take all vectors."""
        vectors = self.shape.chunk // self.schedule.vector
        return -(-vectors // (self.schedule.lanes * self.schedule.steps))

    @property
    def units(self) -> int:
        """Rows, in as many chunks as there are."""
        return self.shape.outer * self.shape.chunks

    @property
    def width(self) -> int:
        """Lanes of a warp that share a row."""
        return min(self.schedule.lanes, WARP)

    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> row and vector of it."""
        threads, vectors = self.threads, self.shape.chunk // self.schedule.vector
        turn = (symbol(0) * threads.warps + threads.lane // self.width) * self.schedule.steps + symbol(1)
        vector = turn * self.width + threads.lane % self.width
        inside = [(threads.unit, whole(self.units)), (vector, whole(vectors))]
        return threads.map((self.tiles, self.schedule.steps), [self._row, self.chunk * vectors + vector], inside)

    @property
    def _row(self) -> AffineExpr:
        return self.threads.unit // self.shape.chunks

    @property
    def chunk(self) -> AffineExpr:
        """A row's chunks are neighbours."""
        return self.threads.unit % self.shape.chunks

    def start_places(self) -> IndexingMap:
        """Return (thread, block) -> row and chunk before."""
        return self.threads.map((), [self._row, self._chunk_before], [])

    def start_elements(self) -> IndexingMap:
        """Return (row, chunk)[0] -> indices."""
        indices = self.shape.indices(dim(0), self._start_index(dim(1)), constant(0))
        return IndexingMap((whole(self.shape.outer), whole(self.shape.chunks - 1)), (whole(1),), indices)

    def elements(self) -> IndexingMap:
        """Return (row, vector)[element] -> indices; elements of a vector are always in the order of memory."""
        vectors = self.shape.size // self.schedule.vector
        number: AffineExpr = vectors - 1 - dim(1) if self.shape.reverse else dim(1)
        indices = self.shape.indices(dim(0), number * self.schedule.vector + symbol(0), constant(0))
        return IndexingMap((whole(self.shape.outer), whole(vectors)), (whole(self.schedule.vector),), indices)


class ColumnScanTiling(ScanTiling[ColumnScanSchedule]):
    """Lanes take neighbouring columns, row lanes stretches of rows one after the other, a step being a row."""

    @property
    def row_lanes(self) -> int:
        """As the schedule has them."""
        return self.schedule.row_lanes

    @property
    def tiles(self) -> int:
        """As many as take all rows."""
        return -(-self.shape.chunk // (self.row_lanes * self.schedule.steps))

    @property
    def stretches(self) -> int:
        """Stretches of columns along the inner dimensions."""
        return -(-self.shape.inner // (self.schedule.lanes * self.schedule.vector))

    @property
    def units(self) -> int:
        """Stretches of columns, in as many chunks as there are."""
        return self.shape.outer * self.shape.chunks * self.stretches

    def places(self) -> IndexingMap:
        """Return (thread, block)[tile, step] -> outer number, position along the scan, vector of columns."""
        threads, shape = self.threads, self.shape
        position = (symbol(0) * self.row_lanes + threads.lane // self.schedule.lanes) * self.schedule.steps + symbol(1)
        numbers = [self._outer, self.chunk * shape.chunk + position, self._columns]
        inside = [(threads.unit, whole(self.units)), (position, whole(shape.chunk))]
        return threads.map((self.tiles, self.schedule.steps), numbers, inside)

    @property
    def _outer(self) -> AffineExpr:
        return self.threads.unit // self.stretches // self.shape.chunks

    @property
    def _columns(self) -> AffineExpr:
        return self.threads.unit % self.stretches * self.schedule.lanes + self.threads.lane % self.schedule.lanes

    @property
    def chunk(self) -> AffineExpr:
        """The stretches of all columns are neighbours, then chunks are."""
        return self.threads.unit // self.stretches % self.shape.chunks

    def start_places(self) -> IndexingMap:
        """Return (thread, block) -> outer number, chunk before, vector of columns."""
        return self.threads.map((), [self._outer, self._chunk_before, self._columns], [])

    def start_elements(self) -> IndexingMap:
        """Return (outer number, chunk, vector of columns)[column] -> indices."""
        shape = self.shape
        indices = shape.indices(dim(0), self._start_index(dim(1)), dim(2) * self.schedule.vector + symbol(0))
        dims = (whole(shape.outer), whole(shape.chunks - 1), whole(shape.inner // self.schedule.vector))
        return IndexingMap(dims, (whole(self.schedule.vector),), indices)

    def elements(self) -> IndexingMap:
        """Return (outer number, position, vector of columns)[element] -> indices."""
        shape = self.shape
        index: AffineExpr = shape.size - 1 - dim(1) if shape.reverse else dim(1)
        indices = shape.indices(dim(0), index, dim(2) * self.schedule.vector + symbol(0))
        dims = (whole(shape.outer), whole(shape.size), whole(shape.inner // self.schedule.vector))
        return IndexingMap(dims, (whole(self.schedule.vector),), indices)

    @property
    def tile_size(self) -> int:
        """Elements of the tile in which row lanes put what they have of each column, of one accumulator."""
        return self.threads.threads * self.schedule.vector

    def tile_writing(self) -> IndexingMap:
        """Return (thread, block)[column] -> where in the tile a thread's is: lanes are neighbours."""
        address = symbol(0) * self.threads.threads + self.threads.thread
        return self.threads.map((self.schedule.vector,), [address], [])

    def tile_reading(self) -> IndexingMap:
        """Return (thread, block)[row lane, column] -> where in the tile that of a row lane of its column is."""
        threads = self.threads
        row_lane = threads.number * self.row_lanes + symbol(0)
        address = symbol(1) * threads.threads + row_lane * self.schedule.lanes + threads.lane % self.schedule.lanes
        return threads.map((self.row_lanes, self.schedule.vector), [address], [])

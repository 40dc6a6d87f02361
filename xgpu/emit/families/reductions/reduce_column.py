"""The column reduction emitter: lanes over neighbouring columns, each taking a few of them, and over the rows.

A thread keeps an accumulator for each of its columns and walks down the rows with a stride. What threads have of the
same columns is then combined by shuffles within a warp, and through shared memory between warps. Where columns are few,
lanes of one warp read several rows, which are neighbours in memory if the lanes cover a row. (Source: XLA's column and
small column reduction emitters, which have 32 lanes over the columns and transpose what they have in shared memory.)
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import batched
from typing import Self

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.registers import MOST_ACCUMULATORS, OTHER_REGISTERS
from xgpu.costs.sectors import LINE_BYTES
from xgpu.device import Device
from xgpu.emit import requirements
from xgpu.emit.builders import Values
from xgpu.emit.families.reductions.reduce_row import MOST_TOGETHER, block_problems
from xgpu.emit.families.reductions.reduction import Reductions, nest, reduction_of
from xgpu.emit.families.reductions.staged import ReductionEmitter
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import (
    KernelBuilder,
    Rotation,
    Tensor,
    Variable,
    assign,
    filling,
    loop,
    put,
    values_of,
)
from xgpu.emit.reduction_tiling import (
    LEAST_BYTES,
    MOST_ELEMENTS,
    MOST_TILE_BYTES,
    WARP,
    Groups,
    alignment,
    best_lanes,
    distances,
    groups_per_block,
    power_of_two_below,
    steps_unrolled,
    vector_length,
    whole,
)
from xgpu.emit.schedule import BlockSchedule, power_of_two, whole_number
from xgpu.fusion.grouping.families import Heroes
from xgpu.indexing.affine import AffineExpr, delinearize, dim, symbol
from xgpu.indexing.bank_conflicts import BANKS, bank_conflicts
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass

_FEW_COLUMNS = 8
"""Columns that a thread has all of if no array is as large as the operands: what is the same in all is read once."""


@dataclass(frozen=True)
class ColumnSchedule(BlockSchedule):
    """The division of columns among threads: ``lanes`` over them, ``vector`` each, and ``row_lanes`` over the rows.

    ``unroll`` steps down the rows come together. A block has ``groups`` of threads, one for each stretch of columns.
    """

    vector: int = whole_number("Neighbouring columns of a thread.", most=MOST_ELEMENTS)
    lanes: int = power_of_two("Threads over the columns.", most=WARP)
    row_lanes: int = power_of_two("Threads over the rows.", most=1024)
    groups: int = power_of_two("Stretches of columns of a block.", most=1024)
    unroll: int = whole_number("Steps down the rows that come together.", most=MOST_TOGETHER)

    @classmethod
    def of(cls, facts: Reductions) -> Self:
        """See `chosen`."""
        return cls.chosen(
            facts.shape,
            facts.widths,
            facts.accumulator_bytes,
            facts.starts,
            facts.fusion.device,
            facts.longest_vector,
            facts.held_bytes,
            facts.code,
        )

    @classmethod
    def chosen(
        cls,
        shape: ReductionShape,
        widths: Sequence[int],
        accumulators: Sequence[int],
        starts: Sequence[AffineExpr],
        target: Device,
        limit: int,
        held: int = 0,
        code: int = 1,
    ) -> Self:
        """Choose the numbers for arrays whose elements have ``widths`` bits, and accumulators of so many bytes each.

        ``starts`` are where stretches of columns start in memory, ``limit`` bounds the vector, and ``held`` is how many
        bytes a thread holds for each of its columns beside the accumulators, from the first row to the last. ``code``
        are the instructions that take in an element.
        """
        columns, rows = shape.kept[-1], shape.per_result
        vector = _columns_of_thread(columns, widths, min(limit, alignment(starts)), len(accumulators))
        if target.in_turn and (run := _columns_in_turn(columns, len(accumulators))) >= _FEW_COLUMNS:
            return cls(run, WARP, 1, 1, 1)
        vectors, around = columns // vector, shape.results // columns
        bytes_ = max(1, vector * min(widths, default=32) // 8)
        line, least = (min(WARP, max(1, size // bytes_)) for size in (LINE_BYTES, LEAST_BYTES))
        lanes = best_lanes(vectors, least)
        for enough, some in ((2 * target.sm_count, line), (target.sm_count, least)):
            while lanes > some and around * -(-vectors // lanes) < enough:
                lanes //= 2
        while (
            vector > 1
            and around * -(-columns // (lanes * vector)) < target.sm_count
            and lanes * vector * max(widths, default=32) // 8 > LEAST_BYTES
        ):
            vector //= 2
        units, row_lanes = around * -(-columns // (lanes * vector)), 1
        tile = lanes * vector * sum(accumulators)
        registers = _registers(vector, accumulators, held)
        most_threads = min(target.max_threads_per_block, target.registers_per_sm // registers)
        while (
            2 * row_lanes <= rows
            and 2 * lanes * row_lanes <= most_threads
            and 2 * units * lanes * row_lanes <= target.resident_threads
            and 2 * lanes * row_lanes // WARP * tile <= MOST_TILE_BYTES
        ):
            row_lanes *= 2
        unroll = steps_unrolled(-(-rows // row_lanes), max(1, sum(widths) * vector // 8), vector * code)
        groups = groups_per_block(lanes * row_lanes, units, target)
        while groups > 1 and lanes * row_lanes > WARP and lanes * row_lanes // WARP * groups * tile > MOST_TILE_BYTES:
            groups //= 2
        return cls(vector, lanes, row_lanes, groups, unroll)

    @property
    def block_threads(self) -> int:
        """Those of all groups."""
        return self.lanes * self.row_lanes * self.groups

    def in_block(self, threads: int, facts: Reductions) -> Self:
        """More stretches of columns, or threads without one, and fewer columns of a thread if the tile has no room."""
        wider = replace(self, groups=threads // (self.lanes * self.row_lanes))
        while wider.vector % 2 == 0 and wider.tile_bytes(facts) > MOST_TILE_BYTES:
            wider = replace(wider, vector=wider.vector // 2)
        return wider

    def registers(self, facts: Reductions) -> int:
        """Those of the accumulators, and of what is the same in every row."""
        return _registers(self.vector, facts.accumulator_bytes, facts.held_bytes)

    def tile_bytes(self, facts: Reductions) -> int:
        """Return the shared memory of a block."""
        tiling = self.tiling(facts)
        return tiling.tile_size * sum(facts.accumulator_bytes) if tiling.threads.warps > 1 else 0

    def problems(self, facts: Reductions) -> Iterator[str]:
        """Threads and their tile fit a block, and columns are whole vectors."""
        columns, device = facts.shape.kept[-1], facts.fusion.device
        if columns % self.vector:
            yield self.wrong("vector", f"a divisor of the {columns} columns")
        yield from block_problems(self, self.block_threads, device)
        if (shared := self.tile_bytes(facts)) > device.shared_bytes_optin:
            yield self.wrong("vector", f"tiles of at most {device.shared_bytes_optin} bytes, not {shared}")

    def tiling(self, facts: Reductions) -> "ColumnTiling":
        """Return which thread reads what."""
        return ColumnTiling(facts.shape, self, not facts.is_commutative, max(facts.accumulator_bytes))


def _columns_of_thread(columns: int, widths: Sequence[int], limit: int, accumulators: int) -> int:
    """Return how many neighbouring columns a thread has, at most ``limit`` of what it reads as vectors."""
    most = MOST_ACCUMULATORS // accumulators
    if not widths and columns <= min(_FEW_COLUMNS, most):
        return columns
    return math.gcd(min(vector_length(widths), limit, power_of_two_below(most)), columns)


def _columns_in_turn(columns: int, accumulators: int) -> int:
    """Return how many neighbouring columns a thread walks down that shares them with none."""
    return math.gcd(MOST_ELEMENTS, power_of_two_below(MOST_ACCUMULATORS // accumulators), columns)


def _registers(vector: int, accumulators: Sequence[int], held: int) -> int:
    return OTHER_REGISTERS + vector * (sum(accumulators) + held) // 4


@dataclass(frozen=True)
class ColumnTiling:
    """The assignment of the elements of columns to threads.

    If ``in_order``, a thread's rows are neighbours, so that combining what the threads have in their order is combining
    the elements in theirs. ``widest`` is the bytes of the widest accumulator.
    """

    shape: ReductionShape
    schedule: ColumnSchedule
    in_order: bool
    widest: int

    @property
    def stretches(self) -> int:
        """Stretches of columns along the minor-most dimension."""
        return -(-self.shape.kept[-1] // (self.schedule.lanes * self.schedule.vector))

    @property
    def threads(self) -> Groups:
        """A group of threads for each stretch of columns."""
        units = math.prod(self.shape.kept[:-1]) * self.stretches
        return Groups(self.schedule.lanes * self.schedule.row_lanes, self.schedule.groups, units)

    def reading(self) -> IndexingMap:
        """Return (thread, block)[steps, unrolled, column] -> indices of the operands."""
        rows = self.shape.per_result
        chunks = -(-rows // (self.schedule.row_lanes * self.schedule.unroll))
        step, row_lane = symbol(0) * self.schedule.unroll + symbol(1), self.threads.lane // self.schedule.lanes
        row = (
            row_lane * (chunks * self.schedule.unroll) + step
            if self.in_order
            else step * self.schedule.row_lanes + row_lane
        )
        around, vector, inside = self._vector()
        kept = (*delinearize(around, self.shape.kept[:-1]), vector * self.schedule.vector + symbol(2))
        indices = self.shape.indices(kept, delinearize(row, self.shape.reduced))
        return self.threads.map(
            (chunks, self.schedule.unroll, self.schedule.vector), indices, [*inside, (row, whole(rows))]
        )

    def writing(self) -> IndexingMap:
        """Return (thread, block)[column] -> indices of the results, on the first lane of each vector of columns.

        For groups of no more than a warp; others go by ``finishing``.
        """
        around, vector, inside = self._vector()
        result = around * self.shape.kept[-1] + vector * self.schedule.vector + symbol(0)
        first = (self.threads.lane // self.schedule.lanes, whole(1))
        return self.threads.map((self.schedule.vector,), delinearize(result, self.shape.result_shape), [*inside, first])

    @property
    def tile_row(self) -> int:
        """The distance in the tile between a thread's columns, so that no two lanes meet in a bank.

        Lanes write what they have of every ``vector``-th column, and read neighbouring columns, at distances of this.
        """
        return _conflict_free_row(self.schedule.lanes, self.schedule.vector, self.widest)

    @property
    def tile_size(self) -> int:
        """Elements of the tile."""
        return self.threads.threads // WARP * self.schedule.vector * self.tile_row

    def tile_writing(self) -> IndexingMap:
        """Return (thread, block)[column] -> where it goes in the tile, on those lanes that have what their warp has."""
        thread = self.threads.thread
        address = (thread // WARP * self.schedule.vector + symbol(0)) * self.tile_row + thread % self.schedule.lanes
        return self.threads.map((self.schedule.vector,), [address], [(thread % WARP, whole(self.schedule.lanes))])

    def finishing(self) -> IndexingMap:
        """Return (thread, block)[turn] -> indices of the results, and where in the tile what the first warp has is."""
        threads, columns, width = self.threads, self.shape.kept[-1], self.schedule.lanes * self.schedule.vector
        turns = -(-width // threads.size)
        column = threads.lane + symbol(0) * threads.size
        unit = threads.unit
        at = unit % self.stretches * width + column
        result = delinearize(unit // self.stretches * columns + at, self.shape.result_shape)
        first_warp = threads.number * (threads.warps * self.schedule.vector)
        address = (first_warp + column % self.schedule.vector) * self.tile_row + column // self.schedule.vector
        inside = [(unit, whole(threads.units)), (column, whole(width)), (at, whole(columns))]
        return threads.map((turns,), [*result, address], inside)

    def gathering(self) -> IndexingMap:
        """Return (where in the tile the first warp's is)[warp] -> where that of each other warp is."""
        warps = Interval(1, self.threads.warps - 1)
        return IndexingMap(
            (whole(self.tile_size),), (warps,), (dim(0) + symbol(0) * (self.schedule.vector * self.tile_row),)
        )

    def _vector(self) -> tuple[AffineExpr, AffineExpr, list[Constraint]]:
        """Return where a thread is along the kept dimensions further out, which of a row's vectors it is at, and where.

        The last is what holds where there is such a vector.
        """
        unit = self.threads.unit
        vector = unit % self.stretches * self.schedule.lanes + self.threads.lane % self.schedule.lanes
        inside = [(unit, whole(self.threads.units)), (vector, whole(self.shape.kept[-1] // self.schedule.vector))]
        return unit // self.stretches, vector, inside


@cache
def _conflict_free_row(lanes: int, vector: int, size: int) -> int:
    """Return the least distance between vectors of elements of ``size`` bytes that lanes read without a conflict."""
    columns = lanes * vector
    warps = whole(-(-columns // WARP))
    column = symbol(0) * WARP + dim(0)
    for row in range(lanes, lanes + BANKS + 1):
        address = column % vector * row + column // vector
        if not bank_conflicts(IndexingMap((whole(min(WARP, columns)),), (warps,), (address,)), size):
            return row
    return lanes


class ColumnReductionEmitter(ReductionEmitter[ColumnTiling]):
    """Emits a fusion around reductions whose minor-most dimension is kept."""

    NAME = "reduce_column"

    def __init__(self, facts: Reductions, schedule: ColumnSchedule):
        super().__init__(facts, [facts], schedule.tiling(facts))

    def results_map(self) -> IndexingMap:
        """See `ReductionEmitter.results_map`: where warps exchange accumulators, others finish them."""
        if self.tiling.threads.warps == 1:
            return self.tiling.writing()
        finishing = self.tiling.finishing()
        return replace(finishing, results=finishing.results[:-1])

    @property
    def tile_size(self) -> int:
        """See `ReductionEmitter.tile_size`."""
        return self.tiling.tile_size

    def write(self, kernel: KernelBuilder) -> None:
        """Write what its blocks do."""
        reductions, size = self.reductions, self.tiling.threads.size
        count, lanes = len(reductions.results), self.tiling.schedule.lanes
        position = kernel.position
        accumulators = self._emit_reads(kernel)
        exchanged = distances(lanes, min(size, WARP))
        columns = [reductions.emit_shuffles(list(column), exchanged) for column in batched(accumulators, count)]
        ended = Rotation(value for column in columns for value in column)
        outputs = [kernel.outputs[i] for i in reductions.epilogue_outputs]
        if self.tiles:
            self._emit_exchange(kernel, ended, outputs)
        else:
            reductions.emit_wait(kernel, self.tiling.threads, has_heroes=True)
            with loop(self.tiling.writing(), position, [*outputs, *ended.variables]) as each:
                reductions.epilogues.emit_stores(kernel, each.result_arguments, ended.take(count))

    def _emit_reads(self, kernel: KernelBuilder) -> Values:
        """Read the columns and store the side outputs; return the thread's accumulators of each column."""
        start = self.reductions.emit_start(kernel.inputs)
        accumulators = Rotation(start * self.tiling.schedule.vector)
        sides = [kernel.outputs[i] for i in self.reductions.side_outputs]
        changed = [*sides, *accumulators.variables]
        with nest(self.tiling.reading(), (2, 1), kernel.position, changed) as indices:
            accumulators.turn(self.reductions.emit_step(kernel, indices, accumulators.first(len(start))))
        return accumulators.values

    def _emit_exchange(self, kernel: KernelBuilder, ended: Rotation, outputs: Sequence[Tensor]) -> None:
        """Combine what the warps of a column have, and store the results."""
        reductions = self.reductions
        tiles = kernel.shared_tiles(self.tiles)
        with filling(self.tiling.tile_writing(), kernel.position, tiles, ended.variables) as each:
            put(ended.take(len(tiles)), tiles, each.result_arguments)
        with loop(self.tiling.finishing(), kernel.position, outputs) as each:
            *indices, address = each.result_arguments
            totals = [Variable(tile.extract([address])) for tile in tiles]
            with loop(self.tiling.gathering(), [address], totals) as others:
                values = [tile.extract(others.result_arguments) for tile in tiles]
                assign(totals, reductions.emit_combine(values_of(totals), values))
            reductions.epilogues.emit_stores(kernel, indices, values_of(totals))


def _columns_key(op: ir.Operation) -> Hashable | None:
    """Return what reductions of columns of one kernel have in common."""
    shape = reduction_of(op)
    return shape if shape is not None and not shape.is_rows and shape.reduced else None


COLUMN_REDUCTIONS = Family(
    heroes=Heroes("reductions of one shape, of columns", _columns_key, (REDUCE,)),
    why=Reason("elements are combined that are no neighbours in memory"),
    stores_beside=True,
    overwrites=True,
    emitter=ColumnReductionEmitter,
    facts=Reductions,
    schedule=ColumnSchedule,
    results=requirements.without_packed(requirements.results_follow_or_beside),
    aliases=requirements.walked_elements,
)

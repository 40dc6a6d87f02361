"""The emitter of column programs: reductions of the same columns one after the other, and what is made of them.

As in row programs, a thread holds what it reads, from one reduction to the next: some rows of one column. Neighbouring
lanes have neighbouring columns, and the threads of a column exchange what they have by shuffles and in shared memory,
so that each has the result. Softmax and norms along a dimension that is not the last one, such as the channels of
images, read their operand once.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Self

from xgpu import ir
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.costs.registers import (
    FEWEST_COLUMNS,
    THREADS_THAT_HOLD_COLUMNS,
    fewest_columns,
    held_rows,
    longest_column,
    registers_for,
)
from xgpu.dialects.attributes import UNROLLED_OPERATIONS
from xgpu.emit import requirements
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.families.reductions.reduce_column import ColumnSchedule, ColumnTiling
from xgpu.emit.families.reductions.reduce_row import MOST_TOGETHER, block_problems
from xgpu.emit.families.reductions.reduction import Reductions, nest, reduction_of
from xgpu.emit.families.reductions.rows import RowStages
from xgpu.emit.families.reductions.staged import StagedEmitter
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import (
    KernelBuilder,
    Variable,
    assign,
    filling,
    put,
    values_of,
)
from xgpu.emit.reduction_tiling import WARP, distances, groups_per_block
from xgpu.emit.schedule import BlockSchedule, power_of_two, whole_number
from xgpu.fusion.grouping.families import Heroes
from xgpu.fusion.grouping.merging.column_programs import merge_columns
from xgpu.indexing.affine import constant
from xgpu.reasons import Reason
from xgpu.records import dataclass

_IDLE = 1.25
"""Lanes for each column at most, where fewer are possible."""


@dataclass(frozen=True)
class ColumnsSchedule(BlockSchedule):
    """The division of held columns among threads: ``lanes`` over neighbouring columns, ``row_lanes`` over the rows.

    ``unroll`` steps down the rows come together: all of them where threads are to hold what they read from one stage to
    the next.
    """

    lanes: int = power_of_two("Threads over the columns.", most=WARP)
    row_lanes: int = power_of_two("Threads over the rows.", most=1024)
    groups: int = power_of_two("Stretches of columns of a block.", most=1024)
    unroll: int = whole_number("Steps down the rows that come together.", most=MOST_TOGETHER)

    @classmethod
    def of(cls, facts: RowStages) -> Self:
        """Choose as many threads for a column that each holds its rows, and that all they compute is written out.

        They hold half as many as they can where there may be more of them: two blocks then share a multiprocessor.
        """
        shape, target = facts.shape, facts.fusion.device
        columns, rows, held = shape.kept[-1], shape.per_result, held_rows(facts.read_widths)
        lanes, row_lanes, fewest = WARP, 1, min(WARP, fewest_columns(facts.read_widths))
        while lanes > fewest and rows > longest_column(facts.read_widths, lanes):
            lanes //= 2
        while lanes > FEWEST_COLUMNS and -(-columns // lanes) * lanes > _IDLE * columns:
            lanes //= 2
        units = shape.results // columns * -(-columns // lanes)
        most = min(THREADS_THAT_HOLD_COLUMNS // lanes, rows)
        while 2 * row_lanes <= most:
            steps = -(-rows // row_lanes)
            is_long = 2 * steps > held or facts.operations * steps > UNROLLED_OPERATIONS
            if not is_long and 2 * units * lanes * row_lanes > target.resident_threads:
                break
            row_lanes *= 2
        steps = -(-rows // row_lanes)
        return cls(
            lanes, row_lanes, groups_per_block(lanes * row_lanes, units, target), min(steps, held, MOST_TOGETHER)
        )

    @property
    def block_threads(self) -> int:
        """Those of all groups."""
        return self.lanes * self.row_lanes * self.groups

    def in_block(self, threads: int, facts: RowStages) -> Self:
        """More stretches of columns, or threads without one."""
        return replace(self, groups=threads // (self.lanes * self.row_lanes))

    def registers(self, facts: RowStages) -> int:
        """Those of the elements that a thread holds."""
        return registers_for(self.unroll, facts.read_widths)

    def problems(self, facts: RowStages) -> Iterator[str]:
        """Threads fit a block."""
        yield from block_problems(self, self.block_threads, facts.fusion.device)

    def tiling(self, facts: Reductions) -> ColumnTiling:
        """Return which thread reads what."""
        numbers = ColumnSchedule(1, self.lanes, self.row_lanes, self.groups, self.unroll)
        return ColumnTiling(facts.shape, numbers, False, max(facts.accumulator_bytes))


class ColumnsEmitter(StagedEmitter[ColumnTiling]):
    """Emits a fusion around reductions of columns that need each other's results."""

    NAME = "columns"

    def __init__(self, facts: RowStages, schedule: ColumnsSchedule):
        super().__init__(facts, facts.stages, schedule.tiling(facts))

    @property
    def tile_size(self) -> int:
        """See `ReductionEmitter.tile_size`: one for each thread."""
        return self.tiling.threads.threads

    def emit_reads(self, kernel: KernelBuilder, stage: Reductions, given: Values) -> Values:
        """See `StagedEmitter.emit_reads`."""
        accumulators = [Variable(value) for value in stage.emit_start(kernel.inputs)]
        sides = [kernel.outputs[i] for i in stage.side_outputs]
        with nest(self.tiling.reading(), (3,), kernel.position, [*accumulators, *sides]) as indices:
            assign(accumulators, stage.emit_step(kernel, indices, values_of(accumulators), given))
        return values_of(accumulators)

    def emit_exchange(self, kernel: KernelBuilder, stage: Reductions, own: Values) -> Values:
        """See `StagedEmitter.emit_exchange`: in a warp by shuffles; each thread gets the result."""
        threads, schedule = self.tiling.threads, self.tiling.schedule
        own = stage.emit_shuffles(own, distances(schedule.lanes, min(threads.size, WARP)))
        tiles = kernel.shared_tiles(self.tiles_of(stage))
        if not tiles:
            return own
        first = threads.number * threads.size + threads.lane % schedule.lanes
        with filling(threads.map((), [threads.thread], []), kernel.position, tiles) as each:
            put(own, tiles, each.result_arguments)
        totals: Values = []
        for number in range(threads.warps):
            place = threads.map((), [first + constant(number * WARP)], [])
            values = [tile.extract(apply_map(place, kernel.position)) for tile in tiles]
            totals = stage.emit_combine(totals, values) if totals else values
        return totals


def _key(op: ir.Operation) -> Hashable | None:
    """Return what reductions of columns have in common whose elements are combined in any order."""
    shape = reduction_of(op)
    return shape if shape is not None and _is_of_columns(shape) and is_commutative(op) else None


def _is_of_columns(shape: ReductionShape) -> bool:
    return bool(shape.reduced) and not shape.is_rows


COLUMN_PROGRAMS = Family(
    heroes=Heroes("reductions of one shape, of columns in any order", _key),
    why=Reason("a column program: threads hold their columns from one reduction to the next"),
    merge=merge_columns,
    stores_beside=True,
    overwrites=True,
    emitter=ColumnsEmitter,
    facts=RowStages,
    schedule=ColumnsSchedule,
    results=requirements.without_packed(requirements.results_follow_or_beside),
    aliases=requirements.walked_elements,
)

"""The row emitter: several reductions of the same rows one after the other, and what is made of them, in one kernel.

A group of threads has a row, and holds what it reads of it: each stage walks the same elements, those that come after a
reduction with its result, which every thread of the row has. So softmax and norms read their operand once. (Source:
XLA's fusion of softmax, which it has Triton compile.)
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Self

from xgpu import ir
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.costs.registers import held_elements, registers_for
from xgpu.device import Device
from xgpu.dialects.attributes import UNROLLED_OPERATIONS
from xgpu.emit import requirements
from xgpu.emit.base import Fusion
from xgpu.emit.families.reductions.reduce_row import (
    MOST_TOGETHER,
    RowEmitter,
    RowSchedule,
    RowTiling,
    block_problems,
    lanes_of_a_warp,
    rows_key,
)
from xgpu.emit.families.reductions.reduction import Reductions
from xgpu.emit.family import Family
from xgpu.emit.reduction_tiling import MOST_ELEMENTS, alignment, groups_per_block, power_of_two_below
from xgpu.emit.schedule import BlockSchedule, power_of_two, whole_number
from xgpu.fusion.grouping.families import Heroes
from xgpu.fusion.grouping.merging.row_programs import merge_rows
from xgpu.indexing.affine import AffineExpr
from xgpu.reasons import Reason
from xgpu.records import dataclass

HELD_OPERATIONS = 8192
"""Operations that a thread's share of a long row may be written out as: 256 for each of the most elements it holds."""


class RowStages(Reductions):
    """The heroes of a fusion that need each other's results, in ``stages``."""

    def __init__(self, fusion: Fusion):
        super().__init__(fusion)
        self.stages = Reductions.stages_of(fusion)


@dataclass(frozen=True)
class RowsSchedule(BlockSchedule):
    """The division of held rows among threads: ``lanes`` along the row, which read ``vector`` elements in a step.

    ``unroll`` steps come together: all of them where threads are to hold what they read from one stage to the next.
    """

    vector: int = power_of_two("Consecutive elements that a thread reads in a step.", most=MOST_ELEMENTS)
    lanes: int = power_of_two("Threads along a row.", most=1024)
    groups: int = power_of_two("Rows of a block.", most=1024)
    unroll: int = whole_number("Steps along a row that come together.", most=MOST_TOGETHER)

    @classmethod
    def of(cls, facts: RowStages) -> Self:
        """See `chosen`."""
        starts = [start for stage in facts.stages for start in stage.starts]
        return cls.chosen(
            facts.shape, facts.widths, starts, facts.fusion.device, facts.longest_vector, facts.code, facts.operations
        )

    @classmethod
    def chosen(
        cls,
        shape: ReductionShape,
        widths: Sequence[int],
        starts: Sequence[AffineExpr],
        target: Device,
        limit: int,
        code: int = 1,
        operations: int = 1,
    ) -> Self:
        """Choose the numbers for threads that hold what they read of a row, if it is short enough for that.

        ``code`` and ``operations`` are those that take in an element, see `Reductions`.
        """
        plain = RowSchedule.chosen(shape, widths, starts, target, limit, in_order=False, code=code)
        if target.in_turn:
            return cls(plain.vector, 1, plain.groups, plain.unroll)
        minor, rows, held = shape.reduced[-1], shape.results, held_elements(widths, target)
        vector = alignment(starts) if plain.aligned else plain.vector
        vectors = -(-minor // vector)
        lanes = lanes_of_a_warp(rows, vectors, sum(widths) * vector // 8, target, is_stored=True)
        while 2 * lanes <= target.max_threads_per_block and (
            minor > lanes * held or (2 * lanes <= vectors and 2 * rows * lanes <= target.resident_threads)
        ):
            lanes *= 2
        vector, lanes = _written_out(minor, vector, lanes, operations, target)
        steps = -(-minor // (vector * lanes))
        unroll = steps if minor <= lanes * held else plain.unroll
        return cls(vector, lanes, groups_per_block(lanes, rows, target), unroll)

    @property
    def block_threads(self) -> int:
        """Those of all groups."""
        return self.lanes * self.groups

    def in_block(self, threads: int, facts: RowStages) -> Self:
        """More rows, or threads without one."""
        return replace(self, groups=threads // self.lanes)

    def registers(self, facts: RowStages) -> int:
        """The registers of one array's elements: a thread no longer needs those of the array before."""
        return registers_for(self.unroll * self.vector, [max(facts.widths, default=0)])

    def problems(self, facts: RowStages) -> Iterator[str]:
        """Threads fit a block."""
        yield from block_problems(self, self.block_threads, facts.fusion.device)

    def is_written_out(self, facts: RowStages) -> bool:
        """Whether the loops of the stages go away, so that `cse` finds what they compute of an element alike."""
        elements = -(-facts.shape.reduced[-1] // self.lanes)
        is_held = len(facts.shape.reduced) == 1 and elements <= self.unroll * self.vector
        return is_held and facts.operations * elements <= HELD_OPERATIONS

    def tiling(self, facts: Reductions) -> RowTiling:
        """Return which thread reads what."""
        numbers = RowSchedule(self.vector, self.lanes, 1, self.groups, self.unroll, 1, aligned=False)
        return RowTiling(facts.shape, numbers, None, in_order=False)


def _written_out(columns: int, vector: int, lanes: int, operations: int, target: Device) -> tuple[int, int]:
    """Return ``vector`` and ``lanes``, or shorter runs of more lanes with few enough elements to be written out.

    Only then what several stages compute of an element is computed once. Rows that are too long for it stay as given.
    """
    most, run = min(target.max_threads_per_block, power_of_two_below(columns)), vector
    fewest = operations * -(-columns // most)
    limit = UNROLLED_OPERATIONS if fewest <= UNROLLED_OPERATIONS else HELD_OPERATIONS
    if fewest > limit:
        return vector, lanes
    while operations * run * -(-columns // (run * lanes)) > limit:
        if 2 * lanes <= min(most, -(-columns // run)):
            lanes *= 2
        else:
            run //= 2
    return run, lanes


class RowsEmitter(RowEmitter):
    """Emits a fusion around reductions of rows that need each other's results."""

    NAME = "rows"

    def __init__(self, facts: RowStages, schedule: RowsSchedule):
        super().__init__(facts, facts.stages, schedule.tiling(facts))
        self.is_written_out = schedule.is_written_out(facts)


def _key(op: ir.Operation) -> Hashable | None:
    """Return what reductions of rows have in common whose elements are combined in any order."""
    shape = rows_key(op)
    return shape if shape is not None and is_commutative(op) else None


ROW_PROGRAMS = Family(
    heroes=Heroes("reductions of one shape, of rows in any order", _key),
    why=Reason("a row program: threads hold their rows from one reduction to the next"),
    merge=merge_rows,
    stores_beside=True,
    overwrites=True,
    emitter=RowsEmitter,
    facts=RowStages,
    schedule=RowsSchedule,
    results=requirements.without_packed(requirements.results_follow_or_beside),
    aliases=requirements.walked_elements,
)

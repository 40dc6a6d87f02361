"""The row reduction emitter: lanes along a row, which is contiguous, each reading several elements a step.

A short row takes a part of a warp, and lanes exchange what they have by shuffles; a longer one takes several warps,
which then exchange what they have through shared memory. Reduced dimensions further out are a loop around it, or more
threads. (Source: XLA's row reduction emitter, which has whole warps for each row unless the row is very short.)
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Self

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.registers import registers_for
from xgpu.device import Device
from xgpu.emit import requirements
from xgpu.emit.accumulators import exchange_warps
from xgpu.emit.builders import Values
from xgpu.emit.families.reductions.reduction import Reductions, nest, reduction_of
from xgpu.emit.families.reductions.staged import StagedEmitter
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, Variable, assign, values_of
from xgpu.emit.reduction_tiling import (
    MOST_ELEMENTS,
    WARP,
    Groups,
    alignment,
    best_lanes,
    distances,
    groups_per_block,
    power_of_two_above,
    power_of_two_below,
    steps_unrolled,
    vector_length,
    whole,
)
from xgpu.emit.schedule import BlockSchedule, Schedule, flag, power_of_two, whole_number
from xgpu.fusion.grouping.families import Heroes
from xgpu.indexing.affine import AffineExpr, delinearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.reasons import Reason
from xgpu.records import dataclass

BYTES_PER_THREAD = 256
"""The most bytes of a row that a thread reads if more threads can share it: blocks are then short, and end together."""
LONG_BYTES = 2048
"""The length of a row from which aligned vectors are worth the checks at its ends."""
EVEN = 0.85
"""The share of lanes with work at which a row counts as evenly divided."""
MOST_TOGETHER = 64
"""Steps that come together at most: code grows with them."""
_STORED_STEPS = 4
"""Accesses of a lane to a short row that is stored again: by more, neighbouring lanes write elements far apart."""
_CODE_OF_ROW = 32
"""Instructions that each thread of a row executes besides those of its elements: where the row is, and its result."""
_CODE_OF_READS = 4
"""Instructions by which a thread reads one vector of each array."""
_CODE_OF_EXCHANGE = 4
"""Instructions by which two lanes combine what they have."""
_WARPS_ISSUED = 4
"""Warps of which a multiprocessor issues an instruction in a cycle."""
LARGEST_SHARED_GROUP = 512
"""Threads that share a row for that reason; for want of rows as many as a block can have."""
_CODE_IN_TURN = 256
"""Instructions up to which two steps come together where a thread has a row to itself."""


@dataclass(frozen=True)
class RowSchedule(BlockSchedule):
    """The division of rows among threads: ``lanes`` along the row, ``outer_lanes`` over outer reduced dimensions.

    Each step reads ``vector`` elements; ``unroll`` and ``outer_unroll`` steps come together. A block has ``groups`` of
    threads, one for each row.
    """

    vector: int = power_of_two("Consecutive elements that a thread reads in a step.", most=MOST_ELEMENTS)
    lanes: int = power_of_two("Threads along a row.", most=1024)
    outer_lanes: int = power_of_two("Threads over the reduced dimensions further out.", most=1024)
    groups: int = power_of_two("Rows of a block.", most=1024)
    unroll: int = whole_number("Steps along a row that come together.", most=MOST_TOGETHER)
    outer_unroll: int = whole_number("Steps further out that come together.", most=MOST_TOGETHER)
    aligned: bool = flag("Whether vectors are counted from multiples in memory, not from where a row starts.")

    @classmethod
    def of(cls, facts: Reductions) -> Self:
        """See `chosen`."""
        return cls.chosen(
            facts.shape,
            facts.widths,
            facts.starts,
            facts.fusion.device,
            facts.longest_vector,
            not facts.is_commutative,
            facts.code,
        )

    @classmethod
    def chosen(
        cls,
        shape: ReductionShape,
        widths: Sequence[int],
        starts: Sequence[AffineExpr],
        target: Device,
        limit: int,
        in_order: bool,
        code: int = 1,
    ) -> Self:
        """Choose the numbers for arrays whose elements have ``widths`` bits.

        ``starts`` are where rows start in memory, given by the indices of the extents; ``limit`` bounds the vector.
        ``code`` are the instructions that take in an element.
        """
        minor, rows = shape.reduced[-1], shape.results
        if target.in_turn:
            run = min(MOST_ELEMENTS, power_of_two_below(minor))
            steps = 2 if 2 * run * code <= _CODE_IN_TURN else 1
            return cls(run, 1, 1, groups_per_block(1, rows, target), steps, 1, aligned=False)
        outer = shape.per_result // minor
        vector = min(vector_length(widths), limit, power_of_two_below(minor))
        aligned = False
        if alignment(starts) < vector:
            if len(starts) == 1 and not in_order and minor * max(widths, default=0) >= 8 * LONG_BYTES:
                aligned = True
            else:
                vector = alignment(starts)
        moved = sum(widths) * vector // 8
        step = max(1, moved)
        vectors = -(-(minor + (vector - 1 if aligned else 0)) // vector)
        lanes, outer_lanes = (1, 1) if in_order and outer > 1 else _lanes(rows, outer, vectors, moved, target)
        if not widths and outer == 1:
            lanes = _lanes_of_cached(rows, vectors, vector * code, lanes, target)
        steps, outer_steps = -(-vectors // lanes), -(-outer // outer_lanes)
        unroll = steps_unrolled(steps, step, vector * code)
        outer_unroll = steps_unrolled(outer_steps, step * steps, vector * code * steps) if unroll == steps else 1
        groups = groups_per_block(lanes * outer_lanes, rows, target)
        return cls(vector, lanes, outer_lanes, groups, unroll, outer_unroll, aligned)

    @property
    def block_threads(self) -> int:
        """Those of all groups."""
        return self.lanes * self.outer_lanes * self.groups

    def in_block(self, threads: int, facts: Reductions) -> Self:
        """More rows, or threads without one."""
        return replace(self, groups=threads // (self.lanes * self.outer_lanes))

    def registers(self, facts: Reductions) -> int:
        """Those of the accumulators, and of the elements that it reads in the steps that come together."""
        steps = self.unroll * self.outer_unroll
        return registers_for(steps * self.vector, facts.widths) + sum(facts.accumulator_bytes) // 4

    def problems(self, facts: Reductions) -> Iterator[str]:
        """Threads fit a block and have elements, and those that are to stay in their order do."""
        if self.outer_lanes > 1 and len(facts.shape.reduced) == 1:
            yield self.wrong("outer_lanes", "1, as no dimension further out is reduced")
        yield from block_problems(self, self.block_threads, facts.fusion.device)
        if self.aligned and (len(facts.starts) != 1 or not facts.is_commutative):
            yield self.wrong("aligned", "false, unless all arrays are alike and elements are combined in any order")
        if not facts.is_commutative and self.lanes * self.outer_lanes > 1 and len(facts.shape.reduced) > 1:
            yield self.wrong("lanes", "1, and outer_lanes = 1, as elements of several dimensions stay in order")

    def tiling(self, facts: Reductions) -> "RowTiling":
        """Return which thread reads what."""
        start = facts.starts[0] if self.aligned else None
        return RowTiling(facts.shape, self, start, not facts.is_commutative)


def block_problems(schedule: Schedule, threads: int, device: Device) -> Iterator[str]:
    """Yield that a block of a schedule has more ``threads`` than there can be, or a part of a warp."""
    if threads > device.max_threads_per_block or threads % WARP:
        most = device.max_threads_per_block
        yield schedule.wrong("groups", f"a block of whole warps of {WARP} and at most {most} threads, not {threads}")


@dataclass(frozen=True)
class RowTiling:
    """The assignment of the elements of rows to threads.

    Vectors are counted from where the row starts in memory, or, if ``start`` says where that is, from the last multiple
    of the vector before: then rows that are not aligned are read by aligned vectors all the same, but for those at
    their ends. If ``in_order``, a thread's elements are neighbours, so that combining what the threads have in their
    order is combining the elements in theirs.
    """

    shape: ReductionShape
    schedule: RowSchedule
    start: AffineExpr | None
    in_order: bool

    @property
    def threads(self) -> Groups:
        """A group of threads for each row."""
        return Groups(self.schedule.lanes * self.schedule.outer_lanes, self.schedule.groups, self.shape.results)

    @property
    def loop_ranks(self) -> tuple[int, ...]:
        """The number of range variables of ``reading`` of each loop: over the outer dimensions, along the row."""
        return (3,) if self._outer == 1 else (2, 3)

    @property
    def _outer(self) -> int:
        return self.shape.per_result // self.shape.reduced[-1]

    def reading(self) -> IndexingMap:
        """Return (thread, block)[steps, unrolled, element] -> indices of the operands.

        If there are reduced dimensions further out, two more range variables come first, [outer steps, unrolled].
        """
        threads, minor = self.threads, self.shape.reduced[-1]
        # A row that starts inside a vector may end inside one more.
        reach = minor + (self.schedule.vector - 1 if self.start else 0)
        chunks = -(-reach // (self.schedule.vector * self.schedule.lanes * self.schedule.unroll))
        sizes = [chunks, self.schedule.unroll, self.schedule.vector]
        around: list[AffineExpr] = []
        inside = [(threads.unit, whole(self.shape.results))]
        lane = threads.lane
        if self._outer > 1:
            sizes = [
                -(-self._outer // (self.schedule.outer_lanes * self.schedule.outer_unroll)),
                self.schedule.outer_unroll,
                *sizes,
            ]
            outer = (symbol(0) * self.schedule.outer_unroll + symbol(1)) * self.schedule.outer_lanes
            if self.schedule.outer_lanes > 1:
                outer, lane = outer + lane // self.schedule.lanes, lane % self.schedule.lanes
            around = list(delinearize(outer, self.shape.reduced[:-1]))
            inside.append((outer, whole(self._outer)))
        chunk, unrolled, element = (symbol(len(sizes) - 3 + i) for i in range(3))
        step = chunk * self.schedule.unroll + unrolled
        turn = lane * (chunks * self.schedule.unroll) + step if self.in_order else step * self.schedule.lanes + lane
        position = turn * self.schedule.vector + element
        if self.start is not None:
            start = self._start(delinearize(threads.unit, self.shape.kept), around)
            position = position + start // self.schedule.vector * self.schedule.vector - start
        indices = self.shape.indices(delinearize(threads.unit, self.shape.kept), [*around, position])
        return threads.map(sizes, indices, [*inside, (position, whole(minor))])

    def _start(self, kept: Sequence[AffineExpr], outer: Sequence[AffineExpr]) -> AffineExpr:
        """Return where a row starts in memory, given the indices of the kept and of the outer reduced extents."""
        assert self.start is not None
        indices = {False: iter(kept), True: iter(outer)}
        return self.start.substitute([next(indices[extent.reduced]) for extent in self.shape.extents[:-1]])

    def writing(self) -> IndexingMap:
        """Return (thread, block) -> indices of the heroes' results, on the first thread of each row."""
        unit = self.threads.unit
        indices = delinearize(unit, self.shape.result_shape)
        return self.threads.map((), indices, [(unit, whole(self.shape.results)), (self.threads.lane, whole(1))])


def _lanes(rows: int, outer: int, vectors: int, step: int, target: Device) -> tuple[int, int]:
    """Return the threads along a row of ``vectors``, of ``step`` bytes each, and over the ``outer`` dimensions."""
    lanes, outer_lanes = lanes_of_a_warp(rows, vectors, step, target), 1

    def is_useful() -> bool:
        group = lanes * outer_lanes
        read = -(-vectors // lanes) * -(-outer // outer_lanes) * step
        few = 2 * rows * group <= target.resident_threads and 2 * group <= target.max_threads_per_block
        return few or (read > BYTES_PER_THREAD and 2 * group <= min(LARGEST_SHARED_GROUP, target.max_threads_per_block))

    # Neighbours in memory first, as long as few lanes are without work, then rows of other indices further out.
    while vectors / (-(-vectors // (2 * lanes)) * 2 * lanes) >= EVEN and is_useful():
        lanes *= 2
    while 2 * outer_lanes <= outer and is_useful():
        outer_lanes *= 2
    while 2 * lanes <= power_of_two_above(vectors) and is_useful():
        lanes *= 2
    return lanes, outer_lanes


def _lanes_of_cached(rows: int, vectors: int, code: int, most: int, target: Device) -> int:
    """Return the threads along a row of what many rows read, as of distances between all pairs: at most ``most``.

    Caches deliver that, and instructions are what takes time: those of a row that each thread executes, whose numbers
    lanes then combine, count less the fewer lanes there are. ``code`` are those of one of ``vectors``.
    """

    def cycles(lanes: int) -> float:
        """The cycles of a multiprocessor for a row: lines that are read, of one array, or instructions."""
        steps, combining = -(-vectors // lanes), _CODE_OF_EXCHANGE * (lanes.bit_length() - 1)
        issued = steps * (code + _CODE_OF_READS) + combining + _CODE_OF_ROW
        return max(steps, issued * lanes / (WARP * _WARPS_ISSUED))

    candidates = [1 << i for i in range(min(most, WARP).bit_length())]
    enough = [lanes for lanes in candidates if rows * lanes >= target.resident_threads]
    return min(enough, key=cycles) if enough and most <= WARP else most


def lanes_of_a_warp(rows: int, vectors: int, step: int, target: Device, is_stored: bool = False) -> int:
    """Return the lanes that share a row of ``vectors`` of ``step`` bytes: fewer than there could be if rows are many.

    Threads that make a single access, or few short ones, have too little in flight, for all that there are. Rows that
    are stored again move as many bytes each way, in four accesses at most: in more, they would write single elements.
    """
    lanes, longest = best_lanes(vectors), target.max_vector_bytes

    def is_little() -> bool:
        steps = -(-vectors // lanes)
        is_short = steps * step < longest or (is_stored and steps < _STORED_STEPS and steps * step < 2 * longest)
        # What caches deliver is no bytes here, and is soon there.
        return step > 0 and is_short

    while lanes > 1 and is_little() and rows * lanes // 2 >= target.resident_threads:
        lanes //= 2
    is_single = lanes == vectors > 1 and longest <= step < 2 * longest
    return lanes // 2 if is_single and rows * lanes // 2 >= target.resident_threads else lanes


class RowEmitter(StagedEmitter[RowTiling]):
    """Emits a fusion around reductions of rows, whose loops are unrolled whatever that costs if ``is_written_out``."""

    is_written_out = False

    @property
    def tile_size(self) -> int:
        """See `ReductionEmitter.tile_size`: one for each warp."""
        return self.tiling.threads.threads // WARP

    def emit_reads(self, kernel: KernelBuilder, stage: Reductions, given: Values) -> Values:
        """See `StagedEmitter.emit_reads`."""
        accumulators = [Variable(value) for value in stage.emit_start(kernel.inputs)]
        sides = [kernel.outputs[i] for i in stage.side_outputs]
        changed = [*accumulators, *sides]
        with nest(
            self.tiling.reading(), self.tiling.loop_ranks, kernel.position, changed, self.is_written_out
        ) as indices:
            taken = stage.emit_step(kernel, indices, values_of(accumulators), given)
            stage.let_reorder(taken)
            assign(accumulators, taken)
        return stage.emit_signs(values_of(accumulators))

    def emit_exchange(self, kernel: KernelBuilder, stage: Reductions, own: Values) -> Values:
        """See `StagedEmitter.emit_exchange`: by shuffles, then between the warps of a row."""
        threads = self.tiling.threads
        own = stage.emit_shuffles(own, distances(1, min(threads.size, WARP)))
        tiles = kernel.shared_tiles(self.tiles_of(stage))
        if not tiles:
            return own
        values = list(exchange_warps(threads, kernel.position, own, tiles))
        return stage.emit_shuffles(values, distances(1, threads.warps))


class RowReductionEmitter(RowEmitter):
    """Emits a fusion around reductions whose minor-most dimension is reduced."""

    NAME = "reduce_row"

    def __init__(self, facts: Reductions, schedule: RowSchedule):
        super().__init__(facts, [facts], schedule.tiling(facts))


def rows_key(op: ir.Operation) -> Hashable | None:
    """Return what reductions of rows of one kernel have in common."""
    shape = reduction_of(op)
    return shape if shape is not None and shape.is_rows else None


ROW_REDUCTIONS = Family(
    heroes=Heroes("reductions of one shape, of rows", rows_key, (REDUCE,)),
    why=Reason("neighbours in memory are combined"),
    stores_beside=True,
    overwrites=True,
    emitter=RowReductionEmitter,
    facts=Reductions,
    schedule=RowSchedule,
    results=requirements.without_packed(requirements.results_follow_or_beside),
    aliases=requirements.walked_elements,
)

"""The loop emitter: each thread computes a few consecutive elements of results of one shape.

Consecutive threads take consecutive runs of elements, so accesses coalesce, and a run is as long as one vector access
allows, or shorter where loads take less time then (`xgpu.emit.runs`). A bounds check appears only where the number of
elements does not fill the last block. (Source of the launch numbers: XLA's loop emitter; the run length is wider here,
see ``elements_per_thread``.)
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.subgraphs import partition
from xgpu.costs.registers import registers_for
from xgpu.costs.values import has_branches, instructions
from xgpu.dtypes import MAX_ELEMENTS
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import Emits, KernelBuilder, KernelTile, emit_alone, loop, put
from xgpu.emit.reduction_tiling import power_of_two_below
from xgpu.emit.runs import GAIN, Access, alike_along, bytes_in_vain, run_by_branches, run_by_loads
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import BlockSchedule, Schedule, power_of_two, whole_number
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.grouping.families import Candidate, Heroes, Match
from xgpu.indexing.access import Shape, dims, identity_map, ranges, shape_of
from xgpu.indexing.affine import delinearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

ROWS = 2
"""Rows of which a thread takes the same columns, where it reads arrays once for them that are the same in each."""
MOST_ROWS = 16
"""Rows of which a thread takes the same columns at most."""
MOST_ELEMENTS = 64
"""Consecutive elements that a thread takes at most: a vector access of the narrowest."""

_PLAIN = Reason("results are computed at their own indices, and no transpose or concatenation asks for tiles")
_WHOLE = Reason("a loop over the concatenation is better than one over its operands")
_MOVED = "no tile serves {} transposes and concatenations that move elements differently"


def elements_per_thread(fusion: Fusion, elements: int) -> int:
    """Return how many consecutive elements a thread computes of all ``elements``: a power of two.

    As many as one vector store of the widest result holds, so that neighbouring threads' stores leave no gaps, but no
    more than two vector loads of the widest parameter of that size; 1 if there are fewer elements than the device's
    threads, which then all have work. An option may bound it further. In any case as many as fill the bytes of results
    whose elements share them: a byte is written by one thread.
    """
    threads = fusion.device.resident_threads
    least = elements_per_byte(fusion)
    if elements < threads:
        return least
    access = fusion.device.max_vector_bytes
    stored = max(_bytes_per_element(type_) for type_ in fusion.result_types)
    whole = [type_ for type_ in fusion.parameter_types if math.prod(ir.RankedTensorType(type_).shape) >= elements]
    loaded = max((_bytes_per_element(type_) for type_ in whole), default=stored)
    count = min(access // stored, 2 * access // loaded)
    return max(least, power_of_two_below(min(count, fusion.options.max_elements_per_thread or count)))


def elements_per_byte(fusion: Fusion) -> int:
    """Return how many elements of a result share a byte at most, 1 where none do: one thread writes all of them."""
    return max(8 // min(8, element_dtype(type_).storage_bits) for type_ in fusion.result_types)


def runs_over(shape: Shape, launch: LaunchDimensions, run: int) -> IndexingMap:
    """Return (thread, block)[element of a run] -> indices of an array: thread after thread takes ``run`` elements."""
    position = launch.thread * run + symbol(0)
    return IndexingMap(
        launch.ranges,
        (Interval(0, run - 1),),
        delinearize(position, shape),
        ((position, Interval(0, math.prod(shape) - 1)),),
    )


@dataclass(frozen=True)
class Rows:
    """Rows, one below the other, of which a thread takes the same columns: how many, and of how many elements each."""

    count: int
    size: int


def rows_with_columns(fusion: Fusion, shape: Shape, run: int) -> Rows:
    """Return two rows where a thread reads more of arrays that are the same in every row than of others, else one.

    It then reads such arrays, of scales for example, once for both rows.
    """
    elements, size = math.prod(shape), _last_of(shape)
    if run == 1 or len(shape) < 2 or size % run or elements // size % ROWS:
        return Rows(1, size)
    sizes = [math.prod(ir.RankedTensorType(type_).shape) for type_ in fusion.parameter_types]
    pairs = list(zip(fusion.parameter_types, sizes, strict=True))
    whole = [type_ for type_, size in pairs if size >= elements]
    columns = [t for t, each in pairs if each < elements and _last_of(ir.RankedTensorType(t).shape) == size]
    moved = sum(map(_bytes_per_element, (*whole, *fusion.result_types)))
    return Rows(ROWS if sum(map(_bytes_per_element, columns)) > 2 * moved else 1, size)


def _last_of(shape: Sequence[int]) -> int:
    """Return the elements along the last dimension."""
    return shape[-1] if len(shape) else 1


def rows_over(shape: Shape, launch: LaunchDimensions, run: int, rows: Rows) -> IndexingMap:
    """Return (thread, block)[row, element of a run] -> indices: thread after thread takes ``run`` columns of ``rows``.

    A row is all of the last dimensions, a multiple of ``run``, and there is a multiple of ``rows.count`` of them.
    """
    runs, position = rows.size // run, launch.thread
    first = dimension_of_rows(shape, rows.size)
    assert first is not None
    row = position // runs * rows.count + symbol(0)
    return IndexingMap(
        launch.ranges,
        (Interval(0, rows.count - 1), Interval(0, run - 1)),
        (*delinearize(row, shape[:first]), *delinearize(position % runs * run + symbol(1), shape[first:])),
        ((position, Interval(0, math.prod(shape) // (rows.count * run) - 1)),),
    )


def dimension_of_rows(shape: Shape, size: int) -> int | None:
    """Return the first dimension of rows of ``size`` elements; None if no last dimensions are so many together."""
    return next((each for each in range(len(shape) + 1) if math.prod(shape[each:]) == size), None)


def _bytes_per_element(type_: ir.Type) -> int:
    return max(1, element_dtype(type_).storage_bits // 8)


def block_field() -> Any:
    """Return the field of a block's threads, which share nothing."""
    return whole_number("Threads of a block.", most=1024)


def run_field(doc: str) -> Any:
    """Return the field of how many consecutive elements a thread takes."""
    return power_of_two(doc, most=MOST_ELEMENTS)


@dataclass(frozen=True)
class ElementwiseFusion:
    """A fusion of which each result is computed element by element, all at the same indices."""

    fusion: Fusion

    @cached_property
    def shape(self) -> Shape:
        """The shape of the results."""
        return shape_of(self.fusion.results[0])

    @property
    def elements(self) -> int:
        """The number of elements of a result."""
        return math.prod(self.shape)

    @cached_property
    def code(self) -> int:
        """About how many instructions compute an element of each result."""
        return sum(instructions(view.operation) for view in self.fusion.body.operations)

    @property
    def moved_bytes(self) -> float:
        """Bytes that memory moves for an element of each result."""
        return self.fusion.facts.moved_bytes / max(1, self.elements)

    @cached_property
    def accesses(self) -> list[Access]:
        """The accesses by which an element of each result is read and written."""
        facts, results = self.fusion.facts, self.fusion.results
        accesses: list[Access] = [(root, identity_map(self.shape)) for root in results]
        return accesses + [access for root in results for access in facts.arrays_read(root, with_heroes=True)]

    def run(self, longest: int) -> int:
        """Return how many consecutive elements a thread takes by what it loads and computes, ``longest`` or fewer."""
        device, operations = self.fusion.device, [view.operation for view in self.fusion.body.operations]
        alike = alike_along(self.fusion.results, operations, longest)
        each = [op for op in operations if op not in alike]
        # What is alike for the elements of a run is computed once for them.
        code = sum(map(instructions, each)) + sum(map(instructions, alike)) // longest
        if any(map(has_branches, each)):
            longest = run_by_branches(longest, self.moved_bytes, code, device)
        return run_by_loads(self.accesses, self.shape, longest, self.moved_bytes, code, device, True)

    def interleaved_rows(self) -> tuple[int, Rows] | None:
        """Return the rows that a thread takes together because it reads them interleaved, and its run in each.

        Where the numbers of a point lie together and each becomes a row, a warp that takes elements of one row reads
        sectors of which the others are for other rows. None if that saves less than a seventh of what memory moves.
        """
        own = identity_map(self.shape)
        if all(map_ == own for _, map_ in self.accesses):
            return None
        best, least = None, GAIN
        for dimension, count in enumerate(self.shape[:-1]):
            rows = Rows(count, math.prod(self.shape[dimension + 1 :]))
            each = self._run_of_rows(rows, elements_per_thread(self.fusion, self.elements)) if count > 1 else None
            if each is None:
                continue
            moved = [(value, _rows_last(self.shape, dimension).compose(map_)) for value, map_ in self.accesses]
            shape = (*(size for axis, size in enumerate(self.shape) if axis != dimension), count)
            apart, together = bytes_in_vain(moved, shape, WARP_SIZE * each)
            share = (self.moved_bytes + together) / (self.moved_bytes + apart)
            if share < least:
                best, least = (each, rows), share
        return best

    def _run_of_rows(self, rows: Rows, longest: int) -> int | None:
        """Return the longest run in each of ``rows`` for which a thread has registers; None if they are too many.

        Half of the device's threads hide the latency of memory, if each has several loads. There is a column for each
        of all the device's threads: what is smaller is in caches anyway.
        """
        device = self.fusion.device
        if rows.count > MOST_ROWS or self.elements // rows.count < device.resident_threads:
            return None
        most = 2 * device.registers_per_sm // device.max_threads_per_sm
        types = (*self.fusion.parameter_types, *self.fusion.result_types)
        widths = [element_dtype(type_).storage_bits for type_ in types]
        run = longest
        while rows.size % run or registers_for(run * rows.count, widths, self.code) > most:
            if run == elements_per_byte(self.fusion):
                return None
            run //= 2
        return run


def _rows_last(shape: Shape, dimension: int) -> IndexingMap:
    """Return the map from the indices of an array of which a dimension is moved to the end to those of ``shape``."""
    moved = [*shape[:dimension], *shape[dimension + 1 :], shape[dimension]]
    indices = dims(len(shape))
    places = (*indices[:dimension], indices[-1], *indices[dimension:-1])
    return IndexingMap(ranges(tuple(moved)), (), places)


@dataclass(frozen=True)
class LoopSchedule(BlockSchedule):
    """The division of a loop's elements among threads: each takes ``vector`` columns of ``rows`` rows."""

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of a thread, which are one access where they are aligned.")
    rows: int = whole_number("Rows, one below the other, of which a thread takes the same columns.", most=MOST_ROWS)
    row: int = whole_number("Elements of a row: those of the last dimensions.", most=MAX_ELEMENTS)

    @classmethod
    def of(cls, facts: ElementwiseFusion) -> Self:
        """The elements of an access, or as many as loads take least for; rows that share columns, or sectors."""
        vector = max(elements_per_byte(facts.fusion), facts.run(elements_per_thread(facts.fusion, facts.elements)))
        rows = rows_with_columns(facts.fusion, facts.shape, vector)
        if rows.count == 1:
            vector, rows = facts.interleaved_rows() or (vector, rows)
        return cls(facts.fusion.options.threads_per_block, vector, rows.count, rows.size)

    @classmethod
    def beside(cls, given: Mapping[str, int], facts: ElementwiseFusion) -> Self:
        """Rows are taken one by one if the given runs do not divide them."""
        chosen, vector = cls.of(facts), given.get("vector", 1)
        # Any value may be given; what is no number of elements is refused later.
        is_run = type(vector) is int and vector > 0
        return replace(chosen, rows=1) if is_run and chosen.row % vector else chosen

    @property
    def block_threads(self) -> int:
        """The number of threads, as given."""
        return self.threads

    def in_block(self, threads: int, facts: ElementwiseFusion) -> Self:
        """Blocks of any size will do."""
        return replace(self, threads=threads)

    def registers(self, facts: ElementwiseFusion) -> int:
        """The registers of all elements that a thread reads and writes, or of the values computed from them."""
        types = (*facts.fusion.parameter_types, *facts.fusion.result_types)
        widths = [element_dtype(type_).storage_bits for type_ in types]
        return registers_for(self.vector * self.rows, widths, facts.code)

    def problems(self, facts: ElementwiseFusion) -> Iterator[str]:
        """A thread writes whole bytes, and rows and columns that it takes together are there."""
        yield from whole_bytes(self, facts.fusion)
        if dimension_of_rows(facts.shape, self.row) is None:
            sizes = [math.prod(facts.shape[each:]) for each in range(len(facts.shape) + 1)]
            yield self.wrong("row", "one of " + ", ".join(map(str, dict.fromkeys(sizes))))
        elif self.rows > 1 and (self.row % self.vector or facts.elements // self.row % self.rows):
            each = f"1, unless they divide {facts.elements // self.row} rows, and vector {self.row} columns"
            yield self.wrong("rows", each)


def whole_bytes(schedule: Schedule, fusion: Fusion) -> Iterator[str]:
    """Yield that a thread would write a part of a byte, of results that are given ``vector`` elements at a time."""
    least = elements_per_byte(fusion)
    if schedule.values["vector"] < least:
        yield schedule.wrong("vector", f"{least} or more, as so many elements share a byte")


class LoopEmitter:
    """Emits a fusion of which each result is computed element by element."""

    NAME = "loop"

    def __init__(self, facts: ElementwiseFusion, schedule: LoopSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.shape = facts.shape
        self.elements = facts.elements

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover all elements once."""
        return LaunchDimensions.covering(
            self.elements, self.schedule.threads, self.schedule.vector * self.schedule.rows
        )

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element of the run] -> indices, or [row, element of the run]."""
        launch, run, rows = self.launch_dimensions(), self.schedule.vector, Rows(self.schedule.rows, self.schedule.row)
        map_ = rows_over(self.shape, launch, run, rows) if rows.count > 1 else runs_over(self.shape, launch, run)
        return map_.simplify()

    def emit(self) -> None:
        """Write the entry function, then the subgraph functions."""
        emit_alone(self)

    @cached_property
    def functions(self) -> list[Emits]:
        """The subgraph functions."""
        return [self._functions]

    @property
    def tiles(self) -> list[KernelTile]:
        """None: threads share nothing."""
        return []

    @cached_property
    def _functions(self) -> SubgraphFunctions:
        body = self.fusion.body
        return SubgraphFunctions(self.fusion.name, partition(body), list(body.arguments))

    def write(self, kernel: KernelBuilder) -> None:
        """Write what its blocks do."""
        with loop(self.thread_to_output(0), kernel.position, kernel.outputs) as each:
            inputs = kernel.present_inputs(self.fusion.aliases)
            put(self._functions.emit_call([*inputs, *each.result_arguments]), kernel.outputs, each.result_arguments)


def _match(candidate: Candidate) -> Match:
    """Take whatever no family before this one does, and say why none did."""
    moves = candidate.moves
    if moves.joined is not None:
        return Match((), _WHOLE)
    if moves.forms:
        return Match((), Reason(_MOVED, (moves.forms,)))
    return Match((), _PLAIN)


LOOPS = Family(
    heroes=Heroes(
        "reductions and contractions, each element by one thread",
        lambda op: shape_of(op.results[0]),
        (REDUCE, "stablehlo.reduce_window", "stablehlo.dot_general", "stablehlo.convolution"),
    ),
    why=Reason("each thread sums products for long, whichever elements its neighbours take"),
    match=_match,
    is_cooperative=False,
    emitter=LoopEmitter,
    facts=ElementwiseFusion,
    schedule=LoopSchedule,
    results=requirements.results_of_one_shape,
    aliases=requirements.own_elements,
)

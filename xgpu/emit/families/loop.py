"""The loop emitter: each thread computes a few consecutive elements of results of one shape.

Consecutive threads take consecutive runs of elements, so accesses coalesce, and a run is as long as one vector access
allows. A bounds check appears only where the number of elements does not fill the last block. (Source of the launch
numbers: XLA's loop emitter; the run length is wider here, see ``elements_per_thread``.)

Results of several shapes are several *parts*, loops side by side: each block works on one of them, which it finds by
its number, so that the threads of a warp never part ways.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.root_indices import loop_parts
from xgpu.analysis.subgraphs import partition
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, choose, entry_function, loop, put
from xgpu.emit.reduction_tiling import power_of_two_below
from xgpu.emit.scalar.op import compare_integers, constant, element_dtype
from xgpu.emit.schedule import Schedule, power_of_two, whole_number
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.grouping.families import Candidate, Heroes, Match
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.affine import delinearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.structure import backward_slice, dtype_of

ROWS = 2
"""Rows of which a thread takes the same columns, where it takes more than one."""
MOST_ELEMENTS = 64
"""Consecutive elements that a thread takes at most: a vector access of the narrowest."""

_PLAIN = Reason("results are computed at their own indices, and no transpose or concatenation asks for tiles")
_WHOLE = Reason("a loop over the concatenation is better than one over its operands")
_MOVED = "no tile serves {} transposes and concatenations that move elements differently"


def elements_per_thread(fusion: Fusion, elements: int, largest: int | None = None) -> int:
    """Return how many consecutive elements a thread computes of all ``elements``: a power of two.

    As many as one vector store of the widest result holds, so that neighbouring threads' stores leave no gaps, but no
    more than two vector loads of the widest parameter of that size, or of the ``largest`` result's, if that is given; 1
    if there are fewer elements than the device's threads, which then all have work. An option may bound it further. In
    any case as many as fill the bytes of results whose elements share them: a byte is written by one thread.
    """
    threads = fusion.device.resident_threads
    least = elements_per_byte(fusion)
    if elements < threads:
        return least
    access = fusion.device.max_vector_bytes
    stored = max(_bytes_per_element(type_) for type_ in fusion.result_types)
    least_loaded = elements if largest is None else largest
    whole = [type_ for type_ in fusion.parameter_types if math.prod(ir.RankedTensorType(type_).shape) >= least_loaded]
    loaded = max((_bytes_per_element(type_) for type_ in whole), default=stored)
    count = min(access // stored, 2 * access // loaded)
    return max(least, power_of_two_below(min(count, fusion.options.max_elements_per_thread or count)))


def elements_per_byte(fusion: Fusion) -> int:
    """Return how many elements of a result share a byte at most, 1 where none do: one thread writes all of them."""
    return max(8 // min(8, element_dtype(type_).storage_bits) for type_ in fusion.result_types)


def runs_over(shape: Shape, launch: LaunchDimensions, run: int, blocks: Interval | None = None) -> IndexingMap:
    """Return (thread, block)[element of a run] -> indices of an array: thread after thread takes ``run`` elements.

    Only the threads of ``blocks`` do, where these are given.
    """
    threads, all_blocks = launch.ranges
    blocks = blocks or all_blocks
    position = (launch.thread - blocks.lower * launch.block[0]) * run + symbol(0)
    return IndexingMap(
        (threads, blocks),
        (Interval(0, run - 1),),
        delinearize(position, shape),
        ((position, Interval(0, math.prod(shape) - 1)),),
    )


def rows_per_thread(fusion: Fusion, shape: Shape, run: int) -> int:
    """Return in how many rows, one below the other, a thread takes the same columns.

    Two where it reads more of arrays that are the same in every row, such as scales, than of all others: it then reads
    them once for both.
    """
    elements = math.prod(shape)
    if run == 1 or len(shape) < 2 or shape[-1] % run or elements // shape[-1] % ROWS:
        return 1
    sizes = [math.prod(ir.RankedTensorType(type_).shape) for type_ in fusion.parameter_types]
    pairs = list(zip(fusion.parameter_types, sizes, strict=True))
    whole = [type_ for type_, size in pairs if size >= elements]
    columns = [t for t, size in pairs if size < elements and _columns_of(t) == shape[-1]]
    moved = sum(map(_bytes_per_element, (*whole, *fusion.result_types)))
    return ROWS if sum(map(_bytes_per_element, columns)) > 2 * moved else 1


def _columns_of(type_: ir.Type) -> int:
    sizes = list(ir.RankedTensorType(type_).shape)
    return sizes[-1] if sizes else 1


def rows_over(shape: Shape, launch: LaunchDimensions, run: int, rows: int) -> IndexingMap:
    """Return (thread, block)[row, element of a run] -> indices: thread after thread takes ``run`` columns of ``rows``.

    Rows are of ``shape[-1]`` elements, a multiple of ``run``, and a multiple of ``rows`` in number.
    """
    runs, position = shape[-1] // run, launch.thread
    row = position // runs * rows + symbol(0)
    return IndexingMap(
        launch.ranges,
        (Interval(0, rows - 1), Interval(0, run - 1)),
        (*delinearize(row, shape[:-1]), position % runs * run + symbol(1)),
        ((position, Interval(0, math.prod(shape) // (rows * run) - 1)),),
    )


def _bytes_per_element(type_: ir.Type) -> int:
    return max(1, element_dtype(type_).storage_bits // 8)


def block_field() -> Any:
    """Return the field of a block's threads, which share nothing."""
    return whole_number("Threads of a block.", most=1024)


def run_field(doc: str) -> Any:
    """Return the field of how many consecutive elements a thread takes."""
    return power_of_two(doc, most=MOST_ELEMENTS)


@dataclass(frozen=True)
class Part:
    """Results that are functions of the same indices, those of an array of ``shape``, by their numbers.

    Elements of the widest result have ``bits``.
    """

    shape: Shape
    numbers: range
    bits: int

    @property
    def elements(self) -> int:
        """The number of elements of a result."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Loop:
    """A fusion of which each result is computed element by element."""

    fusion: Fusion

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts that blocks compute; mostly one, of all results."""
        parts = loop_parts(self.fusion.results)
        return tuple(
            Part(shape_of(part[0]), range(end - len(part), end), max(dtype_of(value).storage_bits for value in part))
            for part, end in zip(parts, accumulate(map(len, parts)), strict=True)
        )

    def run(self, part: Part, vector: int) -> int:
        """Return how many elements a thread takes of a part, if it takes ``vector`` of the widest: of as many bytes."""
        widest = max(each.bits for each in self.parts)
        return max(vector, min(MOST_ELEMENTS, vector * widest // part.bits))

    @property
    def elements(self) -> int:
        """The number of elements of a result of each part."""
        return sum(part.elements for part in self.parts)


@dataclass(frozen=True)
class LoopSchedule(Schedule):
    """How the threads of a loop share its elements: each takes ``vector`` columns of ``rows`` rows.

    Of parts whose elements are narrower than others' a thread takes as many bytes.
    """

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of a thread, which are one access where they are aligned.")
    rows: int = whole_number("Rows, one below the other, of which a thread takes the same columns.", most=16)

    @classmethod
    def of(cls, facts: Loop) -> Self:
        """The elements of an access, and two rows where columns are read again for each."""
        largest = max(facts.parts, key=lambda part: part.elements)
        vector = elements_per_thread(facts.fusion, facts.elements, largest.elements)
        rows = rows_per_thread(facts.fusion, largest.shape, vector) if len(facts.parts) == 1 else 1
        return cls(facts.fusion.options.threads_per_block, vector, rows)

    def problems(self, facts: Loop) -> Iterator[str]:
        """A thread writes whole bytes, and rows and columns that it takes together are there."""
        yield from whole_bytes(self, facts.fusion)
        if self.rows > 1 and len(facts.parts) > 1:
            yield self.wrong("rows", f"1, as there are {len(facts.parts)} parts")
        elif self.rows > 1:
            shape = facts.parts[0].shape
            columns = shape[-1] if shape else 1
            if columns % self.vector or facts.elements // columns % self.rows:
                each = f"1, unless they divide {facts.elements // columns} rows, and vector {columns} columns"
                yield self.wrong("rows", each)


def whole_bytes(schedule: Schedule, fusion: Fusion) -> Iterator[str]:
    """Yield that a thread would write a part of a byte, of results that are given ``vector`` elements at a time."""
    least = elements_per_byte(fusion)
    if schedule.values["vector"] < least:
        yield schedule.wrong("vector", f"{least} or more, as so many elements share a byte")


class LoopEmitter:
    """Emits a fusion of which each result is computed element by element."""

    NAME = "loop"

    def __init__(self, facts: Loop, schedule: LoopSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.parts = facts.parts
        self.elements = facts.elements
        self._runs = [facts.run(part, schedule.vector) for part in facts.parts]

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover each part once, one part after the other."""
        return LaunchDimensions.along_x(self._blocks[-1].upper + 1, self.schedule.threads)

    @cached_property
    def _blocks(self) -> list[Interval]:
        """The blocks of each part."""
        counts = [
            LaunchDimensions.covering(part.elements, self.schedule.threads, run * self.schedule.rows).grid[0]
            for part, run in zip(self.parts, self._runs, strict=True)
        ]
        return [Interval(end - count, end - 1) for count, end in zip(counts, accumulate(counts), strict=True)]

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element of the run] -> indices, or [row, element of the run]; blocks are a part's."""
        rows, launch = self.schedule.rows, self.launch_dimensions()
        number = next(number for number, part in enumerate(self.parts) if output in part.numbers)
        shape, run = self.parts[number].shape, self._runs[number]
        if rows > 1:
            return rows_over(shape, launch, run, rows).simplify()
        return runs_over(shape, launch, run, self._blocks[number]).simplify()

    def emit(self) -> None:
        """Write the entry function, then the subgraph functions."""
        functions = [self._functions(number) for number in range(len(self.parts))]
        with entry_function(self.fusion, self, functions) as kernel:
            self._emit_parts(kernel, functions, range(len(self.parts)))

    def _functions(self, number: int) -> SubgraphFunctions:
        """Return the functions of a part, of the parameters that it reads."""
        body, parameters = self.fusion.body, list(self.fusion.body.arguments)
        if len(self.parts) == 1:
            return SubgraphFunctions(self.fusion.name, partition(body), parameters)
        roots = [self.fusion.results[result] for result in self.parts[number].numbers]
        read = {*roots, *(value for op in backward_slice(roots, lambda _: False) for value in op.operands)}
        parameters = [value for value in parameters if value in read]
        return SubgraphFunctions(f"{self.fusion.name}__part_{number}", partition(body, roots), parameters)

    def _emit_parts(self, kernel: KernelBuilder, functions: Sequence[SubgraphFunctions], parts: range) -> None:
        """Write some parts, of which a block finds its own in as few steps as there are bits in their number."""
        if len(parts) == 1:
            self._emit_part(kernel, functions[parts[0]], self.parts[parts[0]])
            return
        block, middle = kernel.position[1], parts[len(parts) // 2]
        is_before = compare_integers("ult", block, constant(block.type, self._blocks[middle].lower))
        numbers = [number for part in parts for number in self.parts[part].numbers]
        choose(
            is_before,
            [kernel.outputs[number] for number in numbers],
            lambda: self._emit_parts(kernel, functions, range(parts[0], middle)),
            lambda: self._emit_parts(kernel, functions, range(middle, parts[-1] + 1)),
        )

    def _emit_part(self, kernel: KernelBuilder, functions: SubgraphFunctions, part: Part) -> None:
        inputs: dict[ir.Value, ir.Value] = dict(zip(self.fusion.body.arguments, kernel.inputs, strict=True))
        outputs = [kernel.outputs[number] for number in part.numbers]
        with loop(self.thread_to_output(part.numbers[0]), kernel.position, outputs) as each:
            for number, output in zip(part.numbers, outputs, strict=True):
                if self.fusion.aliases and self.fusion.aliases[number] >= 0:
                    # A thread reads no element of what is overwritten but those that it writes, and these before.
                    inputs[self.fusion.body.arguments[self.fusion.aliases[number]]] = output.value
            read = [inputs[value] for value in functions.parameters[0]]
            put(functions.emit_call([*read, *each.result_arguments]), outputs, each.result_arguments)


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
    facts=Loop,
    schedule=LoopSchedule,
    results=requirements.any_results,
    aliases=requirements.own_elements,
)

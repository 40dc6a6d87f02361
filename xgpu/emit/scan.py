"""What the emitters of scans share: the loop over tiles, what a thread reads of each, and what it stores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import batched
from typing import Any

from xgpu import ir
from xgpu.dialects.messages import words_of
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.kernel_builder import (
    KernelBuilder,
    Rotation,
    Tensor,
    Variable,
    assign,
    entry_function,
    loop,
    values_of,
)
from xgpu.emit.reduction import nest
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.emit.scan_tiling import of_one_tile
from xgpu.emit.scans import Part, Scans
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval


BUSY_THREADS = 1024
"""Threads of a multiprocessor: while the blocks of some wait for others, or for memory, those of others work."""


def at_least(expr: AffineExpr, least: int, position: Values, dims: Sequence[Interval]) -> ir.Value:
    """Return whether an expression of ``position``, which has these ranges, is ``least`` or more."""
    (value,) = apply_map(IndexingMap(tuple(dims), (), (expr,)), position)
    return compare_integers("uge", value, constant(ir.IndexType.get(), least))


class ScanEmitter(ABC):
    """Base of the emitters of scans: the loop over tiles, what a thread reads of each, and what it stores."""

    NAME: str

    def __init__(self, facts: Scans, schedule: Any):
        self.fusion = facts.fusion
        self.scans = facts
        self.schedule = schedule
        self.tiling = schedule.tiling(facts)

    def launch_dimensions(self) -> LaunchDimensions:
        """A group of threads for each scan, or for each stretch of columns."""
        return self.tiling.threads.launch

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, step, element of a vector] -> indices."""
        return self.scans.epilogues.output_map(output, self.tiling.covering())

    def emit(self) -> None:
        """Write the entry function, then the functions that it calls."""
        scratch = resident = 0
        if self.tiling.parts > 1:
            scratch = self.tiling.units * words_of(self.scans.accumulator_types)
            resident = max(1, BUSY_THREADS // self.tiling.threads.threads)
        with entry_function(self.fusion, self, [self.scans], scratch, resident) as kernel:
            self._emit_tiles(kernel, kernel.position)

    @abstractmethod
    def emit_shared(self) -> list[Tensor]:
        """Return the tiles in shared memory through which threads exchange what they have; none if they need none."""

    @abstractmethod
    def emit_scan(
        self,
        kernel: KernelBuilder,
        position: Values,
        elements: list[list[Values]],
        carry: Part | None,
        shared: Sequence[Tensor],
    ) -> tuple[list[list[Sequence[ir.Value]]], Values]:
        """Scan a thread's elements, by step and then by element of a vector, in the order of memory.

        ``carry`` is what all tiles and chunks before are combined to, for each column. Returns the scans, and the carry
        for the next tile if there are several.
        """

    @property
    @abstractmethod
    def columns(self) -> int:
        """Scans that a thread takes part in."""

    def _emit_tiles(self, kernel: KernelBuilder, position: Values) -> None:
        """Emit the loop over the tiles."""
        shared, tiles, start = self.emit_shared(), self.tiling.tiles, self._emit_start(kernel, position)
        if tiles == 1:
            self._emit_tile(kernel, [*position, constant(ir.IndexType.get(), 0)], start, shared)
            return
        every = IndexingMap(self.tiling.places().dims, (Interval(0, tiles - 1),), ())
        first = self.scans.emit_nothing() * self.columns if start is None else start.values
        carried = [Variable(value) for value in first]
        with loop(every, position, [*kernel.outputs, *carried, *shared]) as each:
            (tile,) = each.symbol_arguments
            there = compare_integers("uge", tile, constant(ir.IndexType.get(), 1))
            if start is not None and start.there is not None:
                there = ir.arith.ori(there, start.there)
            carry = Part(tuple(values_of(carried)), there)
            assign(carried, self._emit_tile(kernel, [*position, tile], carry, shared))

    def _emit_start(self, kernel: KernelBuilder, position: Values) -> Part | None:
        """Return what a thread's chunk goes on from, for each column; the first chunk goes on from nothing."""
        if not self.tiling.shape.goes_on:
            return None
        places, elements = self.tiling.start_places(), self.tiling.start_elements()
        numbers = _clamped(apply_map(places, position), places, elements)
        starts = Rotation(self.scans.emit_nothing() * self.columns)
        with loop(elements, numbers, starts.variables) as each:
            starts.turn(self.scans.emit_starts(kernel.inputs, each.result_arguments))
        is_later = at_least(self.tiling.chunk, 1, position, places.dims)
        return Part(tuple(starts.values), is_later)

    def _emit_tile(
        self, kernel: KernelBuilder, position: Values, carry: Part | None, shared: Sequence[Tensor]
    ) -> Values:
        """Scan a tile and store what the epilogues make of it; return the carry for the next one."""
        elements = self._emit_reads(kernel, position)
        scanned, carried = self.emit_scan(kernel, position, elements, carry, shared)
        values = Rotation(value for step in scanned for element in step for value in element)
        covering = of_one_tile(self.tiling.places().compose(self.tiling.elements()))
        with nest(covering, (1, 1), position, [*kernel.outputs, *values.variables]) as indices:
            self.scans.epilogues.emit_stores(kernel, indices, values.take(len(self.scans.results)))
        return carried

    def _emit_reads(self, kernel: KernelBuilder, position: Values) -> list[list[Values]]:
        """Return a thread's elements, by step and then by element of a vector.

        What is no element of the arrays is read from inside them instead: nothing that is stored comes after it.
        """
        places, of_vector = of_one_tile(self.tiling.places()), self.tiling.elements()
        anywhere = IndexingMap(places.dims, places.symbols, places.results)
        read = Rotation(self.scans.emit_nothing() * self.schedule.vector * self.schedule.steps)
        with loop(anywhere, position, read.variables) as outer:
            numbers = _clamped(outer.result_arguments, places, of_vector)
            with loop(of_vector, numbers, read.variables) as inner:
                read.turn(self.scans.emit_elements(kernel.inputs, inner.result_arguments))
        elements = map(list, batched(read.values, len(self.scans.results)))
        return [list(step) for step in batched(elements, self.schedule.vector)]


def _clamped(numbers: Values, places: IndexingMap, elements: IndexingMap) -> Values:
    """Return the results of ``places``, or the largest that ``elements`` takes where they are larger."""
    found = []
    for number, expr, allowed in zip(numbers, places.results, elements.dims, strict=True):
        is_inside = expr.interval(places.dims, places.symbols).upper <= allowed.upper
        largest = None if is_inside else constant(ir.IndexType.get(), allowed.upper)
        found.append(number if largest is None else ir.arith.minui(number, largest))
    return found

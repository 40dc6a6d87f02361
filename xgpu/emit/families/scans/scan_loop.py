"""Shared parts of the emitters of scans: the loop over tiles, the reads of each by a thread, and its stores."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import batched
from typing import Any

from xgpu import ir
from xgpu.dialects.messages import words_of
from xgpu.dialects.threads import ShuffleOp
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.families.reductions.reduction import nest
from xgpu.emit.families.scans.scan_functions import Fold, Scans
from xgpu.emit.families.scans.scan_tiling import of_one_tile
from xgpu.emit.kernel_builder import (
    Board,
    KernelBuilder,
    Rotation,
    Tensor,
    Variable,
    assign,
    entry_function,
    filling,
    loop,
    put,
    shared_tiles,
    values_of,
)
from xgpu.emit.reduction_tiling import WARP, distances
from xgpu.emit.scalar.op import compare_integers, constant
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
            scratch = self.tiling.units * self.tiling.columns * words_of(self.scans.accumulator_types)
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
        carry: Fold | None,
        shared: Sequence[Tensor],
    ) -> tuple[list[list[Sequence[ir.Value]]], Values]:
        """Scan a thread's elements, by step and then by element of a vector, in the order of memory.

        ``carry`` is what all tiles before are combined to, for each column. Returns the scans, and the carry for the
        next tile if there are several.
        """

    def emit_blocks(self, board: Board, position: Values, own: Sequence[ir.Value]) -> list[Fold]:
        """Exchange what the parts of a scan come to, which blocks have, ``own`` being a block's, column by column.

        Returns what all blocks before are combined to, for each column of a thread. Which messages a block takes, and
        in which order it combines them, does not depend on when they come; each waits for few, and few for it.
        """
        messages, types = self.tiling.messages, self.scans.accumulator_types
        words, columns = words_of(types), messages.warp_columns
        with loop(messages.own(words), position, [board]) as each:
            board.publish(each.result_arguments[0], own)
        taken = [Variable(value) for value in self.scans.emit_nothing() * columns]
        with loop(messages.taken(words), position, taken) as each:
            assign(taken, board.wait_for(each.result_arguments[0], types * columns))
        found: Values = []
        for values in batched(values_of(taken), len(types)):
            scanned = self.emit_exchange(position, messages.threads.thread % WARP, values, WARP)
            found += self.emit_shuffle(position, messages.last_lane, scanned)
        tiles, put_values = shared_tiles(messages.columns, types), Rotation(found)
        with filling(messages.before_writing(), position, tiles, put_values.variables) as each:
            put(put_values.take(len(types)), tiles, each.result_arguments)
        befores = []
        is_later = self.at_least(position, messages.part, 1)
        for column in range(messages.thread_columns):
            address = apply_map(messages.before_reading(), [*position, constant(ir.IndexType.get(), column)])
            befores.append(Fold(tuple(tile.extract(address) for tile in tiles), is_later))
        with loop(messages.of_anchor(words), position, [board]) as each:
            pairs = zip(befores, batched(own, len(types)), strict=True)
            joined = [self.scans.emit_join(before, Fold(values)) for before, values in pairs]
            board.publish(each.result_arguments[0], [value for part in joined if part for value in part.values])
        return befores

    def emit_exchange(
        self, position: Values, lane: AffineExpr, own: tuple[ir.Value, ...], width: int, apart: int = 1
    ) -> tuple[ir.Value, ...]:
        """Return the scan of what lanes have that are so far ``apart``, ``lane`` being a lane's number of ``width``."""
        for distance in distances(1, width):
            other = self.emit_shuffle(position, self.tiling.threads.thread + (WARP - distance * apart), own)
            joined = self.scans.emit_join(Fold(tuple(other), self.at_least(position, lane, distance)), Fold(own))
            assert joined is not None
            own = joined.values
        return own

    def emit_shuffle(self, position: Values, lane: AffineExpr, values: Sequence[ir.Value]) -> Values:
        """Return what the lane of this number has."""
        dims = self.tiling.threads.map((), [], []).dims
        (number,) = apply_map(IndexingMap(dims, (), (lane,)), position[:2])
        return ShuffleOp.build(number, list(values))

    def at_least(self, position: Values, number: AffineExpr, least: int) -> ir.Value:
        """Return whether a number that follows from thread and block is ``least`` or more."""
        return at_least(number, least, position[:2], self.tiling.threads.map((), [], []).dims)

    def _emit_tiles(self, kernel: KernelBuilder, position: Values) -> None:
        """Emit the loop over the tiles."""
        shared, tiles = self.emit_shared(), self.tiling.tiles
        if tiles == 1:
            self._emit_tile(kernel, [*position, constant(ir.IndexType.get(), 0)], None, shared)
            return
        every = IndexingMap(self.tiling.places().dims, (Interval(0, tiles - 1),), ())
        first = self.scans.emit_nothing() * self.tiling.thread_columns
        carried = [Variable(value) for value in first]
        with loop(every, position, [*kernel.outputs, *carried, *shared]) as each:
            (tile,) = each.symbol_arguments
            there = compare_integers("uge", tile, constant(ir.IndexType.get(), 1))
            carry = Fold(tuple(values_of(carried)), there)
            assign(carried, self._emit_tile(kernel, [*position, tile], carry, shared))

    def _emit_tile(
        self, kernel: KernelBuilder, position: Values, carry: Fold | None, shared: Sequence[Tensor]
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

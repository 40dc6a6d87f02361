"""The column scan emitter: lanes over neighbouring columns, each taking a few of them, and over stretches of rows.

A thread scans what it holds of its columns. Where several threads share a column, because there are too few columns for
all threads, they put what they have into shared memory, and each combines what the threads before it have, in order.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.threads import AllocateSharedOp, SyncThreadsOp
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.emit.builders import Values, apply_map, extract, insert
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.emit.scan import ScanEmitter, at_least
from xgpu.emit.scan_tiling import ColumnScanTiling
from xgpu.emit.scans import Part
from xgpu.indexing.indexing_map import IndexingMap


class ColumnScanEmitter(ScanEmitter):
    """Emits a fusion around scans along another than the minor-most dimension."""

    NAME = "scan_column"
    tiling: ColumnScanTiling

    @property
    def columns(self) -> int:
        """A thread takes part in the scans of a vector of columns."""
        return self.schedule.vector

    def emit_shared(self) -> Values:
        """A number for each column of each thread, if threads share columns."""
        if self.schedule.row_lanes == 1:
            return []
        return [AllocateSharedOp.build([self.tiling.tile_size], type_) for type_ in self.scans.accumulator_types]

    def emit_scan(
        self, position: Values, elements: list[list[Values]], carry: Part | None, shared: Values
    ) -> tuple[list[list[Sequence[ir.Value]]], Values, Values]:
        """Scan a thread's rows, and combine them with what row lanes before and tiles before have."""
        scans, count = self.scans, len(self.scans.results)
        scanned = [[tuple(element) for element in elements[0]]]
        for step in elements[1:]:
            scanned.append([scans.emit_combine(*pair) for pair in zip(scanned[-1], step, strict=True)])
        carries: list[Part | None] = [None] * self.columns
        if carry is not None:
            carries = [Part(carry.values[i : i + count], carry.there) for i in range(0, len(carry.values), count)]
        starts, ends = carries, [scans.emit_join(*pair) for pair in zip(carries, map(Part, scanned[-1]), strict=True)]
        if shared:
            starts, ends, shared = self._emit_row_lanes(position, carries, scanned[-1], shared)
        joined = [
            [scans.emit_join(start, Part(value)) for start, value in zip(starts, step, strict=True)] for step in scanned
        ]
        values: list[list[Sequence[ir.Value]]] = [[part.values for part in step if part is not None] for step in joined]
        after = [value for part in ends if part is not None for value in part.values]
        return values, after if self.tiling.tiles > 1 else [], shared

    def _emit_row_lanes(
        self, position: Values, carries: Sequence[Part | None], own: Sequence[Sequence[ir.Value]], tiles: Values
    ) -> tuple[list[Part | None], list[Part | None], Values]:
        """Exchange what row lanes have of each column.

        Returns for each column what tiles and row lanes before have together, what all have, and the tiles.
        """
        tiles = SyncThreadsOp.build(self._emit_filled(position[:2], own, tiles))
        count, threads = len(self.scans.results), self.tiling.threads
        nothing = self.scans.emit_nothing()
        starts: Values = [value for part in carries for value in (nothing if part is None else part.values)]
        reading = self.tiling.tile_reading()
        outer = IndexingMap(reading.dims, reading.symbols[:1], ())
        loop = LoopOp.build(outer, position[:2], [*starts, *starts])
        with ir.InsertionPoint(loop.body):
            (number,) = loop.symbol_arguments
            given, before = loop.carried_arguments[: len(starts)], loop.carried_arguments[len(starts) :]
            (row_lane,) = apply_map(threads.map((), [threads.lane // self.schedule.lanes], []), position[:2])
            is_own = compare_integers("eq", number, row_lane)
            before = [ir.arith.select(is_own, *pair) for pair in zip(given, before, strict=True)]
            there = compare_integers("uge", number, _index(1))
            if carries[0] is not None and carries[0].there is not None:
                there = ir.arith.ori(there, carries[0].there)
            combined: Values = []
            for column in range(self.columns):
                address = apply_map(reading, [*position[:2], number, _index(column)])
                element = Part(tuple(extract(tile, address) for tile in tiles))
                joined = self.scans.emit_join(Part(tuple(given[column * count : (column + 1) * count]), there), element)
                combined += joined.values if joined is not None else ()
            YieldOp.build([*combined, *before])
        results: Values = list(loop.operation.results)
        if self.tiling.tiles > 1:
            # Before the next tile's are put there.
            tiles = SyncThreadsOp.build(tiles)
        is_later = at_least(threads.lane // self.schedule.lanes, 1, position[:2], reading.dims)
        if carries[0] is not None and carries[0].there is not None:
            is_later = ir.arith.ori(is_later, carries[0].there)
        ends, befores = _by_column(results[: len(starts)], count), _by_column(results[len(starts) :], count)
        return [Part(values, is_later) for values in befores], [Part(values) for values in ends], tiles

    def _emit_filled(self, position: Values, own: Sequence[Sequence[ir.Value]], tiles: Values) -> Values:
        """Put what a thread has of each column into the tiles."""
        count = len(tiles)
        loop = LoopOp.build(self.tiling.tile_writing(), position, [*tiles, *(value for each in own for value in each)])
        with ir.InsertionPoint(loop.body):
            tensors, values = loop.carried_arguments[:count], loop.carried_arguments[count:]
            pairs = zip(values[:count], tensors, strict=True)
            filled = [insert(value, tile, loop.result_arguments) for value, tile in pairs]
            YieldOp.build([*filled, *values[count:], *values[:count]])
        results: Values = list(loop.operation.results)
        return results[:count]


def _by_column(values: Values, count: int) -> list[tuple[ir.Value, ...]]:
    return [tuple(values[i : i + count]) for i in range(0, len(values), count)]


def _index(number: int) -> ir.Value:
    return constant(ir.IndexType.get(), number)

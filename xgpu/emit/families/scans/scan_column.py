"""The column scan emitter: lanes over neighbouring columns, each taking a few of them, and over stretches of rows.

A thread scans what it holds of its columns. Where several threads share a column, because there are too few columns for
all threads, those of a warp exchange what they have by shuffles, and warps through shared memory: each combines what
the warps before it have, in order.
"""

from collections.abc import Sequence
from itertools import batched

from xgpu import ir
from xgpu.dialects.attributes import UNROLL
from xgpu.emit import requirements
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.families.scans.scan_functions import Fold, Scans
from xgpu.emit.families.scans.scan_heroes import scans_along, walk_of_scan
from xgpu.emit.families.scans.scan_loop import ScanEmitter
from xgpu.emit.families.scans.scan_tiling import ColumnScanSchedule, ColumnScanTiling
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
    shared_tiles,
    sync_threads,
    values_of,
)
from xgpu.emit.reduction_tiling import WARP
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.reasons import Reason


class ColumnScanEmitter(ScanEmitter):
    """Emits a fusion around scans along another than the minor-most dimension."""

    NAME = "scan_column"
    tiling: ColumnScanTiling

    def emit_shared(self) -> list[Tensor]:
        """A number for each column of each warp, if several warps share columns."""
        if self.tiling.column_warps == 1:
            return []
        return shared_tiles(self.tiling.tile_size, self.scans.accumulator_types)

    def emit_scan(
        self,
        kernel: KernelBuilder,
        position: Values,
        elements: list[list[Values]],
        carry: Fold | None,
        shared: Sequence[Tensor],
    ) -> tuple[list[list[Sequence[ir.Value]]], Values]:
        """Scan a thread's rows, and combine them with what row lanes, tiles and blocks before have."""
        scans, count = self.scans, len(self.scans.results)
        scanned = [[tuple(element) for element in elements[0]]]
        for step in elements[1:]:
            scanned.append([scans.emit_combine(*pair) for pair in zip(scanned[-1], step, strict=True)])
        carries: list[Fold | None] = [None] * self.tiling.thread_columns
        if carry is not None:
            carries = [Fold(values, carry.there) for values in batched(carry.values, count)]
        lanes = [self._emit_row_lanes(position, values) for values in scanned[-1]]
        starts, ends = (
            carries,
            [scans.emit_join(*pair) for pair in zip(carries, (Fold(own) for _, own in lanes), strict=True)],
        )
        if shared:
            starts, ends = self._emit_warps(position, carries, [own for _, own in lanes], shared)
        if kernel.board is not None:
            own = [value for part in ends if part is not None for value in part.values]
            befores = self.emit_blocks(kernel.board, position[:2], own)
            starts = [scans.emit_join(*pair) for pair in zip(befores, starts, strict=True)]
        starts = [scans.emit_join(start, before) for start, (before, _) in zip(starts, lanes, strict=True)]
        joined = [
            [scans.emit_join(start, Fold(value)) for start, value in zip(starts, step, strict=True)] for step in scanned
        ]
        found: list[list[Sequence[ir.Value]]] = [[part.values for part in step if part is not None] for step in joined]
        after = [value for part in ends if part is not None for value in part.values]
        return found, after if self.tiling.tiles > 1 else []

    def _emit_row_lanes(self, position: Values, own: tuple[ir.Value, ...]) -> tuple[Fold | None, tuple[ir.Value, ...]]:
        """Return what the row lanes of a warp before have of a column together, and what all of them have."""
        tiling, lanes = self.tiling, self.schedule.lanes
        if tiling.warp_row_lanes == 1:
            return None, own
        scanned = self.emit_exchange(position, tiling.warp_row_lane, own, tiling.warp_row_lanes, lanes)
        before = tuple(self.emit_shuffle(position, tiling.threads.thread + (WARP - lanes), scanned))
        last = tuple(self.emit_shuffle(position, tiling.last_row_lane, scanned))
        return Fold(before, self.at_least(position, tiling.warp_row_lane, 1)), last

    def _emit_warps(
        self,
        position: Values,
        carries: Sequence[Fold | None],
        own: Sequence[Sequence[ir.Value]],
        tiles: Sequence[Tensor],
    ) -> tuple[list[Fold | None], list[Fold | None]]:
        """Exchange what warps have of each column.

        Returns for each column what tiles and warps before have together, and what all have.
        """
        position = position[:2]
        filled = Rotation(value for each in own for value in each)
        with filling(self.tiling.tile_writing(), position, tiles, filled.variables) as writing:
            put(filled.take(len(tiles)), tiles, writing.result_arguments)
        count, warp = len(tiles), self.tiling.column_warp
        nothing = self.scans.emit_nothing()
        starts: Values = [value for part in carries for value in (nothing if part is None else part.values)]
        reading, goes_on = self.tiling.tile_reading(), carries[0].there if carries[0] is not None else None
        ends, befores = ([Variable(value) for value in starts] for _ in range(2))
        with loop(IndexingMap(reading.dims, reading.symbols[:1], ()), position, [*ends, *befores]) as each:
            if self.tiling.parts > 1:
                # Unrolled, it would take twice the registers, of which blocks that share scans have few.
                each.operation.attributes[UNROLL] = ir.StringAttr.get("none")
            (number,) = each.symbol_arguments
            given = values_of(ends)
            (own_number,) = apply_map(self.tiling.threads.map((), [warp], []), position)
            is_own = compare_integers("eq", number, own_number)
            pairs = zip(given, values_of(befores), strict=True)
            assign(befores, [ir.arith.select(is_own, *pair) for pair in pairs])
            there = compare_integers("uge", number, _index(1))
            if goes_on is not None:
                there = ir.arith.ori(there, goes_on)
            combined: Values = []
            for column, before in enumerate(batched(given, count)):
                address = apply_map(reading, [*position, number, _index(column)])
                joined = self.scans.emit_join(Fold(before, there), Fold(tuple(tile.extract(address) for tile in tiles)))
                combined += joined.values if joined is not None else ()
            assign(ends, combined)
        if self.tiling.tiles > 1:
            # Before the next tile's are put there.
            sync_threads(tiles)
        is_later = self.at_least(position, warp, 1)
        if goes_on is not None:
            is_later = ir.arith.ori(is_later, goes_on)
        return (
            [Fold(values, is_later) for values in batched(values_of(befores), count)],
            [Fold(values) for values in batched(values_of(ends), count)],
        )


def _index(number: int) -> ir.Value:
    return constant(ir.IndexType.get(), number)


COLUMN_SCANS = Family(
    heroes=scans_along("columns", is_rows=False),
    why=Reason("elements are combined that are no neighbours in memory"),
    emitter=ColumnScanEmitter,
    facts=Scans,
    schedule=ColumnScanSchedule,
    results=requirements.without_packed(requirements.results_follow),
    walk=walk_of_scan,
)

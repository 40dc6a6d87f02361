"""The row scan emitter: lanes along a row, which is contiguous, each taking some vectors of it.

A thread scans its vector, the lanes of a warp exchange what their vectors are combined to by shuffles, step after step,
and the warps of a row what their stretches are through shared memory. (Source: the scan within a block of Blelloch,
"Prefix sums and their applications", with the shuffles of Kogge and Stone's adder in place of the tree.)
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.emit import requirements
from xgpu.emit.accumulators import exchange_warps
from xgpu.emit.builders import Values
from xgpu.emit.families.scans.scan_functions import Fold, Scans
from xgpu.emit.families.scans.scan_heroes import scans_along, walk_of_scan
from xgpu.emit.families.scans.scan_loop import ScanEmitter
from xgpu.emit.families.scans.scan_tiling import RowScanSchedule, RowScanTiling
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, Tensor, shared_tiles, sync_threads
from xgpu.emit.reduction_tiling import WARP
from xgpu.reasons import Reason


class RowScanEmitter(ScanEmitter):
    """Emits a fusion around scans along the minor-most dimension."""

    NAME = "scan_row"
    tiling: RowScanTiling

    def emit_shared(self) -> list[Tensor]:
        """A number for each warp of the block, if a row takes several."""
        if self.tiling.threads.warps == 1:
            return []
        return shared_tiles(self.tiling.threads.threads // WARP, self.scans.accumulator_types)

    def emit_scan(
        self,
        kernel: KernelBuilder,
        position: Values,
        elements: list[list[Values]],
        carry: Fold | None,
        shared: Sequence[Tensor],
    ) -> tuple[list[list[Sequence[ir.Value]]], Values]:
        """Scan vectors, then what they are combined to over lanes, steps and warps, and put all together."""
        scans, is_reverse = self.scans, self.tiling.shape.reverse
        vectors = [self._emit_vector(step[::-1] if is_reverse else step) for step in elements]
        lanes = [self._emit_lanes(position, vector[-1]) for vector in vectors]
        before: list[Fold | None] = [None]
        for _, total in lanes:
            before.append(scans.emit_join(before[-1], Fold(total)))
        whole_ = before.pop()
        assert whole_ is not None
        if shared:
            warps, whole_values = self._emit_warps(position, whole_.values, shared)
            before = [scans.emit_join(warps, part) for part in before]
            whole_ = Fold(whole_values)
        if kernel.board is not None:
            (carry,) = self.emit_blocks(kernel.board, position[:2], whole_.values)
        scanned = []
        for vector, (lane, _), part in zip(vectors, lanes, before, strict=True):
            start = scans.emit_join(scans.emit_join(carry, part), lane)
            joined = [scans.emit_join(start, Fold(value)) for value in vector]
            step: list[Sequence[ir.Value]] = [part.values for part in joined if part is not None]
            scanned.append(step[::-1] if is_reverse else step)
        if self.tiling.tiles == 1:
            return scanned, []
        after = scans.emit_join(carry, whole_)
        assert after is not None
        return scanned, list(after.values)

    def _emit_vector(self, elements: Sequence[Values]) -> list[tuple[ir.Value, ...]]:
        """Scan the elements of a vector."""
        scanned = [tuple(elements[0])]
        for element in elements[1:]:
            scanned.append(self.scans.emit_combine(scanned[-1], element))
        return scanned

    def _emit_lanes(self, position: Values, own: tuple[ir.Value, ...]) -> tuple[Fold | None, tuple[ir.Value, ...]]:
        """Return what the lanes before have together, and what all lanes of the row in this warp have."""
        threads, width = self.tiling.threads, self.tiling.width
        if width == 1:
            return None, own
        lane = threads.thread % width
        scanned = self.emit_exchange(position, lane, own, width)
        before = tuple(self.emit_shuffle(position, threads.thread + (WARP - 1), scanned))
        last = threads.thread // width * width + (width - 1)
        return Fold(before, self.at_least(position, lane, 1)), tuple(self.emit_shuffle(position, last, scanned))

    def _emit_warps(
        self, position: Values, own: tuple[ir.Value, ...], tiles: Sequence[Tensor]
    ) -> tuple[Fold, tuple[ir.Value, ...]]:
        """Exchange what warps have; return what those before have together, and what all have.

        Each lane takes what one of the warps of its row has, in turn.
        """
        threads = self.tiling.threads
        taken = exchange_warps(threads, position[:2], own, tiles)
        if self.tiling.tiles > 1:
            # Before the next tile's are put there.
            sync_threads(tiles)
        scanned = self.emit_exchange(position, threads.thread % threads.warps, taken, threads.warps)
        warp = threads.lane // WARP
        before = self.emit_shuffle(position, warp + (threads.warps - 1) % WARP, scanned)
        last = self.emit_shuffle(position, threads.thread * 0 + (threads.warps - 1), scanned)
        return Fold(tuple(before), self.at_least(position, warp, 1)), tuple(last)


ROW_SCANS = Family(
    heroes=scans_along("rows", is_rows=True),
    why=Reason("neighbours in memory are combined"),
    emitter=RowScanEmitter,
    facts=Scans,
    schedule=RowScanSchedule,
    results=requirements.without_packed(requirements.results_follow),
    walk=walk_of_scan,
)

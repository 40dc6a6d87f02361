"""The row scan emitter: lanes along a row, which is contiguous, each taking some vectors of it.

A thread scans its vector, the lanes of a warp exchange what their vectors are combined to by shuffles, step after step,
and the warps of a row what their stretches are through shared memory. (Source: the scan within a block of Blelloch,
"Prefix sums and their applications", with the shuffles of Kogge and Stone's adder in place of the tree.)
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.messages import words_of
from xgpu.dialects.threads import ShuffleOp
from xgpu.emit.accumulators import exchange_warps
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.kernel_builder import (
    Board,
    KernelBuilder,
    Tensor,
    Variable,
    assign,
    loop,
    put,
    shared_tiles,
    sync_threads,
    values_of,
)
from xgpu.emit.reduction_tiling import WARP, distances, whole
from xgpu.emit.scalar.op import constant as emit_constant
from xgpu.emit.scan import ScanEmitter, at_least
from xgpu.emit.scan_tiling import RowScanTiling
from xgpu.emit.scans import Part
from xgpu.indexing.affine import AffineExpr, constant
from xgpu.indexing.indexing_map import IndexingMap


class RowScanEmitter(ScanEmitter):
    """Emits a fusion around scans along the minor-most dimension."""

    NAME = "scan_row"
    tiling: RowScanTiling

    @property
    def columns(self) -> int:
        """A thread takes part in the scan of one row."""
        return 1

    def emit_shared(self) -> list[Tensor]:
        """A number for each warp of the block, if a row takes several, and one for the blocks before, if there are."""
        if self.tiling.threads.warps == 1:
            return []
        count = self.tiling.threads.threads // WARP + (self.tiling.parts > 1)
        return shared_tiles(count, self.scans.accumulator_types)

    def emit_scan(
        self,
        kernel: KernelBuilder,
        position: Values,
        elements: list[list[Values]],
        carry: Part | None,
        shared: Sequence[Tensor],
    ) -> tuple[list[list[Sequence[ir.Value]]], Values]:
        """Scan vectors, then what they are combined to over lanes, steps and warps, and put all together."""
        scans, is_reverse = self.scans, self.tiling.shape.reverse
        vectors = [self._emit_vector(step[::-1] if is_reverse else step) for step in elements]
        lanes = [self._emit_lanes(position, vector[-1]) for vector in vectors]
        before: list[Part | None] = [None]
        for _, total in lanes:
            before.append(scans.emit_join(before[-1], Part(total)))
        whole_ = before.pop()
        assert whole_ is not None
        if shared:
            warps, whole_values = self._emit_warps(position, whole_.values, shared)
            before = [scans.emit_join(warps, part) for part in before]
            whole_ = Part(whole_values)
        if kernel.board is not None:
            carry = scans.emit_join(carry, self._emit_blocks(kernel.board, position[:2], whole_.values, shared))
        scanned = []
        for vector, (lane, _), part in zip(vectors, lanes, before, strict=True):
            start = scans.emit_join(scans.emit_join(carry, part), lane)
            joined = [scans.emit_join(start, Part(value)) for value in vector]
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

    def _emit_lanes(self, position: Values, own: tuple[ir.Value, ...]) -> tuple[Part | None, tuple[ir.Value, ...]]:
        """Return what the lanes before have together, and what all lanes of the row in this warp have."""
        threads, width = self.tiling.threads, self.tiling.width
        if width == 1:
            return None, own
        lane = threads.thread % width
        scanned = self._emit_exchange(position, lane, own, width)
        before = tuple(self._emit_shuffle(position, threads.thread + (WARP - 1), scanned))
        last = threads.thread // width * width + (width - 1)
        return Part(before, self._at_least(position, lane, 1)), tuple(self._emit_shuffle(position, last, scanned))

    def _emit_exchange(
        self, position: Values, lane: AffineExpr, own: tuple[ir.Value, ...], width: int
    ) -> tuple[ir.Value, ...]:
        """Return the scan of what lanes have, ``lane`` being a lane's number among ``width``."""
        for distance in distances(1, width):
            other = self._emit_shuffle(position, self.tiling.threads.thread + (WARP - distance), own)
            joined = self.scans.emit_join(Part(tuple(other), self._at_least(position, lane, distance)), Part(own))
            assert joined is not None
            own = joined.values
        return own

    def _emit_warps(
        self, position: Values, own: tuple[ir.Value, ...], tiles: Sequence[Tensor]
    ) -> tuple[Part, tuple[ir.Value, ...]]:
        """Exchange what warps have; return what those before have together, and what all have.

        Each lane takes what one of the warps of its row has, in turn.
        """
        threads = self.tiling.threads
        taken = exchange_warps(threads, position[:2], own, tiles)
        if self.tiling.tiles > 1:
            # Before the next tile's are put there.
            sync_threads(tiles)
        scanned = self._emit_exchange(position, threads.thread % threads.warps, taken, threads.warps)
        warp = threads.lane // WARP
        before = self._emit_shuffle(position, warp + (threads.warps - 1) % WARP, scanned)
        last = self._emit_shuffle(position, threads.thread * 0 + (threads.warps - 1), scanned)
        return Part(tuple(before), self._at_least(position, warp, 1)), tuple(last)

    def _emit_blocks(
        self, board: Board, position: Values, own: tuple[ir.Value, ...], tiles: Sequence[Tensor]
    ) -> Part:
        """Exchange what blocks have; return what those of the row before have together.

        Each takes what those since the last anchor have, one lane each, and the anchor what all up to it have. So what
        is combined with what is the same in each run, and few wait for others that wait.
        """
        tiling, types = self.tiling, self.scans.accumulator_types
        words = words_of(types)
        with loop(tiling.own_message(words), position, [board]) as each:
            board.publish(each.result_arguments[0], own)
        taken = [Variable(value) for value in self.scans.emit_nothing()]
        with loop(tiling.messages(words), position, taken) as each:
            assign(taken, board.wait_for(each.result_arguments[0], types))
        scanned = self._emit_exchange(position, tiling.threads.thread % WARP, tuple(values_of(taken)), WARP)
        before = Part(
            tuple(self._emit_shuffle(position, tiling.last_lane, scanned)), self._at_least(position, tiling.part, 1)
        )
        with loop(tiling.anchor_message(words), position, [board]) as each:
            joined = self.scans.emit_join(before, Part(own))
            assert joined is not None
            board.publish(each.result_arguments[0], joined.values)
        if not tiles:
            return before
        last = tiling.threads.threads // WARP
        # The first warp has it: what others took from lanes of theirs means nothing.
        with loop(tiling.threads.map((), [constant(last)], [(tiling.threads.thread, whole(1))]), position, tiles) as each:
            put(before.values, tiles, each.result_arguments)
        sync_threads(tiles)
        address = [emit_constant(ir.IndexType.get(), last)]
        return Part(tuple(tile.extract(address) for tile in tiles), before.there)

    def _emit_shuffle(self, position: Values, lane: AffineExpr, values: Sequence[ir.Value]) -> Values:
        dims = self.tiling.threads.map((), [], []).dims
        (number,) = apply_map(IndexingMap(dims, (), (lane,)), position[:2])
        return ShuffleOp.build(number, list(values))

    def _at_least(self, position: Values, number: AffineExpr, least: int) -> ir.Value:
        return at_least(number, least, position[:2], self.tiling.threads.map((), [], []).dims)

"""A warp group's computation on its 64 rows: its steps, and what follows the last."""

from collections.abc import Mapping
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.visible_keys import FAR_ABOVE
from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.chains.operands import ChainOperands
from xgpu.passes.tiles.chains.order import ChainOrder, ChainTile
from xgpu.passes.tiles.chains.overlapping import OverlappingSteps
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.chains.spreads import Position, ScalarForm, Spread, SpreadCode
from xgpu.passes.tiles.chains.steps import ChainSteps
from xgpu.passes.tiles.chains.storing import Staged, StagingRoom, Storing
from xgpu.passes.tiles.chains.turns import Turns
from xgpu.passes.tiles.ring import i32
from xgpu.passes.tiles.structured import Values, counted
from xgpu.records import dataclass
from xgpu.structure import element_of

_FIRST_BARRIER = 1
"""The number of the named barrier of the first warp group; that of all threads has number 0. Those of turns follow."""


@dataclass(frozen=True, eq=False)
class ChainRows:
    """The code of a warp group. ``staged`` are results that it hands on to be copied, in a ``room``."""

    program: ChainProgram
    order: ChainOrder
    operands: ChainOperands
    staged: Mapping[InsertTileOp, Staged]
    room: StagingRoom

    def write(self) -> None:
        """Write it at the insertion point."""
        storing = Storing(self.order.place, self.room, _FIRST_BARRIER)
        storing.begin(list(self.staged.values()))
        position = self._position()
        self._turns.begin()
        with self.order.tiles([i32(0), i32(0), i32(0)], multiplies=True) as tile:
            turn, slot, phase = tile.carried
            for each in self.operands.fixed.values():
                each.ring.wait_full(i32(0), turn)
            slot, phase = self._write_block(tile, position, storing, [slot, phase])
            tile.carried = [ir.arith.xori(turn, i32(1)), slot, phase]
        storing.end()

    def _write_block(
        self, tile: ChainTile, position: Position, storing: Storing, slot: Values
    ) -> tuple[ir.Value, ir.Value]:
        """Write the operations of a block's tile; return the rings' slot and phase after it."""
        program = self.program
        code = SpreadCode(tile.at, position, {}, ScalarForm())
        steps = self._steps(position, storing)
        number, phase = slot
        stores = {each.operation: each for each in program.stores}
        shared = {each.operation for each in program.fixed}
        for each in (view.operation for view in list(program.blocks.body.operations)[:-1]):
            if each in shared:
                continue
            if each == program.steps.operation:
                number, phase = steps.write(code, tile, number, phase)
                self._write_zeros(tile, position, storing)
                if not program.reuses:
                    self._release_fixed()
                self._note_hidden(code, tile, position)
            elif (store := stores.get(each)) is not None:
                if store in self.staged:
                    storing.matrix(self.staged[store], tile.at, code[store.tile])
                else:
                    write = storing.elements if len(shape_of(store.tile)) > 1 else storing.rows
                    write(store, self.program.output_of(store), tile.at, position, code[store.tile])
            elif not code.is_lazy(each):
                code.write(each)
        if program.reuses:
            storing.end()
            self._release_fixed()
        return number, phase

    def _release_fixed(self) -> None:
        """Say that this warp needs the tiles no more that all steps share."""
        for fed in self.operands.fixed.values():
            fed.release(self.order.place, i32(0))

    def _steps(self, position: Position, storing: Storing) -> ChainSteps:
        kind = OverlappingSteps if self.program.overlaps else ChainSteps
        return kind(self.program, self.order.place, self.operands, position, self._turns, storing)

    def _write_zeros(self, tile: ChainTile, position: Position, storing: Storing) -> None:
        """Write zeros where steps that are left out would write."""
        if self.order.visible is None or not self.program.step_stores:
            return
        bounds = ((create_index(0), tile.first), (tile.end, create_index(self.program.steps.count)))
        for first, end in bounds:
            with counted(first, end, create_index(1), []) as steps:
                for store in self.program.step_stores.values():
                    zero = Spread(False, False, {(0, 0): constant(0, element_of(store.tile))})
                    storing.elements(store, self.program.output_of(store), [*tile.at, steps.counter], position, zero)

    def _note_hidden(self, code: SpreadCode, tile: ChainTile, position: Position) -> None:
        """Note rows of the array whose largest logit is so low that keys which the mask hides have weights, too."""
        hidden = self.order.hidden
        if hidden is None:
            return
        largest = code[self.program.largest]
        map_ = self.program.stores[0].map
        # The first result may be one of rows.
        column = [create_index(0)] * (len(map_.symbols) - 1)
        limit = constant(hidden + FAR_ABOVE, ir.F32Type.get())
        is_low = _boolean(False)
        for half in range(2):
            here = InDomainOp.build(map_, [*tile.at, position.rows[half], *column])
            below = ir.arith.cmpf(ir.arith.CmpFPredicate.OLE, largest.at(half, 0), limit)
            is_low = ir.arith.ori(is_low, ir.arith.andi(below, here))
        self.order.note(tile, is_low)

    @property
    def _turns(self) -> Turns:
        groups = self.program.schedule.groups
        return Turns(groups if self.program.has_turns else 1, _FIRST_BARRIER + groups, self.order.place)

    def _position(self) -> Position:
        """Compute where a thread's elements are in tiles, and its lane."""
        own = self._own
        at = [
            ApplyIndexingOp.build(IndexingMap(own.dims, (), part).simplify(), [self.order.place.thread])
            for part in (
                (own.results[0].substitute(None, [symbol(0) * 0 + half, symbol(1) * 0, symbol(2) * 0]),)
                for half in range(2)
            )
        ]
        column = IndexingMap(own.dims, (), (own.results[1].substitute(None, [symbol(0) * 0] * 3),)).simplify()
        (first,) = ApplyIndexingOp.build(column, [self.order.place.thread])
        return Position((at[0][0], at[1][0]), first, self.order.place.lane)

    @cached_property
    def _own(self) -> IndexingMap:
        """(thread)[half, eighth, neighbour] -> row and column in the block's tile, and the number in the vector."""
        holders = self.program.schedule.holders(self.program.products[0].columns)
        map_ = holders.accumulators
        row, *others = map_.results
        return IndexingMap(map_.dims, map_.symbols, (row + holders.first_row(0), *others))


def _boolean(value: bool) -> ir.Value:
    return constant(int(value), integer_type(1))

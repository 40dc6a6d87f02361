"""What a warp group does with its 64 rows: its steps, and what follows the last."""

from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.dialects.block import copies, waits
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.affine import symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.llvm.memory import store
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.chains.operands import Operands
from xgpu.passes.tiles.chains.order import ChainOrder, ChainTile
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.chains.spreads import Position, Spread, SpreadCode
from xgpu.passes.tiles.chains.steps import ChainSteps
from xgpu.passes.tiles.chains.turns import Turns
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import from_elements
from xgpu.target_machine import WARPGROUP_SIZE

_CHUNK = 16
_FAR_ABOVE = 128.0
"""By how much a logit is above another that has no weight beside it: e^-104 is no number of f32."""
_FIRST_BARRIER = 1
"""The number of the named barrier of the first warp group; that of all threads has number 0. Those of turns follow."""


@dataclass(frozen=True, eq=False)
class ChainRows:
    """The code of a warp group. ``result`` are the boxes of what it writes, their tensor map, and room for them."""

    program: ChainProgram
    order: ChainOrder
    operands: Operands
    result: tuple[Boxes, ir.Value, ir.Value]

    def write(self) -> None:
        """Write it at the insertion point."""
        with only_if(self._is_leader):
            copies.AcquireTensorMapOp.create([self.result[1]])
        position = self._position()
        self._turns.begin()
        with self.order.tiles([i32(0), i32(0), i32(0)], multiplies=True) as tile:
            turn, slot, phase = tile.carried
            self.operands.queries.ring.wait_full(i32(0), turn)
            slot, phase = self._write_block(tile, position, slot, phase)
            tile.carried = [ir.arith.xori(turn, i32(1)), slot, phase]
        with only_if(self._is_leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})

    def _write_block(
        self, tile: ChainTile, position: Position, slot: ir.Value, phase: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Write the operations of a block's tile; return the ring's slot and phase after it."""
        program, place = self.program, self.order.place
        code = SpreadCode(tile.at, position, {}, program.schedule.branched)
        steps = ChainSteps(program, place, self.operands, position, self._turns)
        for each in (view.operation for view in list(program.blocks.body.operations)[:-1]):
            if each == program.queries.operation:
                continue
            if each == program.steps.operation:
                slot, phase = steps.write(code, tile, slot, phase)
                self.operands.queries.release(place, i32(0))
                self._note_hidden(code, tile, position)
            elif each == program.store.operation:
                self._store(tile.at, code[program.store.tile])
            elif not code.is_lazy(each):
                code.write(each)
        return slot, phase

    def _note_hidden(self, code: SpreadCode, tile: ChainTile, position: Position) -> None:
        """Note rows of the array whose largest logit is so low that keys which the mask hides have weights, too."""
        hidden = self.order.hidden
        if hidden is None:
            return
        largest = code[self.program.largest]
        map_ = self.program.store.map
        limit = constant(hidden + _FAR_ABOVE, ir.F32Type.get())
        is_low = _boolean(False)
        for half in range(2):
            here = InDomainOp.build(map_, [*tile.at, position.rows[half], create_index(0)])
            below = ir.arith.cmpf(ir.arith.CmpFPredicate.OLE, largest.at(half, 0), limit)
            is_low = ir.arith.ori(is_low, ir.arith.andi(below, here))
        self.order.note(tile, is_low)

    @property
    def _turns(self) -> Turns:
        schedule = self.program.schedule
        groups = schedule.groups
        return Turns(groups if schedule.turns else 1, _FIRST_BARRIER + groups, self.order.place)

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
        holders = self.program.schedule.holders(self.program.columns)
        map_ = holders.accumulators
        row, *others = map_.results
        return IndexingMap(map_.dims, map_.symbols, (row + holders.first_row(0), *others))

    @property
    def _is_leader(self) -> ir.Value:
        place = self.order.place
        first = ir.arith.muli(place.group, create_index(WARPGROUP_SIZE))
        return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, place.thread, first)

    def _store(self, at: Values, spread: Spread) -> None:
        """Write the group's rows to shared memory, each chunk where the swizzle has it, and have them copied."""
        boxes, map_, memory = self.result
        place, panels = self.order.place, boxes.view.panels
        room = offset(memory, ir.arith.muli(as_i32(place.group), i32(panels * WARPGROUP_ROWS * SWIZZLE)))
        with only_if(self._is_leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})
        self._meet()
        self._write_room(room, spread)
        waits.FenceOp.create(attributes={"kind": "async"})
        self._meet()
        with only_if(self._is_leader):
            row = ir.arith.muli(place.group, create_index(WARPGROUP_ROWS))
            for panel in range(panels):
                where = boxes.coordinates(at, create_index(panel), row)
                source = offset(room, panel * WARPGROUP_ROWS * SWIZZLE)
                copies.TensorStoreOp.create([map_, source, *where])
            copies.BulkCommitOp.create()

    def _write_room(self, room: ir.Value, spread: Spread) -> None:
        boxes = self.result[0]
        size, columns = boxes.element_bytes, self.program.columns
        place, pair = self.order.place, 2 * boxes.element_bytes
        chunk_columns, panel_columns = _CHUNK // size, SWIZZLE // size
        thread = as_i32(place.thread)
        lane, turn = as_i32(place.lane), ir.arith.andi(ir.arith.shrui(as_i32(place.lane), i32(2)), i32(7))
        in_group = ir.arith.andi(thread, i32(WARPGROUP_SIZE - 1))
        first = ir.arith.addi(ir.arith.muli(ir.arith.shrui(in_group, i32(5)), i32(16)), turn)
        begin = ir.arith.addi(ir.arith.muli(first, i32(SWIZZLE)), ir.arith.muli(ir.arith.andi(lane, i32(3)), i32(pair)))
        for chunk in range(columns // chunk_columns):
            panel, inside = divmod(chunk * chunk_columns, panel_columns)
            turned = ir.arith.muli(ir.arith.xori(i32(inside // chunk_columns), turn), i32(_CHUNK))
            address = offset(room, ir.arith.addi(begin, turned))
            for half in range(2):
                elements = from_elements([spread.at(half, chunk * 2 + each) for each in range(2)])
                store(elements, offset(address, panel * WARPGROUP_ROWS * SWIZZLE + half * 8 * SWIZZLE), pair)

    def _meet(self) -> None:
        """Wait for the other threads of the warp group."""
        number = ir.arith.addi(as_i32(self.order.place.group), i32(_FIRST_BARRIER))
        waits.NamedBarrierOp.create([number], attributes={"threads": WARPGROUP_SIZE, "wait": True})


def _boolean(value: bool) -> ir.Value:
    return constant(int(value), integer_type(1))

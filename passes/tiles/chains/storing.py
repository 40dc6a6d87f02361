"""Stores of results by warp groups: matrices of 16 bits are copied from shared memory; lanes write others.

Neighbours in a row that four lanes hold are a sector of f32. Of rows a lane writes each.
"""

from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.tensor_views import flat_map, has_pairs
from xgpu.passes.llvm.memory import element_pointer, store
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.chains.spreads import ROW_LANES, Position, Spread, column_of
from xgpu.passes.tiles.copying import CopySource
from xgpu.passes.tiles.multiplying import rows_step
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import from_elements
from xgpu.records import dataclass
from xgpu.structure import dtype_of
from xgpu.target_machine import WARPGROUP_SIZE

_CHUNK = 16
_HANDED_ON_BITS = 16


@dataclass(frozen=True)
class Staged:
    """The boxes of a result, and their tensor map."""

    boxes: Boxes
    map: ir.Value


def is_handed_on(op: InsertTileOp) -> bool:
    """Whether a tile that is written is copied from shared memory: it has columns, of which sectors hold many."""
    return len(shape_of(op.tile)) == 2 and dtype_of(op.tile).bits == _HANDED_ON_BITS


@dataclass(frozen=True)
class StagingRoom:
    """Shared memory for results: from a warp group's to the next's, and from a panel of its rows to the next one."""

    memory: ir.Value
    group_bytes: int
    panel_bytes: int

    @classmethod
    def of_left(cls, source: CopySource) -> "StagingRoom":
        """Return the room that a warp group's rows of a left operand leave."""
        boxes = source.boxes
        panel = boxes.panel_bytes if boxes.view.inner == 1 else WARPGROUP_ROWS * SWIZZLE
        return cls(source.memory, rows_step(boxes), panel)


@dataclass(frozen=True)
class Storing:
    """The code of a warp group; ``barrier`` is that of the first one."""

    place: ThreadNumbers
    room: StagingRoom
    barrier: int

    def begin(self, staged: Sequence[Staged]) -> None:
        """Write what comes before the first result."""
        with only_if(self._is_leader):
            for each in staged:
                copies.AcquireTensorMapOp.create([each.map])

    def end(self) -> None:
        """Write what comes after the last one, or before something else has its room."""
        with only_if(self._is_leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})

    def rows(self, op: InsertTileOp, array: ir.Value, at: Values, position: Position, spread: Spread) -> None:
        """Write a thread's elements of a tile of rows; the lanes that hold a row all have it."""
        flat, first = flat_map(op.map, shape_of(array)), ArrayPointerOp.build(array)
        lane = ir.arith.remui(self.place.lane, create_index(ROW_LANES))
        for half in range(2):
            where = [*at, position.rows[half]]
            with only_if(ir.arith.andi(equal(lane, 0), InDomainOp.build(op.map, where))):
                _write_elements(first, flat, where, [spread.at(half, 0)])

    def elements(self, op: InsertTileOp, array: ir.Value, at: Values, position: Position, spread: Spread) -> None:
        """Write a thread's elements of a tile, neighbours together where memory has them so."""
        flat, first, (_, columns) = flat_map(op.map, shape_of(array)), ArrayPointerOp.build(array), shape_of(op.tile)
        constraints = op.map.constraints
        of_columns = replace(flat, constraints=tuple(each for each in constraints if 1 in each[0].variables()[1]))
        of_rows = replace(flat, constraints=tuple(each for each in constraints if 1 not in each[0].variables()[1]))
        together = 2 if has_pairs(flat, 1) else 1
        is_row = [InDomainOp.build(of_rows, [*at, row, position.column]) for row in position.rows]
        for number in range(0, columns // ROW_LANES, together):
            column = ir.arith.addi(position.column, create_index(column_of(number)))
            is_column = InDomainOp.build(of_columns, [*at, position.rows[0], column])
            for half in range(2):
                # Before the branch, as others may need them, too.
                values = [spread.at(half, number + i) for i in range(together)]
                with only_if(ir.arith.andi(is_row[half], is_column)):
                    _write_elements(first, flat, [*at, position.rows[half], column], values)

    def matrix(self, staged: Staged, at: Values, spread: Spread) -> None:
        """Write the group's rows to shared memory, each chunk where the swizzle has it, and have them copied."""
        boxes, place = staged.boxes, self.place
        room = offset(self.room.memory, ir.arith.muli(as_i32(place.group), i32(self.room.group_bytes)))
        with only_if(self._is_leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})
        self._meet()
        self._write_room(boxes, room, spread)
        waits.FenceOp.create(attributes={"kind": "async"})
        self._meet()
        with only_if(self._is_leader):
            row = ir.arith.muli(place.group, create_index(WARPGROUP_ROWS))
            for panel in range(boxes.view.panels):
                where = boxes.coordinates(at, create_index(panel), row)
                source = offset(room, panel * self.room.panel_bytes)
                copies.TensorStoreOp.create([staged.map, source, *where])
            copies.BulkCommitOp.create()

    def _write_room(self, boxes: Boxes, room: ir.Value, spread: Spread) -> None:
        size, columns = boxes.element_bytes, boxes.view.tile[1]
        place, pair = self.place, 2 * boxes.element_bytes
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
                store(elements, offset(address, panel * self.room.panel_bytes + half * 8 * SWIZZLE), pair)

    def _meet(self) -> None:
        """Wait for the other threads of the warp group."""
        number = ir.arith.addi(as_i32(self.place.group), i32(self.barrier))
        waits.NamedBarrierOp.create([number], attributes={"threads": WARPGROUP_SIZE, "wait": True})

    @property
    def _is_leader(self) -> ir.Value:
        first = ir.arith.muli(self.place.group, create_index(WARPGROUP_SIZE))
        return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, self.place.thread, first)


def _write_elements(first: ir.Value, flat: IndexingMap, where: Values, values: Values) -> None:
    """Write neighbours of the array that begins at ``first``, where a map leads to."""
    (number,) = ApplyIndexingOp.build(flat, where)
    element, count = values[0].type, len(values)
    pointer = element_pointer(first, element, ir.arith.index_cast(integer_type(64), number))
    value = from_elements(values) if count > 1 else values[0]
    store(value, pointer, count * ir.FloatType(element).width // 8)

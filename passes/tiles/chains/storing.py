"""What warp groups do with results: matrices are handed on in shared memory, and copied; of rows a lane writes each."""

from collections.abc import Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.llvm.memory import element_pointer, store
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.chains.spreads import ROW_LANES, Position, Spread
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.roles import Place, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import from_elements
from xgpu.structure import dtype_of, element_of
from xgpu.target_machine import WARPGROUP_SIZE

_CHUNK = 16


@dataclass(frozen=True)
class Staged:
    """The boxes of a result, and their tensor map."""

    boxes: Boxes
    map: ir.Value


def is_matrix(op: InsertTileOp) -> bool:
    """Whether a tile that is written has rows and columns, and not one element of each row."""
    return len(shape_of(op.tile)) == 2


@dataclass(frozen=True)
class Storing:
    """The code of a warp group: ``memory`` has room of ``group_bytes`` for each, ``barrier`` is the first one's."""

    place: Place
    memory: ir.Value
    group_bytes: int
    barrier: int

    def begin(self, staged: Sequence[Staged]) -> None:
        """Write what comes before the first result."""
        with only_if(self._is_leader):
            for each in staged:
                copies.AcquireTensorMapOp.create([each.map])

    def end(self) -> None:
        """Write what comes after the last one."""
        with only_if(self._is_leader):
            copies.BulkWaitOp.create(attributes={"pending": 0, "until": "read"})

    def rows(self, op: InsertTileOp, array: ir.Value, at: Values, position: Position, spread: Spread) -> None:
        """Write a thread's elements of a tile of rows; the lanes that hold a row all have it."""
        map_, element = op.map, element_of(op.tile)
        flat = IndexingMap(map_.dims, map_.symbols, (linearize(map_.results, shape_of(array)),)).with_simple_results()
        lane = ir.arith.remui(self.place.lane, create_index(ROW_LANES))
        first = ArrayPointerOp.build(array)
        for half in range(2):
            where = [*at, position.rows[half]]
            is_own = ir.arith.andi(equal(lane, 0), InDomainOp.build(map_, where))
            with only_if(is_own):
                (number,) = ApplyIndexingOp.build(flat, where)
                pointer = element_pointer(first, element, ir.arith.index_cast(integer_type(64), number))
                store(spread.at(half, 0), pointer, dtype_of(op.tile).bits // 8)

    def matrix(self, staged: Staged, at: Values, spread: Spread) -> None:
        """Write the group's rows to shared memory, each chunk where the swizzle has it, and have them copied."""
        boxes, place = staged.boxes, self.place
        room = offset(self.memory, ir.arith.muli(as_i32(place.group), i32(self.group_bytes)))
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
                source = offset(room, panel * WARPGROUP_ROWS * SWIZZLE)
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
                store(elements, offset(address, panel * WARPGROUP_ROWS * SWIZZLE + half * 8 * SWIZZLE), pair)

    def _meet(self) -> None:
        """Wait for the other threads of the warp group."""
        number = ir.arith.addi(as_i32(self.place.group), i32(self.barrier))
        waits.NamedBarrierOp.create([number], attributes={"threads": WARPGROUP_SIZE, "wait": True})

    @property
    def _is_leader(self) -> ir.Value:
        first = ir.arith.muli(self.place.group, create_index(WARPGROUP_SIZE))
        return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, self.place.thread, first)

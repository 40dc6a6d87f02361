"""The threads of blocks whose steps have chained products: a warp copies tiles, and warp groups multiply them.

Each warp group has 64 rows, from the first product to the results, and what lies between the products it computes in
registers: of products of tiles it makes the left operands of others. Nobody waits for another warp group.
"""

from functools import cached_property

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.dialects.block.memory import ArrayPointerOp, SharedMemoryOp
from xgpu.dialects.block.tiles import ReadTile
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.support.scf_ops import create_if, create_index
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes, add_workspace
from xgpu.passes.tiles.chains.operands import ChainOperands, Fed
from xgpu.passes.tiles.chains.order import ChainOrder, ChainTile, steps_of
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.chains.rows import ChainRows
from xgpu.passes.tiles.chains.storing import Staged, StagingRoom, is_handed_on
from xgpu.passes.tiles.copying import CopySource
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, below, equal, leave_registers, take_registers
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_LEAST_REGISTERS = 24
"""Those of a thread that copies: with no more two warp groups have 240 for each thread, and three 160."""
_LOOKUP_REGISTERS = 56
"""Those of one that reads where parts of tiles are: two warp groups then have 224, and three 152."""


class ChainKernel:
    """Writes the threads of one kernel in place of its blocks."""

    def __init__(self, program: ChainProgram, device: Device):
        self._program, self._device, self._schedule = program, device, program.schedule
        self._fixed = [Boxes.of_operand(each, 0) for each in program.fixed]
        self._fed = [self._boxes_of(each) for each in program.fed]
        written = zip(program.stores, program.outputs, strict=True)
        self._stored = {
            store: Boxes.of_result(store, output)
            for store, output in written
            if is_handed_on(store) and store.operation not in program.step_stores
        }

    def _boxes_of(self, tile: ReadTile) -> Boxes:
        """Return the boxes of a tile of each step, which products read with the keys or the columns for rows."""
        numbers = dict.fromkeys(1 - each.contracted for each in self._program.products if each.right == tile)
        boxes, *_ = (Boxes.of_operand(tile, number) for number in numbers)
        return boxes

    @property
    def _boxes(self) -> list[Boxes]:
        """All that is copied by tensor maps, in their order."""
        return [*self._fixed, *self._fed, *self._stored.values()]

    @property
    def _map_bytes(self) -> int:
        """The bytes of a block's tensor maps."""
        return len(self._boxes) * TENSOR_MAP_BYTES

    def write(self) -> None:
        """Replace the blocks by the code of their threads, and give the kernel memory for tensor maps."""
        blocks = self._program.blocks.operation
        workspace = add_workspace(self._program.function, self._schedule.blocks * self._map_bytes)
        with ir.InsertionPoint(blocks), blocks.location:
            self._write_threads(workspace)
        for result, output in zip(blocks.results, self._program.outputs, strict=True):
            result.replace_all_uses_with(output)
        blocks.erase()

    def _write_threads(self, workspace: ir.Value) -> None:
        place = ThreadNumbers.compute(self._program.function, 1)
        rooms = self._rooms
        memory = SharedMemoryOp.build(sum(rooms))
        at = [offset(memory, sum(rooms[:number])) for number in range(len(rooms))]
        *tiles, staging, encoding, barriers, deciding = at
        maps = self._encode(place, workspace, encoding)
        stages = [1] * len(self._fixed) + [self._schedule.stages] * len(self._fed)
        fed = []
        for boxes, map_, room, count in zip(self._boxes, maps, tiles, stages, strict=False):
            fed.append(Fed(CopySource(boxes, map_, room, boxes.bytes, 1), Ring(count, barriers)))
            barriers = offset(barriers, Ring.bytes(count))
        count = len(self._fixed)
        operands = ChainOperands(
            dict(zip(self._program.fixed, fed[:count], strict=True)),
            dict(zip(self._program.fed, fed[count:], strict=True)),
        )
        order = ChainOrder(self._program, place, deciding)
        self._initialize(place, operands, order)
        results = zip(self._stored.items(), maps[len(fed) :], strict=True)
        staged = {store: Staged(boxes, map_) for (store, boxes), map_ in results}
        handing = StagingRoom(staging, rooms[len(tiles)] // self._schedule.groups, WARPGROUP_ROWS * SWIZZLE)
        if self._program.reuses:
            handing = StagingRoom.of_left(next(iter(operands.fixed.values())).source)
        rows = ChainRows(self._program, order, operands, staged, handing)
        _, multiply, copy = create_if(below(place.thread, self._schedule.groups * WARPGROUP_SIZE), [])
        with ir.InsertionPoint(multiply):
            take_registers(self._schedule.groups, self._device, self._registers)
            rows.write()
            ir.scf.yield_([])
        with ir.InsertionPoint(copy):
            leave_registers(self._schedule.groups, self._registers)
            with only_if(equal(place.thread, self._schedule.groups * WARPGROUP_SIZE)):
                _write_copies(order, operands)
            ir.scf.yield_([])

    @property
    def _registers(self) -> int:
        """The registers of a thread that copies: more if it looks up where parts of tiles are."""
        looks_up = any(each.lookup is not None for each in self._fed)
        return _LOOKUP_REGISTERS if looks_up else _LEAST_REGISTERS

    @cached_property
    def _rooms(self) -> list[int]:
        """The bytes of the tiles of each array, of results, of tensor maps being made, of mbarriers, for the order."""
        stages = self._schedule.stages
        tiles = [*(each.bytes for each in self._fixed), *(stages * each.bytes for each in self._fed)]
        staging = 0 if self._program.reuses else max((boxes.bytes for boxes in self._stored.values()), default=0)
        barriers = len(self._fixed) * Ring.bytes(1) + len(self._fed) * Ring.bytes(stages)
        deciding = ChainOrder.bytes(self._schedule.groups)
        return [*tiles, staging, self._map_bytes, barriers, deciding]

    def _encode(self, place: ThreadNumbers, workspace: ir.Value, room: ir.Value) -> Values:
        """Write the tensor maps, which warps share."""
        own = offset(ArrayPointerOp.build(workspace), ir.arith.muli(as_i32(place.block), i32(self._map_bytes)))
        maps = []
        for number, boxes in enumerate(self._boxes):
            maps.append(offset(own, number * TENSOR_MAP_BYTES))
            is_operand = number < len(self._fixed) + len(self._fed)
            rows = boxes.view.rows if is_operand else WARPGROUP_ROWS
            with only_if(equal(place.warp, number % (place.threads // WARP_SIZE))):
                boxes.encode(maps[-1], offset(room, number * TENSOR_MAP_BYTES), rows)
        return maps

    def _initialize(self, place: ThreadNumbers, operands: ChainOperands, order: ChainOrder) -> None:
        """Make the mbarriers, and wait until all that the block begins with is seen by all that use it."""
        with only_if(equal(place.thread, 0)):
            for each in operands.all:
                each.ring.initialize(self._schedule.groups * (WARPGROUP_SIZE // WARP_SIZE))
            order.initialize()
            waits.FenceOp.create(attributes={"kind": "mbarrier_init"})
        SyncThreadsOp.build([])


def _write_copies(order: ChainOrder, operands: ChainOperands) -> None:
    """Write the code of the thread that copies tiles, in the order in which they are read."""
    for each in operands.all:
        copies.AcquireTensorMapOp.create([each.source.map])
    write = _copy_ahead if order.program.overlaps else _copy_in_turn
    with order.tiles([i32(0), i32(0), i32(0)], multiplies=False) as tile:
        turn, slot, phase = tile.carried
        for each in operands.fixed.values():
            each.copy(order.place, i32(0), turn, tile.at)
        tile.carried = [ir.arith.xori(turn, i32(1)), *write(order.place, operands, tile, [slot, phase])]


def _copy_in_turn(place: ThreadNumbers, operands: ChainOperands, tile: ChainTile, slot: Values) -> Values:
    """Copy the tiles of each step; return the rings' slot and phase after it."""
    fed = list(operands.fed.values())
    with steps_of(tile, slot) as steps:
        number, phase = steps.carried
        for each in fed:
            each.copy(place, number, phase, [*tile.at, steps.counter])
        steps.carried = list(fed[0].ring.next(number, phase))
    return steps.results


def _copy_ahead(place: ThreadNumbers, operands: ChainOperands, tile: ChainTile, slot: Values) -> Values:
    """Copy the same, but the keys of a step before the values of the one before."""
    keys, values = operands.fed.values()
    begin, turn = slot
    keys.copy(place, begin, turn, [*tile.at, tile.first])
    with steps_of(tile, slot) as steps:
        number, phase = steps.carried
        after = ir.arith.addi(steps.counter, create_index(1))
        after_number, after_phase = keys.ring.next(number, phase)
        with only_if(ir.arith.cmpi(ir.arith.CmpIPredicate.slt, after, tile.end)):
            keys.copy(place, after_number, after_phase, [*tile.at, after])
        values.copy(place, number, phase, [*tile.at, steps.counter])
        steps.carried = [after_number, after_phase]
    return steps.results

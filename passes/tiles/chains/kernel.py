"""The threads of blocks whose steps have two products: a warp that copies tiles, and warp groups that multiply them.

Each warp group has 64 rows, from the first product to the result, and what lies between the products it computes in
registers: the first product's sums become the left operand of the second. Nobody waits for another warp group.
"""

from functools import cached_property

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.block import copies, waits
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.dialects.block.memory import ArrayPointerOp, SharedMemoryOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.emit.families.attention.schedule import ARRAYS
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.support.scf_ops import create_if, create_index
from xgpu.passes.tiles.boxes import Boxes, add_workspace
from xgpu.passes.tiles.chains.operands import Fed, Operands
from xgpu.passes.tiles.chains.order import ChainOrder, ChainTile, steps_of
from xgpu.passes.tiles.chains.program import ChainProgram
from xgpu.passes.tiles.chains.rows import ChainRows
from xgpu.passes.tiles.copying import Source
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.roles import Place, below, equal, leave_registers, take_registers
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_MAP_BYTES = ARRAYS * TENSOR_MAP_BYTES


class ChainKernel:
    """Writes the threads of one kernel in the place of its blocks."""

    def __init__(self, program: ChainProgram, device: Device):
        self._program, self._device, self._schedule = program, device, program.schedule
        queries = Boxes.of_operand(program.queries, 0)
        keys, values = (Boxes.of_operand(each, 1) for each in (program.keys, program.values))
        self._boxes = (queries, keys, values, Boxes.of_result(program.store, program.output))

    def write(self) -> None:
        """Replace the blocks by the code of their threads, and give the kernel memory for tensor maps."""
        blocks = self._program.blocks.operation
        workspace = add_workspace(self._program.function, self._schedule.blocks * _MAP_BYTES)
        with ir.InsertionPoint(blocks), blocks.location:
            self._write_threads(workspace)
        blocks.results[0].replace_all_uses_with(self._program.output)
        blocks.erase()

    def _write_threads(self, workspace: ir.Value) -> None:
        place = Place.compute(self._program.function, 1)
        rooms = self._rooms
        memory = SharedMemoryOp.build(sum(rooms))
        at = [offset(memory, sum(rooms[:number])) for number in range(len(rooms))]
        maps = self._encode(place, workspace, at[4])
        stages = (1, self._schedule.stages, self._schedule.stages)
        fed = []
        barriers = at[5]
        for boxes, map_, room, count in zip(self._boxes, maps, at, stages, strict=False):
            fed.append(Fed(Source(boxes, map_, room, boxes.bytes, 1), Ring(count, barriers)))
            barriers = offset(barriers, Ring.bytes(count))
        operands = Operands(*fed)
        order = ChainOrder(self._program, place, at[6])
        self._initialize(place, operands, order)
        rows = ChainRows(self._program, order, operands, (self._boxes[3], maps[3], at[3]))
        _, multiply, copy = create_if(below(place.thread, self._schedule.groups * WARPGROUP_SIZE), [])
        with ir.InsertionPoint(multiply):
            take_registers(self._schedule.groups, self._device)
            rows.write()
            ir.scf.yield_([])
        with ir.InsertionPoint(copy):
            leave_registers(self._schedule.groups)
            with only_if(equal(place.thread, self._schedule.groups * WARPGROUP_SIZE)):
                _write_copies(order, operands)
            ir.scf.yield_([])

    @cached_property
    def _rooms(self) -> list[int]:
        """The bytes of the tiles of each array, of tensor maps being made, of mbarriers, and for the order."""
        stages = self._schedule.stages
        queries, keys, values, result = (boxes.bytes for boxes in self._boxes)
        barriers = Ring.bytes(1) + 2 * Ring.bytes(stages)
        deciding = ChainOrder.bytes(self._schedule.groups)
        return [queries, stages * keys, stages * values, result, _MAP_BYTES, barriers, deciding]

    def _encode(self, place: Place, workspace: ir.Value, room: ir.Value) -> Values:
        """Write the tensor maps, a warp each."""
        own = offset(ArrayPointerOp.build(workspace), ir.arith.muli(as_i32(place.block), i32(_MAP_BYTES)))
        maps = []
        for number, boxes in enumerate(self._boxes):
            maps.append(offset(own, number * TENSOR_MAP_BYTES))
            rows = WARPGROUP_ROWS if number == len(self._boxes) - 1 else boxes.view.rows
            with only_if(equal(place.warp, number % (place.threads // WARP_SIZE))):
                boxes.encode(maps[-1], offset(room, number * TENSOR_MAP_BYTES), rows)
        return maps

    def _initialize(self, place: Place, operands: Operands, order: ChainOrder) -> None:
        """Make the mbarriers, and wait until all that the block begins with is seen by all that use it."""
        with only_if(equal(place.thread, 0)):
            for each in operands.all:
                each.ring.initialize(self._schedule.groups * (WARPGROUP_SIZE // WARP_SIZE))
            order.initialize()
            waits.FenceOp.create(attributes={"kind": "mbarrier_init"})
        SyncThreadsOp.build([])


def _write_copies(order: ChainOrder, operands: Operands) -> None:
    """Write the code of the thread that copies tiles, in the order in which they are read."""
    for each in operands.all:
        copies.AcquireTensorMapOp.create([each.source.map])
    write = _copy_ahead if order.program.schedule.overlap else _copy_in_turn
    with order.tiles([i32(0), i32(0), i32(0)], multiplies=False) as tile:
        turn, slot, phase = tile.carried
        operands.queries.copy(order.place, i32(0), turn, tile.at)
        tile.carried = [ir.arith.xori(turn, i32(1)), *write(order.place, operands, tile, [slot, phase])]


def _copy_in_turn(place: Place, operands: Operands, tile: ChainTile, slot: Values) -> Values:
    """Copy the keys and the values of each step; return the ring's slot and phase after it."""
    with steps_of(tile, slot) as steps:
        number, phase = steps.carried
        for each in (operands.keys, operands.values):
            each.copy(place, number, phase, [*tile.at, steps.counter])
        steps.carried = list(operands.keys.ring.next(number, phase))
    return steps.results


def _copy_ahead(place: Place, operands: Operands, tile: ChainTile, slot: Values) -> Values:
    """Copy the same, but the keys of a step before the values of the one before."""
    begin, turn = slot
    operands.keys.copy(place, begin, turn, [*tile.at, tile.first])
    with steps_of(tile, slot) as steps:
        number, phase = steps.carried
        after = ir.arith.addi(steps.counter, create_index(1))
        after_number, after_phase = operands.keys.ring.next(number, phase)
        with only_if(ir.arith.cmpi(ir.arith.CmpIPredicate.slt, after, tile.end)):
            operands.keys.copy(place, after_number, after_phase, [*tile.at, after])
        operands.values.copy(place, number, phase, [*tile.at, steps.counter])
        steps.carried = [after_number, after_phase]
    return steps.results

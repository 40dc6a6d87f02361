"""The threads of a product's blocks: a warp that copies tiles, and warp groups that multiply them (sm_90a).

Blocks compute tile after tile, so that while the last results of one are written the next is already being copied.
"""

from dataclasses import replace

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block import waits
from xgpu.dialects.block.copies import TENSOR_MAP_BYTES
from xgpu.dialects.block.memory import ArrayPointerOp, SharedMemoryOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.ragged_maps import table_bytes
from xgpu.indexing.tiles.row_panels import Panels
from xgpu.passes.support.refusals import refuse
from xgpu.passes.support.scf_ops import create_if
from xgpu.passes.tiles.block_program import PASS, ProductProgram
from xgpu.passes.tiles.boxes import Boxes, add_workspace
from xgpu.passes.tiles.copying import Copies, CopySource
from xgpu.passes.tiles.multiplying import ProductWriter
from xgpu.passes.tiles.prologues.multiplying import ComputedProducts
from xgpu.passes.tiles.results import Room, Staging, TileResults, meet_cluster
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.roles import RowGroups, ThreadNumbers, TileOrder, below, equal, leave_registers, take_registers
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE


class ProductKernel:
    """Writes the threads of one kernel in place of its blocks."""

    def __init__(self, program: ProductProgram[ProductSchedule], device: Device):
        schedule = program.schedule
        self._program, self._device = program, device
        self._groups, self._stages, self._cluster = schedule.groups, schedule.stages, schedule.cluster
        self._together = schedule.cluster * schedule.split
        self._share = schedule.holders.share
        self._rights = len(program.rights)
        left = Boxes.of_operand(program.left, 0) if program.computed is None else Boxes.of_narrow(program.left)
        self._operands = [left, *(Boxes.of_operand(tile, 1) for tile in program.rights)]
        self._check_rights()
        written = zip(program.stores, program.outputs, strict=True)
        self._results = [Boxes.of_result(each, output) for each, output in written] if schedule.staged else []

    def _check_rights(self) -> None:
        """Refuse right operands that do not lie in shared memory as one whose columns are side by side."""
        _, first, *others = (boxes.layout(contracted=0) for boxes in self._operands)
        for tile, layout in zip(self._program.rights[1:], others, strict=True):
            if layout != first:
                refuse(PASS, tile.operation, "expected a tile that lies in memory as that of the first product")

    def write(self) -> None:
        """Replace the blocks by the code of their threads, and give the kernel memory for tensor maps."""
        blocks = self._program.blocks.operation
        workspace = self._add_workspace()
        with ir.InsertionPoint(blocks), blocks.location:
            outputs = self._write_threads(workspace, list(blocks.operands))
        for old, new in zip(blocks.results, outputs, strict=True):
            old.replace_all_uses_with(new)
        blocks.erase()

    @property
    def _panels(self) -> Panels:
        """The panels by which sums go from thread to thread."""
        panels = self._program.schedule.panels
        paired = self._program.computed is not None and self._operands[0].view.inner == 0
        return replace(panels, holders=replace(panels.holders, paired=paired))

    @property
    def _group_bytes(self) -> int:
        """The bytes by which a warp group hands results on."""
        return self._program.schedule.group_bytes([boxes.element_bytes for boxes in self._results], self._rights)

    @property
    def _map_bytes(self) -> int:
        """The bytes of a block's tensor maps."""
        return (len(self._operands) + len(self._results)) * TENSOR_MAP_BYTES

    def _add_workspace(self) -> ir.Value:
        """Give the kernel one more output, memory of its own, with room for each block's tensor maps."""
        function = self._program.function
        if self._together > 1:
            function.attributes[attributes.CLUSTER] = attributes.int_array((self._together, 1, 1))
        return add_workspace(function, self._program.schedule.blocks * self._map_bytes)

    def _write_threads(self, workspace: ir.Value, outputs: Values) -> Values:
        place = ThreadNumbers.compute(self._program.function, self._together)
        rooms = self._allocate()
        *_, map_room, barriers, table = rooms
        grouped = self._program.grouped
        groups = None if grouped is None else RowGroups(grouped, table)
        order = TileOrder(self._program, place, self._cluster, self._program.schedule.split, groups)
        maps = self._encode(place, workspace, map_room)
        ring = Ring(self._stages, barriers)
        self._initialize(place, ring, groups)
        sources = self._sources(maps, rooms)
        staging = tuple(
            Staging(boxes, map_) for boxes, map_ in zip(self._results, maps[len(self._operands) :], strict=True)
        )
        room = Room(rooms[2], self._group_bytes)
        results = TileResults(self._program, place, self._panels, staging, room)
        given = order, ring, sources[0], sources[1:], self._share, results
        products = ProductWriter(*given) if self._program.computed is None else ComputedProducts(*given)
        written = self._write_roles(place, Copies(order, ring, sources), products, outputs)
        # What the others read, or arrive at, must not go before.
        if self._program.schedule.split > 1:
            waits.ClusterWaitOp.create()
        elif self._cluster > 1:
            meet_cluster()
        return written

    def _sources(self, maps: Values, rooms: Values) -> tuple[CopySource, ...]:
        """Return the operands with their room in the ring: the left one's tiles, then those of the right ones."""
        _, first, *_ = self._operands
        places = [(rooms[0], self._operands[0].bytes), (rooms[1], self._rights * first.bytes)]
        places += [(offset(rooms[1], number * first.bytes), places[1][1]) for number in range(1, self._rights)]
        return tuple(
            CopySource(boxes, map_, room, size, self._cluster_of(boxes))
            for boxes, map_, (room, size) in zip(self._operands, maps, places, strict=False)
        )

    def _cluster_of(self, boxes: Boxes) -> int:
        """Return how many blocks share an operand's tiles."""
        return self._cluster if CopySource.is_shared(boxes) else 1

    def _allocate(self) -> Values:
        """Make room for the tiles of all operands, results, tensor maps being made, mbarriers and groups of rows."""
        schedule = self._program.schedule
        left, *rights = self._operands
        sizes = [self._stages * left.bytes, self._stages * sum(boxes.bytes for boxes in rights)]
        results = self._groups * self._group_bytes
        # Parts of sums go where the tiles were, of which there are no more.
        sizes.append(max(0, results - sum(sizes)) if schedule.split > 1 else results)
        grouped = self._program.grouped
        sizes += [self._map_bytes, Ring.bytes(self._stages), 0 if grouped is None else table_bytes(grouped.groups)]
        memory = SharedMemoryOp.build(sum(sizes))
        rooms = [offset(memory, sum(sizes[:number])) for number in range(len(sizes))]
        return [*rooms[:2], memory, *rooms[3:]] if schedule.split > 1 else rooms

    def _encode(self, place: ThreadNumbers, workspace: ir.Value, room: ir.Value) -> Values:
        """Write the tensor maps, which warps share."""
        own = offset(ArrayPointerOp.build(workspace), ir.arith.muli(as_i32(place.block), i32(self._map_bytes)))
        maps = []
        for number, boxes in enumerate([*self._operands, *self._results]):
            maps.append(offset(own, number * TENSOR_MAP_BYTES))
            if number >= len(self._operands):
                rows = WARPGROUP_ROWS
            else:
                rows = CopySource(boxes, maps[-1], room, 0, self._cluster_of(boxes)).rows
            with only_if(equal(place.warp, number % (place.threads // WARP_SIZE))):
                boxes.encode(maps[-1], offset(room, number * TENSOR_MAP_BYTES), rows)
        return maps

    def _initialize(self, place: ThreadNumbers, ring: Ring, groups: RowGroups | None) -> None:
        """Make the mbarriers, and wait until all that the block begins with is seen by all that use it."""
        if groups is not None:
            # Of the last warp, which makes no tensor map if there are more warps than arrays.
            with only_if(equal(place.thread, place.threads - 1)):
                groups.write_table()
        with only_if(equal(place.thread, 0)):
            ring.initialize(self._groups * (WARPGROUP_SIZE // WARP_SIZE) * self._cluster)
            waits.FenceOp.create(attributes={"kind": "mbarrier_init"})
        SyncThreadsOp.build([])
        if self._cluster > 1:
            meet_cluster()

    def _write_roles(self, place: ThreadNumbers, copying: Copies, products: ProductWriter, outputs: Values) -> Values:
        """Write what each warp group does; return the arrays as those that multiply have left them."""
        multiplies = below(place.thread, self._groups * WARPGROUP_SIZE)
        op, multiply, copy = create_if(multiplies, [each.type for each in outputs])
        with ir.InsertionPoint(multiply):
            take_registers(self._groups, self._device)
            ir.scf.yield_(products.write(outputs))
        with ir.InsertionPoint(copy):
            leave_registers(self._groups)
            with only_if(equal(place.thread, self._groups * WARPGROUP_SIZE)):
                copying.write()
            if self._program.schedule.split > 1:
                # Those that multiply do, before and after they add up.
                meet_cluster()
                waits.ClusterArriveOp.create()
            ir.scf.yield_(outputs)
        return list(op.results)

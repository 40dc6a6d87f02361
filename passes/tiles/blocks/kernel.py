"""The threads of a kernel that is written on tiles: its operations one after the other, as was decided of each."""

import math

from xgpu import ir
from xgpu.block_plan.memory.boxes import bulk_bytes
from xgpu.dialects import attributes
from xgpu.dialects.block import copies
from xgpu.dialects.block.memory import ArrayPointerOp, SharedMemoryOp
from xgpu.dialects.block.tiles import InsertTileOp, StepsOp, TileOp
from xgpu.emit.builders import apply_map, launch_index
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, delinearize, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.tiles.blocks.barriers import BlockBarriers
from xgpu.passes.tiles.blocks.bulk_copies import BulkCopies
from xgpu.passes.tiles.blocks.computing import compute_fragments, compute_shared, write_shared
from xgpu.passes.tiles.blocks.copying import TileCopy
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.by_groups import wait_for, wait_for_all
from xgpu.passes.tiles.blocks.products.multiplying import can_begin, go_on, multiply_to_fragments, multiply_to_shared
from xgpu.passes.tiles.blocks.program import PRODUCT, REDUCE, ScheduledKernel
from xgpu.passes.tiles.blocks.reductions import Reduction, reduce_rows
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.blocks.stepping import StepLoop
from xgpu.passes.tiles.blocks.storing import store_tile
from xgpu.passes.tiles.boxes import add_workspace
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.records import dataclass
from xgpu.structure import users_of

_ADD = "stablehlo.add"


@dataclass(frozen=True, eq=False)
class BlockWriter:
    """Writes the threads of one kernel in place of its blocks."""

    kernel: ScheduledKernel

    def write(self) -> None:
        """Replace the blocks by the code of their threads."""
        kernel, blocks = self.kernel, self.kernel.blocks.operation
        maps = None
        if kernel.bulk:
            given = kernel.function.attributes.get(attributes.RESIDENT)
            maps = add_workspace(kernel.function, math.prod(kernel.blocks.grid) * bulk_bytes(len(kernel.bulk), 0))
            if given is not None:
                kernel.function.attributes[attributes.RESIDENT] = given
        with ir.InsertionPoint(blocks), blocks.location:
            state = self._begin()
            if maps is not None:
                self._begin_bulk(state, maps)
            self._write_operations(state, self.kernel.blocks.body)
            wait_for_all(state)
        for result, output in zip(blocks.results, blocks.operands, strict=True):
            result.replace_all_uses_with(output)
        blocks.erase()

    def _begin(self) -> State:
        """Write what a thread knows from the start: its number, the block's, and where arrays and tiles are."""
        kernel = self.kernel
        grid = kernel.blocks.grid
        (count, _, _) = attributes.int_array_of(kernel.function.attributes[attributes.GRID])
        thread = launch_index("gpu.thread_id", kernel.threads)
        block = launch_index("gpu.block_id", count)
        at = apply_map(IndexingMap(ranges((count,)), (), delinearize(dim(0), grid)), [block])
        space = AddressSpace((*ranges((kernel.threads,)), *ranges(grid)), (thread, *at))
        arguments = list(kernel.blocks.body.arguments)
        numbers: dict[ir.Value, AffineExpr] = {
            value: dim(number + 1) for number, value in enumerate(arguments[: len(grid)])
        }
        pointers: dict[ir.Value, ir.Value] = {}
        for value in kernel.function.regions[0].blocks[0].arguments:
            pointers[value] = ArrayPointerOp.build(value)
        for inside, outside in zip(arguments[len(grid) :], kernel.blocks.operation.operands, strict=True):
            pointers[inside] = pointers[outside]
        memory = SharedMemoryOp.build(max(1, kernel.shared_bytes)) if kernel.layouts else thread
        shared = {value: SharedTile.of(layout, memory) for value, layout in kernel.layouts.items()}
        return State(kernel, space, memory, BlockBarriers(kernel.asynchronous), pointers, numbers, shared)

    @staticmethod
    def _begin_bulk(state: State, workspace: ir.Value) -> None:
        """Write what copies by TMA begin with: each block makes its own tensor maps."""
        kernel = state.kernel
        (count, _, _) = attributes.int_array_of(kernel.function.attributes[attributes.GRID])
        block, thread = launch_index("gpu.block_id", count), state.space.values[0]
        own = ir.arith.muli(as_i32(block), i32(bulk_bytes(len(kernel.bulk), 0)))
        room, maps = offset(state.memory, kernel.tile_bytes), offset(state.pointers[workspace], own)
        state.bulk = BulkCopies.prepared(kernel, state.pointers, room, maps, thread)
        state.barriers.meet()
        state.bulk.acquire()

    def _write_operations(self, state: State, block: ir.Block) -> None:
        for view in list(block.operations)[:-1]:
            op = view.operation
            with op.location:
                if attributes.MEET in op.attributes:
                    # What follows may write what products still read.
                    wait_for_all(state)
                    state.barriers.meet()
                wait_for(state, self.kernel.kept_of(op.operands))
                self._write_operation(state, op)

    def _write_operation(self, state: State, op: ir.Operation) -> None:
        view, kernel = op.opview, self.kernel
        if isinstance(view, InsertTileOp):
            store_tile(state, view)
            state.pointers[op.results[0]] = state.pointers[view.array]
        elif isinstance(view, StepsOp):
            StepLoop(state, view, self._write_operations).write()
        elif not kernel.is_kept(op.results[0]) or op.results[0] in (*state.fragments, *state.under_way, *state.started):
            return
        elif isinstance(view, TileOp):
            self._write_copy(state, view)
        elif op.name == PRODUCT:
            self._write_product(state, op)
        elif kernel.places[op.results[0]] == attributes.FRAGMENTS:
            if op.name == REDUCE:
                state.fragments[op.results[0]] = reduce_rows(state, op)
            else:
                compute_fragments(state, op)
        else:
            self._write_shared(state, op)

    @staticmethod
    def _write_shared(state: State, op: ir.Operation) -> None:
        if op.name == REDUCE and state.kernel.fragments(op.results[0]) is not None:
            rows = reduce_rows(state, op)
            write_shared(state, state.shared[op.results[0]], op.results[0], lambda code, at: code.held(rows, at))
        elif op.name == REDUCE:
            Reduction.of(state, op).write()
        else:
            compute_shared(state, op)
        state.barriers.wrote(state.shared[op.results[0]].layout)

    @staticmethod
    def _write_copy(state: State, view: TileOp) -> None:
        """Write the copy of a tile, or, where copies run ahead of steps, the start of a later step's."""
        if state.kernel.is_ahead(view.operation):
            assert state.start_ahead is not None
            state.start_ahead(view)
            return
        copy = TileCopy.of(state, view)
        copy.start(state.shared[view.tile])
        if copy.is_async:
            copies.AsyncCommitOp.create()
            copies.AsyncWaitOp.create(attributes={"pending": 0})
        state.barriers.wrote(state.shared[view.tile].layout)

    def _write_product(self, state: State, op: ir.Operation) -> None:
        (result,) = op.results
        if self.kernel.places[result] == attributes.SHARED:
            multiply_to_shared(state, op)
            state.barriers.wrote(state.shared[result].layout)
            return
        if op in state.pending:
            (add,) = users_of(result)
            (begin,) = (each for each in add.operands if each != result)
            state.under_way[add.results[0]] = go_on(state, op, state.under_way[begin])
            return
        total = self._added_to(state, op)
        if total is None:
            multiply_to_fragments(state, op, None, result)
            return
        (begin,) = (each for each in total.operands if each != result)
        multiply_to_fragments(state, op, state.fragments[begin], total.results[0])

    def _added_to(self, state: State, op: ir.Operation) -> ir.Operation | None:
        """Return the sum of a product's result and of what is in registers already, if that is all it is used for."""
        (result,) = op.results
        users = users_of(result)
        if len(users) != 1 or users[0].name != _ADD or users[0].parent != op.parent:
            return None
        (total,) = users[0].results
        others = [each for each in users[0].operands if each != result]
        wait_for(state, others)
        if len(others) != 1 or others[0] not in state.fragments or self.kernel.places[total] != attributes.FRAGMENTS:
            return None
        is_same = state.fragments[others[0]].layout == self.kernel.fragments(result)
        return users[0] if is_same and can_begin(state, op) else None

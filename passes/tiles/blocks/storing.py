"""Tiles that are written into arrays."""

from xgpu.dialects.block.tiles import InsertTileOp
from xgpu.passes.tiles.blocks.computing import Held
from xgpu.passes.tiles.blocks.copying import memory_units
from xgpu.passes.tiles.blocks.elements import ElementCode
from xgpu.passes.tiles.blocks.memory.arrays import ArrayElements
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.fragments import Indices
from xgpu.passes.tiles.blocks.state import State


def store_tile(state: State, insert: InsertTileOp) -> None:
    """Write a tile into its array, but for what is outside: by the threads that hold it, or in the array's order."""

    def write(code: ElementCode, space: AddressSpace, at: Indices) -> None:
        found = code.lanes(insert.tile, at)
        target = ArrayElements.of(insert, state.pointers[insert.array], state.numbers, at)
        target.store(space, found if len(found) == space.lanes else found * space.lanes)

    layout = state.kernel.fragments(insert.tile)
    if layout is not None:
        Held.of(state, layout).write(write)
        return
    with memory_units(state, insert).shared_by(state.space, state.threads) as (space, at):
        write(ElementCode(state, space), space, at)

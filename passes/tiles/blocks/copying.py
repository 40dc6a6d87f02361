"""Copies of tiles of arrays into shared memory, by loads and stores or by asynchronous copies."""

from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.dialects.attributes import ASYNC, COPY, PLAIN
from xgpu.dialects.block import copies
from xgpu.dialects.block.tiles import InsertTileOp, TileOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import Symbol, linearize
from xgpu.indexing.simplify import simplify_expr
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS
from xgpu.passes.tiles.blocks.memory.arrays import ArrayElements
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.stored import MOST_BYTES, element_bytes
from xgpu.passes.tiles.blocks.memory.units import Units, widest
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.ring import i32
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_ASYNC_BYTES = (16, 8, 4)


def memory_order(op: TileOp | InsertTileOp) -> tuple[int, ...]:
    """Return a tile's dimensions in the order of how far apart neighbours are in the array."""
    map_ = op.map
    position = simplify_expr(linearize(map_.results, shape_of(op.array)), map_.dims, map_.symbols)
    factors = dict(position.terms)
    shape = shape_of(op.tile)
    far = 1 << 62
    steps = [abs(factors.get(Symbol(number), far)) for number in range(len(shape))]
    return tuple(sorted(range(len(shape)), key=lambda each: (shape[each] == 1, steps[each], -each)))


def memory_units(state: State, op: TileOp | InsertTileOp) -> Units:
    """Return the widest units that are neighbours in the array, and wholly inside of it or not at all."""
    shape, order = shape_of(op.tile), memory_order(op)
    if not shape:
        return Units(shape, (), 1)
    most = max(1, MOST_BYTES // element_bytes(dtype_of(op.tile)))
    lanes = widest(shape[order[0]], most)
    while lanes > 1:
        units = Units(shape, order, lanes)
        space, at = units.tried(state.space, state.threads)
        found = ArrayElements.of(op, state.pointers[op.array], state.numbers, at)
        runs = space.runs(found.position, found.together(space))
        if [each.count for each in runs] == [lanes]:
            return units
        lanes //= 2
    return Units(shape, order, 1)


@dataclass(frozen=True, eq=False)
class TileCopy:
    """The copies of a tile by all threads: ``is_async`` if they go on meanwhile."""

    state: State
    tile: TileOp
    is_async: bool

    @classmethod
    def of(cls, state: State, tile: TileOp) -> "TileCopy":
        """Return the copies as they are decided. Raises `CompilerError` for a way that there is no code for."""
        given = tile.operation.attributes.get(COPY)
        way = given.value if isinstance(given, ir.StringAttr) else None
        if way is None and state.kernel.buffers(tile.operation) > 1:
            refuse(PASS, tile.operation, f"attribute '{COPY}': expected {PLAIN} or {ASYNC}, got none")
        return cls(state, tile, way == ASYNC)

    def start(self, target: SharedTile) -> None:
        """Write the copies of the tile at the numbers of block and step that the state has."""
        if self.is_async:
            self._start_async(target)
        else:
            self._copy(target)

    def _copy(self, target: SharedTile) -> None:
        with memory_units(self.state, self.tile).shared_by(self.state.space, self.state.threads) as (space, at):
            source = ArrayElements.of(self.tile, self._pointer, self.state.numbers, at)
            found = source.load(space)
            target.store(space, at, found if len(found) == space.lanes else found * space.lanes)

    def _start_async(self, target: SharedTile) -> None:
        units = self._async_units(target)
        size = units.lanes * element_bytes(target.layout.dtype)
        with units.shared_by(self.state.space, self.state.threads) as (space, at):
            source = ArrayElements.of(self.tile, self._pointer, self.state.numbers, at)
            bounds = [(space.at_lane(each, 0), bound) for each, bound in source.constraints]
            inside = space.holds(bounds)
            # Where a unit is outside, nothing is read.
            valid = i32(size) if inside is None else ir.arith.select(inside, i32(size), i32(0))
            to = target.address(space, space.at_lane(target.layout.position(at), 0))
            from_ = source.address(space, space.at_lane(source.position, 0))
            copies.AsyncCopyOp.create([to, from_, valid], attributes={"bytes": size})

    @property
    def _pointer(self) -> ir.Value:
        return self.state.pointers[self.tile.array]

    def _async_units(self, target: SharedTile) -> Units:
        """Return the widest units that are neighbours in the array and in shared memory."""
        units, size = memory_units(self.state, self.tile), element_bytes(target.layout.dtype)
        tried = [replace(units, lanes=each // size) for each in _ASYNC_BYTES if size <= each <= units.lanes * size]
        fitting = [each for each in tried if self._lies_together(each, target)]
        if not fitting:
            found = f"neighbours of {units.lanes * size} bytes in the array, and strides {target.layout.strides}"
            wanted = f"expected {PLAIN} where no 4 bytes lie side by side in both, got {ASYNC} with {found}"
            refuse(PASS, self.tile.operation, f"attribute '{COPY}': {wanted}")
        return fitting[0]

    def _lies_together(self, units: Units, target: SharedTile) -> bool:
        space, at = units.tried(self.state.space, self.state.threads)
        runs = space.runs(target.layout.position(at), target.layout.neighbours)
        return [each.count for each in runs] == [units.lanes]


def any_async(found: Sequence[TileCopy]) -> bool:
    """Whether some copies have to be waited for."""
    return any(each.is_async for each in found)

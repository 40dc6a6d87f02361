"""Where the threads of a product's blocks are, and which tiles come next: what all of their roles share."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import BLOCK, GRID, int_array_of
from xgpu.dialects.block.tiles import GroupRowsOp, TileOp
from xgpu.dialects.block.waits import SetRegistersOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.emit.builders import launch_index
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.tile_order import tile_order
from xgpu.passes.support.scf_ops import create_index, create_integer
from xgpu.passes.tiles.block_program import BlockProgram, BlockSchedule
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import as_i32, i32
from xgpu.passes.tiles.structured import Loop, Values, counted, once
from xgpu.structure import defining_op
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_REGISTERS_OF_COPIES = 40
_REGISTER_STEP = 8


@dataclass(frozen=True)
class Place:
    """Numbers of a thread, computed where a kernel begins: of itself and of its block, warp group, warp and lane.

    ``rank`` is the block's in its cluster, 0 without clusters.
    """

    threads: int
    thread: ir.Value
    block: ir.Value
    group: ir.Value
    warp: ir.Value
    lane: ir.Value
    rank: ir.Value
    cluster: ir.Value

    @classmethod
    def compute(cls, kernel: ir.Operation, cluster: int) -> "Place":
        """Write the code that computes them, at the insertion point."""
        threads, blocks = (int_array_of(kernel.attributes[name])[0] for name in (BLOCK, GRID))
        thread, block = launch_index("gpu.thread_id", threads), launch_index("gpu.block_id", blocks)
        group, warp, lane = (
            _apply(each, threads, thread)
            for each in (dim(0) // WARPGROUP_SIZE, dim(0) // WARP_SIZE, dim(0) % WARP_SIZE)
        )
        rank, own = (_apply(each, blocks, block) for each in (dim(0) % cluster, dim(0) // cluster))
        return cls(threads, thread, block, group, warp, lane, rank, own)


@dataclass(frozen=True)
class RowGroups:
    """The code that looks groups up; each thread that asks does, in as many steps as there are groups."""

    op: GroupRowsOp

    def tiles(self) -> ir.Value:
        """Return how many tiles there are down the array."""
        with self._each([i32(0), i32(0)]) as groups:
            row, tiles = groups.carried
            size = self._size(groups.counter, row)
            groups.carried = [ir.arith.addi(row, size), ir.arith.addi(tiles, self._tiles_of(size))]
        row, tiles = groups.results
        rest = ir.arith.subi(i32(self.op.total), row)
        return _as_index(ir.arith.addi(tiles, self._tiles_of(rest)))

    def look_up(self, number: ir.Value) -> Values:
        """Return what the operation returns of a tile: where its rows are read, their group, the first, how many."""
        wanted, total = as_i32(number), i32(self.op.total)
        with self._each([i32(0), i32(0), i32(self.op.groups), total, i32(0)]) as groups:
            row, tiles, *found = groups.carried
            size = self._size(groups.counter, row)
            found = self._choose(wanted, (row, tiles, size), as_i32(groups.counter), found)
            groups.carried = [ir.arith.addi(row, size), ir.arith.addi(tiles, self._tiles_of(size)), *found]
        row, tiles, *found = groups.results
        is_rest = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, found[0], i32(self.op.groups))
        left = (row, tiles, ir.arith.subi(total, row))
        group, first, count = self._choose(wanted, left, i32(self.op.groups), found)
        return [_as_index(each) for each in (ir.arith.select(is_rest, total, first), group, first, count)]

    def _each(self, inits: Values) -> AbstractContextManager[Loop]:
        return counted(create_index(0), create_index(self.op.groups), create_index(1), inits)

    def _choose(self, wanted: ir.Value, group: tuple[ir.Value, ...], number: ir.Value, before: Values) -> Values:
        """Return the number of a group, and first row and rows of the tile, if it is one of that group's.

        Of the ``group`` are given its first row, the number of its first tile, and its size.
        """
        row, tiles, size = group
        after = ir.arith.subi(wanted, tiles)
        is_inside = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, after, self._tiles_of(size))
        begin = ir.arith.muli(after, i32(self.op.rows))
        count = ir.arith.minsi(ir.arith.subi(size, begin), i32(self.op.rows))
        found = [number, ir.arith.addi(row, begin), count]
        return [ir.arith.select(is_inside, new, old) for new, old in zip(found, before, strict=True)]

    def _size(self, number: ir.Value, row: ir.Value) -> ir.Value:
        """Return how many rows a group has, of those that are left after those before."""
        tile = defining_op(self.op.sizes)
        assert tile is not None and isinstance(tile.opview, TileOp)
        zeros = [create_index(0) for _ in tile.opview.at]
        given = FragmentCode(zeros, [number], {}, tile.opview.map).value(self.op.sizes)
        none, total = (create_integer(each, given.type) for each in (0, self.op.total))
        size = ir.arith.minsi(ir.arith.maxsi(given, none), total)
        if str(size.type) != "i32":
            size = ir.arith.trunci(ir.IntegerType.get_signless(32), size)
        return ir.arith.minsi(size, ir.arith.subi(i32(self.op.total), row))

    def _tiles_of(self, size: ir.Value) -> ir.Value:
        """Return how many tiles so many rows are."""
        return ir.arith.divui(ir.arith.addi(size, i32(self.op.rows - 1)), i32(self.op.rows))


@dataclass(frozen=True)
class Order:
    """Which tiles a block computes one after the other: those of its cluster, which are one below the other.

    Or a cluster of ``split`` blocks computes one tile: each takes its part of the steps.
    """

    program: BlockProgram[BlockSchedule]
    place: Place
    cluster: int
    split: int = 1

    def tiles(self, inits: Sequence[ir.Value]) -> AbstractContextManager[Loop]:
        """Write the loop over the tiles of a block."""
        if self.split > 1:
            return once(self.place.cluster, inits)
        batch, down, along = self.program.blocks.grid
        count = create_index(batch * down * along // self.cluster)
        if self.program.grouped is not None:
            count = self._count_grouped(RowGroups(self.program.grouped))
        step = self.program.schedule.blocks // self.cluster
        return counted(self.place.cluster, count, create_index(step), inits)

    def _count_grouped(self, groups: RowGroups) -> ir.Value:
        """Return how many tiles there are in the bands with rows: after these come no more."""
        _, down, along = self.program.blocks.grid
        band = self.program.schedule.band
        whole = IndexingMap(ranges((down + 1,)), (), ((dim(0) + band - 1) // band * (band * along),))
        return ApplyIndexingOp.build(whole, [groups.tiles()])[0]

    def steps(self, inits: Sequence[ir.Value]) -> AbstractContextManager[Loop]:
        """Write the loop over the block's steps of a tile."""
        first, count = self.first_step, self.program.steps.count
        end = create_index(count) if self.split == 1 else self._first_step_of(dim(0) + 1)
        return counted(first, end, create_index(1), inits)

    @property
    def first_step(self) -> ir.Value:
        """The step with which the block begins a tile."""
        return create_index(0) if self.split == 1 else self._first_step_of(dim(0))

    def _first_step_of(self, rank: AffineExpr) -> ir.Value:
        """Return where the part of a rank begins, given by the block's own."""
        return _apply(rank * self.program.steps.count // self.split, self.split, self.place.rank)

    def numbers(self, tile: ir.Value) -> Values:
        """Return the numbers in the grid of a block's tile: bands of rows, each column by column.

        Then what its rows are, if they are in groups.
        """
        batch, down, along = self.program.blocks.grid
        map_ = tile_order((batch, down, along), self.cluster, self.program.schedule.band)
        at = ApplyIndexingOp.build(map_, [tile, self.place.rank if self.split == 1 else create_index(0)])
        return at if self.program.grouped is None else [*at, *RowGroups(self.program.grouped).look_up(at[1])]


def equal(value: ir.Value, number: int) -> ir.Value:
    """Return whether an index is a number."""
    return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, value, create_index(number))


def below(value: ir.Value, number: int) -> ir.Value:
    """Return whether an index is below a number."""
    return ir.arith.cmpi(ir.arith.CmpIPredicate.ult, value, create_index(number))


def take_registers(groups: int, device: Device) -> None:
    """Have the threads of ``groups`` warp groups that multiply take the registers that those that copy leave."""
    left = device.registers_per_sm // WARPGROUP_SIZE - _REGISTERS_OF_COPIES
    _set_registers(groups, left // groups // _REGISTER_STEP * _REGISTER_STEP, more=True)


def leave_registers(groups: int) -> None:
    """Have the threads that copy leave registers to ``groups`` warp groups that multiply."""
    _set_registers(groups, _REGISTERS_OF_COPIES, more=False)


def _set_registers(groups: int, count: int, more: bool) -> None:
    if groups > 1:
        SetRegistersOp.create(attributes={"count": count, "more": more})


def _apply(expression: AffineExpr, size: int, value: ir.Value) -> ir.Value:
    return ApplyIndexingOp.build(IndexingMap(ranges((size,)), (), (expression,)).simplify(), [value])[0]


def _as_index(value: ir.Value) -> ir.Value:
    return ir.arith.index_cast(ir.IndexType.get(), value)

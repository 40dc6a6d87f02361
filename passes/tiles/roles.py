"""The positions of a product's threads, and the order of a block's tiles: common to all roles."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

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
from xgpu.indexing.tiles.ragged_maps import GROUP_BYTES
from xgpu.indexing.tiles.tile_order import tile_order
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.support.scf_ops import create_index, create_integer
from xgpu.passes.tiles.block_program import ProductProgram, TileSchedule
from xgpu.passes.tiles.fragment_code import FragmentCode
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.structured import Values, WrittenLoop, counted, once
from xgpu.records import dataclass
from xgpu.structure import defining_op
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_REGISTERS_OF_COPIES = 40
_REGISTER_STEP = 8


@dataclass(frozen=True)
class ThreadNumbers:
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
    def compute(cls, kernel: ir.Operation, cluster: int) -> "ThreadNumbers":
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
    """The code that finds the group of a tile's rows, in a ``table`` in shared memory.

    Of each group it has how many tiles and rows there are before, then of what is left, and then of the end.
    """

    op: GroupRowsOp
    table: ir.Value

    @property
    def _end(self) -> int:
        return self.op.groups + 1

    def write_table(self) -> None:
        """Make the table; one thread executes it, and others read it after they have met."""
        with counted(create_index(0), create_index(self.op.groups), create_index(1), [i32(0), i32(0)]) as groups:
            before = groups.carried
            self._store(as_i32(groups.counter), before)
            groups.carried = self._after(before, self._size(groups.counter, before[1]))
        self._store(i32(self.op.groups), groups.results)
        left = ir.arith.subi(i32(self.op.total), groups.results[1])
        self._store(i32(self._end), self._after(groups.results, left))

    def tiles(self) -> ir.Value:
        """Return how many tiles there are down the array."""
        return _as_index(self._load(i32(self._end), 0))

    def look_up(self, number: ir.Value) -> Values:
        """Return what the operation returns of a tile: where its rows are read, their group, the first, how many.

        It is in the last group before which there are no more tiles than before itself.
        """
        wanted, total, end, place = as_i32(number), i32(self.op.total), i32(self._end), i32(0)
        for bit in reversed(range(self._end.bit_length())):
            further = ir.arith.minsi(ir.arith.addi(place, i32(1 << bit)), end)
            is_before = ir.arith.cmpi(ir.arith.CmpIPredicate.sle, self._load(further, 0), wanted)
            place = ir.arith.select(is_before, further, place)
        row, after = self._load(place, 1), self._load(ir.arith.minsi(ir.arith.addi(place, i32(1)), end), 1)
        begin = ir.arith.muli(ir.arith.subi(wanted, self._load(place, 0)), i32(self.op.rows))
        first = ir.arith.minsi(ir.arith.addi(row, begin), total)
        size = ir.arith.subi(ir.arith.subi(after, row), begin)
        count = ir.arith.maxsi(ir.arith.minsi(size, i32(self.op.rows)), i32(0))
        is_left = ir.arith.cmpi(ir.arith.CmpIPredicate.sge, place, i32(self.op.groups))
        group = ir.arith.minsi(place, i32(self.op.groups))
        return [_as_index(each) for each in (ir.arith.select(is_left, total, first), group, first, count)]

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

    def _after(self, before: Values, size: ir.Value) -> Values:
        """Return how many tiles and rows there are with so many rows more."""
        tiles = ir.arith.divui(ir.arith.addi(size, i32(self.op.rows - 1)), i32(self.op.rows))
        return [ir.arith.addi(old, new) for old, new in zip(before, (tiles, size), strict=True)]

    def _store(self, place: ir.Value, numbers: Values) -> None:
        for which, number in enumerate(numbers):
            store(number, self._at(place, which), GROUP_BYTES // 2)

    def _load(self, place: ir.Value, which: int) -> ir.Value:
        return load(self._at(place, which), ir.IntegerType.get_signless(32), GROUP_BYTES // 2)

    def _at(self, place: ir.Value, which: int) -> ir.Value:
        own = ir.arith.muli(place, i32(GROUP_BYTES))
        return offset(offset(self.table, which * GROUP_BYTES // 2), own)


@dataclass(frozen=True)
class TileOrder:
    """The order in which a block computes tiles: those of its cluster, which are one below the other.

    Or a cluster of ``split`` blocks computes one tile: each takes its part of the steps. ``groups`` finds the rows of a
    tile if they are in groups.
    """

    program: ProductProgram[TileSchedule]
    place: ThreadNumbers
    cluster: int
    split: int = 1
    groups: RowGroups | None = None

    def tiles(self, inits: Sequence[ir.Value]) -> AbstractContextManager[WrittenLoop]:
        """Write the loop over the tiles of a block."""
        if self.split > 1:
            return once(self.place.cluster, inits)
        batch, down, along = self.program.blocks.grid
        count = create_index(batch * down * along // self.cluster)
        if self.groups is not None:
            count = self._count_grouped(self.groups)
        step = self.program.schedule.blocks // self.cluster
        return counted(self.place.cluster, count, create_index(step), inits)

    def _count_grouped(self, groups: RowGroups) -> ir.Value:
        """Return how many tiles there are in the bands with rows: after these come no more."""
        _, down, along = self.program.blocks.grid
        band = self.program.schedule.band
        whole = IndexingMap(ranges((down + 1,)), (), ((dim(0) + band - 1) // band * (band * along),))
        return ApplyIndexingOp.build(whole, [groups.tiles()])[0]

    def steps(self, inits: Sequence[ir.Value]) -> AbstractContextManager[WrittenLoop]:
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
        return at if self.groups is None else [*at, *self.groups.look_up(at[1])]


def equal(value: ir.Value, number: int) -> ir.Value:
    """Return whether an index is a number."""
    return ir.arith.cmpi(ir.arith.CmpIPredicate.eq, value, create_index(number))


def below(value: ir.Value, number: int) -> ir.Value:
    """Return whether an index is below a number."""
    return ir.arith.cmpi(ir.arith.CmpIPredicate.ult, value, create_index(number))


def take_registers(groups: int, device: Device, kept: int = _REGISTERS_OF_COPIES) -> None:
    """Have the threads of ``groups`` warp groups that multiply take what those that copy leave, but for those kept."""
    # A block has as many registers as its threads begin with: more would be waited for without end.
    begin = device.registers_per_sm // ((groups + 1) * WARPGROUP_SIZE) // _REGISTER_STEP * _REGISTER_STEP
    left = begin * (groups + 1) - kept
    _set_registers(groups, left // groups // _REGISTER_STEP * _REGISTER_STEP, more=True)


def leave_registers(groups: int, kept: int = _REGISTERS_OF_COPIES) -> None:
    """Have the threads that copy keep so many registers, and leave the others to warp groups that multiply."""
    _set_registers(groups, kept, more=False)


def _set_registers(groups: int, count: int, more: bool) -> None:
    if groups > 1:
        SetRegistersOp.create(attributes={"count": count, "more": more})


def _apply(expression: AffineExpr, size: int, value: ir.Value) -> ir.Value:
    return ApplyIndexingOp.build(IndexingMap(ranges((size,)), (), (expression,)).simplify(), [value])[0]


def _as_index(value: ir.Value) -> ir.Value:
    return ir.arith.index_cast(ir.IndexType.get(), value)

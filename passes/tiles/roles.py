"""The positions of a product's threads, and the order of a block's tiles: common to all roles."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects.attributes import BLOCK, GRID, int_array_of
from xgpu.dialects.block.waits import SetRegistersOp
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.emit.builders import launch_index
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.tile_order import tile_order
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import BlockProgram, BlockSchedule
from xgpu.passes.tiles.structured import Loop, Values, counted, once
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
class Order:
    """The order in which a block computes tiles: those of its cluster, which are one below the other.

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
        count = batch * down * along // self.cluster
        step = self.program.schedule.blocks // self.cluster
        return counted(self.place.cluster, create_index(count), create_index(step), inits)

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
        """Return the numbers in the grid of a block's tile: bands of rows, each column by column."""
        batch, down, along = self.program.blocks.grid
        map_ = tile_order((batch, down, along), self.cluster, self.program.schedule.band)
        return ApplyIndexingOp.build(map_, [tile, self.place.rank if self.split == 1 else create_index(0)])


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

"""The state while a block's code is written: the places of its tiles, and the numbers of block and step."""

from collections.abc import Callable, Collection
from dataclasses import field

from xgpu import ir
from xgpu.dialects.block.tiles import TileOp
from xgpu.indexing.affine import AffineExpr
from xgpu.passes.tiles.blocks.barriers import BlockBarriers
from xgpu.passes.tiles.blocks.bulk_copies import BulkCopies
from xgpu.passes.tiles.blocks.memory.shared import SharedTile
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.products.fragments import FragmentTile, PendingTile
from xgpu.passes.tiles.blocks.program import ScheduledKernel
from xgpu.records import dataclass


@dataclass(eq=False)
class State:
    """The variables of the kernel so far, and its tiles in shared memory and in registers.

    ``numbers`` has the expression of each number of block and step, ``pointers`` the address of each array. ``memory``
    is the block's shared memory, ``barriers`` has its threads meet. In steps ``start_ahead`` writes the start of a
    later step's copy of a tile; ``bulk`` are the copies by TMA, if there are some. ``started`` are the products of warp
    groups that are waited for where their results are read, in order; those ``under_way`` go on in the next step.
    """

    kernel: ScheduledKernel
    space: AddressSpace
    memory: ir.Value
    barriers: BlockBarriers
    pointers: dict[ir.Value, ir.Value]
    numbers: dict[ir.Value, AffineExpr] = field(default_factory=dict)
    shared: dict[ir.Value, SharedTile] = field(default_factory=dict)
    fragments: dict[ir.Value, FragmentTile] = field(default_factory=dict)
    under_way: dict[ir.Value, PendingTile] = field(default_factory=dict)
    started: dict[ir.Value, PendingTile] = field(default_factory=dict)
    bulk: BulkCopies | None = None
    pending: Collection[ir.Operation] = ()
    start_ahead: Callable[[TileOp], None] | None = None

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.kernel.threads

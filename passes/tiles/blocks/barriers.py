"""Barriers of a block, and the fences before them: products of warp groups, and TMA, come after writes of threads."""

from xgpu.dialects.block.waits import FenceOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.passes.tiles.blocks.memory.shared import TileLayout
from xgpu.records import dataclass


@dataclass(eq=False)
class BlockBarriers:
    """The barriers at which the threads of a block meet, in the order in which their code is written.

    ``asynchronous`` are the bytes, from the first to the one after the last, that warp groups multiply or TMA writes.
    A thread that has written some of them fences its writes before it meets the others.
    """

    asynchronous: tuple[tuple[int, int], ...]
    is_open: bool = False
    """Whether a thread may have written what it has not fenced."""

    def wrote(self, layout: TileLayout) -> None:
        """Note that threads write a tile, or wait for what their copies wrote."""
        overlaps = any(begin < layout.end and layout.start < end for begin, end in self.asynchronous)
        self.is_open = self.is_open or overlaps

    def meet(self) -> None:
        """Have all threads meet."""
        if self.is_open:
            FenceOp.create(attributes={"kind": "async"})
            self.is_open = False
        SyncThreadsOp.build([])

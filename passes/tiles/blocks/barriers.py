"""Barriers of a block, and the fences before them: products of warp groups see writes of threads only after these."""

from xgpu.dialects.block.waits import FenceOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.passes.tiles.blocks.memory.shared import TileLayout
from xgpu.records import dataclass


@dataclass(eq=False)
class BlockBarriers:
    """The barriers at which the threads of a block meet, in the order in which their code is written.

    ``read`` are the bytes, from the first to the one after the last, that instructions of warp groups read. A thread
    that has written some of them fences its writes before it meets the others.
    """

    read: tuple[tuple[int, int], ...]
    is_open: bool = False
    """Whether a thread may have written what it has not fenced."""

    def wrote(self, layout: TileLayout) -> None:
        """Note that threads write a tile, or wait for what their copies wrote."""
        self.is_open = self.is_open or self.is_read(layout)

    def is_read(self, layout: TileLayout) -> bool:
        """Whether warp groups multiply what may lie in a tile's bytes."""
        return any(first < layout.end and layout.start < end for first, end in self.read)

    def meet(self) -> None:
        """Have all threads meet."""
        if self.is_open:
            FenceOp.create(attributes={"kind": "async"})
            self.is_open = False
        SyncThreadsOp.build([])

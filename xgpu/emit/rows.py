"""The row emitter: several reductions of the same rows one after the other, and what is made of them, in one kernel.

A group of threads has a row, and holds what it reads of it: each stage walks the same elements, those that come after a
reduction with its result, which every thread of the row has. So softmax and norms read their operand once. (Source:
XLA's fusion of softmax, which it has Triton compile.)
"""

from xgpu.emit.base import Fusion
from xgpu.emit.reduce_row import RowReductionEmitter, RowTiling
from xgpu.emit.reduction import Reductions


class RowsEmitter(RowReductionEmitter):
    """Emits a fusion around reductions of rows that need each other's results."""

    NAME = "rows"

    def __init__(self, fusion: Fusion):
        super().__init__(fusion)
        self.stages = Reductions.stages(fusion)
        self.tiling = RowTiling.of_held_rows(
            self.reductions.shape,
            self.reductions.widths,
            [start for stage in self.stages for start in stage.starts],
            fusion.device,
            self.reductions.longest_vector,
        )

"""The row emitter: several reductions of the same rows one after the other, and what is made of them, in one kernel.

A group of threads has a row, and holds what it reads of it: each stage walks the same elements, those that come after a
reduction with its result, which every thread of the row has. So softmax and norms read their operand once. (Source:
XLA's fusion of softmax, which it has Triton compile.)
"""

from xgpu import ir
from xgpu.emit.base import Fusion, LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values
from xgpu.emit.reduce_row import RowTiling, emit_row_results, emit_stage
from xgpu.emit.reduction import Reductions
from xgpu.indexing.indexing_map import IndexingMap


class RowsEmitter:
    """Emits a fusion around reductions of rows that need each other's results."""

    NAME = "rows"

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.reductions = Reductions(fusion)
        self.stages = Reductions.stages(fusion)
        self.tiling = RowTiling.of_held_rows(
            self.reductions.shape,
            self.reductions.widths,
            [start for stage in self.stages for start in stage.starts],
            fusion.device,
            self.reductions.longest_vector,
        )

    def launch_dimensions(self) -> LaunchDimensions:
        """A group of threads for each row."""
        return self.tiling.threads.launch

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[steps] -> indices."""
        if output in self.reductions.side_outputs:
            return self.tiling.reading().simplify()
        form = next(each.form for each in self.reductions.epilogues if output in each.numbers)
        return self.tiling.writing().compose(form.forward).simplify()

    def emit(self) -> None:
        """Write the entry function, then the functions that it calls."""
        block = entry_function(self.fusion, self)
        arguments: Values = list(block.arguments)
        inputs, outputs = arguments[: len(self.fusion.parameter_types)], arguments[len(self.fusion.parameter_types) :]
        with ir.InsertionPoint(block):
            position = thread_and_block(self.launch_dimensions())
            given: Values = []
            for stage in self.stages:
                given = [*given, *emit_stage(stage, self.tiling, position, inputs, outputs, given)]
            if self.reductions.epilogue_outputs:
                accumulators = self._in_order(given)
                emit_row_results(self.reductions, self.tiling, position, inputs, accumulators, outputs)
            ir.func.return_(outputs)
        for stage in self.stages:
            stage.emit_functions()
        self.reductions.emit_epilogues()

    def _in_order(self, given: Values) -> Values:
        """Return what the stages end as in the order of the heroes in the fusion."""
        values = dict(zip((value for stage in self.stages for value in stage.results), given, strict=True))
        return [values[value] for value in self.reductions.results]

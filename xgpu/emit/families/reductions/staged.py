"""Base of the emitters of reductions: kernels that read what they reduce, exchange accumulators, and store results.

Reductions that need each other's results are stages, one after the other; a kernel of others has one stage.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from xgpu import ir
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import Values
from xgpu.emit.families.reductions.reduction import Reductions
from xgpu.emit.kernel_builder import Emits, KernelBuilder, KernelTile, emit_alone, loop
from xgpu.emit.reduction_tiling import Groups
from xgpu.indexing.indexing_map import IndexingMap


class Tiling(Protocol):
    """The division of what is reduced among groups of threads."""

    @property
    def threads(self) -> Groups:
        """The groups, and the threads of each."""

    def reading(self) -> IndexingMap:
        """Return (thread, block)[steps] -> indices of the elements that a thread reads."""

    def writing(self) -> IndexingMap:
        """Return (thread, block)[steps] -> indices of the results that a thread stores."""


class ReductionEmitter[T: Tiling](ABC):
    """Emits a fusion around reductions, in ``stages`` of those that do not need each other's results."""

    NAME: str

    def __init__(self, facts: Reductions, stages: Sequence[Reductions], tiling: T):
        self.fusion = facts.fusion
        self.reductions = facts
        self.stages = stages
        self.tiling = tiling

    def launch_dimensions(self) -> LaunchDimensions:
        """A group of threads for each row, or stretch of columns."""
        return self.tiling.threads.launch

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[steps] -> indices."""
        if output in self.reductions.side_outputs:
            return self.tiling.reading().compose(self.reductions.element_map(output)).simplify()
        return self.reductions.epilogues.output_map(output, self.results_map())

    def results_map(self) -> IndexingMap:
        """Return (thread, block)[steps] -> indices of the results that a thread stores."""
        return self.tiling.writing()

    def emit(self) -> None:
        """Write the entry function, then the functions that it calls."""
        emit_alone(self)

    @property
    def functions(self) -> list[Emits]:
        """Those of the stages and of the epilogue."""
        return [*self.stages, self.reductions.epilogues]

    @property
    @abstractmethod
    def tile_size(self) -> int:
        """The elements of a tile in which warps exchange an accumulator."""

    @property
    def tiles(self) -> list[KernelTile]:
        """One of each accumulator that warps exchange."""
        return [tile for stage in self.stages for tile in self.tiles_of(stage)]

    def tiles_of(self, stage: Reductions) -> list[KernelTile]:
        """Return one for each accumulator of a stage, if several warps have parts of it."""
        is_exchanged = self.tiling.threads.warps > 1
        return [KernelTile(self.tile_size, type_) for type_ in stage.accumulator_types if is_exchanged]

    @abstractmethod
    def write(self, kernel: KernelBuilder) -> None:
        """Write what its blocks do."""


class StagedEmitter[T: Tiling](ReductionEmitter[T]):
    """Emits a fusion in which all threads of a group have the results of a stage, for the next ones."""

    def write(self, kernel: KernelBuilder) -> None:
        """Write what its blocks do."""
        reductions, position = self.reductions, kernel.position
        ended: dict[ir.Value, ir.Value] = {}
        for stage in self.stages:
            own = self.emit_reads(kernel, stage, list(ended.values()))
            ended |= zip(stage.results, self.emit_exchange(kernel, stage, own), strict=True)
        reductions.emit_wait(kernel, self.tiling.threads, bool(self.stages[-1].heroes))
        if outputs := [kernel.outputs[i] for i in reductions.epilogue_outputs]:
            with loop(self.tiling.writing(), position, outputs) as each:
                values = [ended[value] for value in reductions.results]
                reductions.epilogues.emit_stores(kernel, each.result_arguments, values)

    @abstractmethod
    def emit_reads(self, kernel: KernelBuilder, stage: Reductions, given: Values) -> Values:
        """Read what a stage reduces, and store its side outputs; return the thread's accumulators.

        ``given`` are the scalars that earlier stages end as.
        """

    @abstractmethod
    def emit_exchange(self, kernel: KernelBuilder, stage: Reductions, own: Values) -> Values:
        """Combine the accumulators of a group of threads, and return the results."""

"""Merges column programs: row programs of reductions whose elements are no neighbours in memory."""

from collections.abc import Sequence

from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.costs.registers import FEWEST_COLUMNS, longest_column
from xgpu.device import Device
from xgpu.fusion.grouping.decisions import Decision
from xgpu.fusion.grouping.families import KernelFamily
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.row_programs import RowPrograms, merge_programs, whole_widths
from xgpu.fusion.grouping.merging.row_traces import RowProgram
from xgpu.reasons import Reason
from xgpu.target_machine import WARP_SIZE

_FEW = "columns that lie beside each other in memory are fewer than {}"
_NOTHING_SHARED = Reason("it reads none of the arrays whose columns are held, which are read by short lines")


def merge_columns(family: KernelFamily, target: Device, grouping: Grouping) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with programs of columns merged, as `merge_rows` does with those of rows."""
    return merge_programs(_ColumnPrograms(family, target, grouping))


class _ColumnPrograms(RowPrograms):
    """The same for columns: neighbouring lanes have neighbouring ones, and hold them where they are short."""

    LONG = "columns of {:,} elements: the threads of a block hold {:,}"

    def candidates(self) -> list[Group]:
        """Return the kernels of reductions of columns: those of rows were asked before."""
        return [group for group in super().candidates() if not ReductionShape.of(group.heroes[0]).is_rows]

    def misshapen(self, shape: ReductionShape) -> Reason | None:
        """Return why reductions of this shape start no program."""
        if self._target.in_turn:
            return Reason("threads that run in turn hold no columns from one reduction to the next")
        if len(shape.reduced) != 1:
            return Reason("the reduction is not one of columns")
        few = shape.kept[-1] < FEWEST_COLUMNS
        return Reason(_FEW, (FEWEST_COLUMNS,)) if few else None

    def longest(self, read: Sequence[int], stored: Sequence[int]) -> int:
        """Return how many elements a column has at most."""
        return longest_column(read)

    def saves_nothing(self, group: Group, program: RowProgram) -> Reason | None:
        """Blocks with columns of fewer than a warp's lanes are to save the reading of an array."""
        before = {value for member in program.members for value in self.read(member)}
        read, roots = self.read(group), set(program.roots)
        widths = whole_widths((before | read) - roots, program.shape)
        if program.shape.per_result <= longest_column(widths, WARP_SIZE):
            return None
        return None if whole_widths((before | roots) & read, program.shape) else _NOTHING_SHARED

"""Facts of a block's operations for groupings: they are the same however often the values are grouped."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import cached_property

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.in_place import UPDATE_SLICE, can_update_in_place, updated_operands
from xgpu.device import Device
from xgpu.fusion.fallback import BARRIER, fallback_reason
from xgpu.fusion.grouping.families import Families, Kind
from xgpu.records import dataclass


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """The ``operations`` of a block, but for its terminator, and the ``results`` that are stored in any case.

    ``families`` are those of the kernels that there may be, ``target`` is the device that they are for.
    """

    operations: Sequence[ir.Operation]
    results: Sequence[ir.Value]
    families: Families
    target: Device

    @cached_property
    def made(self) -> Set[ir.Value]:
        """The results of the operations."""
        return {value for op in self.operations for value in op.results}

    @cached_property
    def order(self) -> Mapping[ir.Operation, int]:
        """The number of each operation."""
        return {op: number for number, op in enumerate(self.operations)}

    @cached_property
    def fall_back(self) -> Sequence[bool]:
        """Whether each operation is one that kernels cannot compute."""
        return [fallback_reason(op) is not None for op in self.operations]

    @cached_property
    def kinds(self) -> Sequence[Kind | None]:
        """The kind of hero that each operation is; None for one that is none, or that kernels cannot compute."""
        pairs = zip(self.operations, self.fall_back, strict=True)
        return [None if falls_back else self.families.kind_of(op) for op, falls_back in pairs]

    @cached_property
    def kept(self) -> Counter[ir.Value]:
        """For each array in memory at the end, or updated in place, how many operations update it.

        An array and its bitcasts count as one; what a barrier hands on is the same memory under another name.
        """
        kept = Counter(dict.fromkeys(map(behind_bitcasts, self.results), 0))
        for op in reversed(self.operations):
            if op.name == BARRIER:
                pairs = zip(op.operands, op.results, strict=True)
                kept.update({behind_bitcasts(operand): 0 for operand, result in pairs if result in kept})
            if (op.name != UPDATE_SLICE or op.results[0] in kept) and can_update_in_place(op):
                kept.update(map(behind_bitcasts, updated_operands(op)))
        return kept

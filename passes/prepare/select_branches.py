"""The pass `select-branches`."""

import math
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.control_flow import planned_blocks
from xgpu.analysis.heroes import is_hero
from xgpu.costs.time import bytes_per_instruction, launch_bytes
from xgpu.costs.values import byte_size, elements, instructions
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.fusion.fallback import CONTRACTIONS, fallback_reason
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import hlo, splat_like
from xgpu.indexing.hlo_maps import accesses
from xgpu.passes.framework.base import OperationRewrite, main_of
from xgpu.records import dataclass
from xgpu.structure import captured, moved_before, replace_op

_LAUNCHES = 4
"""Cost of a branch, in launches: a graph in the graph or a wait of the host, and copies of what it returns."""


@dataclass(frozen=True)
class SelectBranches(OperationRewrite):
    """Computes all branches of an `if` or `case`, and selects from their results, where that takes less than to branch.

    Kernels then reach through it, and a loop whose body branches may be one kernel. The branches are those that kernels
    compute without a library, nothing is updated in place, and all they read, compute and return takes less time than
    a few launches. An index out of range means the last branch. Needs: nothing.

    ```mlir
    %r = "stablehlo.if"(%p) ({
      %a = stablehlo.sine %x : tensor<8xf32>
      stablehlo.return %a : tensor<8xf32>
    }, {
      stablehlo.return %x : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %a = stablehlo.sine %x : tensor<8xf32>
    %r = stablehlo.select %p, %a, %x : tensor<i1>, tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "select-branches"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.if", "stablehlo.case"))
    target: DeviceName = DEFAULT_DEVICE
    """The device that says what a launch costs."""

    def apply(self, module: ir.Module) -> None:
        """Rewrite every block of the function ``main``, inner ones first: a branch that is selected is no branch."""
        for block in reversed(list(planned_blocks(main_of(module).entry_block, self.WITH_CONDITIONS))):
            self.rewrite_block(block)

    def rewrite(self, op: ir.Operation) -> None:
        """Replace ``op`` by the operations of its branches, if they cost little."""
        if not all(isinstance(result.type, ir.RankedTensorType) for result in op.results):
            return
        if not all(_is_cheap_kind(each) for each in _operations(op)):
            return
        target = self.target.device
        if _bytes(op, target) > _LAUNCHES * launch_bytes(target):
            return
        branches = [moved_before(op, region.blocks[0]) for region in op.regions]
        chosen = branches[-1]
        for number, results in reversed(list(enumerate(branches[:-1]))):
            is_chosen = _is_chosen(op, number)
            pairs = zip(results, chosen, strict=True)
            chosen = [one if one == other else hlo.select(is_chosen, one, other) for one, other in pairs]
        replace_op(op, chosen)


def _operations(op: ir.Operation) -> list[ir.Operation]:
    """Return the operations of all branches, without those that end them."""
    return [view.operation for region in op.regions for view in list(region.blocks[0].operations)[:-1]]


def _is_cheap_kind(op: ir.Operation) -> bool:
    """Whether kernels compute ``op`` anywhere, as a part of others."""
    return op.name in OPERATIONS and op.name not in CONTRACTIONS and fallback_reason(op) is None


def _bytes(op: ir.Operation, target: Device) -> float:
    """Return the bytes that memory moves in the time that the branches take one after the other."""
    moved = sum(byte_size(value) for value in captured(op))
    moved += sum(byte_size(result) for result in op.results) * len(op.regions)
    made = [each for each in _operations(op) if len(each.results)]
    # Each hero is a kernel that those before it keep waiting.
    moved += launch_bytes(target) * sum(map(is_hero, made))
    return moved + sum(_instruction_bytes(each, target) for each in made)


def _instruction_bytes(op: ir.Operation, target: Device) -> float:
    """Return the bytes that memory moves while a kernel executes ``op`` for all elements, of each those it combines."""
    combined = max((math.prod(span.size for span in access.map.symbols) for access in accesses(op)), default=1)
    threads = max(1, elements(op.results[0]))
    return bytes_per_instruction(target, threads) * instructions(op) * threads * combined


def _is_chosen(op: ir.Operation, number: int) -> ir.Value:
    """Return whether the branch of this ``number``, not the last one, is the one to take."""
    choice = op.operands[0]
    if op.name == "stablehlo.if":
        return choice
    direction = hlo.ComparisonDirectionAttr.get("EQ")
    return hlo.compare(choice, splat_like(number, choice), direction)

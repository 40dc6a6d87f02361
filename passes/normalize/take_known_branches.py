"""The pass `take-known-branches`."""

from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.evaluator import Evaluator, is_known
from xgpu.costs.values import elements
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op, moved_before, replace_op

_SELECT = "stablehlo.select"


@dataclass(frozen=True)
class TakeKnownBranches(ModuleRewrite):
    """Puts the operations of a branch in place of an `if` or `case` that always takes it, and values for such selects.

    Such are those of one branch, which `jax.lax.platform_dependent` leaves for one platform, and those whose index
    follows from constant numbers, as that of `jax.lax.switch` does after it was clamped. One that is out of range means
    the last branch. A `select` between a value and itself is that value: `jax.vmap` makes one of each state that a loop
    hands on. Needs: nothing.

    ```mlir
    %0 = "stablehlo.case"(%index) ({
      %1 = stablehlo.sine %x : tensor<8xf32>
      stablehlo.return %1 : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.sine %x : tensor<8xf32>
    ```
    and `stablehlo.select %p, %x, %x` becomes `%x`.
    """

    NAME: ClassVar[str] = "take-known-branches"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.if", "stablehlo.case", _SELECT))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace ``op`` by the branch that it takes, if that is known."""
        if op.name == _SELECT:
            _, chosen, other = op.operands
            if chosen == other:
                replace_op(op, [chosen])
        elif (number := _known_branch(op)) is not None:
            replace_op(op, moved_before(op, op.regions[number].blocks[0]))


def _known_branch(op: ir.Operation) -> int | None:
    """Return the number of the branch that ``op`` always takes, None if that depends on its operand."""
    last = len(op.regions) - 1
    if not last:
        return 0
    if (index := _number(op.operands[0])) is None:
        return None
    if op.name == "stablehlo.if":
        return 0 if index else 1
    return index if 0 <= index <= last else last


def _number(value: ir.Value) -> int | None:
    """Return a number that follows from constant numbers alone; None for any other."""
    known, pending = set[ir.Operation](), [value]
    while pending:
        op = defining_op(pending.pop())
        if op is None or elements(op.results[0]) != 1 or not is_known(op):
            return None
        if op not in known:
            known.add(op)
            pending += op.operands
    array = Evaluator(known).array(value)
    return None if array is None else int(array.item())

"""The pass `hoist-calls`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.traits import is_pure
from xgpu.dialects.xgpu import PureCallOp
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.ranges import constant_of
from xgpu.records import dataclass
from xgpu.structure import block_of, body_of, walk


@dataclass(frozen=True)
class HoistCalls(Pass):
    """Moves loop-invariant calls out of loops, with the scalar operations that they need.

    MLIR's loop-invariant-code-motion moves what MLIR knows to be pure, which calls of subgraph functions are not: what
    depends on them would stay in the loop as well, such as whether the indices of a scatter are in bounds. Only calls
    that every iteration makes, of loops that have one, so that nothing is computed that was not before.
    Needs: nothing. Run it after simplify-indexing, which moves indices, and before loop-invariant-code-motion.

    ```mlir
    scf.for %i = %c0 to %c4 step %c1 {
      %row = "xgpu.pure_call"(%rows, %n) {callee = @row} : (tensor<9xi32>, index) -> i32
      ...
    }
    ```
    becomes
    ```mlir
    %row = "xgpu.pure_call"(%rows, %n) {callee = @row} : (tensor<9xi32>, index) -> i32
    scf.for %i = %c0 to %c4 step %c1 {...}
    ```
    """

    NAME: ClassVar[str] = "hoist-calls"

    def apply(self, module: ir.Module) -> None:
        """Move the calls of every loop of ``module``, inner loops first."""
        for loop in walk(module.operation, "scf.for"):
            if _iterates(loop):
                for op in _needed_by_calls(_invariant(loop)):
                    op.move_before(loop)


def _iterates(loop: ir.Operation) -> bool:
    """Whether ``loop`` is known to have an iteration."""
    lower, upper = (constant_of(value) for value in list(loop.operands)[:2])
    return lower is not None and upper is not None and lower < upper


def _invariant(loop: ir.Operation) -> list[ir.Operation]:
    """Return the operations directly in ``loop`` that give the same values in each iteration, in order."""
    body, found, values = body_of(loop), list[ir.Operation](), set[ir.Value]()
    for view in body.operations:
        op = view.operation
        is_alone = not len(op.regions) and is_pure(op.name)
        if is_alone and all(block_of(value) != body or value in values for value in op.operands):
            found.append(op)
            values.update(op.results)
    return found


def _needed_by_calls(operations: list[ir.Operation]) -> list[ir.Operation]:
    """Return the calls among ``operations``, and those of them that the calls depend on, in order."""
    found, values = list[ir.Operation](), set[ir.Value]()
    for op in reversed(operations):
        if op.name == PureCallOp.OPERATION_NAME or not values.isdisjoint(op.results):
            found.append(op)
            values.update(op.operands)
    return found[::-1]

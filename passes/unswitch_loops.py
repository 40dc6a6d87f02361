"""The pass `unswitch-loops`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import map_of
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import is_heard, remark
from xgpu.passes.support.branches.instructions import LOAD, SAVED, Called, numbers_loaded
from xgpu.passes.support.branches.warps import is_place, shares_of_warps
from xgpu.passes.support.regions import resolve_conditional, unroll_of, waits_for_threads
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import block_of, body_of, count_ops, defining_op, walk

_IF = "scf.if"
_HOISTED = frozenset((ApplyIndexingOp.OPERATION_NAME, InDomainOp.OPERATION_NAME, "tensor.extract"))
_UNSAFE = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")
"""Beginnings of the names of operations that may stop a program, where a loop that has none of its steps would not."""


@dataclass(frozen=True)
class UnswitchLoops(Pass):
    """Moves loop-invariant conditionals out of loops, with a version of the loop for each outcome.

    A branch inside a loop prevents vectorised accesses and keeps iterations from overlapping. Inner loops go first, so
    what they are switched by can leave the loops around them as well. Loops marked ``xgpu.unroll = "none"`` are left
    alone: few threads execute them. So are loops with a barrier or shuffle: threads may take different versions. A
    warp whose threads do runs both, one after the other: a conditional stays where warps would execute more of the
    rest of the loop again than its loads save. Needs: conditions hoisted out of the loops (simplify-indexing,
    loop-invariant-code-motion); what became invariant since, such as an index that canonicalize made constant, is
    hoisted here. Run canonicalize before it, which makes short conditionals selections. Remarks say which conditionals
    stay in loops, and why.

    ```mlir
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %init) -> (f32) {
      %x = scf.if %inside -> (f32) {...} else {...}
      ...
    }
    ```
    becomes
    ```mlir
    %r = scf.if %inside -> (f32) {
      %r0 = scf.for ...  // with the first branch only
      scf.yield %r0 : f32
    } else {
      %r1 = scf.for ...  // with the second branch only
      scf.yield %r1 : f32
    }
    ```
    """

    NAME: ClassVar[str] = "unswitch-loops"
    max_ops: int = 1024
    """Operations that the versions of one loop may have beyond those of the loop."""
    max_depth: int = 8
    """Limit of nested versions of a loop: conditionals that one may be chosen by."""

    def apply(self, module: ir.Module) -> None:
        """Unswitch every loop of ``module``."""
        called = Called(module)
        for loop in walk(module.operation, "scf.for"):
            if unroll_of(loop) == "none":
                continue
            if not waits_for_threads(loop):
                self._unswitch(loop, called)
            elif is_heard():
                _remark_conditional(
                    loop, Reason("threads of a block meet in the loop, and may not take different versions")
                )

    def _unswitch(self, loop: ir.Operation, called: Called) -> None:
        budget = self.max_ops
        pending = [(loop, 0)]
        while pending:
            version, depth = pending.pop()
            _hoist(version)
            conditional = _invariant_conditional(version, called)
            if conditional is None:
                if is_heard():
                    _remark_conditional(version, Reason("its condition changes in the loop"))
                continue
            if depth == self.max_depth:
                _remark(conditional, Reason("max-depth={} others choose the version of the loop", (depth,)))
                continue
            branches = count_ops(conditional, self.max_ops)
            growth = count_ops(version, self.max_ops + branches) - branches
            if growth > budget:
                reason = Reason(
                    "another version is {} operations, {} of max-ops={} are left", (growth, budget, self.max_ops)
                )
                _remark(conditional, reason)
                continue
            budget -= growth
            pending += [(new, depth + 1) for new in _split(version, conditional.operands[0])]


def _hoist(loop: ir.Operation) -> None:
    """Move what conditions are computed of out of ``loop``, where its operands allow.

    MLIR's pass moves no operation of ours, nor what reads its result.
    """
    body = body_of(loop)
    for view in list(body.operations):
        op = view.operation
        is_cheap = op.name.startswith("arith.") and not op.name.startswith(_UNSAFE)
        if (is_cheap or op.name in _HOISTED) and not any(block_of(value) == body for value in op.operands):
            op.move_before(loop)


def _invariant_conditional(loop: ir.Operation, called: Called) -> ir.Operation | None:
    """Return the first `scf.if` directly in ``loop`` whose condition is computed outside, if versions for it pay."""
    body = body_of(loop)
    for view in body.operations:
        op = view.operation
        if op.name == _IF and block_of(op.operands[0]) != body:
            if not _divides_warps(loop, op, called):
                return op
            if is_heard():
                _remark(op, Reason("threads of a warp would execute both versions of the loop"))
    return None


def _divides_warps(loop: ir.Operation, conditional: ir.Operation, called: Called) -> bool:
    """Whether a condition would let warps execute again more of a loop than the versions save of waiting for loads.

    Conditionals around stores are bounds of arrays, at which warps are rarely divided. So are those without loads, for
    which accesses beside them would be no vectors.
    """
    asked = defining_op(conditional.operands[0])
    if asked is None or asked.name != InDomainOp.OPERATION_NAME or not all(map(is_place, asked.operands)):
        return False
    alike = [op for op in walk(loop, _IF) if op.operands[0] == conditional.operands[0]]
    if any(isinstance(result.type, ir.RankedTensorType) for op in alike for result in op.results):
        return False
    shares = shares_of_warps(map_of(asked.attributes["map"]), list(asked.operands))
    loads = sum(map(numbers_loaded, alike))
    if shares is None or not loads:
        return False
    repeated = _computed(loop, called) - sum(_computed(op, called) for op in alike)
    return (1 - sum(shares)) * repeated > SAVED * LOAD * loads


def _computed(op: ir.Operation, called: Called) -> int:
    """Return about how many instructions are in ``op``, without loads, which versions do several at a time."""
    return called.instructions(op) - LOAD * len(walk(op, "tensor.extract"))


def _remark(conditional: ir.Operation, reason: Reason) -> None:
    remark(UnswitchLoops.NAME, conditional, "the conditional stays in the loop: {}", reason)


def _remark_conditional(loop: ir.Operation, reason: Reason) -> None:
    """Say why the first conditional directly in ``loop`` stays there, if there is one."""
    for view in body_of(loop).operations:
        if view.operation.name == _IF:
            _remark(view.operation, reason)
            return


def _split(loop: ir.Operation, condition: ir.Value) -> list[ir.Operation]:
    """Put ``loop`` and a copy of it into the branches of an `scf.if`; returns both, branches resolved."""
    results = list(loop.results)
    with ir.InsertionPoint(loop), loop.location:
        conditional, inside, outside = create_if(condition, [result.type for result in results])
        for result, new in zip(results, list(conditional.results), strict=True):
            result.replace_all_uses_with(new)
        versions = [loop, loop.clone(ip=False)]
        for block, version in zip((inside, outside), versions, strict=True):
            block.append(version)
            with ir.InsertionPoint(block):
                create_yield(list(version.results))
    for outcome, version in zip((True, False), versions, strict=True):
        for nested in walk(version, _IF):
            if nested.operands[0] == condition:
                resolve_conditional(nested, outcome)
    return versions

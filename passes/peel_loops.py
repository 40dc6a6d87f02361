"""The pass `peel-loops`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.attributes import EARLY, FULL, MANY_RESTS, UNROLL, map_attribute
from xgpu.dialects.xgpu import LoopOp
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.passes.support.loop_splits import Split, find_split
from xgpu.passes.support.regions import unroll_of, waits_for_threads
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import count_ops, replace_op, walk


@dataclass(frozen=True)
class PeelLoops(Pass):
    """Splits loops so that most points need no bounds check inside the loop.

    Two kinds of split, each into two loops with the same carried values threaded through:

    - *The last or first iteration*: where a bound can fail only in the last iteration of the outermost range variable,
      or only in the first one, that iteration becomes a loop of its own, and the other loop needs no check.
    - *The partial vector*: where the innermost variable ``s`` occurs as ``e + c * s``, the first loop runs if the check
      holds for all of ``s``, which is a constraint on ``e`` and no longer one of the innermost loop; the rest runs the
      second loop, which keeps the check. Few threads get there, so it is marked to stay rolled, unless the loop is
      marked ``xgpu.many_rests``: then it is marked to be unrolled, so that its accesses overlap.

    A loop that is unrolled in any case, ``xgpu.unroll = "early"``, is split in two that are if it is marked
    ``xgpu.many_rests``, and not otherwise. One marked ``"full"``, such as that of a window, is not split by the partial
    vector: its accesses are predicated, while a warp would execute both loops if a lane of it needs the second.

    The order of the points does not change. Loops without points go away. A loop with a barrier or shuffle is not
    split, as which of the two loops a thread executes may differ.
    Needs: `xgpu.loop`; run it before lower-loops. Remarks say which bounds checks stay in loops, and why.

    ```mlir
    %r = "xgpu.loop"(%thread, %init) ({...})
        {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>}
    ```
    becomes
    ```mlir
    %main = "xgpu.loop"(%thread, %init) ({...})
        {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 99], s0 in [0, 3]>}
    %r = "xgpu.loop"(%thread, %main) ({...})
        {map = #xgpu.map<(d0)[s0] -> (s0 + 400), d0 in [100, 100], s0 in [0, 1]>, xgpu.unroll = "none"}
    ```
    """

    NAME: ClassVar[str] = "peel-loops"
    max_splits: int = 6
    """Splits of one loop at most; each copies the body."""
    max_ops: int = 4096
    """Operations that the copies of one loop's body may have together."""

    def apply(self, module: ir.Module) -> None:
        """Peel every loop of ``module``, inner loops first."""
        for op in walk(module.operation, LoopOp.OPERATION_NAME):
            self._peel(op)

    def _peel(self, op: ir.Operation) -> None:
        copies = 0 if waits_for_threads(op) else min(self.max_splits, self.max_ops // count_ops(op, self.max_ops))
        pending = [op]
        while pending:
            op = pending.pop()
            loop = cast(LoopOp, op.opview)
            map_ = loop.map.simplify()
            if map_.is_empty():
                replace_op(op, loop.inits)
                continue
            op.attributes["map"] = map_attribute(map_)
            if not _may_be_split(op):
                continue
            split = find_split(map_, unroll_of(op) == FULL) if copies else (self._limit(op),) * len(map_.constraints)
            if isinstance(split, Split):
                copies -= 1
                pending += _split(op, split)
                continue
            for (expr, allowed), reason in zip(map_.constraints, split, strict=False):
                if expr.variables()[1]:
                    remark(self.NAME, op, "the check that {} is in {} stays in the loop: {}", expr, allowed, reason)

    def _limit(self, op: ir.Operation) -> Reason:
        """Return why no loop is split that ``op`` is, or is part of."""
        if waits_for_threads(op):
            return Reason("threads of a block meet in the loop, and may not take different parts of it")
        return Reason("max-splits={} or max-ops={} is reached", (self.max_splits, self.max_ops))


def _split(op: ir.Operation, split: Split) -> list[ir.Operation]:
    """Split ``op`` into two loops, the second after the first, and return them."""
    results = list(op.results)
    second = op.clone(ip=ir.InsertionPoint.after(op))
    first_carried = len(op.operands) - len(results)
    for number, (result, final) in enumerate(zip(results, list(second.results), strict=True)):
        result.replace_all_uses_with(final)
        second.operands[first_carried + number] = result
    loops = [op, second]
    for loop, map_ in zip(loops, split.maps, strict=True):
        loop.attributes["map"] = map_attribute(map_)
    if split.rest is None:
        return loops
    rest = loops[split.rest]
    if unroll_of(op) == EARLY:
        del rest.attributes[MANY_RESTS]
    else:
        rest.attributes[UNROLL] = ir.StringAttr.get(FULL if MANY_RESTS in op.attributes else "none")
    return loops


def _may_be_split(op: ir.Operation) -> bool:
    """Whether a loop is no rest, and nothing was decided about its iterations but that they are written out."""
    mark = unroll_of(op)
    return mark is None or (mark == EARLY and MANY_RESTS in op.attributes) or (mark == FULL and not _is_rest(op))


def _is_rest(op: ir.Operation) -> bool:
    """Whether a loop that is unrolled in full was split off another."""
    return MANY_RESTS in op.attributes

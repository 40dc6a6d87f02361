"""The pass `serialize-inner-loops`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.loops import ParOp, SeqOp
from xgpu.dialects.xgpu import YieldOp
from xgpu.errors import InvalidInput, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.nests.structure import PAR, band_at, launches_of, operations_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.regions import move_body
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class SerializeInnerLoops(Pass):
    """Makes seq loops of the par loops inside of an iteration that a thread runs: it runs them alone.

    Their iterations may run in any order, so one after the other is as good as any. Refused are loops whose iterations
    must run at once, and those of which the program says that threads run them.
    Needs assign-bands and distribute-loops.

    ```mlir
    "xgpu.par"() ({
      ... "xgpu.par"() ({ ... }) {band = "thread", called = "j", extent = 8 : i64} ...
    }) {band = "thread", called = "i", extent = 64 : i64}
    // becomes
    "xgpu.par"() ({
      ... "xgpu.seq"() ({ ... }) {called = "j", extent = 8 : i64} ...
    }) {band = "thread", called = "i", extent = 64 : i64}
    ```
    """

    NAME: ClassVar[str] = "serialize-inner-loops"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PAR,))

    def apply(self, module: ir.Module) -> None:
        """Replace such loops of every kernel of ``module``."""
        for launch in launches_of(module):
            inner: dict[ir.Operation, None] = {}
            for op in walk(launch.operation, PAR, post_order=False):
                if cast(ParOp, op.opview).band == "thread" and op not in inner:
                    for statement in operations_of(band_at(op)[-1].body):
                        inner.update(dict.fromkeys(walk(statement, PAR)))
            for op in inner:
                _serialize(cast(ParOp, op.opview))


def _serialize(par: ParOp) -> None:
    op, at = par.operation, source_of(par.operation)
    if par.side is not None:
        raise Unsupported(
            f"'fully par {par.called}' inside an iteration of a thread: expected it to be the only thing in the loop"
            " around it",
            at,
        )
    asked = {"threads": par.threads, "vector": par.vector, "together": par.together, "group": par.group}
    for name, value in asked.items():
        if value is not None:
            raise InvalidInput(f"'#{name}({value})': a thread runs 'par {par.called}' alone, inside an iteration", at)
    with ir.InsertionPoint(op), op.location:
        seq = SeqOp.build(par.extent, par.called)
        with ir.InsertionPoint(seq.body):
            YieldOp.build([])
    end = list(seq.body.operations)[-1].operation
    move_body(par.body, [seq.variable], end)
    op.erase()

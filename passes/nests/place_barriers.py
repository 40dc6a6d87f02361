"""The pass `place-barriers`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.nests.loops import BarrierOp
from xgpu.errors import CompilerError
from xgpu.hlo.source_location import source_of
from xgpu.nests.barriers import first_conflict
from xgpu.nests.structure import LAUNCH, launches_of
from xgpu.passes.framework.base import Pass
from xgpu.structure import walk

_MOST = 10_000
"""Barriers of a kernel: more than any program has statements."""


@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Has the threads of a block wait where one accesses what another one has changed, or changes what it accessed.

    The statements of a block are followed as it runs them, thread by thread and element by element
    (`xgpu.nests.barriers`); a barrier stands as late as it can, outside of loops if what it waits for is outside. Then
    each is left out that the others make superfluous.
    Needs map-threads: where the map keeps what is written and who reads it on one thread, there is no barrier.

    ```mlir
    "xgpu.par"() ({ ... "xgpu.write"(%x, %tile, %i, %j) ... }) {band = "thread", ...}
    "xgpu.par"() ({ ... "xgpu.read"(%tile, %j, %i) ... }) {band = "thread", ...}
    // becomes
    "xgpu.par"() ({ ... "xgpu.write"(%x, %tile, %i, %j) ... }) {band = "thread", ...}
    "xgpu.barrier"() {scope = "block"} : () -> ()
    "xgpu.par"() ({ ... "xgpu.read"(%tile, %j, %i) ... }) {band = "thread", ...}
    ```
    """

    NAME: ClassVar[str] = "place-barriers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((LAUNCH,))

    def apply(self, module: ir.Module) -> None:
        """Place the barriers of every kernel of ``module``."""
        for launch in launches_of(module):
            for _ in range(_MOST):
                if (conflict := first_conflict(launch)) is None:
                    break
                place = conflict.place()
                with ir.InsertionPoint(place), place.location:
                    BarrierOp.build("block")
            else:
                raise CompilerError("the barriers of a kernel have no end", source_of(launch.operation))
            for barrier in walk(launch.operation, BarrierOp.OPERATION_NAME):
                following = _following(barrier)
                barrier.erase()
                if first_conflict(launch) is not None:
                    with ir.InsertionPoint(following), following.location:
                        BarrierOp.build("block")


def _following(op: ir.Operation) -> ir.Operation:
    """Return the operation after one in its block."""
    operations = [each.operation for each in op.block.operations]
    return operations[operations.index(op) + 1]

"""The pass `place-barriers`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.nests.loops import BLOCK_SCOPE, BarrierOp, LaunchOp, WhereOp
from xgpu.nests.barriers import MOST_ITERATIONS, Follower, statements_of
from xgpu.nests.structure import LAUNCH, SEQ, ancestors, launches_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import following, walk


@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Places barriers where a thread accesses an element that another one changed, or changes one that it accessed.

    The statements of a block are followed as it runs them, thread by thread and element by element
    (`xgpu.nests.barriers`); a barrier stands as late as it can, outside of loops if what it waits for is outside.
    Superfluous barriers are then removed. Where following takes too much work, loops count as accessing any element, or
    threads wait before each statement; remarks say so.
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
            follower = Follower(launch)
            answer = follower.run(_insert)
            if answer == "unknown":
                remark(self.NAME, launch.operation, "there is too much to follow: threads wait before each statement")
                _insert_all(launch, follower)
            elif follower.most_iterations != MOST_ITERATIONS[0]:
                remark(
                    self.NAME,
                    launch.operation,
                    "loops of more than {} iterations are taken to access any element",
                    follower.most_iterations,
                )
            if answer != "unknown" and not _is_straight(launch):
                self._remove(launch, follower)

    def _remove(self, launch: LaunchOp, follower: Follower) -> None:
        """Leave out barriers that the others make superfluous.

        There are none where statements only follow each other: each barrier stands as late as it can.
        """
        for barrier in walk(launch.operation, BarrierOp.OPERATION_NAME):
            after = following(barrier)
            barrier.erase()
            answer = follower.run()
            if answer != "none missing":
                _insert(after)
            if answer == "unknown":
                remark(self.NAME, after, "there is too much to follow: barriers from here on may be superfluous")
                return


def _is_straight(launch: LaunchOp) -> bool:
    """Whether the statements of a block only follow each other, outside of loops and conditions."""
    around = {each.name for statement in statements_of(launch.body) for each in ancestors(statement)}
    return not around & {SEQ, WhereOp.OPERATION_NAME}


def _insert(statement: ir.Operation) -> None:
    """Have threads wait before a statement."""
    with ir.InsertionPoint(statement), statement.location:
        BarrierOp.build(BLOCK_SCOPE)


def _insert_all(launch: LaunchOp, follower: Follower) -> None:
    """Have threads wait before each statement by which they access what others may have changed."""
    for barrier in walk(launch.operation, BarrierOp.OPERATION_NAME):
        barrier.erase()
    for statement in statements_of(launch.body):
        if follower.accesses_shared(statement):
            _insert(statement)

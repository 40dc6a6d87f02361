"""The pass `place-barriers`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.loops import BLOCK_SCOPE, WARP_SCOPE, BarrierOp, LaunchOp, WhereOp
from xgpu.nests.barriers import MOST_ITERATIONS, Follower, statements_of
from xgpu.nests.structure import LAUNCH, PAR, SEQ, ancestors, band_at, launches_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import following, walk


@dataclass(frozen=True)
class PlaceBarriers(Pass):
    """Places barriers where a thread accesses an element that another one changed, or changes one that it accessed.

    The statements of a block are followed as it runs them, thread by thread and element by element
    (`xgpu.nests.barriers`); a barrier stands as late as it can, outside of loops if what it waits for is outside.
    Where only threads of one warp meet, it is a barrier of warps, which takes a thread a few cycles; a program may ask
    for one of the block (``#block_barrier``). Superfluous barriers are then removed. Where following takes too much
    work, loops count as accessing any element, or threads wait before each statement; remarks say so.
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
            after, scope = following(barrier), cast(BarrierOp, barrier.opview).scope
            barrier.erase()
            for less in _weaker(scope, after):
                added = _add(after, less) if less is not None else None
                answer = follower.run()
                if answer == "none missing":
                    break
                if added is not None:
                    added.erase()
            else:
                _add(after, scope)
            if answer == "unknown":
                remark(self.NAME, after, "there is too much to follow: barriers from here on may be superfluous")
                return


def _is_straight(launch: LaunchOp) -> bool:
    """Whether the statements of a block only follow each other, outside of loops and conditions."""
    around = {each.name for statement in statements_of(launch.body) for each in ancestors(statement)}
    return not around & {SEQ, WhereOp.OPERATION_NAME}


def _weaker(scope: str, statement: ir.Operation) -> list[str | None]:
    """Return the scopes, or none, that may do in place of one before a statement."""
    return [None, WARP_SCOPE] if scope == BLOCK_SCOPE and not _asks_for_block(statement) else [None]


def _asks_for_block(statement: ir.Operation) -> bool:
    """Whether a program wants a barrier before a statement to be one of the block."""
    return statement.name == PAR and any(loop.block_barrier for loop in band_at(statement))


def _insert(statement: ir.Operation, scope: str) -> str:
    """Have threads wait before a statement; return which wait for each other."""
    if _asks_for_block(statement):
        scope = BLOCK_SCOPE
    _add(statement, scope)
    return scope


def _add(statement: ir.Operation, scope: str) -> ir.Operation:
    with ir.InsertionPoint(statement), statement.location:
        return BarrierOp.build(scope)


def _insert_all(launch: LaunchOp, follower: Follower) -> None:
    """Have threads wait before each statement by which they access what others may have changed."""
    for barrier in walk(launch.operation, BarrierOp.OPERATION_NAME):
        barrier.erase()
    for statement in statements_of(launch.body):
        if follower.accesses_shared(statement):
            _add(statement, BLOCK_SCOPE)

"""Operations of the xgpu dialect by which threads of a block or cluster wait for each other and for copies."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import BOOLEAN, INTEGER, choice
from xgpu.dialects.base import BOOL, CLUSTER_POINTER, I32, SHARED_POINTER, Attribute, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits

_BARRIER = Values("barrier", SHARED_POINTER, "The mbarrier: 8 bytes of this block's shared memory, so aligned.")
_RANK = Values("rank", I32, "The rank of a block in its cluster.")
_MOST_ARRIVALS = (1 << 20) - 1
_REGISTERS = range(24, 257, 8)


@ir.register_operation(XgpuDialect)
@declare
class MbarrierInitOp(DeclaredOp):
    """Makes an mbarrier, whose phase 0 then begins; one thread executes it.

    A phase is complete once ``count`` arrivals and all bytes expected in it have come; the next then begins. Others use
    it after a fence (`xgpu.fence`, kind ``mbarrier_init``) of this thread and a barrier.

    ```mlir
    "xgpu.mbarrier_init"(%barrier) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_init"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER,)
    ATTRIBUTES = (Attribute("count", INTEGER, "Arrivals that complete a phase, from 1."),)
    count: int

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The count is one that the hardware has."""
        if not 1 <= self.count <= _MOST_ARRIVALS:
            yield f"attribute 'count': expected 1 to {_MOST_ARRIVALS}, got {self.count}"


@ir.register_operation(XgpuDialect)
@declare
class MbarrierExpectOp(DeclaredOp):
    """Arrives at an mbarrier of this block, and lets the current phase wait for bytes of copies too.

    ```mlir
    "xgpu.mbarrier_expect"(%barrier, %bytes) : (!llvm.ptr<3>, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_expect"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER, Values("bytes", I32, "The bytes of all copies that complete at it in this phase."))


@ir.register_operation(XgpuDialect)
@declare
class MbarrierArriveOp(DeclaredOp):
    """Arrives at an mbarrier of this block. What this thread did before is seen by those that wait for the phase.

    ```mlir
    "xgpu.mbarrier_arrive"(%barrier) : (!llvm.ptr<3>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_arrive"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER,)


@ir.register_operation(XgpuDialect)
@declare
class MbarrierArriveRemoteOp(DeclaredOp):
    """Arrives at the mbarrier at the same place in a block of the cluster, which may be this one.

    ```mlir
    "xgpu.mbarrier_arrive_remote"(%barrier, %rank) : (!llvm.ptr<3>, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_arrive_remote"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER, _RANK)


@ir.register_operation(XgpuDialect)
@declare
class MbarrierArriveCopiesOp(DeclaredOp):
    """Arrives at an mbarrier of this block as soon as all `xgpu.async_copy` that this thread started are complete.

    ```mlir
    "xgpu.mbarrier_arrive_copies"(%barrier) : (!llvm.ptr<3>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_arrive_copies"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER,)


@ir.register_operation(XgpuDialect)
@declare
class MbarrierWaitOp(DeclaredOp):
    """Waits until the phase of a parity is complete: phases are numbered from 0, and the parity is the number's.

    It is the phase that is under way or the one before it, so a wait for parity 1 of a new mbarrier returns at once.

    ```mlir
    "xgpu.mbarrier_wait"(%barrier, %parity) : (!llvm.ptr<3>, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.mbarrier_wait"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_BARRIER, Values("parity", I32, "0 or 1."))


@ir.register_operation(XgpuDialect)
@declare
class FenceOp(DeclaredOp):
    """Orders what this thread did before with what others do after a barrier or arrival that follows.

    ``async``: its writes to shared memory are seen by copies, and by products of a warp group.
    ``mbarrier_init``: the mbarriers that it made are seen by the blocks of the cluster.
    ``cluster``: its accesses are ordered for all threads of the cluster.

    ```mlir
    "xgpu.fence"() {kind = "async"} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.fence"
    TRAITS = Traits(asynchronous=True)
    ATTRIBUTES = (Attribute("kind", choice("async", "mbarrier_init", "cluster"), "What is ordered."),)
    kind: str


@ir.register_operation(XgpuDialect)
@declare
class NamedBarrierOp(DeclaredOp):
    """A barrier of some warps of the block, which has 16 of them; number 0 is that of `xgpu.sync_threads`.

    Waits until ``threads`` threads, whole warps, have come to it; one that does not ``wait`` only arrives.

    ```mlir
    "xgpu.named_barrier"(%number) {threads = 128 : i64, wait = true} : (i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.named_barrier"
    TRAITS = Traits(collective=True)
    OPERANDS = (Values("number", I32, "The barrier's number, 1 to 15."),)
    ATTRIBUTES = (
        Attribute("threads", INTEGER, "How many threads come to it, a multiple of 32."),
        Attribute("wait", BOOLEAN, "Whether this one waits for the others."),
    )
    threads: int
    wait: bool

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """Whole warps of a block."""
        if self.threads % 32 or not 32 <= self.threads <= 1024:
            yield f"attribute 'threads': expected a multiple of 32 from 32 to 1024, got {self.threads}"


@ir.register_operation(XgpuDialect)
@declare
class ElectOp(DeclaredOp):
    """True for one lane of the warp, always the same, and false for the others; all 32 execute it.

    ```mlir
    %leader = "xgpu.elect"() : () -> i1
    ```
    """

    OPERATION_NAME = "xgpu.elect"
    TRAITS = Traits(collective=True)
    RESULTS = (Values("elected", BOOL, "Whether this lane is the one."),)


@ir.register_operation(XgpuDialect)
@declare
class SetRegistersOp(DeclaredOp):
    """Sets how many registers each thread of a warp group has; all its threads execute it.

    A group that gives registers back does so before one that takes more can go on.

    ```mlir
    "xgpu.set_registers"() {count = 232 : i64, more = true} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.set_registers"
    TRAITS = Traits(collective=True)
    ATTRIBUTES = (
        Attribute("count", INTEGER, "Registers a thread: a multiple of 8 from 24 to 256."),
        Attribute("more", BOOLEAN, "Whether that is more than it has."),
    )
    count: int
    more: bool

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The count is one that the hardware has."""
        if self.count not in _REGISTERS:
            yield f"attribute 'count': expected a multiple of 8 from 24 to 256, got {self.count}"


@ir.register_operation(XgpuDialect)
@declare
class ClusterRankOp(DeclaredOp):
    """The rank of this block in its cluster; 0 in a kernel without clusters.

    ```mlir
    %rank = "xgpu.cluster_rank"() : () -> i32
    ```
    """

    OPERATION_NAME = "xgpu.cluster_rank"
    TRAITS = Traits(pure=True)
    RESULTS = (Values("rank", I32, "The rank, from 0, along x fastest."),)


@ir.register_operation(XgpuDialect)
@declare
class ClusterArriveOp(DeclaredOp):
    """Arrives at the barrier of the cluster, which all its threads execute, each then `xgpu.cluster_wait`.

    ```mlir
    "xgpu.cluster_arrive"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.cluster_arrive"
    TRAITS = Traits(collective=True)


@ir.register_operation(XgpuDialect)
@declare
class ClusterWaitOp(DeclaredOp):
    """Waits until all threads of the cluster have arrived at its barrier; what they did before is then seen.

    ```mlir
    "xgpu.cluster_wait"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.cluster_wait"
    TRAITS = Traits(collective=True)


@ir.register_operation(XgpuDialect)
@declare
class ClusterPointerOp(DeclaredOp):
    """The address, in another block of the cluster, of what is at an address in this one; loads and stores take it.

    ```mlir
    %there = "xgpu.cluster_pointer"(%here, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
    ```
    """

    OPERATION_NAME = "xgpu.cluster_pointer"
    TRAITS = Traits(pure=True)
    OPERANDS = (Values("here", SHARED_POINTER, "An address in this block's shared memory."), _RANK)
    RESULTS = (Values("there", CLUSTER_POINTER, "The same place in the block of that rank."),)


WAIT_OPS: tuple[type[DeclaredOp], ...] = (
    *(MbarrierInitOp, MbarrierExpectOp, MbarrierArriveOp, MbarrierArriveRemoteOp, MbarrierArriveCopiesOp),
    *(MbarrierWaitOp, FenceOp, NamedBarrierOp, ElectOp, SetRegistersOp),
    *(ClusterRankOp, ClusterArriveOp, ClusterWaitOp, ClusterPointerOp),
)
"""The operations of this file."""

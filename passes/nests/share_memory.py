"""The pass `share-memory`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.memory.storage import Block, MemoryPlan, overlaps, place
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects.attributes import int_attribute
from xgpu.dialects.nests.loops import BLOCK_SCOPE, BarrierOp, LaunchOp, NewOp
from xgpu.dialects.threads import TILE_ALIGNMENT
from xgpu.errors import InvalidInput, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.nests.lifetimes import bytes_of, first_access, lifetimes, shared_buffers
from xgpu.nests.structure import launches_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import following


@dataclass(frozen=True)
class ShareMemory(Pass):
    """Has buffers of a block share memory that are not in use at once.

    Buffers share memory if all threads wait between the last access to one and the first to the other. Where a block
    would need more memory than the device has, threads wait once more before the first access to a buffer. A program
    may say where a buffer begins (``#offset(n)``, in bytes).
    Needs place-barriers and pad-buffers.

    ```mlir
    %a = "xgpu.new"() {called = "a", memory = "shared"} : () -> memref<1024xf32>
    ...
    "xgpu.barrier"() {scope = "block"} : () -> ()
    ...
    %b = "xgpu.new"() {called = "b", memory = "shared"} : () -> memref<1024xf32>
    // becomes
    %a = "xgpu.new"() {called = "a", memory = "shared", offset = 0 : i64} : () -> memref<1024xf32>
    ...
    %b = "xgpu.new"() {called = "b", memory = "shared", offset = 0 : i64} : () -> memref<1024xf32>
    ```
    """

    NAME: ClassVar[str] = "share-memory"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((NewOp.OPERATION_NAME,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the program is for."""

    def apply(self, module: ir.Module) -> None:
        """Write where the buffers of every kernel begin, if some share memory."""
        for launch in launches_of(module):
            self._share(launch)

    def _share(self, launch: LaunchOp) -> None:
        buffers = shared_buffers(launch)
        wanted = {number: new.offset for number, new in enumerate(buffers) if new.offset is not None}
        plan = _plan(launch, buffers, wanted)
        most = device(self.target).shared_bytes_optin
        if plan.size > most:
            plan = self._with_barriers(launch, buffers, wanted, most) or plan
        if plan.size > most:
            raise Unsupported(
                f"a block's buffers take {plan.size} bytes of shared memory, and a block of {self.target} has {most}",
                source_of(launch.operation),
            )
        whole = sum(bytes_of(new) for new in buffers)
        if plan.size >= whole and not wanted:
            return
        for new, offset in zip(buffers, plan.offsets, strict=True):
            new.operation.attributes["offset"] = int_attribute(offset)
        text = "{} bytes of shared memory for buffers of {}; at least {}"
        remark(self.NAME, launch.operation, text, plan.size, whole, plan.bound)

    def _with_barriers(
        self, launch: LaunchOp, buffers: Sequence[NewOp], wanted: dict[int, int], most: int
    ) -> MemoryPlan | None:
        """Have threads wait before buffers are used, as rarely as makes all fit; None if nothing does."""
        added = [_wait_before(op) for new in buffers if (op := first_access(new)) is not None]
        if _plan(launch, buffers, wanted).size > most:
            for barrier in added:
                barrier.erase()
            return None
        for number, barrier in enumerate(added):
            op = following(barrier)
            barrier.erase()
            if _plan(launch, buffers, wanted).size > most:
                added[number] = _wait_before(op)
        return _plan(launch, buffers, wanted)


def _plan(launch: LaunchOp, buffers: Sequence[NewOp], wanted: dict[int, int]) -> MemoryPlan:
    used = lifetimes(launch)
    blocks = [Block(bytes_of(new), TILE_ALIGNMENT, used[new.buffer]) for new in buffers]
    # Not by CP-SAT: a program is the same kernel whether that is installed or not.
    plan = place(blocks, wanted, exactly=False)
    for first, second in overlaps(blocks, plan.offsets):
        one, other = buffers[first], buffers[second]
        raise InvalidInput(
            f"'{other.called}' at byte {plan.offsets[second]}: expected no bytes of '{one.called}', which is in use at"
            " the same time",
            source_of(other.operation),
        )
    return plan


def _wait_before(op: ir.Operation) -> ir.Operation:
    with ir.InsertionPoint(op), op.location:
        return BarrierOp.build(BLOCK_SCOPE)

"""lower-to-llvm for waits between threads, and for copies, on NVIDIA GPUs (PTX ISA, "Parallel synchronization").

An arrival and a wait order accesses within the block only, as PTX has them by default; `xgpu.fence` does so for a
cluster.
"""

from collections.abc import Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.attributes import KERNEL, RESIDENT, int_attribute
from xgpu.dialects.block.waits import FenceOp, MbarrierInitOp, NamedBarrierOp, SetRegistersOp
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.passes.llvm.gpu_ptx import fixed, ptx, require, requiring
from xgpu.passes.support.refusals import refuse

_FENCES = {
    "async": ("fence.proxy", "fence.proxy.async.shared::cta;"),
    "mbarrier_init": ("cluster", "fence.mbarrier_init.release.cluster;"),
    "cluster": ("cluster", "fence.acq_rel.cluster;"),
}
"""The instruction that each kind of fence needs, and its text."""

# The state that an arrival returns is for waits by state; ours are by parity.
_ARRIVE = "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [$0]; }"
_ARRIVE_REMOTE = (
    "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
)
_ELECT = "{ .reg .pred is; elect.sync _|is, 0xFFFFFFFF; selp.b32 $0, 1, 0, is; }"


def _init(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    count = cast(MbarrierInitOp, op.opview).count
    return ptx(b, f"mbarrier.init.shared.b64 [$0], {count};", list(op.operands))


def _wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """A loop within one text: try_wait returns after a while even if the phase is not complete, test_wait at once."""
    test = "try_wait" if "mbarrier.try_wait" in b.machine.instructions else "test_wait"
    text = (
        f"{{ .reg .pred done; again: mbarrier.{test}.parity.shared.b64 done, [$0], $1;"
        " @done bra complete; bra again; complete: }"
    )
    return ptx(b, text, list(op.operands))


def _fence(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    kind = cast(FenceOp, op.opview).kind
    instruction, text = _FENCES[kind]
    if kind == "mbarrier_init" and instruction not in b.machine.instructions:
        # Without clusters, the barrier that follows orders what other threads see.
        return []
    require(b, op, instruction)
    return ptx(b, text)


def _named_barrier(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    view = cast(NamedBarrierOp, op.opview)
    name = "sync" if view.wait else "arrive"
    return ptx(b, f"bar.{name} $0, {view.threads};", list(op.operands), together=True)


def _elect(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    (is_elected,) = ptx(b, _ELECT, [], [b.i32], together=True)
    return [b.compare("ne", is_elected, b.constant(0, b.i32))]


def _set_registers(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    view = cast(SetRegistersOp, op.opview)
    kernel = op.parent
    while kernel is not None and kernel.name != "func.func":
        kernel = kernel.parent
    if kernel is None or KERNEL not in kernel.attributes:
        refuse("lower-to-llvm", op, "expected to be in a kernel, whose blocks have a known number of registers")
    if RESIDENT not in kernel.attributes:
        # Without a number of blocks, ptxas does not know how many registers threads have, and ignores the operation.
        kernel.attributes[RESIDENT] = int_attribute(1)
    return ptx(b, f"setmaxnreg.{'inc' if view.more else 'dec'}.sync.aligned.u32 {view.count};", together=True)


def _cluster_rank(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    if "cluster" not in b.machine.instructions:
        return [b.constant(0, b.i32)]
    return list(ir.Operation.create("nvvm.read.ptx.sreg.cluster.ctarank", results=[b.i32]).results)


def _cluster_pointer(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return [call_intrinsic("llvm.nvvm.mapa.shared.cluster", op.results[0].type, list(op.operands))]


GPU_WAIT_LOWERINGS: dict[str, Lowering] = {
    "xgpu.mbarrier_init": requiring("mbarrier", _init),
    "xgpu.mbarrier_expect": requiring(
        "mbarrier.expect", fixed("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;")
    ),
    "xgpu.mbarrier_arrive": requiring("mbarrier", fixed(_ARRIVE)),
    "xgpu.mbarrier_arrive_remote": requiring("cluster", fixed(_ARRIVE_REMOTE)),
    "xgpu.mbarrier_arrive_copies": requiring("mbarrier", fixed("cp.async.mbarrier.arrive.noinc.shared.b64 [$0];")),
    "xgpu.mbarrier_wait": requiring("mbarrier", _wait),
    "xgpu.fence": _fence,
    "xgpu.named_barrier": _named_barrier,
    "xgpu.elect": requiring("elect", _elect),
    "xgpu.set_registers": requiring("setmaxnreg", _set_registers),
    "xgpu.cluster_rank": _cluster_rank,
    "xgpu.cluster_arrive": requiring("cluster", fixed("barrier.cluster.arrive;", together=True)),
    "xgpu.cluster_wait": requiring("cluster", fixed("barrier.cluster.wait;", together=True)),
    "xgpu.cluster_pointer": requiring("cluster", _cluster_pointer),
}
"""The lowerings by operation name."""

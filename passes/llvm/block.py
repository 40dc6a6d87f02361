"""lower-to-llvm for operations of `xgpu.dialects.block` and PTX: each machine has lowerings of its own."""

from collections.abc import Mapping

from xgpu import ir
from xgpu.passes.llvm.assembly import GPU_ASSEMBLY_LOWERINGS, HOST_ASSEMBLY_LOWERINGS
from xgpu.passes.llvm.builder import Lowering
from xgpu.passes.llvm.gpu_copies import GPU_COPY_LOWERINGS
from xgpu.passes.llvm.gpu_matrices import GPU_MATRIX_LOWERINGS
from xgpu.passes.llvm.gpu_waits import GPU_WAIT_LOWERINGS
from xgpu.passes.llvm.host_block import HOST_BLOCK_LOWERINGS
from xgpu.passes.support.refusals import refuse
from xgpu.target_machine import GPU_INSTRUCTIONS, TargetMachine

LOWERINGS: Mapping[str, Mapping[str, Lowering]] = {
    "": {},
    "calls": {**HOST_BLOCK_LOWERINGS, **HOST_ASSEMBLY_LOWERINGS},
    "ptx": {**GPU_COPY_LOWERINGS, **GPU_WAIT_LOWERINGS, **GPU_MATRIX_LOWERINGS, **GPU_ASSEMBLY_LOWERINGS},
}
"""The lowerings by operation name, for each value of ``TargetMachine.block_operations``."""


def block_lowerings(machine: TargetMachine) -> Mapping[str, Lowering]:
    """Return the machine's lowerings of the operations, by name."""
    return LOWERINGS[machine.block_operations]


def check_cluster(machine: TargetMachine, kernel: ir.Operation) -> None:
    """Refuse a kernel with clusters on a GPU that has none."""
    if machine.block_operations == "ptx" and "cluster" not in machine.instructions:
        needs = GPU_INSTRUCTIONS["cluster"]
        refuse("lower-to-llvm", kernel, f"attribute 'xgpu.cluster': expected {needs}, got {machine.processor}")

"""How lower-to-llvm lowers the operations of `xgpu.dialects.block`: machine by machine, as they differ in all of it."""

from collections.abc import Mapping

from xgpu.passes.llvm.builder import Lowering
from xgpu.passes.llvm.host_block import HOST_BLOCK_LOWERINGS
from xgpu.target_machine import TargetMachine

LOWERINGS: Mapping[str, Mapping[str, Lowering]] = {
    "": {},
    "calls": HOST_BLOCK_LOWERINGS,
}
"""The lowerings by operation name, for each value of ``TargetMachine.block_operations``."""


def block_lowerings(machine: TargetMachine) -> Mapping[str, Lowering]:
    """Return the machine's lowerings of the operations, by name."""
    return LOWERINGS[machine.block_operations]

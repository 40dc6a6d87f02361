"""The pass lower-tiles."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.dialects.attributes import EMITTER
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.emit.families.attention.attention import AttentionEmitter
from xgpu.emit.families.attention.schedule import AttentionSchedule, ChainSchedule
from xgpu.emit.families.attention.sums import SumsEmitter
from xgpu.emit.families.attention.sums_schedule import SumsSchedule
from xgpu.emit.families.blocks.schedule import EMITTER_NAME, BlockProgramSchedule
from xgpu.emit.families.products.product import ProductEmitter
from xgpu.emit.families.products.schedule import ProductSchedule
from xgpu.emit.families.products.warp_product import WarpProductEmitter
from xgpu.emit.families.products.warp_schedule import WarpProductSchedule
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.refusals import refuse
from xgpu.passes.tiles.block_program import PASS, read_program
from xgpu.passes.tiles.blocks.checks import check_block_kernel
from xgpu.passes.tiles.blocks.kernel import BlockWriter
from xgpu.passes.tiles.blocks.program import ScheduledKernel
from xgpu.passes.tiles.chains.kernel import ChainKernel
from xgpu.passes.tiles.chains.program import read_chain
from xgpu.passes.tiles.kernel_checks import check_chain, check_groups, check_program, check_warps, schedule_of
from xgpu.passes.tiles.product_kernel import ProductKernel
from xgpu.passes.tiles.warp_kernel import WarpProductKernel
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class LowerTiles(Pass):
    """Lowers blocks that work on tiles to the code of their threads; ``xgpu.schedule`` has the numbers.

    Tiles of each step are copied into a ring of buffers in shared memory. Where the emitter is ``product``, one warp
    copies them, and warp groups multiply them, each its share of the rows; the blocks of a cluster may each have a part
    of a tile's steps, and add up the parts in shared memory before the epilogue is computed. A left operand that is
    computed from a tile of bytes is computed by them, in registers, as they multiply it. Where it is
    ``warp_product``, all warps copy units of rows ahead of time, and each multiplies its part of the tile. The epilogue
    is then computed from the elements that the threads hold. Where it is ``attention`` or ``sums``, each step has
    several products, and the values between them are computed from such elements, too, and become left operands.

    Where it is ``block``, blocks may compute anything: each tile is in shared memory, in registers, or computed where
    it is read, and its attributes say which; others say which copies, barriers and warps of products there are.

    ```mlir
    %r = "xgpu.blocks"(%out) ({
      ...
    }) {grid = array<i64: 1, 4, 2>} : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
    // becomes
    %memory = "xgpu.shared_memory"() {bytes = 197760 : i64} : () -> !llvm.ptr<3>
    ...
    "xgpu.mbarrier_wait"(%full, %phase) : (!llvm.ptr<3>, i32) -> ()
    ...
    %d = "xgpu.warpgroup_mma"(%c, %a, %b, %accumulate) {...}
    ```
    """

    NAME: ClassVar[str] = "lower-tiles"
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the kernel is for."""

    def apply(self, module: ir.Module) -> None:
        """Lower every function that has blocks."""
        for function in functions(module):
            if walk(function.operation, BlocksOp.OPERATION_NAME):
                emitter = function.operation.attributes.get(EMITTER)
                name = emitter.value if isinstance(emitter, ir.StringAttr) else "none"
                if name not in _KERNELS:
                    *first, last = _KERNELS
                    refuse(
                        PASS, function.operation, f"expected {EMITTER} to be {', '.join(first)} or {last}, got {name}"
                    )
                _KERNELS[name](function.operation, device(self.target))


def _by_groups(function: ir.Operation, target: Device) -> None:
    program = read_program(function, schedule_of(function, ProductSchedule))
    check_program(program)
    check_groups(program, target)
    ProductKernel(program, target).write()


def _by_warps(function: ir.Operation, target: Device) -> None:
    program = read_program(function, schedule_of(function, WarpProductSchedule))
    check_program(program)
    check_warps(program, target)
    WarpProductKernel(program).write()


def _chained(kind: type[ChainSchedule], function: ir.Operation, target: Device) -> None:
    program = read_chain(function, schedule_of(function, kind))
    check_chain(program, target)
    ChainKernel(program, target).write()


def _of_any_operations(function: ir.Operation, target: Device) -> None:
    kernel = ScheduledKernel.read(function, schedule_of(function, BlockProgramSchedule))
    check_block_kernel(kernel, target)
    BlockWriter(kernel).write()


_KERNELS: Mapping[str, Callable[[ir.Operation, Device], None]] = {
    ProductEmitter.NAME: _by_groups,
    WarpProductEmitter.NAME: _by_warps,
    AttentionEmitter.NAME: partial(_chained, AttentionSchedule),
    SumsEmitter.NAME: partial(_chained, SumsSchedule),
    EMITTER_NAME: _of_any_operations,
}
"""The functions that lower the kernels of each emitter."""

"""The pass lower-tiles."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.tiles.block_program import read_program
from xgpu.passes.tiles.kernel_checks import check_program, schedule_of
from xgpu.passes.tiles.product_kernel import ProductKernel
from xgpu.structure import walk


@dataclass(frozen=True)
class LowerTiles(Pass):
    """Replace blocks that work on tiles by what their threads do.

    One warp copies the tiles of each step into a ring of buffers in shared memory; the other warp groups multiply them,
    each its share of the rows, and compute what follows of the elements that its threads then hold. The function's
    ``xgpu.schedule`` has the numbers.

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
    target: str = DEFAULT_DEVICE
    """The GPU that the kernel is for."""

    def apply(self, module: ir.Module) -> None:
        """Lower every function that has blocks."""
        for function in functions(module):
            if walk(function.operation, BlocksOp.OPERATION_NAME):
                program = read_program(function.operation, schedule_of(function.operation))
                check_program(program, device(self.target))
                ProductKernel(program, device(self.target)).write()

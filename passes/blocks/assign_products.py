"""The pass `assign-products`."""

from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.instructions import layouts_decided, warp_group_problem, warp_problem
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import refuse_decision, text_of, warps_given
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass


@dataclass(frozen=True)
class AssignProducts(Pass):
    """Chooses the instructions that multiply tiles: of warp groups (wgmma), of warps (mma.sync), or of threads (fma).

    Warp groups multiply tiles of 16-bit elements with a multiple of 64 rows for each group, or groups side by side,
    where the GPU has such instructions, and nobody has decided how the operands lie. Warps multiply all other types
    that tensor cores take, f32 as tf32; threads multiply the rest.

    ```mlir
    %p = stablehlo.dot_general %x, %w, ... : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    // becomes
    %p = stablehlo.dot_general %x, %w, ... {xgpu.product = "wgmma"} : ...
    ```
    """

    NAME: ClassVar[str] = "assign-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the kernel is for."""

    def apply(self, module: ir.Module) -> None:
        """Write the instructions of every kernel's products."""
        for kernel in kernels_of(module):
            for number, node in enumerate(kernel.graph.nodes):
                if node.kind == "product":
                    self._assign(kernel, number)

    def _assign(self, kernel: BlockKernel, number: int) -> None:
        op = kernel.ops[number]
        by_warps = warp_problem(op)
        by_groups = warp_group_problem(kernel, number, warps_given(kernel), device(self.target))
        problems = {attributes.BY_WARP_GROUPS: by_groups, attributes.BY_WARPS: by_warps, attributes.BY_THREADS: None}
        if attributes.PRODUCT in op.attributes:
            given = text_of(op.attributes[attributes.PRODUCT])
            if problem := problems[given]:
                refuse_decision(op, attributes.PRODUCT, f"another instruction: {problem}", given)
            return
        decided = next(layouts_decided(kernel, number), None)
        if by_groups is None and decided is not None:
            by_groups = f"expected nothing to be decided about its operands, got '{decided}'"
        if by_groups is None:
            chosen = attributes.BY_WARP_GROUPS
        else:
            chosen = attributes.BY_WARPS if by_warps is None else attributes.BY_THREADS
            remark(self.NAME, op, "warp groups do not multiply it: {}", by_groups)
        op.attributes[attributes.PRODUCT] = ir.StringAttr.get(chosen)

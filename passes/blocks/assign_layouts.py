"""The pass `assign-layouts`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import kernels_of
from xgpu.block_plan.strides import strides_of
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import plan_of, read_down
from xgpu.passes.framework.base import Pass


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Decides the strides of every tile in shared memory.

    The innermost dimension has stride 1, the others follow from the last to the first; rows are padded to whole chunks
    of 16 bytes, those of operands of products to a power of two of them, or an odd number: see swizzle-tiles.
    Needs chain-tiles.

    ```mlir
    %x = "xgpu.tile"(%a, %i) {..., xgpu.place = "shared"} : (tensor<64x36xf16>, index) -> tensor<64x36xf16>
    // becomes
    %x = "xgpu.tile"(%a, %i) {..., xgpu.layout = array<i64: 40, 1>, xgpu.place = "shared"} : ...
    ```
    """

    NAME: ClassVar[str] = "assign-layouts"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the layouts of every kernel's tiles."""
        for kernel in kernels_of(module):
            plan, tiles = plan_of(kernel), kernel.graph.tiles
            all_given = kernel.given(attributes.LAYOUT)
            given = {plan.memory[tile]: layout for tile, layout in all_given.items() if tile in plan.memory}
            layouts = {}
            for tile, memory in plan.memory.items():
                is_read_down = memory in read_down(plan)
                strides = strides_of(tiles[tile], len(tiles[tile].shape) - 1, is_read_down)
                layouts[tile] = given.get(memory, attributes.int_array(strides))
            kernel.decide(attributes.LAYOUT, layouts, attributes.int_array(()))

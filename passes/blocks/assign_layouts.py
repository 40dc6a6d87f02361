"""The pass `assign-layouts`."""

from collections.abc import Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.memory.layouts import NOT_ASYNCHRONOUS, NOT_WIDE, innermost
from xgpu.block_plan.memory.panels import panel_layout
from xgpu.block_plan.memory.strides import CHUNK_BYTES, copy_unit, innermost_of, strides_of
from xgpu.block_plan.order.events import StagedGraph
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, InsertTileOp, TileOp
from xgpu.indexing.access import shape_of
from xgpu.passes.blocks.support.decided import plan_of, read_by_groups, read_down, refuse_decision, strides_given
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Chooses the strides of every tile in shared memory.

    A boolean program that knows what copies and operations ask for chooses the innermost dimensions with the least
    cost. They have stride 1, the others follow from the last to the first; rows are padded to whole chunks of 16 bytes,
    those of operands of products to a power of two of them, or an odd number: see swizzle-tiles. What warp groups
    multiply has rows of 128 bytes, or fewer; of what is wider, panels of such rows lie one after the other.
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
            _check_panels(kernel, all_given)
            given = {plan.memory[tile]: layout for tile, layout in all_given.items() if tile in plan.memory}
            inner = innermost(plan, _copies(kernel, plan), _given_innermost(kernel, given))
            together, panels = read_by_groups(kernel, plan), {}
            layouts = {}
            for tile, memory in plan.memory.items():
                chosen = inner.get(memory, 0)
                strides = strides_of(tiles[memory], chosen, memory in read_down(plan))
                if memory in together and memory not in given:
                    strides, panel = panel_layout(tiles[memory], chosen, together[memory])
                    if panel is not None:
                        panels[tile] = attributes.int_array((panel.dimension, panel.width, panel.stride))
                layouts[tile] = given.get(memory, attributes.int_array(strides))
                rank = len(tiles[memory].shape)
                if tile == memory and rank and chosen != rank - 1 and memory not in given:
                    op = kernel.ops[kernel.graph.maker[tile]]
                    remark(self.NAME, op, "dimension {} is the innermost, not the last: that costs the least", chosen)
            kernel.decide(attributes.LAYOUT, layouts, attributes.int_array(()))
            kernel.decide(attributes.PANEL, panels, attributes.int_array(()))


def _check_panels(kernel: BlockKernel, layouts: Mapping[int, ir.Attribute]) -> None:
    """Refuse panels of a tile whose strides are not given with them."""
    for tile, panel in kernel.given(attributes.PANEL).items():
        if tile not in layouts and (numbers := attributes.int_array_of(panel)):
            op = kernel.ops[kernel.graph.maker[tile]]
            refuse_decision(op, attributes.PANEL, f"'{attributes.LAYOUT}' to be given with it", numbers)


def _given_innermost(kernel: BlockKernel, given: Mapping[int, ir.Attribute]) -> dict[int, int]:
    """Return the innermost dimensions of layouts that stand there already."""
    found = {}
    for memory, layout in given.items():
        shape = kernel.graph.tiles[memory].shape
        inner = innermost_of(shape, strides_given(kernel, memory, layout))
        if inner is not None:
            found[memory] = inner
    return found


def _copies(kernel: BlockKernel, plan: StagedGraph) -> dict[int, list[int]]:
    """Return what copies of each memory to and from arrays cost, for each innermost dimension."""
    found: dict[int, list[int]] = {}
    for op in kernel.ops:
        view = op.opview
        if not isinstance(view, TileOp | InsertTileOp):
            continue
        memory = plan.memory.get(kernel.number[view.tile])
        if memory is None:
            continue
        tile = kernel.graph.tiles[memory]
        costs = found.setdefault(memory, [0] * len(tile.shape))
        in_steps = kernel.graph.nodes[kernel.ops.index(op)].region != 0
        for inner in range(len(tile.shape)):
            unit, _ = copy_unit(view.map, shape_of(view.array), tile.bits, strides_of(tile, inner))
            costs[inner] += NOT_WIDE * (CHUNK_BYTES - unit) // CHUNK_BYTES
            costs[inner] += NOT_ASYNCHRONOUS * (unit == 0 and in_steps and isinstance(view, TileOp))
    return found

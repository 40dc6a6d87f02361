"""The pass `pipeline-tiles`."""

from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.events import Plan
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.strides import chunk_problem
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, TileOp
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.access import shape_of
from xgpu.passes.blocks.support.decided import layouts_of, plan_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark


@dataclass(frozen=True)
class PipelineTiles(Pass):
    """Decides how tiles are copied to shared memory, and how many steps ahead of the one that reads them.

    A copy is asynchronous where each 16 bytes of the tile are 16 bytes of the array, in both at a multiple of 16.
    Needs assign-layouts.

    ```mlir
    %r = "xgpu.steps"(%zero) ({
      %x = "xgpu.tile"(%a, %i, %step) {...} : ...
    }) {count = 16 : i64} : ...
    // becomes
    %r = "xgpu.steps"(%zero) ({
      %x = "xgpu.tile"(%a, %i, %step) {..., xgpu.copy = "async"} : ...
    }) {count = 16 : i64, xgpu.stages = 2 : i64} : ...
    ```
    """

    NAME: ClassVar[str] = "pipeline-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the copies and the stages of every kernel."""
        for kernel in kernels_of(module):
            plan = plan_of(kernel)
            self._write_copies(kernel, plan)
            for number, node in enumerate(kernel.graph.nodes):
                op = kernel.ops[number]
                if node.kind == "steps" and attributes.STAGES not in op.attributes:
                    copies = [
                        kernel.ops[each].attributes.get(attributes.COPY) for each in kernel.graph.within(node.body)
                    ]
                    is_ahead = node.count > 1 and any(each is not None and _says(each, "async") for each in copies)
                    op.attributes[attributes.STAGES] = attributes.int_attribute(2 if is_ahead else 1)

    def _write_copies(self, kernel: BlockKernel, plan: Plan) -> None:
        layouts = layouts_of(kernel, plan)
        for op in kernel.ops:
            view = op.opview
            if not isinstance(view, TileOp) or attributes.COPY in op.attributes:
                continue
            memory = plan.memory.get(kernel.number[view.tile])
            if memory is None:
                continue
            bits = dtype_of_element(ir.RankedTensorType(view.array.type).element_type).storage_bits
            problem = chunk_problem(view.map, shape_of(view.array), bits, layouts[memory])
            if problem:
                remark(self.NAME, op, "the tile is not copied asynchronously: {}", problem)
            op.attributes[attributes.COPY] = ir.StringAttr.get(attributes.PLAIN if problem else attributes.ASYNC)


def _says(attribute: ir.Attribute, word: str) -> bool:
    return isinstance(attribute, ir.StringAttr) and attribute.value == word

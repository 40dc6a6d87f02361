"""The pass `pipeline-tiles`."""

from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.accumulation import accumulated_products
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.memory.boxes import bulk_bytes
from xgpu.block_plan.memory.storage import Block, place
from xgpu.block_plan.memory.strides import CHUNK_BYTES, copy_unit
from xgpu.block_plan.order.events import StagedGraph, text_order
from xgpu.block_plan.order.lifetimes import lifetimes
from xgpu.block_plan.order.meetings import meetings
from xgpu.block_plan.pipelines import MOST_STAGES, is_alone, stages_of
from xgpu.device import DEFAULT_DEVICE, DeviceName, device
from xgpu.dialects import attributes
from xgpu.dialects.attributes import BY_WARP_GROUPS
from xgpu.dialects.block.tiles import BlocksOp, StepsOp, TileOp
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.access import shape_of
from xgpu.passes.blocks.support.decided import bytes_of, layouts_of, panel_given, plan_of, refuse_decision, text_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass

LEAST_STAGES_LEFT = 3
"""Buffers from which on one is left to products that go on: another is read, and one at least is filled."""

_ADD = "stablehlo.add"
"""The operation by which a product goes into what steps carry, in the registers of that."""


@dataclass(frozen=True)
class PipelineTiles(Pass):
    """Chooses how tiles are copied to shared memory, and how many steps ahead of their use.

    A copy is asynchronous where each 16 bytes of the tile are 16 bytes of the array, in both at a multiple of 16, or 8
    or 4. Steps with such copies have up to four buffers for each tile, as many as fit. TMA copies only tiles for which
    it is asked: that was slower.
    Where accumulators take so many registers that no second block runs beside one, its steps have all buffers that fit,
    and one of three or more is left to products of warp groups that go on in the next step. Where two blocks have room,
    the kernel is to take no more registers than that leaves.
    Needs assign-layouts.

    ```mlir
    %r = "xgpu.steps"(%zero) ({
      %x = "xgpu.tile"(%a, %i, %step) {...} : ...
    }) {count = 16 : i64} : ...
    // becomes
    %r = "xgpu.steps"(%zero) ({
      %x = "xgpu.tile"(%a, %i, %step) {..., xgpu.copy = "async"} : ...
    }) {count = 16 : i64, xgpu.stages = 4 : i64} : ...
    ```
    """

    NAME: ClassVar[str] = "pipeline-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that the kernel is for."""

    def apply(self, module: ir.Module) -> None:
        """Write the copies and the stages of every kernel."""
        for kernel in kernels_of(module):
            plan = plan_of(kernel)
            self._write_copies(kernel, plan)
            for number, node in enumerate(kernel.graph.nodes):
                op = kernel.ops[number]
                if node.kind != "steps":
                    continue
                if attributes.STAGES in op.attributes:
                    _check_stages(plan, number, op)
                else:
                    stages = self._stages(kernel, number)
                    op.attributes[attributes.STAGES] = attributes.int_attribute(stages)
                self._write_resident(kernel, number)
                self._write_prefetch(kernel, number)

    def _stages(self, kernel: BlockKernel, steps: int) -> int:
        """Return the stages of some steps, those of the steps before it are known."""
        node = kernel.graph.nodes[steps]
        copies = [kernel.ops[each].attributes.get(attributes.COPY) for each in kernel.graph.within(node.body)]
        if not any(each is not None and text_of(each) != attributes.PLAIN for each in copies):
            remark(self.NAME, kernel.ops[steps], "no copies run ahead of their step: none is asynchronous")
            return 1
        sizes = {stages: _bytes_with(kernel, steps, stages) for stages in range(2, MOST_STAGES + 1)}
        stages = stages_of(node.count, sizes, device(self.target).shared_bytes_optin, self._is_alone(kernel, steps))
        why = "{} buffers: {} steps, tiles of {} bytes of shared memory with {} buffers"
        remark(self.NAME, kernel.ops[steps], why, stages, node.count, sizes[max(2, stages)], max(2, stages))
        return stages

    def _is_alone(self, kernel: BlockKernel, steps: int) -> bool:
        """Whether registers leave room for one block of a kernel on a multiprocessor while it runs some steps."""
        return is_alone(kernel.threads, _held(kernel, steps), device(self.target).registers_per_sm)

    def _write_resident(self, kernel: BlockKernel, steps: int) -> None:
        """Have two blocks at once on a multiprocessor, where warp groups multiply and shared memory has room for both.

        Otherwise ptxas may take more registers than that leaves, for what follows the steps.
        """
        target, nodes = device(self.target), kernel.graph.nodes
        by_groups = [
            each for each in kernel.graph.within(nodes[steps].body) if nodes[each].instruction == BY_WARP_GROUPS
        ]
        if not by_groups or attributes.RESIDENT in kernel.function.attributes or self._is_alone(kernel, steps):
            return
        stages = attributes.int_of(kernel.ops[steps].attributes[attributes.STAGES])
        if 2 * _bytes_with(kernel, steps, stages) <= target.shared_bytes_optin:
            kernel.function.attributes[attributes.RESIDENT] = attributes.int_attribute(2)

    def _write_prefetch(self, kernel: BlockKernel, steps: int) -> None:
        """Leave a buffer to products that go on, where no other block multiplies while one waits for them."""
        op = kernel.ops[steps]
        view, stages = op.opview, attributes.int_of(op.attributes[attributes.STAGES])
        assert isinstance(view, StepsOp)
        if attributes.PREFETCH in op.attributes:
            given, most = attributes.int_of(op.attributes[attributes.PREFETCH]), max(1, stages - 1)
            if given > most:
                refuse_decision(op, attributes.PREFETCH, f"at most {most} steps, with {stages} buffers", given)
        elif stages >= LEAST_STAGES_LEFT and self._is_alone(kernel, steps) and accumulated_products(view):
            op.attributes[attributes.PREFETCH] = attributes.int_attribute(stages - 2)

    def _write_copies(self, kernel: BlockKernel, plan: StagedGraph) -> None:
        layouts, swizzles = layouts_of(kernel, plan), kernel.given(attributes.SWIZZLE)
        for op in kernel.ops:
            view = op.opview
            if not isinstance(view, TileOp) or attributes.COPY in op.attributes:
                continue
            memory = plan.memory.get(kernel.number[view.tile])
            if memory is None:
                continue
            bits = dtype_of_element(ir.RankedTensorType(view.array.type).element_type).storage_bits
            swizzle = attributes.int_array_of(swizzles[memory]) if memory in swizzles else ()
            panel = panel_given(kernel, memory)
            unit, problem = copy_unit(view.map, shape_of(view.array), bits, layouts[memory], swizzle, panel)
            if problem:
                how = f"copied by {unit} bytes" if unit else "not copied asynchronously"
                remark(self.NAME, op, "the tile is {}: {}", how, problem)
            op.attributes[attributes.COPY] = ir.StringAttr.get(attributes.ASYNC if unit else attributes.PLAIN)


def _held(kernel: BlockKernel, steps: int) -> int:
    """Return how many registers of a thread have what steps carry, and what products take and give for that."""
    given, graph = kernel.given(attributes.PLACE), kernel.graph
    within = (each for each in graph.within(graph.nodes[steps].body) if graph.nodes[each].kind == "product")
    held = set(graph.nodes[steps].results)
    for number in within:
        node = graph.nodes[number]
        held.add(node.operands[0])
        readers = {kernel.ops[each].name for each in graph.readers[node.results[0]]}
        if readers != {_ADD}:
            held.add(node.results[0])
    held = {tile for tile in held if text_of(given[graph.kept[tile]]) == attributes.FRAGMENTS}
    return sum(graph.tiles[tile].size * graph.tiles[tile].bits // 32 for tile in held) // kernel.threads


def _check_stages(plan: StagedGraph, steps: int, op: ir.Operation) -> None:
    """Refuse several buffers as given where no tile has them."""
    if plan.stages[steps] > 1 and steps not in plan.ahead.values():
        refuse_decision(op, attributes.STAGES, "1, as no tile is copied to shared memory in a step", plan.stages[steps])


def _bytes_with(kernel: BlockKernel, steps: int, stages: int) -> int:
    """Return the bytes of shared memory with so many stages, in the order of the text."""
    now = plan_of(kernel)
    plan = StagedGraph(now.graph, now.where, {**now.stages, steps: stages})
    order = text_order(plan)
    used = lifetimes(plan, order, meetings(plan, order).nodes)
    layouts = layouts_of(kernel, plan)
    blocks = [Block(bytes_of(kernel, plan, each, layouts[each]), CHUNK_BYTES, used[each]) for each in sorted(used)]
    reads = [each for each in now.graph.within(now.graph.nodes[steps].body) if now.graph.nodes[each].kind == "read"]
    return place(blocks, {}, exactly=False).size + bulk_bytes(len(reads), stages)

"""The pass `schedule-tiles`."""

from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.order.events import BlockOrder, StagedGraph
from xgpu.block_plan.order.schedules import schedule
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import bytes_of, layouts_of, meetings_of, plan_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass


@dataclass(frozen=True)
class ScheduleTiles(Pass):
    """Orders the operations of a block, and places its barriers.

    A barrier is needed where a thread reads what others have written since the last one, or writes what others may
    still read, in the same step or the one before. The order has the fewest barriers in steps, then outside, then the
    least shared memory in use at once; the order of the text is kept if none is better. What is computed where it is
    read stands before its first reader. A kernel that has a barrier keeps its order, and gets what barriers it lacks.
    Needs pipeline-tiles.

    ```mlir
    %x = "xgpu.tile"(%a, %i) {..., xgpu.place = "shared"} : ...
    %p = stablehlo.dot_general %x, %w, ... : ...
    // becomes
    %x = "xgpu.tile"(%a, %i) {..., xgpu.place = "shared"} : ...
    %p = stablehlo.dot_general %x, %w, ... {xgpu.barrier} : ...
    ```
    """

    NAME: ClassVar[str] = "schedule-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Order the operations of every kernel, and write its barriers."""
        for kernel in kernels_of(module):
            plan = plan_of(kernel)
            layouts = layouts_of(kernel, plan)
            sizes = {memory: bytes_of(kernel, plan, memory, strides) for memory, strides in layouts.items()}
            found = schedule(plan, sizes, meetings_of(kernel))
            _move(kernel, plan, found.order)
            for number in found.met:
                kernel.ops[number].attributes[attributes.MEET] = ir.UnitAttr.get()
            text = "threads meet {} times in steps, {} times outside; tiles of {} bytes are in use at once"
            remark(self.NAME, kernel.function, text, found.in_steps, found.outside, found.peak)


def _move(kernel: BlockKernel, plan: StagedGraph, order: BlockOrder) -> None:
    """Put the operations of each region in their order; what is computed where it is read before what reads it."""
    for region, numbers in order.regions.items():
        waiting = {number for number in kernel.graph.within(region) if not plan.acts(number)}
        placed: list[int] = []
        for number in numbers:
            placed += [*_computed(plan, number, waiting), number]
        ends = [number for number in kernel.graph.within(region) if kernel.graph.nodes[number].kind == "yield"]
        for end in ends:
            placed += _computed(plan, end, waiting)
        block = kernel.blocks.body if not region else kernel.ops[ends[0]].block
        (*_, last) = block.operations
        for number in (*placed, *sorted(waiting)):
            kernel.ops[number].move_before(last.operation)


def _computed(plan: StagedGraph, reader: int, waiting: set[int]) -> list[int]:
    """Return what ``reader`` reads and nothing else has computed so far, in order; it is then no longer waiting."""
    graph = plan.graph
    found: set[int] = set()
    pending = [reader]
    while pending:
        node = graph.nodes[pending.pop()]
        inner = graph.within(node.body) if node.kind == "steps" else ()
        operands = [*node.operands, *(tile for number in inner for tile in graph.nodes[number].operands)]
        for maker in {graph.maker[tile] for tile in operands} & waiting:
            found.add(maker)
            waiting.discard(maker)
            pending.append(maker)
    return sorted(found)

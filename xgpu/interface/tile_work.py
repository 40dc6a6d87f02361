"""The work of a block of a kernel of level ``tiles``, as far as its time depends on it."""

import math

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, instruction_of
from xgpu.block_plan.order.events import StagedGraph
from xgpu.block_plan.warps import GROUP_ROWS, WarpProduct
from xgpu.costs.block_programs import BlockWork
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.hlo.tensor_cores import product_problem
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.passes.blocks.support.decided import plan_of
from xgpu.structure import dtype_of

_TENSOR_CORE_BITS = 16


def multiplied(product: ir.Operation) -> int:
    """Return how many pairs of elements a product of tiles multiplies."""
    left, _ = operand_dimensions(product)
    contracted = math.prod(shape_of(product.operands[0])[each] for each in left.contracting)
    return math.prod(shape_of(product.results[0])) * contracted


def products_per_second(product: ir.Operation, device: Device) -> float:
    """Return how many pairs of elements a device multiplies in a second, in the types of a product."""
    if product_problem(product) is not None:
        return device.issue_rate
    bits = max(8, dtype_of(product.operands[0]).bits)
    return device.sm_count * device.products_per_cycle * device.clock * _TENSOR_CORE_BITS / bits


def work_of(kernel: BlockKernel, device: Device) -> list[BlockWork]:
    """Return what a block does outside of steps, then in each loop. All must be decided about the kernel."""
    plan, graph = plan_of(kernel), kernel.graph
    found = {0: BlockWork()}
    for number, node in enumerate(graph.nodes):
        if node.kind == "steps":
            found[node.body] = BlockWork(times=node.count, ahead=plan.stages.get(number, 1) - 1)
    for number, node in enumerate(graph.nodes):
        op, work = kernel.ops[number], found[node.region]
        work.meetings += attributes.MEET in op.attributes
        if node.kind in ("read", "write"):
            (tile,) = node.results or node.operands[:1]
            work.array_bytes += graph.tiles[tile].size * graph.tiles[tile].element_bytes
        if node.kind == "product":
            _add_product(work, op, device)
        elif node.kind in ("elementwise", "reduce", "move"):
            tiles = [graph.tiles[tile].size for tile in (*node.operands, *node.results)]
            work.instructions += node.instructions * max(tiles, default=0)
        work.shared_bytes += _shared_bytes(kernel, plan, number)
    return list(found.values())


def _add_product(work: BlockWork, op: ir.Operation, device: Device) -> None:
    if product_problem(op) is not None:
        work.instructions += multiplied(op)
        return
    each_cycle = products_per_second(op, device) / (device.sm_count * device.clock)
    share = 1.0 if instruction_of(op) == attributes.BY_WARP_GROUPS else device.warp_share
    work.tensor_cycles += multiplied(op) / (each_cycle * share)


def _shared_bytes(kernel: BlockKernel, plan: StagedGraph, number: int) -> int:
    """Return what an operation reads and writes in shared memory; warps that share a product read operands again.

    So does each instruction of a warp group, of 64 rows, with the right operand.
    """
    graph, op = kernel.graph, kernel.ops[number]
    node = graph.nodes[number]
    if not plan.acts(number) or node.kind in ("steps", "yield"):
        return 0
    again = [1] * len(node.operands)
    if node.kind == "product" and attributes.WARPS in op.attributes:
        down, across = attributes.int_array_of(op.attributes[attributes.WARPS])
        by_groups = node.instruction == attributes.BY_WARP_GROUPS
        again = [across, WarpProduct.of(graph, node).rows // GROUP_ROWS if by_groups else down]
    bytes_of = {tile: graph.tiles[tile].size * graph.tiles[tile].element_bytes for tile in plan.memory}
    read = [(times, root) for times, tile in zip(again, node.operands, strict=True) for root in plan.roots(tile)]
    written = sum(bytes_of[tile] for tile in node.results if tile in bytes_of)
    return written + sum(times * bytes_of[root] for times, root in read if root in bytes_of)

"""The instructions that multiply tiles: of a warp group, of a warp, or of single threads."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel
from xgpu.block_plan.warps import Arrangement, WarpProduct, arrange_groups, asked_of, group_problem
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.block.matrices import contracted
from xgpu.hlo.tensor_cores import product_problem
from xgpu.structure import dtype_of
from xgpu.target_machine import WARP_SIZE

BY_WARPS = {"bf16": "bf16", "f16": "f16", "f32": "tf32"}
"""Elements that instructions of a warp multiply here, and as what."""
BY_GROUPS = {"bf16": "bf16", "f16": "f16"}
"""Those of a warp group: of 16 bits, as these may lie along any dimension, and are taken as they are in memory."""
_OF_PLACES = (attributes.LAYOUT, attributes.PANEL, attributes.SWIZZLE)


def warp_problem(op: ir.Operation) -> str | None:
    """Return why instructions of a warp do not multiply the operands of a product; None if they do."""
    return _types_problem(op, BY_WARPS)


def warp_group_problem(
    kernel: BlockKernel, number: int, given: Mapping[int, Arrangement], target: Device
) -> str | None:
    """Return why warp groups do not multiply the operands of a product, by its node; None if they do.

    ``given`` is how warps share products, as far as that is decided.
    """
    op, node = kernel.ops[number], kernel.graph.nodes[number]
    if attributes.BY_WARP_GROUPS not in target.machine.instructions:
        return f"expected a GPU with {attributes.BY_WARP_GROUPS}, got {target.name}"
    if problem := _types_problem(op, BY_GROUPS):
        return problem
    assert node.dimensions is not None, "a product has them"
    if any((len(each.batching), len(each.own), len(each.contracting)) != (0, 1, 1) for each in node.dimensions):
        return "expected operands of two dimensions, one of them contracted"
    product, each = WarpProduct.of(kernel.graph, node), contracted(BY_GROUPS[dtype_of(op.operands[0]).hlo])
    if product.contracted % each:
        return f"expected a multiple of {each} contracted elements, got {product.contracted}"
    if (asked := asked_of(kernel.graph, number, given)) is not None:
        return group_problem(product, asked)
    if arrange_groups(product, kernel.threads // WARP_SIZE) is None:
        sizes = f"{product.rows} x {product.columns} and {kernel.threads} threads"
        return f"expected tiles that groups of 128 threads divide into parts of 64 rows, and 8 columns, got {sizes}"
    return None


def layouts_decided(kernel: BlockKernel, number: int) -> Iterator[str]:
    """Yield the attributes that say how operands of a product lie, other than in shared memory as it likes."""
    given = {name: kernel.given(name) for name in (*_OF_PLACES, attributes.PLACE)}
    for tile in kernel.graph.nodes[number].operands:
        kept = kernel.graph.kept[tile]
        yield from (name for name in _OF_PLACES if kept in given[name])
        place = given[attributes.PLACE].get(kept)
        if isinstance(place, ir.StringAttr) and place.value == attributes.COMPUTED:
            yield attributes.PLACE


def _types_problem(op: ir.Operation, known: Mapping[str, str]) -> str | None:
    if problem := product_problem(op):
        return problem
    left, right = (dtype_of(each) for each in op.operands)
    if left != right or left.hlo not in known:
        return f"expected operands of {' or '.join(known)}, both of the same, got {left} and {right}"
    return None

"""The decisions about a kernel that stand in its IR, for the passes that need them."""

from typing import cast

from xgpu import ir
from xgpu.block_plan.chains import Where
from xgpu.block_plan.graph import Tile
from xgpu.block_plan.kernel import BlockKernel
from xgpu.block_plan.memory.panels import read_together
from xgpu.block_plan.memory.strides import TilePanel, are_apart, tile_bytes
from xgpu.block_plan.order.events import BlockOrder, StagedGraph
from xgpu.block_plan.warps import Arrangement
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import StepsOp
from xgpu.errors import CompilerError
from xgpu.hlo.source_location import source_of

_SHARED: Where = "shared"
_OF_SHARED = (attributes.LAYOUT, attributes.PANEL, attributes.SWIZZLE, attributes.COPY, attributes.OFFSET)
"""Decisions about tiles that are in shared memory."""


def places_given(kernel: BlockKernel) -> dict[int, Where]:
    """Return where tiles are to be as given: their place, or shared memory if something is decided about them there.

    Raises `CompilerError` for a place that does not go with the other decisions.
    """
    found = {tile: cast(Where, text_of(place)) for tile, place in kernel.given(attributes.PLACE).items()}
    for tile, place in found.items():
        op = kernel.ops[kernel.graph.maker[tile]]
        if isinstance(op.opview, StepsOp) and place == attributes.COMPUTED:
            expected = f"{attributes.SHARED} or {attributes.FRAGMENTS} for what steps carry"
            refuse_decision(op, attributes.PLACE, expected, place)
    for name in _OF_SHARED:
        for tile, value in kernel.given(name).items():
            op = kernel.ops[kernel.graph.maker[tile]]
            if _says_nothing(value, isinstance(op.opview, StepsOp)):
                continue
            if found.setdefault(tile, _SHARED) != _SHARED:
                refuse_decision(op, name, f"'{attributes.PLACE}' to be {_SHARED} with it", found[tile])
    return found


def warps_given(kernel: BlockKernel) -> dict[int, Arrangement]:
    """Return how warps share products, by node, where that is decided."""
    found: dict[int, Arrangement] = {}
    for number, op in enumerate(kernel.ops):
        if attributes.WARPS in op.attributes:
            down, across = attributes.int_array_of(op.attributes[attributes.WARPS])
            found[number] = (down, across)
    return found


def _says_nothing(value: ir.Attribute, is_carried: bool) -> bool:
    """Whether a value stands for one that is missing: of what steps carry, each tile has an entry."""
    if isinstance(value, ir.DenseI64ArrayAttr):
        return is_carried and not len(value)
    return isinstance(value, ir.IntegerAttr) and value.value < 0


def plan_of(kernel: BlockKernel) -> StagedGraph:
    """Return where tiles are kept, and the stages of steps. Raises `CompilerError` if a tile has no place."""
    given = kernel.given(attributes.PLACE)
    where: dict[int, Where] = {}
    for tile in range(len(kernel.values)):
        of = kernel.graph.kept[tile]
        if of not in given:
            lacks(kernel.ops[kernel.graph.maker[of]], attributes.PLACE, "chain-tiles")
        where[tile] = cast(Where, ir.StringAttr(given[of]).value)
    return StagedGraph(kernel.graph, where, stages_of(kernel))


def stages_of(kernel: BlockKernel) -> dict[int, int]:
    """Return the stages of the steps that have some."""
    ops = enumerate(kernel.ops)
    name = attributes.STAGES
    return {number: attributes.int_of(op.attributes[name]) for number, op in ops if name in op.attributes}


def layouts_of(kernel: BlockKernel, plan: StagedGraph) -> dict[int, tuple[int, ...]]:
    """Return the strides of each memory. Raises `CompilerError` for a tile in shared memory without any."""
    found: dict[int, tuple[int, ...]] = {}
    given = kernel.given(attributes.LAYOUT)
    for tile, memory in plan.memory.items():
        of = kernel.graph.kept[tile]
        op = kernel.ops[kernel.graph.maker[of]]
        if of not in given:
            lacks(op, attributes.LAYOUT, "assign-layouts")
        strides = strides_given(kernel, of, given[of])
        if found.setdefault(memory, strides) != strides:
            refuse_decision(op, attributes.LAYOUT, f"{found[memory]}, that of the tile it is computed in", strides)
    return found


def strides_given(kernel: BlockKernel, tile: int, layout: ir.Attribute) -> tuple[int, ...]:
    """Return the strides of a tile. Raises `CompilerError` if they do not fit it."""
    shape, op = kernel.graph.tiles[tile].shape, kernel.ops[kernel.graph.maker[tile]]
    strides = attributes.int_array_of(layout) if isinstance(layout, ir.DenseI64ArrayAttr) else ()
    if len(strides) != len(shape):
        refuse_decision(op, attributes.LAYOUT, f"{len(shape)} strides", strides)
    panel = panel_given(kernel, tile)
    if panel is not None and (problem := panel.problem(shape)):
        refuse_decision(op, attributes.PANEL, problem, attributes.int_array_of(kernel.given(attributes.PANEL)[tile]))
    if not are_apart(shape, strides, panel):
        refuse_decision(op, attributes.LAYOUT, "strides with a place for each element", strides)
    return strides


def panel_given(kernel: BlockKernel, tile: int) -> TilePanel | None:
    """Return the panels of a tile in shared memory, None if it has none."""
    given = kernel.given(attributes.PANEL).get(tile)
    numbers = () if given is None else attributes.int_array_of(given)
    return TilePanel(*numbers) if numbers else None


def bytes_of(kernel: BlockKernel, plan: StagedGraph, memory: int, strides: tuple[int, ...]) -> int:
    """Return the bytes of a memory, all its buffers together."""
    tile: Tile = kernel.graph.tiles[memory]
    swizzled = kernel.given(attributes.SWIZZLE)
    swizzle = attributes.int_array_of(swizzled[memory]) if memory in swizzled else ()
    panel = panel_given(kernel, memory)
    return tile_bytes(tile.shape, strides, tile.element_bytes, swizzle, panel) * buffers_of(plan, memory)


def read_down(plan: StagedGraph) -> set[int]:
    """Return the memory of which chunks of one column are read together.

    That of operands of products, and of what is read where threads hold rows as a product has them.
    """
    nodes, where = plan.graph.nodes, plan.where
    products = {tile for node in nodes if node.kind == "product" for tile in node.operands}
    held = (node for node in nodes if node.kind == "elementwise" and where[node.results[0]] == "fragments")
    read = products.union(*(plan.roots(tile) for node in held for tile in node.operands))
    return {plan.memory[tile] for tile in read if tile in plan.memory}


def read_by_groups(kernel: BlockKernel, plan: StagedGraph) -> dict[int, tuple[int, int]]:
    """Return the memory that warp groups multiply, with the elements of its dimensions that they read together."""
    return read_together(plan, warps_given(kernel))


def buffers_of(plan: StagedGraph, memory: int) -> int:
    """Return how many buffers a memory has: as many as the stages of its steps if its tile is copied ahead."""
    maker = plan.graph.maker[memory]
    return plan.stages[plan.ahead[maker]] if maker in plan.ahead else 1


def order_of(kernel: BlockKernel, plan: StagedGraph) -> BlockOrder:
    """Return the order of the text."""
    regions: dict[int, list[int]] = {}
    for number, node in enumerate(kernel.graph.nodes):
        if plan.acts(number) and node.kind != "yield":
            regions.setdefault(node.region, []).append(number)
    return BlockOrder(regions)


def meetings_of(kernel: BlockKernel) -> list[int]:
    """Return the nodes before which all threads meet."""
    return [number for number, op in enumerate(kernel.ops) if attributes.MEET in op.attributes]


def text_of(attribute: ir.Attribute) -> str:
    """Return the value of a string."""
    return ir.StringAttr(attribute).value


def lacks(op: ir.Operation, name: str, made_by: str) -> None:
    """Raise `CompilerError` for an operation without a decision."""
    raise CompilerError(f"'{op.name}': expected the attribute '{name}', which {made_by} sets", source_of(op))


def refuse_decision(op: ir.Operation, name: str, expected: str, got: object) -> None:
    """Raise `CompilerError` for a decision that does not fit."""
    raise CompilerError(f"'{op.name}': attribute '{name}': expected {expected}, got {got}", source_of(op))

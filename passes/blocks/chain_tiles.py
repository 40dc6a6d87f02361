"""The pass `chain-tiles`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.block_plan.chains import Chains, MissingCopy, choose, missing_copies
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.warps import WarpProduct, arrange
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import places_given
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

_MOST_COPIES = 1000


@dataclass(frozen=True)
class ChainTiles(Pass):
    """Chooses where each tile is kept: in shared memory, in registers after a product, or nowhere (computed again).

    Elementwise operations follow the product whose result they read, on its accumulators; constants, broadcasts, and
    what one operation reads once are computed where they are read. Where an operation reads accumulators in another
    way, a copy of the tile in shared memory is made for it, and where a step cannot compute what it yields in place.
    Products get an arrangement of the block's warps that reads the fewest elements. A tile of which a layout, a
    swizzle, a copy or an offset is given is in shared memory; if another place is given too, that is an error.

    ```mlir
    %p = stablehlo.dot_general %x, %w, ... : (tensor<64x32xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    %r = stablehlo.tanh %p : tensor<64x64xf32>
    // becomes
    %p = stablehlo.dot_general %x, %w, ... {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 2>} : ...
    %r = stablehlo.tanh %p {xgpu.place = "fragments"} : tensor<64x64xf32>
    ```
    """

    NAME: ClassVar[str] = "chain-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the places of every kernel's tiles."""
        for kernel in kernels_of(module):
            for _ in range(_MOST_COPIES):
                chains = _choose(kernel)
                copies = missing_copies(kernel.graph, chains)
                if not copies:
                    break
                _insert(kernel, copies[0])
                kernel = BlockKernel(kernel.function, kernel.blocks)
            self._write(kernel, chains)

    def _write(self, kernel: BlockKernel, chains: Chains) -> None:
        """Write the places, and say why tiles are in shared memory."""
        places = {tile: cast(ir.Attribute, ir.StringAttr.get(where)) for tile, where in chains.where.items()}
        for tile, where in chains.where.items():
            maker = kernel.ops[kernel.graph.maker[tile]]
            if where == "shared" and kernel.graph.kept[tile] == tile and attributes.PLACE not in maker.attributes:
                remark(self.NAME, maker, "the tile is kept in shared memory: {}", chains.why[tile])
        kernel.decide(attributes.PLACE, places)
        _arrange_warps(kernel, chains)


def _choose(kernel: BlockKernel) -> Chains:
    return choose(kernel.graph, kernel.threads, places_given(kernel))


def _insert(kernel: BlockKernel, copy: MissingCopy) -> None:
    """Insert a copy of a tile in shared memory for some of its readers."""
    value, place = kernel.values[copy.tile], kernel.ops[copy.before]
    with ir.InsertionPoint(place), place.location:
        shared: dict[str, ir.Attribute] = {attributes.PLACE: ir.StringAttr.get(attributes.SHARED)}
        made = ir.Operation.create("stablehlo.convert", [value.type], [value], shared).results[0]
    for reader in copy.readers:
        for number, operand in enumerate(kernel.ops[reader].operands):
            if operand == value and copy.operand in (None, number):
                kernel.ops[reader].operands[number] = made


def _arrange_warps(kernel: BlockKernel, chains: Chains) -> None:
    """Write the warps of products: those whose results lie alike have the same."""
    forms: dict[str, list[int]] = {}
    for number, node in enumerate(kernel.graph.nodes):
        if node.kind == "product":
            (result,) = node.results
            forms.setdefault(chains.form.get(result, f"{number}"), []).append(number)
    for numbers in forms.values():
        ops = [kernel.ops[number] for number in numbers]
        given = [op.attributes[attributes.WARPS] for op in ops if attributes.WARPS in op.attributes]
        chosen = arrange([_product(kernel, number) for number in numbers], kernel.threads // WARP_SIZE)
        for op in ops:
            if attributes.WARPS not in op.attributes:
                op.attributes[attributes.WARPS] = given[0] if given else attributes.int_array(chosen)


def _product(kernel: BlockKernel, number: int) -> WarpProduct:
    node = kernel.graph.nodes[number]
    assert node.dimensions is not None, "a product has them"
    left, right = node.dimensions
    shapes = [kernel.graph.tiles[tile].shape for tile in node.operands]
    sizes = [1, 1, 1, 1]
    parts = ((0, left.batching, 0), (0, left.own, 1), (1, right.own, 2), (0, left.contracting, 3))
    for operand, dimensions, place in parts:
        for dimension in dimensions:
            sizes[place] *= shapes[operand][dimension]
    return WarpProduct(*sizes)

"""The pass `chain-tiles`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.block_plan.chains import Chains, MissingCopy, choose, missing_copies
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.warps import Arrangement, arrangements
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp
from xgpu.passes.blocks.support.decided import places_given, warps_given
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

_MOST_COPIES = 1000


@dataclass(frozen=True)
class ChainTiles(Pass):
    """Chooses where each tile is kept: in shared memory, in registers after a product, or nowhere (computed again).

    Elementwise operations follow the product whose result they read, on its accumulators, and so do reductions of rows
    that a warp has whole: all threads of a row have the result, and what is computed from it is in registers, too.
    Constants, broadcasts, and what one operation reads once are computed where they are read. Where an operation reads
    accumulators in another way, a copy of the tile in shared memory is made for it, and where a step cannot compute
    what it yields in place.
    Products get an arrangement of the block's warps that reads the fewest elements. Where warp groups multiply, each
    has whole rows if it can, and a left operand of 16 bits that follows another product stays in registers, too; one
    that is computed element by element is computed there, with what it is computed from. A tile of which a layout,
    panels, a swizzle, a copy or an offset is given is in shared memory; if another place is given too, that is an
    error.
    Needs assign-products.

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
        for number, arranged in _arranged(kernel).items():
            kernel.ops[number].attributes[attributes.WARPS] = attributes.int_array(arranged)


def _choose(kernel: BlockKernel) -> Chains:
    return choose(kernel.graph, kernel.threads, places_given(kernel), _arranged(kernel))


def _arranged(kernel: BlockKernel) -> dict[int, Arrangement]:
    """Return how warps share each product, by node, those that are given among them."""
    return arrangements(kernel.graph, kernel.threads // WARP_SIZE, warps_given(kernel))


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

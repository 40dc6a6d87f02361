"""The pass `multicast-tiles`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from xgpu import ir
from xgpu.block_plan.kernel import BlockKernel, kernels_of
from xgpu.block_plan.multicast import blocks_of, copies_for, masks, masks_problem, without_multicast
from xgpu.dialects import attributes
from xgpu.dialects.block.tiles import BlocksOp, TileOp
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.blocks.support.decided import refuse_decision, text_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import is_argument


@dataclass(frozen=True)
class MulticastTiles(Pass):
    """Chooses which block of a cluster copies a tile for which other blocks, where TMA copies it.

    Blocks need the same tile if the maps from their numbers to it are equal, in all clusters and steps; the first of
    those that do copies it for all. Of grids that are no multiple of the cluster, only what is the same in each cluster
    counts. The attribute has, for each rank, the ranks that it copies for.
    It is planned, but not lowered: lower-tiles refuses tiles of the emitter ``block`` that several blocks share.
    Kernels of products multicast as the ``cluster`` of their schedule says.
    Needs pipeline-tiles.

    ```mlir
    func.func @kernel(...) attributes {xgpu.cluster = array<i64: 2, 1, 1>, ...} {
      ...
      %x = "xgpu.tile"(%a, %i, %j, %s) {map = (d0, d1, d2)[s0, s1] -> (d0 * 64 + s0, d2 * 64 + s1), xgpu.copy = "bulk"}
    // becomes
      %x = "xgpu.tile"(%a, %i, %j, %s) {..., xgpu.copy = "bulk", xgpu.multicast = array<i64: 3, 0>} : ...
    ```
    """

    NAME: ClassVar[str] = "multicast-tiles"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((BlocksOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the masks of every kernel's tiles."""
        for kernel in kernels_of(module):
            given = kernel.function.attributes.get(attributes.CLUSTER)
            size = 1 if given is None else math.prod(attributes.int_array_of(given))
            for op in kernel.ops:
                view = op.opview
                if not isinstance(view, TileOp):
                    continue
                copy = op.attributes.get(attributes.COPY)
                if copy is not None and text_of(copy) == attributes.BULK:
                    self._write(kernel, view, size)
                elif attributes.MULTICAST in op.attributes:
                    expected = f"'{attributes.COPY}' to be {attributes.BULK} with it"
                    refuse_decision(op, attributes.MULTICAST, expected, "none" if copy is None else text_of(copy))

    def _write(self, kernel: BlockKernel, tile: TileOp, size: int) -> None:
        op, map_ = tile.operation, _by_numbers(kernel, tile)
        found = without_multicast(size) if map_ is None else masks(map_, blocks_of(kernel.blocks.grid, size))
        if attributes.MULTICAST in op.attributes:
            got = attributes.int_array_of(op.attributes[attributes.MULTICAST])
            if problem := masks_problem(got, found):
                refuse_decision(op, attributes.MULTICAST, problem, got)
        elif size > 1:
            op.attributes[attributes.MULTICAST] = attributes.int_array(found)
            remark(self.NAME, op, "{} of {} blocks of a cluster copy the tile", copies_for(found), size)


def _by_numbers(kernel: BlockKernel, tile: TileOp) -> IndexingMap | None:
    """Return the map of a tile from all numbers of the block, and the step; None if it depends on anything else."""
    numbers: Sequence[ir.Value] = list(kernel.blocks.body.arguments)[: len(kernel.blocks.grid)]
    dims = list(ranges(kernel.blocks.grid))
    places = []
    for value, interval in zip(tile.at, tile.map.dims, strict=True):
        if value in numbers:
            places.append(dim(numbers.index(value)))
            continue
        if not is_argument(value):
            return None
        places.append(dim(len(dims)))
        dims.append(interval)
    results = tuple(each.substitute(places) for each in tile.map.results)
    constraints = tuple((each.substitute(places), bound) for each, bound in tile.map.constraints)
    return replace(tile.map, dims=tuple(dims), results=results, constraints=constraints)

"""The epilogue of a product, for each element that a thread holds: tiles become scalars."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.tiles import TileOp
from xgpu.dialects.threads import PredicatedExtractOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.emit.builders import extract
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.op import ScalarOp, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import element_of, made, producer

_CONSTANT = "stablehlo.constant"


class FragmentCode:
    """The scalars of tiles at one element, written at the insertion point.

    ``known`` are those of some tiles; ``at`` are the numbers of block and step, ``element`` the indices in the tile.
    Where the constraints ``inside`` hold, an array is read without asking again.
    """

    def __init__(
        self,
        at: Sequence[ir.Value],
        element: Sequence[ir.Value],
        known: dict[ir.Value, ir.Value],
        inside: IndexingMap,
    ):
        self._variables = [*at, *element]
        self._values = dict(known)
        self._inside = set(inside.constraints)

    def value(self, tile: ir.Value) -> ir.Value:
        """Return the element of ``tile``."""
        return made(tile, self._values, _operands, self._make)

    def _make(self, tile: ir.Value, operands: list[ir.Value]) -> ir.Value:
        op = producer(tile)
        with op.location:
            if isinstance(op.opview, TileOp):
                return self._read(op.opview)
            if op.name == _CONSTANT:
                return emit_constant(op, ())
            return build_scalar(ScalarOp(op, tuple(operands)))

    def _read(self, tile: TileOp) -> ir.Value:
        map_ = tile.map
        indices = ApplyIndexingOp.build(map_, self._variables) if map_.results else []
        if set(map_.constraints) <= self._inside:
            return extract(tile.array, indices)
        condition = InDomainOp.build(map_, self._variables)
        return PredicatedExtractOp.build(condition, constant(element_of(tile.array), 0), tile.array, indices)


def _operands(tile: ir.Value) -> Sequence[ir.Value]:
    """Return the tiles that a tile is computed from; one of an array is read."""
    op = producer(tile)
    return [] if isinstance(op.opview, TileOp) else list(op.operands)

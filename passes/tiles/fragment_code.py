"""What follows a product, for each element that a thread holds: tiles become scalars."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.block.tiles import TileOp
from xgpu.dialects.threads import PredicatedExtractOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.op import ScalarOp, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import defining_op

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
        found = self._values.get(tile)
        if found is None:
            op = defining_op(tile)
            assert op is not None
            with op.location:
                found = self._values[tile] = self._make(op)
        return found

    def _make(self, op: ir.Operation) -> ir.Value:
        if op.name == TileOp.OPERATION_NAME:
            view = op.opview
            assert isinstance(view, TileOp)
            return self._read(view)
        if op.name == _CONSTANT:
            return emit_constant(op, ())
        return build_scalar(ScalarOp(op, tuple(self.value(operand) for operand in op.operands)))

    def _read(self, tile: TileOp) -> ir.Value:
        map_ = tile.map
        indices = ApplyIndexingOp.build(map_, self._variables) if map_.results else []
        type_ = ir.RankedTensorType(tile.array.type).element_type
        if set(map_.constraints) <= self._inside:
            return ir.Operation.create("tensor.extract", results=[type_], operands=[tile.array, *indices]).results[0]
        condition = InDomainOp.build(map_, self._variables)
        return PredicatedExtractOp.build(condition, constant(type_, 0), tile.array, indices)

"""The elements of a left operand as threads compute them: of those of one tile, and of what they read besides."""

from collections.abc import Sequence
from dataclasses import field, replace

from xgpu import ir
from xgpu.dialects.block.tiles import TileOp
from xgpu.dialects.threads import PredicatedExtractOp
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.dtypes import dtype_named
from xgpu.emit.builders import extract
from xgpu.emit.scalar.constants import emit_constant
from xgpu.emit.scalar.convert import convert_value
from xgpu.emit.scalar.op import ScalarOp, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.structured import Values
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, made, producer

_CONSTANT = "stablehlo.constant"
_CONVERT = "stablehlo.convert"
_EXACT = ("bf16", "f16", "f32", "f64")
"""Floats that have all integers of 8 bits."""

type Place = tuple[AffineExpr, AffineExpr]
"""The row and the column of an element in the tile, by the number of the thread, dimension 0."""


@dataclass(frozen=True)
class Narrow:
    """An element of the tile in shared memory: as it is, and of an integer its ``number`` as f32."""

    scalar: ir.Value
    number: ir.Value | None


@dataclass(frozen=True, eq=False)
class LeftElements:
    """The scalars of the ``operand`` at a thread's places, written where they are asked for, equal ones once.

    ``narrow`` is the tile whose elements are known otherwise. Others are read at ``at``, the numbers of the block, and
    the ``step``, None before the first one. ``thread`` is the thread's number, in its range.
    """

    operand: ir.Value
    narrow: TileOp
    at: Values
    thread: ir.Value
    threads: Interval
    step: ir.Value | None = None
    known: dict[tuple[object, ...], ir.Value] = field(default_factory=dict)

    def in_step(self, step: ir.Value) -> "LeftElements":
        """Return the elements in a step: what does not depend on it is known already."""
        return replace(self, step=step, known=dict(self.known))

    def read(self, places: Sequence[Place]) -> None:
        """Read at some places what is known to be needed: before the first step what all steps need."""
        pending, seen = [self.operand], set[ir.Value]()
        while pending:
            tile = pending.pop()
            if tile in seen:
                continue
            seen.add(tile)
            op = producer(tile)
            if not isinstance(op.opview, TileOp):
                pending += list(op.operands)
            elif op.opview != self.narrow and (self.step is not None or not self._depends_on_step(op.opview)):
                for place in places:
                    self._read(op.opview, place)

    def value(self, place: Place, narrow: Narrow) -> ir.Value:
        """Return the operand's element at a place, given that of the tile in shared memory."""

        def make(tile: ir.Value, operands: list[ir.Value]) -> ir.Value:
            op = producer(tile)
            if isinstance(op.opview, TileOp):
                return self._read(op.opview, place)
            if narrow.number is not None and self._is_conversion(op):
                return convert_value(narrow.number, dtype_named("f32"), dtype_of(tile))
            key = (op, *operands)
            if key not in self.known:
                with op.location:
                    is_constant = op.name == _CONSTANT
                    self.known[key] = emit_constant(op, ()) if is_constant else build_scalar(_scalar(op, operands))
            return self.known[key]

        return made(self.operand, {self.narrow.tile: narrow.scalar}, _operands, make)

    def _is_conversion(self, op: ir.Operation) -> bool:
        """Whether an operation makes floats of the narrow tile, of which they have room for all numbers."""
        return op.name == _CONVERT and op.operands[0] == self.narrow.tile and dtype_of(op.results[0]).hlo in _EXACT

    def _depends_on_step(self, tile: TileOp) -> bool:
        expressions = (*tile.map.results, *(each for each, _ in tile.map.constraints))
        return any(len(self.at) in each.variables()[0] for each in expressions)

    def _read(self, tile: TileOp, place: Place) -> ir.Value:
        """Return an element of a tile of an array; where a constraint does not hold it is zero."""
        map_ = self._placed(tile.map, place)
        key = tile, map_
        if key not in self.known:
            with tile.operation.location:
                self.known[key] = self._extract(tile, map_)
        return self.known[key]

    def _placed(self, map_: IndexingMap, place: Place) -> IndexingMap:
        """Return the map of a tile at a place, simply expressed, with the thread as one more dimension."""
        count = len(map_.dims)
        moved = [each.substitute([dim(count)]) for each in place]
        dims = (*map_.dims, self.threads)
        asked = tuple(each.substitute(None, moved) for each, _ in map_.constraints)
        simple = IndexingMap(dims, (), asked).with_simple_results().results
        bounds = tuple((each, bound) for each, (_, bound) in zip(simple, map_.constraints, strict=True))
        results = tuple(each.substitute(None, moved) for each in map_.results)
        return IndexingMap(dims, (), results, bounds).with_simple_results()

    def _extract(self, tile: TileOp, map_: IndexingMap) -> ir.Value:
        step = create_index(0) if self.step is None else self.step
        variables = [*self.at, step, self.thread]
        indices = ApplyIndexingOp.build(map_, variables) if map_.results else []
        if not map_.constraints:
            return extract(tile.array, indices)
        condition = InDomainOp.build(map_, variables)
        return PredicatedExtractOp.build(condition, constant(element_of(tile.array), 0), tile.array, indices)


def _scalar(op: ir.Operation, operands: Sequence[ir.Value]) -> ScalarOp:
    return ScalarOp(op, tuple(operands))


def _operands(tile: ir.Value) -> Sequence[ir.Value]:
    """Return the tiles that a tile is computed from; one of an array is read."""
    op = producer(tile)
    return [] if isinstance(op.opview, TileOp) else list(op.operands)

"""Tiles of the values of a fusion: operations on whole arrays become the same ones on the tiles that a block needs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.dialects.attributes import WEIGHT
from xgpu.dialects.block.tiles import IndexTileOp, TileOp
from xgpu.hlo.constants import splat_of
from xgpu.hlo.source_location import unsupported
from xgpu.indexing.access import integer
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.element_tiles import can_be_tiled, then
from xgpu.structure import element_of, made, producer

_CONSTANT = "stablehlo.constant"
_IOTA = "stablehlo.iota"
_Tile = tuple[ir.Value, IndexingMap]
"""The tile of a value that a map leads to."""


class TileProgram:
    """The tiles that a block computes, at the insertion point: ``at`` are the numbers of the block, and of the step.

    ``arrays`` has the kernel's parameter for each of the fusion's. What arrays do not have is zero; if they are read by
    their ``own`` bounds, that is only so where an index of theirs is beyond its bound.
    """

    def __init__(self, at: Sequence[ir.Value], arrays: dict[ir.Value, ir.Value], own: bool = False):
        self._at, self._own = list(at), own
        self._arrays = arrays
        self._tiles: dict[_Tile, ir.Value] = {}
        self._known: dict[ir.Value, Callable[[IndexingMap], ir.Value]] = {}

    def know(self, value: ir.Value, map_: IndexingMap, tile: ir.Value) -> None:
        """Take ``tile`` for the tile of ``value`` that ``map_`` leads to."""
        self._tiles[value, map_] = tile

    def make(self, value: ir.Value, tile: Callable[[IndexingMap], ir.Value]) -> None:
        """Have ``tile`` write the tile of ``value`` that a map leads to, once for each map."""
        self._known[value] = tile

    def tile(self, value: ir.Value, map_: IndexingMap) -> ir.Value:
        """Return the tile of ``value`` whose element at the range variables of ``map_`` is where it leads to.

        Raises `Unsupported` for an operation that is not computed element by element.
        """
        return made((value, map_), self._tiles, self._operands, self._make)

    def _operands(self, tile: _Tile) -> list[_Tile]:
        """Return the tiles that a tile is computed from."""
        value, map_ = tile
        if value in self._arrays or value in self._known or producer(value).name == _IOTA:
            return []
        op = producer(value)
        if not can_be_tiled(op):
            raise unsupported(op, "its tiles are not computed from tiles of its operands")
        return [(op.operands[each.operand], then(map_, each.map)) for each in accesses(op)]

    def _make(self, tile: _Tile, operands: list[ir.Value]) -> ir.Value:
        value, map_ = tile
        if value in self._arrays:
            read = _with_own_bounds(map_) if self._own else map_
            return TileOp.build(self._arrays[value], self._at, read, element_of(value))
        if value in self._known:
            return self._known[value](map_)
        op = producer(value)
        if op.name == _IOTA:
            position = map_.results[integer(op, "iota_dimension")]
            numbers = IndexingMap(map_.dims, map_.symbols, (position,))
            return IndexTileOp.build(self._at, numbers, element_of(value), op.location)
        if op.name == _CONSTANT:
            number = splat_of(op)
            assert number is not None
            splat = ir.DenseElementsAttr.get_splat(_tile_type(value, map_), number)
            return ir.Operation.create(
                _CONSTANT, results=[splat.type], attributes={"value": splat}, loc=op.location
            ).results[0]
        if access_kind(op) == "indexing":
            return operands[0]
        return ir.Operation.create(
            op.name,
            results=[_tile_type(value, map_)],
            operands=operands,
            attributes={name: attribute for name, attribute in op.attributes.items() if _is_kept(name)},
            loc=op.location,
        ).results[0]


def _with_own_bounds(map_: IndexingMap) -> IndexingMap:
    """Return the map of a tile without constraints on what no index depends on."""
    used = {number for each in map_.results for number in each.variables()[1]}
    kept = tuple((each, bound) for each, bound in map_.constraints if each.variables()[1] & used)
    return replace(map_, constraints=kept)


def _is_kept(name: str) -> bool:
    """Whether an attribute is one of tiles, too: xgpu's are of whole arrays, but for how exact a weight is."""
    return name == WEIGHT or not name.startswith("xgpu.")


def _tile_type(value: ir.Value, map_: IndexingMap) -> ir.Type:
    element = ir.RankedTensorType(value.type).element_type
    return ir.RankedTensorType.get([each.size for each in map_.symbols], element)

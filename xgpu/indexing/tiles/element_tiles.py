"""Tiles of values that are computed element by element: which operations make them, and which elements they read."""

from dataclasses import replace

from xgpu import ir
from xgpu.hlo.constants import splat_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap

_CONSTANT = "stablehlo.constant"


def can_be_tiled(op: ir.Operation) -> bool:
    """Whether a tile of the result of ``op`` is computed from tiles of its operands: each element of one of each."""
    if op.name == _CONSTANT:
        return splat_of(op) is not None
    kind = access_kind(op)
    if kind == "elementwise":
        return not op.regions
    return kind == "indexing" and not any(access.runtime for access in accesses(op))


def is_plain(element: ir.Type) -> bool:
    """Whether elements are floats or integers: what follows a product has code for these."""
    return isinstance(element, ir.FloatType | ir.IntegerType)


def then(tile: IndexingMap, access: IndexingMap) -> IndexingMap:
    """Return the map of a tile followed by that of a read of the tile's array.

    Indices that a tile has where its constraints hold are indices of the array, so there are no more constraints.
    """
    composed = tile.compose(access)
    return replace(composed, constraints=tile.constraints).with_simple_results()

"""Tiles that TMA copies: boxes of a tensor that lie in shared memory as the tile's strides, panels and swizzle say."""

from collections.abc import Sequence

from xgpu.block_plan.memory.strides import CHUNK_BYTES, TilePanel, innermost_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.tensor_views import MAX_BOX, TensorView, tensor_view
from xgpu.records import dataclass

_LINE_BYTES = 128
"""The alignment of a box, and the bytes after which the chunk that a swizzle turns to changes."""
_PATTERN_ROWS = 8
MAP_BYTES, BARRIER_BYTES = 128, 8


@dataclass(frozen=True)
class BulkTile:
    """The boxes of a tile: ``swizzle`` are the bytes of their rows if chunks are permuted within them, or 0."""

    view: TensorView
    swizzle: int
    element_bytes: int

    @property
    def panel_bytes(self) -> int:
        """The bytes of a box, which has all rows."""
        return self.view.rows * self.view.row * self.element_bytes

    @property
    def alignment(self) -> int:
        """The bytes at a multiple of which a tile begins: a line, or the pattern of a swizzle."""
        return max(_LINE_BYTES, _PATTERN_ROWS * self.swizzle)

    @property
    def bytes(self) -> int:
        """The bytes of all boxes."""
        return self.view.panels * self.panel_bytes


def bulk_bytes(tiles: int, barriers: int) -> int:
    """Return the bytes of shared memory that copies take beside tiles: to make tensor maps, and for mbarriers."""
    return tiles * MAP_BYTES + barriers * BARRIER_BYTES if tiles else 0


def bulk_tile(
    map_: IndexingMap,
    array: Sequence[int],
    element_bits: int,
    strides: Sequence[int],
    swizzle: Sequence[int],
    panel: TilePanel | None,
) -> BulkTile | str:
    """Return the boxes as which a tile of an array is copied to where it lies in shared memory, or why there are none.

    ``map_`` is that of the tile, ``array`` the shape of the array.
    """
    shape, size = [each.size for each in map_.symbols], element_bits // 8
    inner = innermost_of(shape, strides) if len(shape) == 2 else None
    if inner is None or element_bits % 8:
        return "expected a tile of two dimensions, one of which is contiguous in shared memory, of whole bytes"
    row = shape[inner] if panel is None else panel.width
    lines = shape[1 - inner]
    if (lines > 1 and strides[1 - inner] != row) or (panel is not None and panel != TilePanel(inner, row, row * lines)):
        return "expected rows one after the other, as boxes have them"
    within = _swizzle_bytes(swizzle, size)
    if within is None or within not in (0, row * size):
        return f"expected no swizzle, or one of rows of {row * size} bytes that go by the address"
    if row > MAX_BOX or row * size % CHUNK_BYTES:
        return f"expected rows of at most {MAX_BOX} elements, and of a multiple of {CHUNK_BYTES} bytes"
    view = tensor_view(map_, tuple(array), size, row * size)
    if isinstance(view, str):
        return view
    if view.inner != inner:
        return "expected rows that go along those of the array"
    found = BulkTile(view, within, size)
    if found.panel_bytes % (_PATTERN_ROWS * row * size if within and view.panels > 1 else _LINE_BYTES):
        return f"expected boxes that begin at multiples of {_LINE_BYTES} bytes, or of patterns of their swizzle"
    return found


def _swizzle_bytes(swizzle: Sequence[int], size: int) -> int | None:
    """Return the bytes of a row within which chunks are permuted by their address; None if it is another swizzle."""
    bits, base, shift = swizzle or (0, 0, 0)
    if not bits:
        return 0
    return CHUNK_BYTES << bits if bits <= 3 and (size << base, size << shift) == (CHUNK_BYTES, _LINE_BYTES) else None

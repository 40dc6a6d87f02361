"""Strides of tiles in shared memory, and which copies between them and arrays go by chunks of 16 bytes."""

from collections.abc import Sequence

import numpy as np

from xgpu.block_plan.graph import Tile
from xgpu.indexing.affine import AffineExpr, Division, Symbol, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass

CHUNK_BYTES = 16
"""Bytes that a thread copies at once, and that a row of a matrix instruction's operand has."""
UNITS = (16, 8, 4)
"""Bytes that an asynchronous copy can move at once."""


@dataclass(frozen=True)
class TilePanel:
    """The panels of a tile: of a dimension each ``width`` elements follow each other, panels are ``stride`` apart.

    An index ``i`` of the dimension counts ``i // width * stride + i % width``, the latter by the dimension's stride.
    """

    dimension: int
    width: int
    stride: int

    @property
    def numbers(self) -> tuple[int, int]:
        """Its elements, and those from one panel to the next."""
        return self.width, self.stride

    def problem(self, shape: Sequence[int]) -> str | None:
        """Return what is wrong with them for a tile of a shape; None if nothing is."""
        if not 0 <= self.dimension < len(shape):
            return f"a dimension from 0 to {len(shape) - 1} first"
        if self.width < 1 or shape[self.dimension] % self.width:
            return f"a width that divides {shape[self.dimension]}"
        return None


def split(shape: Sequence[int], strides: Sequence[int], panel: TilePanel | None) -> tuple[list[int], list[int]]:
    """Return shape and strides of a tile with the dimension of its panels as two: that of panels, then within one."""
    sizes, steps = list(shape), list(strides)
    if panel is not None:
        at = panel.dimension
        sizes[at : at + 1] = [sizes[at] // panel.width, panel.width]
        steps[at : at + 1] = [panel.stride, steps[at]]
    return sizes, steps


def apart(chunks: int) -> int:
    """Return how many chunks rows lie apart that have so many: a power of two, or an odd number.

    Either way chunks of one column can be in different banks: see `xgpu.block_plan.memory.swizzles`.
    """
    return chunks if not chunks & chunks - 1 else chunks | 1


def strides_of(tile: Tile, innermost: int, is_read_down: bool = False) -> tuple[int, ...]:
    """Return strides with ``innermost`` as the contiguous dimension, then the others from the last to the first.

    The first dimension that is not of size 1 is padded to whole chunks, so that what follows begins at one, and where
    chunks are read down columns to a number of them whose columns need not conflict. (Mirage: `calc_tensor_strides`.)
    """
    rank = len(tile.shape)
    strides, stride, is_padded = [0] * rank, 1, False
    for dimension in [innermost, *(each for each in reversed(range(rank)) if each != innermost)][:rank]:
        strides[dimension] = stride
        stride *= tile.shape[dimension]
        if tile.shape[dimension] != 1 and not is_padded:
            stride, is_padded = _padded(stride, tile.element_bytes), True
            if is_read_down:
                stride = apart(stride * tile.element_bytes // CHUNK_BYTES) * CHUNK_BYTES // tile.element_bytes
    return tuple(strides)


def innermost_of(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the dimension of more than one index, and of stride 1; None if there is none, or more than one."""
    found = [number for number, size in enumerate(shape) if size > 1 and strides[number] == 1]
    return found[0] if len(found) == 1 else None


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements lie between the first element of a tile and the one after its last."""
    return (
        1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if min(shape, default=1)
        else 0
    )


def tile_bytes(
    shape: Sequence[int],
    strides: Sequence[int],
    element_bytes: int,
    swizzle: Sequence[int] | None = None,
    panel: TilePanel | None = None,
) -> int:
    """Return the bytes of a tile in shared memory: whole chunks, or whole patterns of a swizzle.

    ``swizzle`` are its bits, base and shift; it moves elements within ``2^(base + bits)`` of them.
    """
    whole = max(PATTERN_BYTES, element_bytes << swizzle[0] + swizzle[1]) if swizzle else CHUNK_BYTES
    return -(-extent(*split(shape, strides, panel)) * element_bytes // whole) * whole


def are_apart(shape: Sequence[int], strides: Sequence[int], panel: TilePanel | None = None) -> bool:
    """Return whether no two elements of a tile have one place."""
    shape, strides = split(shape, strides, panel)
    used = sorted((stride, size) for size, stride in zip(shape, strides, strict=True) if size > 1)
    reach = 0
    for stride, size in used:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return True
    places = np.zeros(1, np.int64)
    for stride, size in used:
        places = (places[:, None] + stride * np.arange(size)).ravel()
    return len(np.unique(places)) == len(places)


PATTERN_BYTES = 1024
"""After so many bytes a swizzle of a matrix instruction's operand begins anew."""


def copy_unit(
    map_: IndexingMap,
    shape: Sequence[int],
    element_bits: int,
    strides: Sequence[int],
    swizzle: Sequence[int] = (),
    panel: TilePanel | None = None,
) -> tuple[int, str | None]:
    """Return the most bytes that asynchronous copies of a tile move at once, and why not 16; 0 if there are none.

    ``swizzle`` are the bits, base and shift of its swizzle, if it has one.
    """
    why, *others = (_unit_problem(map_, shape, element_bits, strides, swizzle, panel, unit) for unit in UNITS)
    fitting = (unit for unit, problem in zip(UNITS, (why, *others), strict=True) if problem is None)
    return next(fitting, 0), why


def _unit_problem(
    map_: IndexingMap,
    shape: Sequence[int],
    element_bits: int,
    strides: Sequence[int],
    swizzle: Sequence[int],
    panel: TilePanel | None,
    unit: int,
) -> str | None:
    problem = chunk_problem(map_, shape, element_bits, strides, unit)
    if problem is None and panel is not None and any(each * element_bits // 8 % unit for each in panel.numbers):
        return f"its panels are no multiples of {unit} bytes"
    if problem is None and swizzle and swizzle[0] and element_bits << swizzle[1] < unit * 8:
        return f"its swizzle takes units of {unit} bytes apart"
    return problem


def chunk_problem(
    map_: IndexingMap, shape: Sequence[int], element_bits: int, strides: Sequence[int], unit: int = CHUNK_BYTES
) -> str | None:
    """Return why a tile is not copied from an array by units of so many bytes; None if it is.

    It is if both have the same innermost dimension, all other strides are multiples of a unit, and so are the places at
    which tiles begin and at which what is inside of the array ends: then each unit of the tile is one of the array, or
    lies outside of it. (Mirage: `can_use_chunked_copy`.)
    """
    sizes = [each.size for each in map_.symbols]
    if element_bits % 8 or unit * 8 % element_bits:
        return f"elements have {element_bits} bits"
    each_unit = unit * 8 // element_bits
    if each_unit == 1:
        return None
    position = Simplifier(map_.dims, map_.symbols).simplify(linearize(map_.results, shape))
    inner = innermost_of(sizes, strides)
    if inner is None:
        return "the tile has no innermost dimension"
    if dict(position.terms).get(Symbol(inner)) != 1 or not _is_simple(position.terms, inner):
        return "its elements are no neighbours in the array"
    if sizes[inner] % each_unit:
        return f"its rows are no multiple of {unit} bytes"
    if any(stride % each_unit for number, stride in enumerate(strides) if sizes[number] > 1 and number != inner):
        return f"its strides are no multiples of {unit} bytes"
    if (position - symbol(inner)).divisor() % each_unit:
        return f"its rows do not begin at multiples of {unit} bytes of the array"
    for expression, bound in map_.constraints:
        if problem := _bound_problem(expression, bound, inner, each_unit):
            return problem
    return None


def _bound_problem(expression: AffineExpr, bound: Interval, inner: int, each_unit: int) -> str | None:
    """Return why a condition on what is inside of the array does not hold for all of a unit, or for none of it."""
    moved = dict(expression.terms).get(Symbol(inner), 0)
    if moved not in (0, 1) or not _is_simple(expression.terms, inner):
        return "what is inside of the array does not follow from its rows"
    ends = ((expression - symbol(inner)).divisor(), bound.lower, bound.upper + 1) if moved else ()
    return "the array ends inside of a unit" if any(each % each_unit for each in ends) else None


def _is_simple(terms: Sequence[tuple[object, int]], number: int) -> bool:
    """Whether an index is in an expression as it is: in no quotient or remainder."""
    return not any(number in atom.expr.variables()[1] for atom, _ in terms if isinstance(atom, Division))


def _padded(elements: int, element_bytes: int) -> int:
    each_chunk = max(1, CHUNK_BYTES // element_bytes)
    return -(-elements // each_chunk) * each_chunk

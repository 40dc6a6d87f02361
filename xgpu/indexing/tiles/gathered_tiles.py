"""Tiles of arrays at indices that are read from others: their parts that each have the same indices, such as pages."""

from collections.abc import Iterator

from xgpu.indexing.affine import AffineExpr, Dim, dim, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.indexing.tiles.tensor_views import TensorView, tensor_view
from xgpu.records import dataclass

ROW_GROUP = 8
"""Rows after which the swizzle of shared memory repeats: parts begin at multiples of them."""


@dataclass(frozen=True)
class Gathered:
    """A tile at the numbers of block and step, and at other numbers, each of which is known for each of its elements.

    ``map`` leads from these, and the indices in the tile, to the array's. What the numbers are made of is read where
    ``reads`` lead from the numbers of block and step, and the indices in the tile.
    """

    map: IndexingMap
    reads: tuple[IndexingMap, ...]
    numbers: int


@dataclass(frozen=True)
class TileParts:
    """The parts of a gathered tile along its dimension ``along``, one after the other.

    ``map`` leads from the dimensions of the tile's map, the number of the part, and the indices in the part, to those
    in the array. The part has elements where the constraints of ``inside`` hold, of the numbers of block and step and
    that of the part.
    """

    along: int
    count: int
    map: IndexingMap
    inside: IndexingMap

    @property
    def rows(self) -> int:
        """The rows of a part."""
        return self.map.symbols[self.along].size


def gathered_view(
    tile: Gathered, shape: tuple[int, ...], size: int, row_bytes: int
) -> tuple[TileParts, TensorView] | str:
    """Return the largest parts of a tile with equal numbers, and the tensor of whose boxes each is, or why not.

    As `tensor_view` has them; where a part has no elements, numbers beyond the last one lead to none.
    """
    problem = f"no {ROW_GROUP} rows of it have the same numbers"
    for along in range(2):
        for parts in _parts(tile, along):
            view = tensor_view(parts.map, shape, size, row_bytes)
            if isinstance(view, str):
                problem = view
            elif view.inner == along:
                problem = "its parts are not of whole rows in memory"
            elif parts.inside.constraints and not _ends(tile, view):
                problem = "not all of its parts are in the array"
            else:
                return parts, view
    return problem


def _ends(tile: Gathered, view: TensorView) -> bool:
    """Whether a box is outside of the tensor if all numbers are one more than they may be."""
    read = range(len(tile.map.dims) - tile.numbers, len(tile.map.dims))
    for each in view.dimensions:
        ((atom, factor),) = each.start.terms if len(each.start.terms) == 1 else ((None, 0),)
        is_read = isinstance(atom, Dim) and atom.index in read and not each.start.constant
        if isinstance(atom, Dim) and is_read and factor * tile.map.dims[atom.index].size >= each.size:
            return True
    return False


def _parts(tile: Gathered, along: int) -> Iterator[TileParts]:
    """Yield the parts of a tile of two dimensions that have equal numbers, the largest first.

    That is the whole tile, as boxes of it end where the array does, or there are parts that have no elements.
    """
    rows = tile.map.symbols[along].size
    for count in range(1, rows // ROW_GROUP + 1):
        if rows % count or rows // count % ROW_GROUP:
            continue
        for is_cut in (True, False) if count == 1 else (False,):
            if (found := _divided(tile, along, count, is_cut)) is not None:
                yield found


def _divided(tile: Gathered, along: int, count: int, is_cut: bool) -> TileParts | None:
    """Return so many parts; None if elements of one have different numbers, or only some of them are in the array.

    If a part ``is_cut``, its elements may be in the array in part.
    """
    whole = tile.map
    rows, part = whole.symbols[along].size // count, len(whole.dims)
    symbols = tuple(Interval(0, rows - 1) if number == along else each for number, each in enumerate(whole.symbols))
    dims = (*whole.dims, Interval(0, count - 1))
    simplifier = Simplifier(dims, symbols)

    def inside(expression: AffineExpr) -> AffineExpr:
        return simplifier.simplify(expression.substitute(None, {along: dim(part) * rows + symbol(along)}))

    # Elements of a part read the same.
    places = [each for read in tile.reads for each in (*read.results, *(each for each, _ in read.constraints))]
    if any(inside(each).variables()[1] for each in places):
        return None
    kept, whether = list[Constraint](), list[Constraint]()
    for expression, bound in whole.constraints:
        own = inside(expression)
        if is_cut or (own.variables()[1] and along not in own.variables()[1]):
            kept.append((own, bound))
        elif (common := _of_all_rows(own, bound, along, rows)) is not None:
            whether.append(common)
        else:
            return None
    known = len(whole.dims) - tile.numbers
    if any(known <= number < part for each, _ in whether for number in each.variables()[0]):
        return None
    moved = tuple((each.substitute({part: dim(known)}), bound) for each, bound in whether)
    condition = IndexingMap((*dims[:known], dims[part]), (), (), moved)
    map_ = IndexingMap(dims, symbols, tuple(inside(each) for each in whole.results), tuple(kept))
    return TileParts(along, count, map_, condition)


def _of_all_rows(expression: AffineExpr, bound: Interval, along: int, rows: int) -> Constraint | None:
    """Return a constraint on a part's first row that holds if it does for any row; None if rows of a part differ."""
    if not expression.variables()[1]:
        return expression, bound
    first = expression - symbol(along)
    if first.variables()[1] or any(each % rows for each in (first.divisor(), bound.lower, bound.upper + 1)):
        return None
    return first, Interval(bound.lower, bound.upper + 1 - rows)

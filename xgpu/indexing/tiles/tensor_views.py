"""Copies of a tile of an array by TMA: boxes of a tensor, derived from the tile's indexing map."""

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from xgpu.indexing.affine import AffineExpr, Atom, Dim, Symbol, constant, dim, linear, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass

MAX_TENSOR_RANK = 5
MAX_BOX = 256
"""Elements of a box along a dimension."""
MAX_TENSOR_SIZE = 1 << 32
"""Elements of a tensor along a dimension."""
STRIDE_BYTES = 16
"""The divisor of distances between rows."""
MAX_STRIDE_BYTES = 1 << 40
"""The bound of these distances."""
_PARTS = "parts of a byte are in it"
_UNEVEN = "its elements are not equally far apart in memory"


@dataclass(frozen=True)
class _Dimension:
    """A dimension of the tensor: its size, elements from one index to the next, and where a block's box begins.

    ``symbol`` is the tile's dimension along it, None if a box is one element thick.
    """

    size: int
    stride: int
    start: AffineExpr
    symbol: int | None


@dataclass(frozen=True)
class TensorView:
    """An array as a tensor whose boxes are tiles; ``dimensions`` are outermost first.

    The tile consists of ``panels`` boxes, side by side along its contiguous dimension, each with rows of ``row``
    elements.
    """

    dimensions: tuple[_Dimension, ...]
    tile: tuple[int, ...]
    row: int

    @property
    def inner(self) -> int:
        """The tile's dimension whose elements are neighbours in memory."""
        symbol = self.dimensions[-1].symbol
        assert symbol is not None
        return symbol

    @property
    def rows(self) -> int:
        """The number of a box's rows."""
        return self.tile[1 - self.inner]

    @property
    def panels(self) -> int:
        """The number of boxes that a tile is copied as."""
        return self.tile[self.inner] // self.row

    def box(self, rows: int) -> tuple[int, ...]:
        """Return the shape of a box of so many rows."""
        sizes = {None: 1, self.inner: self.row, 1 - self.inner: rows}
        return tuple(sizes[each.symbol] for each in self.dimensions)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return tuple(each.size for each in self.dimensions)

    def strides(self, size: int) -> tuple[int, ...]:
        """The bytes from one index to the next, for elements of ``size`` bytes, of all dimensions but the innermost."""
        return tuple(each.stride * size for each in self.dimensions[:-1])

    def starts(self, panel: AffineExpr, row: AffineExpr) -> tuple[AffineExpr, ...]:
        """Return the coordinates of the box of a panel that begins at a row, by the dimensions of the tile's map."""
        more = {None: constant(0), self.inner: panel * self.row, 1 - self.inner: row}
        return tuple(each.start + more[each.symbol] for each in self.dimensions)


def tensor_view(map_: IndexingMap, shape: tuple[int, ...], size: int, row_bytes: int) -> TensorView | str:
    """Return the tensor whose boxes, with rows of so many bytes, are a tile of an array, or why there is none.

    ``map_`` goes from block, step and the tile's two indices to those in the array, which has ``shape`` and elements
    of ``size`` bytes.
    """
    map_ = _cut_off(map_)
    simplifier = Simplifier(map_.dims, map_.symbols)
    position = simplifier.simplify(linearize(map_.results, shape))
    strides = dict(position.terms)
    if position.constant < 0 or any(not isinstance(atom, Symbol) and _has_symbols(atom) for atom in strides):
        return _UNEVEN
    position, offset = position - position.constant, position.constant
    bounds = _bounds(map_)
    single = {number for number, (_, length) in (bounds or {}).items() if length == 1 and Symbol(number) not in strides}
    if any(strides.get(Symbol(i), 0) <= 0 for i in {0, 1} - single):
        return "an element of the array is in it several times"
    if bounds is None:
        return "elements of it are left out that boxes have"
    # Where all but one index is outside, any distance will do.
    strides |= {Symbol(number): STRIDE_BYTES // size for number in single}
    dimensions = None
    for apart in (False, True):
        own = [_dimension(map_, strides, number, bounds, apart) for number in range(2)]
        tiled = [(each.start + symbol(number)) * each.stride for number, each in enumerate(own) if number not in single]
        rest = simplifier.simplify(position - sum(tiled, constant(0)))
        others = _others(simplifier, map_, rest, {atom for each in own for atom, _ in each.start.terms})
        if others is not None:
            dimensions = [*own, *others]
            break
    if dimensions is None:
        return _UNEVEN
    if offset:
        # Tiles of a part of an array begin with the second of two.
        dimensions.append(_Dimension(2, offset, constant(1), None))
    dimensions.sort(key=lambda each: -each.stride)
    view = TensorView(tuple(dimensions), tuple(each.size for each in map_.symbols), row_bytes // size)
    return _problem(view, size) or view


def map_of_bytes(map_: IndexingMap, shape: Sequence[int], elements: int) -> IndexingMap | str:
    """Return the map of a tile's bytes, each of so many ``elements`` beside each other, to those of an array in memory.

    ``map_`` is that of the elements to the indices of the array, which has ``shape``. The tile's contiguous dimension
    has as many bytes less. Returns why there is none if a byte is in the tile or in the array in part.
    """
    simplifier = Simplifier(map_.dims, map_.symbols)
    position = simplifier.simplify(linearize(map_.results, shape))
    along = next((number for number in range(2) if dict(position.terms).get(Symbol(number)) == 1), None)
    if along is None:
        return "no dimension of it is contiguous in memory"
    whole = {along: symbol(along) * elements}
    place = _divided(position.substitute(None, whole), elements)
    bounds = []
    for expression, bound in map_.constraints:
        if along in expression.variables()[1]:
            part = _divided(expression.substitute(None, whole), elements)
            if part is None or bound.lower or (bound.upper + 1) % elements:
                return _PARTS
            bounds.append((part, Interval(0, (bound.upper + 1) // elements - 1)))
        else:
            bounds.append((expression, bound))
    symbols = [each.size // elements if number == along else each.size for number, each in enumerate(map_.symbols)]
    if place is None or map_.symbols[along].size % elements:
        return _PARTS
    return IndexingMap(map_.dims, tuple(Interval(0, size - 1) for size in symbols), (place,), tuple(bounds))


def _divided(expression: AffineExpr, divisor: int) -> AffineExpr | None:
    """Return an expression divided by a number of which all its terms are multiples; None if they are not."""
    if any(count % divisor for _, count in expression.terms) or expression.constant % divisor:
        return None
    return linear({atom: count // divisor for atom, count in expression.terms}, expression.constant // divisor)


def _cut_off(map_: IndexingMap) -> IndexingMap:
    """Return the map with what its constraints leave of dimensions alone: where a number is beyond, so are boxes."""
    dims, kept = list(map_.dims), []
    for expression, bound in map_.constraints:
        ((atom, count),) = expression.terms if len(expression.terms) == 1 else ((None, 0),)
        is_alone = isinstance(atom, Dim) and count == 1 and not expression.constant and bound.lower == 0
        if isinstance(atom, Dim) and is_alone and atom.index not in _with_others(map_):
            dims[atom.index] = Interval(0, min(bound.upper, dims[atom.index].upper))
        else:
            kept.append((expression, bound))
    return replace(map_, dims=tuple(dims), constraints=tuple(kept))


def _with_others(map_: IndexingMap) -> set[int]:
    """Return the dimensions that are a part of an index, or that a constraint compares with something else."""
    several = [each for each in (*map_.results, *(found for found, _ in map_.constraints)) if len(each.terms) != 1]
    several += [each for each in map_.results if any(not isinstance(atom, Dim) for atom, _ in each.terms)]
    return {number for each in several for number in each.variables()[0]}


def _others(simplifier: Simplifier, map_: IndexingMap, rest: AffineExpr, used: set[Atom]) -> list[_Dimension] | None:
    """Return the dimensions along which boxes are one element thick, for what is ``rest`` of a position.

    They are those of each atom of it. Atoms that are ``used`` are what remainders have beside their variable: one
    dimension is that of all remainders.
    """
    atoms = dict(rest.terms)
    if rest.constant or any(_has_symbols(atom) for atom in atoms):
        return None
    inside = {each for atom in atoms.keys() & used for each in _inside(atom)}
    together = {atom: count for atom, count in atoms.items() if atom in used or atom in inside}
    starts = [(linear({atom: 1}, 0), stride) for atom, stride in atoms.items() if atom not in together]
    if together:
        stride = gcd(*together.values())
        start = simplifier.simplify(linear({atom: count // stride for atom, count in together.items()}, 0))
        starts.append((start, stride))
    ends = [start.interval(map_.dims) for start, _ in starts]
    if (together.keys() <= used and together) or any(each.lower < 0 for each in ends):
        return None
    return [_Dimension(each.upper + 1, stride, start, None) for (start, stride), each in zip(starts, ends, strict=True)]


def _inside(atom: Atom) -> set[Dim]:
    """Return the dimensions of a map that an atom is made of."""
    return {Dim(number) for number in linear({atom: 1}, 0).variables()[0]}


def _has_symbols(atom: Atom) -> bool:
    return bool(linear({atom: 1}, 0).variables()[1])


def _bounds(map_: IndexingMap) -> dict[int, tuple[AffineExpr, int]] | None:
    """Return where a tile begins in an array, and the size of that, for the tile's dimensions that are cut off there.

    None if a constraint leaves out other elements than those after an end.
    """
    found: dict[int, tuple[AffineExpr, int]] = {}
    for expression, bound in map_.constraints:
        reached = expression.interval(map_.dims, map_.symbols)
        if bound.contains_interval(reached):
            continue
        numbers = expression.variables()[1]
        if len(numbers) != 1 or numbers & found.keys() or bound.lower > reached.lower or bound.upper < 0:
            return None
        (number,) = numbers
        terms = dict(expression.terms)
        if terms.pop(Symbol(number), 0) != 1 or expression.constant:
            return None
        found[number] = linear(terms, 0), bound.upper + 1
    return found


def _dimension(
    map_: IndexingMap,
    strides: dict[Atom, int],
    number: int,
    bounds: dict[int, tuple[AffineExpr, int]],
    apart: bool,
) -> _Dimension:
    """Return the dimension along one of the tile's: as far as a bound allows, or as its tiles reach.

    What the bound of the other begins with does not number tiles of this one. If they are kept ``apart``, tiles that
    are numbered by a part of a number do not lie beside each other.
    """
    stride, own = strides[Symbol(number)], map_.symbols[number].size
    if number in bounds:
        start, size = bounds[number]
        return _Dimension(size, stride, start, number)
    divided = {each for atom in strides if apart and not isinstance(atom, Dim) for each in _inside(atom)}
    others = [atom for start, _ in bounds.values() for atom, count in start.terms if count == 1]
    divided |= {atom for atom in others if isinstance(atom, Dim)}
    for atom, coefficient in strides.items():
        if isinstance(atom, Dim) and coefficient == stride * own and atom not in divided:
            return _Dimension(own * map_.dims[atom.index].size, stride, dim(atom.index) * own, number)
    return _Dimension(own, stride, constant(0), number)


def _problem(view: TensorView, size: int) -> str | None:
    if view.dimensions[-1].stride != 1 or view.dimensions[-1].symbol is None:
        return "no dimension of it is contiguous in memory"
    if len(view.dimensions) > MAX_TENSOR_RANK:
        return f"it has more than {MAX_TENSOR_RANK} dimensions in memory"
    if any(each.size > MAX_TENSOR_SIZE or each.stride * size >= MAX_STRIDE_BYTES for each in view.dimensions):
        return "it is of an array that is too large"
    if any(stride % STRIDE_BYTES for stride in view.strides(size)):
        return f"its rows are not a multiple of {STRIDE_BYTES} bytes apart"
    if view.tile[view.inner] % view.row or view.rows > MAX_BOX:
        return f"it is not made of boxes with rows of {view.row} elements, up to {MAX_BOX} of them"
    return None


def flat_map(map_: IndexingMap, shape: Sequence[int]) -> IndexingMap:
    """Return the map of a tile to the places in memory of an array of a shape."""
    return replace(map_, results=(linearize(map_.results, shape),)).with_simple_results()


def has_pairs(flat: IndexingMap, column: int) -> bool:
    """Whether elements of an even column and the next one are aligned neighbours in memory, both in bounds or neither.

    The column is a range variable; the map leads to places in memory.
    """
    (place,) = flat.results
    bounds = [(each, bound) for each, bound in flat.constraints if column in each.variables()[1]]
    return all(_is_paired(each, column) for each in (place, *(each for each, _ in bounds))) and all(
        bound.lower % 2 == 0 and bound.upper % 2 for _, bound in bounds
    )


def _is_paired(place: AffineExpr, column: int) -> bool:
    """Whether an index is even for even columns, whatever else it depends on, and one more for the next column."""
    others = [count for atom, count in place.terms if atom != Symbol(column)]
    return dict(place.terms).get(Symbol(column)) == 1 and not any(each % 2 for each in (*others, place.constant))

"""The maps of tiles: from numbers of blocks and steps, and positions in a tile, to indices of an array."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from xgpu.block_language.numbers import Number, as_number, wrong
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

Shape = tuple[int, ...]
Given = int | Sequence[int | None]
"""A shape as a person writes it; None stands for a dimension that a tile does not have."""


def whole_sizes(given: Any, what: str) -> Shape:
    """Return sizes from 1. Raises InvalidInput, saying ``what`` they are of, for what are none."""
    sizes = []
    for each in given if isinstance(given, Sequence) else (given,):
        try:
            sizes.append(index(each))
        except TypeError:
            raise wrong(f"{what}: expected sizes that are integers, got {each!r}") from None
        if sizes[-1] < 1:
            raise wrong(f"{what}: expected sizes from 1, got {tuple(sizes)}")
    return tuple(sizes)


def positions(shape: Shape) -> list[Number]:
    """Return the positions of an element of a tile, one for each dimension."""
    return [Number(symbol(number)) for number in range(len(shape))]


def element_indices(
    array: str, rank: int, shape: Given, at: Sequence[Any] | None, offset: Sequence[Any] | None
) -> tuple[Shape, list[Number]]:
    """Return the shape of a tile, and the index of its elements along each of the ``rank`` dimensions of an array.

    ``at`` counts tiles along the tile's dimensions, and elements along the others; ``offset`` counts elements. The
    tile's dimensions are the array's last ones, but for those that are None in ``shape``.
    """
    given: list[Any] = list(shape) if isinstance(shape, Sequence) else [shape]
    if len(given) > rank:
        raise wrong(f"tile of '{array}': expected at most {rank} dimensions, as the array has, got {given}")
    wanted = [None] * (rank - len(given)) + given
    sizes = whole_sizes([each for each in wanted if each is not None], f"tile of '{array}'")
    if at is not None and offset is not None:
        raise wrong(f"tile of '{array}': expected one of at, which counts tiles, and offset, which counts elements")
    numbers: Any = at if offset is None else offset
    numbers = (0,) * rank if numbers is None else numbers if isinstance(numbers, Sequence) else (numbers,)
    if len(numbers) != rank:
        raise wrong(
            f"tile of '{array}': expected an index of {rank} numbers, one for each dimension, got {len(numbers)}"
        )
    found, kept = [], iter(zip(positions(sizes), sizes, strict=True))
    for dimension, (number, size) in enumerate(zip(numbers, wanted, strict=True)):
        first = as_number(number, f"tile of '{array}', dimension {dimension}")
        if size is not None:
            position, own = next(kept)
            first = (first * own if offset is None else first) + position
        found.append(first)
    return sizes, found


def called_indices(array: str, rank: int, shape: Given, indices: Callable[..., Any]) -> tuple[Shape, list[Number]]:
    """Return the shape of a tile, and the indices that a function gives for the positions of an element."""
    sizes = whole_sizes(shape, f"tile of '{array}'")
    given = indices(*positions(sizes))
    found = given if isinstance(given, Sequence) else (given,)
    if len(found) != rank:
        raise wrong(f"tile of '{array}': expected {rank} indices, one for each dimension, got {len(found)}")
    return sizes, [as_number(each, f"tile of '{array}', dimension {number}") for number, each in enumerate(found)]


def map_of_tile(numbers: Shape, shape: Shape, indices: Sequence[AffineExpr], array: Shape | None = None) -> IndexingMap:
    """Return the map of a tile of this ``shape``; ``numbers`` says how many blocks, and steps, there are.

    Constraints leave out what is outside of the ``array``, unless it is known that nothing is.
    """
    plain = IndexingMap(ranges(numbers), ranges(shape), tuple(indices)).with_simple_results()
    if array is None:
        return plain
    bounds = [(each, Interval(0, size - 1)) for each, size in zip(plain.results, array, strict=True)]
    reached = plain.result_ranges()
    outside: list[Constraint] = [
        bound for bound, each in zip(bounds, reached, strict=True) if not bound[1].contains_interval(each)
    ]
    return IndexingMap(plain.dims, plain.symbols, plain.results, tuple(outside))

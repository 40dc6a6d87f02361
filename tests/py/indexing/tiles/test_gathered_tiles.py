"""Gathered tiles as boxes: the boxes of their parts cover what the tile's maps lead to, and zeros elsewhere."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from xgpu.indexing.affine import linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.gathered_tiles import Gathered, TileParts, gathered_view
from xgpu.indexing.tiles.tensor_views import TensorView

from .test_tensor_views import ROWS, positions

_ITEM = 8


def _read(table: np.ndarray, map_: IndexingMap, clamp: Interval, at: tuple[int, ...], inside: tuple[int, ...]) -> int:
    """Return the number of an element, zero where the table has none."""
    index = map_.evaluate(at, inside)
    return 0 if index is None else int(np.clip(table[index], clamp.lower, clamp.upper))


def _whole(tile: Gathered, tables: list[np.ndarray], shape: tuple[int, ...]) -> dict[tuple[int, ...], int | None]:
    """Return where in the array each element of a tile is for each block and step, None where it is zero."""
    count, found = len(tile.map.dims) - tile.numbers, {}
    place = linearize(tile.map.results, shape)
    for point in itertools.product(*(range(each.size) for each in (*tile.map.dims[:count], *tile.map.symbols))):
        at, inside = point[:count], point[count:]
        read = [_read(*each, at, inside) for each in zip(tables, tile.reads, tile.map.dims[count:], strict=True)]
        is_known = tile.map.contains((*at, *read), inside)
        found[point] = place.evaluate((*at, *read), inside) if is_known else None
    return found


def _boxes(
    tile: Gathered, tables: list[np.ndarray], parts: TileParts, view: TensorView
) -> dict[tuple[int, ...], int | None]:
    """Return the same of the boxes of its parts: those that are nowhere are at numbers beyond the last one."""
    count, found = len(tile.map.dims) - tile.numbers, {}
    clamps = tile.map.dims[count:]
    for point in itertools.product(*(range(each.size) for each in (*tile.map.dims[:count], parts.map.dims[-1]))):
        first = [0, 0]
        first[parts.along] = point[-1] * parts.rows
        read = [_read(*each, point[:count], tuple(first)) for each in zip(tables, tile.reads, clamps, strict=True)]
        if not parts.inside.contains(point):
            read = [each.upper + 1 for each in clamps]
        for inside, place in positions(view, (*point[:count], *read, point[-1])).items():
            moved = list(inside)
            moved[parts.along] += point[-1] * parts.rows
            found[(*point[:count], *moved)] = place
    return found


@pytest.mark.parametrize(
    ("map_", "numbers", "shape", "sizes", "count"),
    [
        pytest.param(
            "(d0, d1, d2)[s0, s1] -> (d2, s0 mod 8, s1), d0 in [0, 1], d1 in [0, 2], d2 in [0, 6], s0 in [0, 15], "
            "s1 in [0, 3]",
            ["(d0, d1)[s0, s1] -> (d0, d1 * 2 + s0 floordiv 8)"],
            (7, 8, 4),
            [(2, 6)],
            2,
            id="pages",
        ),
        pytest.param(
            "(d0, d1, d2)[s0, s1] -> (d2, s0 mod 8, s1), d0 in [0, 1], d1 in [0, 2], d2 in [0, 6], s0 in [0, 15], "
            "s1 in [0, 7], d1 * 16 + s0 in [0, 39], s1 in [0, 5]",
            ["(d0, d1)[s0, s1] -> (d0, d1 * 2 + s0 floordiv 8)"],
            (7, 8, 6),
            [(2, 5)],
            2,
            id="pages, and no more of them; rows are cut off",
        ),
        pytest.param(
            "(d0, d1, d2)[s0, s1] -> (d2, d0, s1 mod 8, s0), d0 in [0, 1], d1 in [0, 1], d2 in [0, 4], s0 in [0, 3], "
            "s1 in [0, 15]",
            ["(d0, d1)[s0, s1] -> (d1 * 2 + s1 floordiv 8)"],
            (5, 2, 8, 4),
            [(4,)],
            2,
            id="pages of heads, turned",
        ),
        pytest.param(
            "(d0, d1, d2)[s0, s1] -> (d2, (d1 * 8 + s0) mod 16, s1), d0 in [0, 0], d1 in [0, 3], d2 in [0, 4], "
            "s0 in [0, 7], s1 in [0, 3]",
            ["(d0, d1)[s0, s1] -> (d1 floordiv 2)"],
            (5, 16, 4),
            [(2,)],
            1,
            id="pages of several tiles",
        ),
        pytest.param(
            "(d0, d1, d2, d3)[s0, s1] -> (d2, d3, d1 * 8 + s0, s1), d0 in [0, 1], d1 in [0, 2], d2 in [0, 2], "
            "d3 in [0, 3], s0 in [0, 7], s1 in [0, 3], d1 * 8 + s0 in [0, 18]",
            ["(d0, d1)[s0, s1] -> ()", "(d0, d1)[s0, s1] -> (d0)"],
            (3, 4, 19, 4),
            [(), (2,)],
            1,
            id="layer and slot, rows that end in a tile",
        ),
        pytest.param(
            "(d0, d1, d2)[s0, s1] -> (d0, d2 + d1 * 8 + s0, s1), d0 in [0, 1], d1 in [0, 2], d2 in [0, 9], "
            "s0 in [0, 7], s1 in [0, 3]",
            ["(d0, d1)[s0, s1] -> ()"],
            (2, 33, 4),
            [()],
            1,
            id="a window",
        ),
    ],
)
def test_boxes_of_parts_are_the_tile(
    map_: str, numbers: list[str], shape: tuple[int, ...], sizes: list[tuple[int, ...]], count: int
) -> None:
    whole = IndexingMap.parse(map_)
    at = whole.dims[: len(whole.dims) - len(numbers)]
    ranges = ", ".join(
        f"{name}{number} in {each}"
        for name, several in (("d", at), ("s", whole.symbols))
        for number, each in enumerate(several)
    )
    reads = [IndexingMap.parse(f"{each}, {ranges}") for each in numbers]
    bounds = [
        tuple((each, Interval(0, size - 1)) for each, size in zip(read.results, own, strict=True))
        for read, own in zip(reads, sizes, strict=True)
    ]
    known = (replace(read, constraints=each) for read, each in zip(reads, bounds, strict=True))
    tile = Gathered(whole, tuple(known), len(numbers))
    found = gathered_view(tile, shape, _ITEM, ROWS)
    assert not isinstance(found, str), found
    parts, view = found
    assert parts.count == count
    generator = np.random.default_rng(0)
    tables = [generator.integers(-2, 12, size) for size in sizes]
    assert _boxes(tile, tables, parts, view) == _whole(tile, tables, shape)


@pytest.mark.parametrize(
    ("map_", "numbers", "problem"),
    [
        (
            "(d0, d1)[s0, s1] -> (d1, s1), d0 in [0, 1], d1 in [0, 15], s0 in [0, 15], s1 in [0, 3]",
            "(d0)[s0, s1] -> (d0 * 16 + s0), d0 in [0, 1], s0 in [0, 15], s1 in [0, 3]",
            "no 8 rows of it have the same numbers",
        ),
        (
            "(d0, d1)[s0, s1] -> (d1 mod 4, s0 mod 8, s1), d0 in [0, 1], d1 in [0, 7], s0 in [0, 15], s1 in [0, 3], "
            "d0 * 16 + s0 in [0, 23]",
            "(d0)[s0, s1] -> (d0 * 2 + s0 floordiv 8), d0 in [0, 1], s0 in [0, 15], s1 in [0, 3]",
            "not all of its parts are in the array",
        ),
    ],
)
def test_other_tiles_have_reasons(map_: str, numbers: str, problem: str) -> None:
    tile = Gathered(IndexingMap.parse(map_), (IndexingMap.parse(numbers),), 1)
    assert gathered_view(tile, (16, 8, 4)[-len(tile.map.results) :], _ITEM, ROWS) == problem

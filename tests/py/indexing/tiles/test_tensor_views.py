"""Tiles as boxes: what a box of a tensor map covers is what the tile's indexing map leads to, and zeros elsewhere."""

import itertools

import pytest

from xgpu.indexing.affine import constant, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.tensor_views import TensorView, flat_map, has_pairs, map_of_bytes, tensor_view

ROWS = 32
"""Bytes of a row of a box, here of 4 elements of 8 bytes."""


def positions(view: TensorView, point: tuple[int, ...]) -> dict[tuple[int, ...], int | None]:
    """Return where in the array the boxes of a block have each element of its tile, None where they have a zero."""
    found = {}
    for panel, row, column in itertools.product(range(view.panels), range(view.rows), range(view.row)):
        start = [each.evaluate(point) for each in view.starts(constant(panel), constant(0))]
        own = {None: 0, view.inner: column, 1 - view.inner: row}
        place = [at + own[each.symbol] for at, each in zip(start, view.dimensions, strict=True)]
        is_inside = all(0 <= at < size for at, size in zip(place, view.shape, strict=True))
        element = sum(at * stride for at, stride in zip(place, (*view.strides(1), 1), strict=True))
        index = [0, 0]
        index[view.inner], index[1 - view.inner] = panel * view.row + column, row
        found[tuple(index)] = element if is_inside else None
    return found


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (
            "(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 4 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 7], s1 in [0, 3]",
            (16, 12),
        ),
        (
            "(d0, d1)[s0, s1] -> (d1 * 4 + s1, d0 * 8 + s0), d0 in [0, 1], d1 in [0, 2], s0 in [0, 7], s1 in [0, 3], "
            "d0 * 8 + s0 in [0, 13], d1 * 4 + s1 in [0, 9]",
            (10, 14),
        ),
        (
            "(d0, d1)[s0, s1] -> (d0, s0, d1 * 4 + s1), d0 in [0, 2], d1 in [0, 1], s0 in [0, 5], s1 in [0, 3]",
            (3, 6, 8),
        ),
        (
            "(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7], s0 in [0, 4], s1 in [0, 5]",
            (5, 6),
        ),
        (
            "(d0)[s0, s1] -> (d0 * 2 + s0 floordiv 2, s0 mod 2, s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 3]",
            (4, 2, 4),
        ),
        (
            "(d0)[s0, s1] -> (d0 * 2 + s0, s1), d0 in [0, 2], s0 in [0, 1], s1 in [0, 3], d0 * 2 + s0 in [0, 100]",
            (6, 4),
        ),
        (
            "(d0, d1)[s0, s1] -> (s1 + d1 floordiv 2 * 2, d0, d1 mod 2, s0), d0 in [0, 2], d1 in [0, 3], s0 in [0, 3], "
            "s1 in [0, 1], s1 + d1 floordiv 2 * 2 in [0, 2]",
            (3, 3, 2, 4),
        ),
        (
            "(d0, d1)[s0, s1] -> (1, d0 * 8 + s0 + 2, d1 * 4 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 7], "
            "s1 in [0, 3]",
            (3, 18, 12),
        ),
    ],
    ids=["whole", "bounds", "batch", "one", "reshaped", "trivial", "remainder", "part"],
)
def test_boxes_are_tiles(text: str, shape: tuple[int, ...]) -> None:
    map_ = IndexingMap.parse(text)
    view = tensor_view(map_, shape, 8, ROWS)
    assert isinstance(view, TensorView), view
    for point in itertools.product(*(range(each.size) for each in map_.dims)):
        found = positions(view, point)
        assert found.keys() == set(itertools.product(*(range(each.size) for each in map_.symbols)))
        for index, position in found.items():
            indices = map_.evaluate(point, index)
            expected = None if indices is None else linearize([constant(i) for i in indices], shape).constant
            assert position == expected, (point, index)


_RANGES = "d0 in [0, 1], d1 in [0, 2], s0 in [0, 7], s1 in [0, 3]"
_PLACE = f"(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 4 + s1), {_RANGES}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{_PLACE}, d0 * 8 + s0 in [2, 13]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d0 * 8 + s0 in [0, 13], s0 in [0, 6]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d0 * 8 + s0 * 2 in [0, 13]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d0 * 8 + s0 + s1 in [0, 13]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d1 in [0, 1]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d0 * 8 + s0 in [0, -1]", "elements of it are left out that boxes have"),
        (f"{_PLACE}, d0 * 4 + s0 in [0, 9]", "its elements are not equally far apart in memory"),
        (f"{_PLACE}, d0 * 8 + d1 + s0 in [0, 9]", "its elements are not equally far apart in memory"),
        (f"(d0, d1)[s0, s1] -> (d0 * 8 + s0 - 1, d1 * 4 + s1), {_RANGES}", "not equally far apart"),
        (f"(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 4 + s1 + 1), {_RANGES}", "no dimension of it is contiguous"),
        (f"(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 2 + s1 floordiv 2), {_RANGES}", "not equally far apart"),
        (f"(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 4), {_RANGES}", "an element of the array is in it several times"),
        (f"(d0, d1)[s0, s1] -> (d0 * -8 + s0, d1 * 4 + s1), {_RANGES}", "no dimension of it is contiguous in memory"),
        (
            f"(d0, d1)[s0, s1] -> (d0 * 8 + s0, d1 * 4 + s1 * 2), {_RANGES}",
            "no dimension of it is contiguous in memory",
        ),
    ],
    ids=str,
)
def test_what_no_box_is(text: str, problem: str) -> None:
    found = tensor_view(IndexingMap.parse(text), (16, 12), 8, ROWS)
    assert isinstance(found, str)
    assert problem in found


@pytest.mark.parametrize(
    ("text", "shape", "problem"),
    [
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 3]", (4, 5), "its rows are not a multiple of 16 bytes apart"),
        (
            "()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 5]",
            (4, 6),
            "it is not made of boxes with rows of 4 elements",
        ),
        ("()[s0, s1] -> (s0, s1), s0 in [0, 256], s1 in [0, 3]", (257, 4), "up to 256 of them"),
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 3]", (4, 1 << 40), "it is of an array that is too large"),
        (
            "(d0, d1, d2, d3)[s0, s1] -> (d0, d1, d2, d3, s0, s1), d0 in [0, 1], d1 in [0, 1], d2 in [0, 1], "
            "d3 in [0, 1], s0 in [0, 1], s1 in [0, 3]",
            (3, 3, 3, 3, 3, 4),
            "it has more than 5 dimensions in memory",
        ),
    ],
    ids=str,
)
def test_what_no_tensor_map_has(text: str, shape: tuple[int, ...], problem: str) -> None:
    found = tensor_view(IndexingMap.parse(text), shape, 8, ROWS)
    assert isinstance(found, str)
    assert problem in found


_OF_BLOCKS = "(d0)[s0, s1] -> (s0, d0 * 8 + s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7]"


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        (_OF_BLOCKS, (4, 16), True),
        (
            "(d0)[s0, s1] -> (s0, d0 * 8 + s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7], d0 * 8 + s1 in [0, 13]",
            (4, 14),
            True,
        ),
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 7], s0 in [0, 2]", (3, 8), True),
        (
            "(d0)[s0, s1] -> (s0, d0 * 8 + s1), d0 in [0, 1], s0 in [0, 3], s1 in [0, 7], d0 * 8 + s1 in [0, 12]",
            (4, 14),
            False,
        ),
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 7]", (4, 9), False),
        ("()[s0, s1] -> (s0, s1 + 1), s0 in [0, 3], s1 in [0, 6]", (4, 8), False),
        ("()[s0, s1] -> (s1, s0), s0 in [0, 3], s1 in [0, 7]", (8, 4), False),
        ("()[s0, s1] -> (s0, 0), s0 in [0, 3], s1 in [0, 7]", (4, 2), False),
    ],
)
def test_pairs_are_even_in_memory(text: str, shape: tuple[int, ...], expected: bool) -> None:
    map_ = IndexingMap.parse(text)
    assert has_pairs(flat_map(map_, shape), 1) == expected


_BYTES = [
    (
        "(d0, d1)[s0, s1] -> (d0 * 8 + s0 + 3, d1 * 4 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 7], s1 in [0, 3], "
        "d1 * 4 + s1 in [0, 9]",
        1,
    ),
    (
        "(d0, d1)[s0, s1] -> (d0 * 8 + s1 + 3, d1 * 4 + s0), d0 in [0, 1], d1 in [0, 2], s0 in [0, 3], s1 in [0, 7], "
        "d1 * 4 + s0 in [0, 9], d0 * 8 + s1 in [0, 12]",
        0,
    ),
]


@pytest.mark.parametrize(("text", "along"), _BYTES, ids=["columns", "rows"])
def test_a_map_of_bytes_is_that_of_their_elements(text: str, along: int) -> None:
    """The first element of each byte of a tile is where the byte is, and in bounds if the byte is."""
    map_, shape = IndexingMap.parse(text), (19, 10)
    bytes_ = map_of_bytes(map_, shape, 2)
    assert isinstance(bytes_, IndexingMap)
    for point in itertools.product(range(2), range(3)):
        for index in itertools.product(*(range(each.size) for each in bytes_.symbols)):
            first = list(index)
            first[along] *= 2
            at = map_.evaluate(point, first)
            expected = None if at is None else (linearize([constant(i) for i in at], shape).constant // 2,)
            assert bytes_.evaluate(point, index) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 2]", "parts of a byte"),
        ("()[s0, s1] -> (s0, s1 + 1), s0 in [0, 3], s1 in [0, 3]", "parts of a byte"),
        ("()[s0, s1] -> (s0, s1), s0 in [0, 3], s1 in [0, 7], s1 in [0, 4]", "parts of a byte"),
        ("()[s0, s1] -> (s0, s1 * 2), s0 in [0, 3], s1 in [0, 3]", "contiguous in memory"),
    ],
    ids=str,
)
def test_bytes_that_are_in_a_tile_in_part(text: str, problem: str) -> None:
    found = map_of_bytes(IndexingMap.parse(text), (4, 8), 2)
    assert isinstance(found, str) and problem in found

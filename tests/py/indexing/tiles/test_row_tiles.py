"""Tiles that threads copy by rows: which units there are, where they go, and what each lane reads of them."""

import itertools

import pytest

from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.matrix_rows import matrix_rows
from xgpu.indexing.tiles.row_tiles import RowTile, SharedRows

_BANKS = 128
"""Bytes that shared memory reads at once."""


def _address(place: tuple[int, ...]) -> int:
    first, chunk, turn, rest = place
    return first + (chunk ^ turn) * 16 + rest


def _addresses(map_: IndexingMap) -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Return each point's dimensions and symbols, and what the map leads to."""
    return [
        (dims, symbols, tuple(each.evaluate(dims, symbols) for each in map_.results)) for dims, symbols in map_.points()
    ]


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize(("rows", "row_bytes"), [(16, 32), (128, 64), (24, 96), (32, 128), (16, 160), (32, 512)])
@pytest.mark.parametrize("threads", [32, 96, 256])
def test_threads_fill_each_byte_once(rows: int, row_bytes: int, size: int, threads: int) -> None:
    shared = SharedRows(rows, row_bytes)
    found = _addresses(shared.units(threads, size))
    assert sorted(_address(place[2:]) for _, _, place in found) == list(range(0, rows * row_bytes, size))
    assert sorted(place[:2] for _, _, place in found) == list(itertools.product(range(rows), range(0, row_bytes, size)))


def test_parts_of_units_are_their_thread_s() -> None:
    shared = SharedRows(16, 64)
    whole = {(dims, symbols[0]): place for dims, symbols, place in _addresses(shared.units(32, 4))}
    for dims, (number, part), place in _addresses(shared.units(32, 4, 2)):
        row, byte, *_ = whole[dims, number]
        assert place[:2] == (row, byte + 2 * part)


@pytest.mark.parametrize("row_bytes", [32, 64, 96, 128, 160, 192, 256, 512])
def test_eight_rows_have_a_chunk_in_different_banks(row_bytes: int) -> None:
    shared = SharedRows(32, row_bytes)
    at = {place[:2]: _address(place[2:]) for _, _, place in _addresses(shared.units(32, 16))}
    for first, byte in itertools.product(range(0, 32, 8), range(0, row_bytes, 16)):
        assert len({at[first + row, byte] % _BANKS for row in range(8)}) == 8


_HOLDERS = Holders(teams=4, warps=1, share=2, across=2, columns=32)
"""Four warps, two by two, of a tile of 64 x 64."""


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("inner", [0, 1])
def test_lanes_read_what_their_products_need(number: int, inner: int) -> None:
    """Each warp reads its rows or columns once; four matrices have the order of a fragment's registers."""
    shape = ((64, 32), (32, 64))[number]
    indices, sizes = ("s0, s1", shape) if inner == 1 else ("s1, s0", shape[::-1])
    ranges = f"d0 in [0, 0], s0 in [0, {shape[0] - 1}], s1 in [0, {shape[1] - 1}]"
    tile = RowTile.of(IndexingMap.parse(f"(d0)[s0, s1] -> ({indices}), {ranges}"), sizes, 2)
    assert isinstance(tile, RowTile)
    assert tile.inner == inner
    units = _addresses(tile.shared.units(32, 16))
    at = {_address(place[2:]): (place[0], place[1] // 2) for _, _, place in units}
    for (thread,), (part, block), place in _addresses(matrix_rows(tile, number, _HOLDERS)):
        warp, matrix, row = thread // 32, thread % 32 // 8, thread % 8
        own = warp // 2 * 32 if number == 0 else warp % 2 * 32
        second, later = (matrix % 2, matrix // 2) if number == 0 else (matrix // 2, matrix % 2)
        free, contracted = own + block * 16 + second * 8, part * 16 + later * 8
        is_along = inner == 1 - number
        expected = (free + row, contracted) if is_along else (contracted + row, free)
        assert at[_address(place)] == expected


@pytest.mark.parametrize(
    ("text", "shape", "inner", "unit"),
    [
        ("(d0 * 64 + s0, d1 * 32 + s1)", (128, 64), 1, 16),
        ("(d1 * 32 + s1, d0 * 64 + s0)", (64, 128), 0, 16),
        ("(d0 * 64 + s0, d1 * 32 + s1), d1 * 32 + s1 in [0, 59]", (128, 60), 1, 8),
        ("(d0 * 64 + s0, d1 * 32 + s1), d1 * 32 + s1 in [0, 61]", (128, 62), 1, 4),
        ("(d0 * 64 + s0, d1 * 32 + s1), d1 * 32 + s1 in [0, 62]", (128, 63), 1, 2),
        ("(d0 * 0, d1 * 32 + s1), d1 * 32 + s1 in [0, 59]", (1, 60), 1, 8),
        ("(d0 * 64 + s0, d1 * 32 + s1 + 4)", (128, 72), 1, 8),
        ("(d0 * 64 + s0, s1 * 0, d1 * 32 + s1)", (128, 3, 66), 1, 4),
    ],
)
def test_units_are_as_wide_as_rows_allow(text: str, shape: tuple[int, ...], inner: int, unit: int) -> None:
    results, _, bounds = text.partition("), ")
    ranges = "d0 in [0, 1], d1 in [0, 1], s0 in [0, 63], s1 in [0, 31]"
    ranges += f", {bounds}" if bounds else ""
    tile = RowTile.of(IndexingMap.parse(f"(d0, d1)[s0, s1] -> {results.removesuffix(')')}), {ranges}"), shape, 2)
    assert isinstance(tile, RowTile)
    assert (tile.inner, tile.unit) == (inner, unit)


def test_rows_that_are_no_neighbours() -> None:
    text = "(d0)[s0, s1] -> (s0 * 2, s1 * 3), d0 in [0, 0], s0 in [0, 15], s1 in [0, 15]"
    assert RowTile.of(IndexingMap.parse(text), (32, 48), 2) == "no dimension of it is contiguous in memory"
    text = "(d0)[s0, s1] -> (s1 mod 8, s0, s1 floordiv 8), d0 in [0, 0], s0 in [0, 15], s1 in [0, 15]"
    assert RowTile.of(IndexingMap.parse(text), (8, 16, 2), 2) == "no dimension of it is contiguous in memory"

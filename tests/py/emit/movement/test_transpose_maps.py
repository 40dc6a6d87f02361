"""The maps of the transpose emitter: every element once, nothing read that was not put, no bank met twice."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.analysis.transposes import canonical
from xgpu.emit.families.transpose import TransposeEmitter, TransposeSchedule
from xgpu.emit.families.transpose_tile import TilePosition, TransposeTile
from xgpu.indexing.access import shape_of
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

CASES = [
    *((size, 1 << i, 1) for size in (1, 2, 4, 8, 16) for i in range((16 // size).bit_length())),
    *((size, 1, group) for size in (1, 2, 4, 8) for group in (2, 3, 5, 7, 8, 15, 31) if size * group < 32),
]


def tiles(size: int, width: int, group: int) -> Iterator[TransposeTile]:
    """Yield the usual tile, and the smaller ones that small arrays have."""
    schedule: TransposeSchedule | None
    schedule = TransposeSchedule(**TransposeSchedule.block_of(size, width, group), width=width)
    while schedule:
        yield TransposeTile(size, width, group, schedule.side, schedule.threads)
        schedule = schedule.halved(size, group)


TILES = list(dict.fromkeys(itertools.chain.from_iterable(tiles(*case) for case in CASES)))


def address_map(tile: TransposeTile, place: TilePosition) -> IndexingMap:
    return IndexingMap((Interval(0, tile.threads - 1),), place.steps, (place.address,))


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_no_bank_is_met_twice(tile: TransposeTile) -> None:
    reading, writing = address_map(tile, tile.reading()), address_map(tile, tile.writing())
    assert bank_conflicts(reading, tile.element_bytes, tile.width) == 0
    # Elements are taken from the tile one by one, to be joined along the rows.
    assert bank_conflicts(writing, tile.element_bytes) == 0


def points_of(tile: TransposeTile, place: TilePosition) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Every thread at every step, along axes of their own."""
    thread, *steps = np.ix_(np.arange(tile.threads), *(np.arange(interval.size) for interval in place.steps))
    return [thread], steps


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_reading_and_writing_visit_the_same_places(tile: TransposeTile) -> None:
    """Both sides reach every place of the tile once, and find the same address there."""
    found = []
    for place in (tile.reading(), tile.writing()):
        values = [
            each.evaluate(*points_of(tile, place)) for each in (place.row, place.column, place.element, place.address)
        ]
        row, column, element, address = (array.ravel() for array in np.broadcast_arrays(*values))
        addresses = np.full((tile.side, tile.side, tile.group), -1)
        addresses[row, column, element] = address
        assert addresses.size == address.size
        assert addresses.min() >= 0
        found.append(addresses)
    assert (found[0] == found[1]).all()
    assert len(np.unique(found[0])) == found[0].size
    assert found[0].max() < tile.size


@pytest.mark.parametrize("tile", [each for each in TILES if each.width > 1], ids=str)
def test_a_chunk_stays_together_when_it_is_put_into_the_tile(tile: TransposeTile) -> None:
    place = tile.reading()
    addresses = place.address.evaluate(*points_of(tile, place))
    assert (addresses[..., :1] % tile.width == 0).all()
    assert (addresses == addresses[..., :1] + np.arange(tile.width)).all()


@pytest.mark.parametrize(
    ("shape", "permutation", "dtype"),
    [
        ((64, 64), (1, 0), "f32"),
        ((100, 130), (1, 0), "f32"),
        ((33, 31), (1, 0), "bf16"),
        ((2, 48, 80), (0, 2, 1), "s8"),
        ((24, 3, 40), (2, 1, 0), "f64"),
        ((40, 3, 50), (2, 0, 1), "f32"),
        ((32, 33, 3), (1, 0, 2), "f32"),
        ((24, 2, 3, 19), (3, 2, 1, 0), "f16"),
    ],
    ids=str,
)
def test_every_element_is_read_and_written_once(
    shape: tuple[int, ...], permutation: tuple[int, ...], dtype: str
) -> None:
    import jax

    compiled = xgpu.compile(lambda x: jax.lax.transpose(x, permutation), f"{dtype}[{','.join(map(str, shape))}]")
    emitter = emitter_of(compiled)
    assert isinstance(emitter, TransposeEmitter)
    result = tuple(shape[i] for i in permutation)
    assert emitter.thread_to_output(0).coverage(result).is_exact
    assert shape_of(emitter.heroes[0].results[0]) == result
    assert math.prod(emitter.launch_dimensions().grid) >= 1


@pytest.mark.parametrize(
    ("shape", "permutation", "expected"),
    [
        ((4, 5), (0, 1), None),
        ((4, 1, 5), (1, 0, 2), None),
        ((4, 5), (1, 0), ((4, 5, 1), (1, 0, 2))),
        ((4, 1, 5), (2, 1, 0), ((4, 5, 1), (1, 0, 2))),
        ((2, 3, 4, 5), (2, 3, 0, 1), ((6, 20, 1), (1, 0, 2))),
        ((2, 3, 4, 5), (0, 3, 1, 2), ((2, 12, 5, 1), (0, 2, 1, 3))),
        ((2, 3, 4, 5), (1, 0, 2, 3), ((2, 3, 20), (1, 0, 2))),
        ((2, 3, 4), (2, 1, 0), ((2, 3, 4, 1), (2, 1, 0, 3))),
    ],
)
def test_canonical_form(shape: tuple[int, ...], permutation: tuple[int, ...], expected: object) -> None:
    found = canonical(shape, permutation)
    assert (found and (found.shape, found.permutation)) == expected

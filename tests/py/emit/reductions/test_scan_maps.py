"""The maps of the scan emitters: what is read and written once, in which order, and what is exchanged through tiles."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from xgpu.analysis.scan_shape import ScanShape
from xgpu.device import Device, device
from xgpu.emit.families.scans.scan_tiling import (
    HELD_BYTES,
    MOST_HELD_BYTES,
    ColumnScanSchedule,
    ColumnScanTiling,
    RowScanSchedule,
    RowScanTiling,
    held_elements,
)
from xgpu.emit.reduction_tiling import WARP
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

SHAPES = [
    ScanShape(shape, dimension, reverse)
    for shape, dimension in [
        ((9,), 0),
        ((1023,), 0),
        ((1024,), 0),
        ((5000,), 0),
        ((40000,), 0),
        ((140000,), 0),
        ((2, 33000), 1),
        ((31, 33), 1),
        ((33, 32), 1),
        ((3, 5, 12), 2),
        ((301, 8), 1),
        ((9, 1), 0),
        ((31, 3), 0),
        ((33, 32), 0),
        ((1025, 33), 0),
        ((5, 70, 6), 1),
        ((2, 100, 12), 1),
        ((2, 1, 3, 4, 2), 2),
        ((20000, 8), 0),
        ((2, 5000, 24), 1),
    ]
    for reverse in (False, True)
]
WIDTHS = [[8], [16, 32], [32], [64]]


def devices() -> Iterator[Device]:
    """From one that a single block fills to one that no test shape fills."""
    for count in (1, 132):
        yield replace(device("sm_90a"), sm_count=count)


def tiling_of(
    shape: ScanShape, widths: list[int], accumulators: list[int], target: Device
) -> RowScanTiling | ColumnScanTiling:
    if shape.is_rows:
        return RowScanTiling(shape, RowScanSchedule.chosen(shape, widths, accumulators, target, 16))
    return ColumnScanTiling(shape, ColumnScanSchedule.chosen(shape, widths, accumulators, target, 16))


def tilings(shape: ScanShape) -> Iterator[RowScanTiling | ColumnScanTiling]:
    for target in devices():
        for widths in WIDTHS:
            for accumulators in ([max(widths) // 8], [4, 1], [16]):
                yield tiling_of(shape, widths, accumulators, target)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_element_is_taken_once(shape: ScanShape) -> None:
    for tiling in dict.fromkeys(tilings(shape)):
        assert tiling.threads.threads % WARP == 0
        assert tiling.threads.threads <= 1024
        covering = tiling.covering()
        exact = covering.is_bijection(shape.shape)
        assert covering.coverage(shape.shape).is_exact if exact is None else exact, tiling


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_thread_holds_what_fits_in_registers(shape: ScanShape) -> None:
    for accumulators in ([4], [4, 4], [1, 8], [16]):
        tiling = tiling_of(shape, [32], accumulators, device("sm_90a"))
        held = MOST_HELD_BYTES if tiling.parts > 1 else HELD_BYTES
        assert tiling.schedule.steps * tiling.schedule.vector <= held_elements(accumulators, held)


def points(map_: IndexingMap) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the variables of all points of a map's domain, and its results there."""
    box = np.ix_(*(np.arange(interval.size) for interval in (*map_.dims, *map_.symbols)))
    shape = np.broadcast_shapes(*(axis.shape for axis in box))
    rank = len(map_.dims)
    inside = np.ones(shape, bool)
    for expr, interval in map_.constraints:
        value = expr.evaluate(box[:rank], box[rank:])
        inside &= (value >= interval.lower) & (value <= interval.upper)
    results = [np.broadcast_to(expr.evaluate(box[:rank], box[rank:]), shape)[inside] for expr in map_.results]
    return [np.broadcast_to(axis, shape)[inside] for axis in box], results


def from_start(shape: ScanShape, indices: list[np.ndarray]) -> np.ndarray:
    """Return the position of each element, counted from where the scan starts."""
    index = indices[shape.dimension]
    return shape.size - 1 - index if shape.reverse else index


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_come_in_the_order_of_the_scan(shape: ScanShape) -> None:
    """Tile after tile, of one block or several; in rows warp after warp, step by step, lane after lane, in columns row
    lane after row lane.
    """
    for tiling in dict.fromkeys(tilings(shape)):
        (thread, block, tile, step, element), indices = points(tiling.covering())
        tile = tile + tiling.messages.part.evaluate([thread, block], [])
        lane = thread % tiling.threads.size
        if isinstance(tiling, RowScanTiling):
            within = -element if shape.reverse else element
            order = [tile, lane // tiling.width, step, lane % tiling.width, within]
        else:
            order = [tile, lane // tiling.schedule.lanes, step]
        position = from_start(shape, indices)
        others = [index for i, index in enumerate(indices) if i != shape.dimension]
        by_order = np.lexsort([*order[::-1], *others])
        assert (by_order == np.lexsort([position, *others])).all(), tiling


SPREAD = [
    RowScanTiling(ScanShape((2499,), 0, False), RowScanSchedule(1, 32, 1, 1, spread=True)),
    RowScanTiling(ScanShape((3, 4400), 1, True), RowScanSchedule(2, 64, 1, 1, spread=True)),
    ColumnScanTiling(ScanShape((2, 300, 40), 1, False), ColumnScanSchedule(4, 4, 8, 1, 1, spread=True)),
    ColumnScanTiling(ScanShape((999, 3), 0, True), ColumnScanSchedule(1, 4, 16, 1, 1, spread=True)),
    ColumnScanTiling(ScanShape((200, 32), 0, False), ColumnScanSchedule(1, 32, 1, 1, 3, spread=True)),
    ColumnScanTiling(ScanShape((130, 64), 0, False), ColumnScanSchedule(2, 32, 2, 1, 1, spread=True)),
]


@pytest.mark.parametrize("tiling", SPREAD, ids=lambda tiling: f"{tiling.shape.shape}")
@pytest.mark.parametrize("words", [1, 3])
def test_messages_tell_what_is_before(tiling: RowScanTiling | ColumnScanTiling, words: int) -> None:
    """Of each block and column there is one message; those that are taken follow on each other from the start on."""
    messages = tiling.messages
    assert messages.parts > 1
    told: dict[int, tuple[int, int, int, range]] = {}
    for map_, is_anchor in ((messages.own(words), False), (messages.of_anchor(words), True)):
        (thread, block), (index,) = points(map_)
        for t, b, first in zip(thread, block, index, strict=True):
            part, scan = b // messages.stretches % messages.parts, b // messages.stretches // messages.parts
            for column in range(messages.thread_columns):
                key = first + column * words
                assert key not in told
                columns = t * messages.thread_columns + column
                told[key] = scan, b % messages.stretches, columns, range(0 if is_anchor else part, part + 1)
    assert sorted(told) == list(range(0, tiling.units * tiling.columns * words, words))
    taken: dict[tuple[int, int], list[tuple[int, range]]] = {}
    (thread, block), (index,) = points(messages.taken(words))
    for t, b, first in zip(thread, block, index, strict=True):
        for number in range(messages.warp_columns):
            column = t // WARP * messages.warp_columns + number
            scan, stretch, of_column, parts = told[first + number * words]
            assert (scan, stretch, of_column) == (
                b // messages.stretches // messages.parts,
                b % messages.stretches,
                column,
            )
            taken.setdefault((b, column), []).append((t % WARP, parts))
    for b in range(tiling.units):
        part = b // messages.stretches % messages.parts
        for column in range(tiling.columns):
            found = sorted(taken.get((b, column), []), key=lambda each: each[0])
            assert [lane for lane, _ in found] == list(range(len(found)))
            assert [number for _, parts in found for number in parts] == list(range(part))
            assert part == 0 or messages.last_lane.evaluate([0, b], []) == len(found) - 1


@pytest.mark.parametrize("tiling", SPREAD, ids=lambda tiling: f"{tiling.shape.shape}")
def test_threads_read_what_warps_found(tiling: RowScanTiling | ColumnScanTiling) -> None:
    messages = tiling.messages
    (thread, block, column), (address,) = points(messages.before_writing())
    first = block == 0
    assert (thread[first] // WARP * messages.warp_columns + column[first] == address[first]).all()
    assert sorted(address[first]) == list(range(tiling.columns))
    (thread, _, column), (address,) = points(messages.before_reading())
    lane = thread % (tiling.columns // tiling.thread_columns)
    assert (address == lane * tiling.thread_columns + column).all()


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.is_rows], ids=str)
def test_warps_exchange_what_they_have(shape: ScanShape) -> None:
    for tiling in dict.fromkeys(tilings(shape)):
        assert isinstance(tiling, ColumnScanTiling)
        lanes, together = tiling.schedule.lanes, tiling.warp_row_lanes
        assert together * tiling.column_warps == tiling.row_lanes
        if tiling.column_warps == 1:
            continue
        assert lanes * together == WARP
        one = replace(tiling.tile_writing(), dims=(tiling.tile_writing().dims[0], Interval(0, 0)))
        (thread, _, column), (address,) = points(one)
        assert sorted(address) == list(range(tiling.tile_size))
        group, lane = thread // tiling.threads.size, thread % tiling.threads.size
        for other in range(tiling.column_warps):
            # A thread reads what the first row lane of another warp has put there.
            put = group * tiling.threads.size + other * WARP + lane % lanes
            found = tiling.tile_reading().results[0].evaluate([thread, 0], [other, column])
            assert (found == tiling.tile_writing().results[0].evaluate([put, 0], [column])).all()
        assert not bank_conflicts(tiling.tile_writing(), 4)
        assert not bank_conflicts(tiling.tile_reading(), 4)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.is_rows], ids=str)
def test_row_lanes_of_a_warp_are_neighbours_in_order(shape: ScanShape) -> None:
    for tiling in dict.fromkeys(tilings(shape)):
        assert isinstance(tiling, ColumnScanTiling)
        lanes, together = tiling.schedule.lanes, tiling.warp_row_lanes
        for thread in range(tiling.threads.threads):
            number = tiling.warp_row_lane.evaluate([thread, 0], [])
            assert number == thread % tiling.threads.size // lanes % together
            last = tiling.last_row_lane.evaluate([thread, 0], [])
            assert last == thread + (together - 1 - number) * lanes
            assert last // WARP == thread // WARP


@pytest.mark.parametrize("shape", [((16384, 16384), 1), ((16384, 16384), 0), ((1 << 28,), 0), ((64, 512, 1000), 1)])
def test_large_scans_are_decided_by_reasoning(shape: tuple[tuple[int, ...], int]) -> None:
    scan = ScanShape(*shape, False)
    tiling = tiling_of(scan, [32], [4], device("sm_90a"))
    assert tiling.covering().is_bijection(scan.shape) is True

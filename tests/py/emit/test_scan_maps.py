"""The maps of the scan emitters: what is read and written once, in which order, and what is exchanged through tiles."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from xgpu.analysis.scan_shape import ScanShape
from xgpu.device import Device, device
from xgpu.emit.families.scans.scan_tiling import (
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
    ScanShape(shape, dimension, reverse, chunk or shape[dimension])
    for shape, dimension, chunk in [
        ((9,), 0, None),
        ((1023,), 0, None),
        ((1024,), 0, None),
        ((5000,), 0, 2048),
        ((5000,), 0, 1250),
        ((40000,), 0, None),
        ((31, 33), 1, None),
        ((33, 32), 1, None),
        ((3, 5, 12), 2, 5),
        ((301, 8), 1, None),
        ((9, 1), 0, None),
        ((31, 3), 0, None),
        ((33, 32), 0, None),
        ((1025, 33), 0, None),
        ((5, 70, 6), 1, None),
        ((2, 100, 12), 1, 32),
        ((700, 8), 0, 100),
        ((2, 1, 3, 4, 2), 2, None),
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
        assert tiling.schedule.steps * tiling.schedule.vector <= held_elements(accumulators)


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
    """Tile after tile; in rows warp after warp, step by step, lane after lane, in columns row lane after row lane."""
    for tiling in dict.fromkeys(tilings(shape)):
        (thread, _, tile, step, element), indices = points(tiling.covering())
        lane = thread % tiling.threads.size
        if isinstance(tiling, RowScanTiling):
            within = -element if shape.reverse else element
            order = [tile, lane // tiling.width, step, lane % tiling.width, within]
        else:
            order = [tile, lane // tiling.schedule.lanes, step]
        position = from_start(shape, indices)
        others = [index for i, index in enumerate(indices) if i != shape.dimension]
        by_order = np.lexsort([*order[::-1], position // shape.chunk, *others])
        assert (by_order == np.lexsort([position, *others])).all(), tiling


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.chunks > 1], ids=str)
def test_chunks_go_on_from_the_one_before(shape: ScanShape) -> None:
    shape = replace(shape, goes_on=True)
    for tiling in dict.fromkeys(tilings(shape)):
        (thread, block, _, _, element), indices = points(tiling.covering())
        chunk = from_start(shape, indices) // shape.chunk
        assert (tiling.chunk.evaluate([thread, block]) == chunk).all()
        starts = tiling.start_places().compose(tiling.start_elements())
        column = [0 * element if shape.is_rows else element]
        found = [np.asarray(expr.evaluate([thread, block], column)) for expr in starts.results]
        expected = list(indices)
        expected[shape.dimension] = shape.chunks - 1 - chunk if shape.reverse else chunk - 1
        for index, other in zip(found, expected, strict=True):
            assert (index == other)[chunk > 0].all()


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.is_rows], ids=str)
def test_row_lanes_exchange_what_they_have(shape: ScanShape) -> None:
    for tiling in dict.fromkeys(tilings(shape)):
        assert isinstance(tiling, ColumnScanTiling)
        if tiling.row_lanes == 1:
            continue
        one = replace(tiling.tile_writing(), dims=(tiling.tile_writing().dims[0], Interval(0, 0)))
        (thread, _, column), (address,) = points(one)
        assert sorted(address) == list(range(tiling.tile_size))
        group, lane = thread // tiling.threads.size, thread % tiling.threads.size
        for other in range(tiling.row_lanes):
            # A thread reads what the one of another row lane has put there.
            put = group * tiling.threads.size + other * tiling.schedule.lanes + lane % tiling.schedule.lanes
            found = tiling.tile_reading().results[0].evaluate([thread, 0], [other, column])
            assert (found == tiling.tile_writing().results[0].evaluate([put, 0], [column])).all()
        assert not bank_conflicts(tiling.tile_writing(), 4)
        assert not bank_conflicts(tiling.tile_reading(), 4)


@pytest.mark.parametrize("shape", [((16384, 16384), 1), ((16384, 16384), 0), ((1 << 28,), 0), ((64, 512, 1000), 1)])
def test_large_scans_are_decided_by_reasoning(shape: tuple[tuple[int, ...], int]) -> None:
    scan = ScanShape(*shape, False, min(shape[0][shape[1]], 1 << 16))
    tiling = tiling_of(scan, [32], [4], device("sm_90a"))
    assert tiling.covering().is_bijection(scan.shape) is True

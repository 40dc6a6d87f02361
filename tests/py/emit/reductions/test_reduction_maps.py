"""The maps of the reduction emitters: what is read and written once, what is taken from the tile and was put there."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.device import Device, device
from xgpu.emit.families.reductions.reduce_column import ColumnReductionEmitter, ColumnSchedule, ColumnTiling
from xgpu.emit.families.reductions.reduce_row import RowSchedule, RowTiling
from xgpu.emit.families.reductions.rows import RowsSchedule
from xgpu.emit.reduction_tiling import WARP
from xgpu.indexing.affine import AffineExpr, dim, linearize
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

Case = tuple[tuple[int, ...], tuple[int, ...]]

ROWS: list[Case] = [
    ((9,), (0,)),
    ((1023,), (0,)),
    ((1025,), (0,)),
    ((4096,), (0,)),
    ((1, 33), (1,)),
    ((7, 9), (1,)),
    ((31, 31), (1,)),
    ((33, 32), (1,)),
    ((5, 1024), (1,)),
    ((5, 1023), (1,)),
    ((3, 4, 1027), (0, 2)),
    ((1000, 16), (1,)),
    ((3, 5, 33), (2,)),
    ((4, 3, 20), (1, 2)),
    ((11, 3, 20), (0, 2)),
    ((64, 3, 7), (0, 2)),
    ((5, 3, 4, 2, 6), (0, 2, 4)),
    ((2, 1, 3, 1, 2, 3, 1, 9), (3, 5, 6, 7)),
]
COLUMNS: list[Case] = [
    ((9, 1), (0,)),
    ((9, 2), (0,)),
    ((31, 3), (0,)),
    ((33, 31), (0,)),
    ((32, 33), (0,)),
    ((1025, 4), (0,)),
    ((100, 128), (0,)),
    ((13, 1024), (0,)),
    ((3, 31, 5), (1,)),
    ((3, 100, 64), (1,)),
    ((11, 3, 4, 5), (0, 2)),
    ((2, 1, 3, 1, 11, 3, 1, 2), (2, 4)),
]
COLUMNS = [case for case in COLUMNS if not ReductionShape(*case).is_rows]
WIDTHS = [[8], [32], [16, 64]]
HELD: list[Case] = [
    ((rows, minor), (1,))
    for minor in (9, 31, 32, 33, 100, 128, 1000, 1001, 1023, 1024, 1025, 4096, 16384)
    for rows in (1, 3, 1000)
]


def devices() -> Iterator[Device]:
    """From one that a single block fills to one that no test shape fills."""
    for count in (1, 132):
        yield replace(device("sm_90a"), sm_count=count)


def is_exact(map_: IndexingMap, shape: tuple[int, ...]) -> bool:
    decided = map_.is_bijection(shape)
    return map_.coverage(shape).is_exact if decided is None else decided


def at(map_: IndexingMap, dims: Sequence[Any], symbols: Sequence[Any]) -> np.ndarray:
    """The only result of a map at many points, whatever its domain."""
    return np.asarray(map_.results[0].evaluate(list(dims), list(symbols)))


def own_start(shape: ReductionShape) -> AffineExpr:
    """The start of a stretch along the minor-most extent in an array of the shape itself."""
    sizes = [extent.size for extent in shape.extents]
    places = [dim(i) for i in range(len(sizes))]
    return linearize(places, sizes) - places[-1]


def tiling_of_rows(
    shape: ReductionShape, widths: Sequence[int], starts: Sequence[AffineExpr], target: Device, in_order: bool
) -> RowTiling:
    chosen = RowSchedule.chosen(shape, widths, starts, target, 16, in_order)
    return RowTiling(shape, chosen, starts[0] if chosen.aligned else None, in_order)


def tiling_of_columns(
    shape: ReductionShape, widths: Sequence[int], accumulators: Sequence[int], target: Device, in_order: bool
) -> ColumnTiling:
    chosen = ColumnSchedule.chosen(shape, widths, accumulators, [own_start(shape)], target, 16)
    return ColumnTiling(shape, chosen, in_order, max(accumulators))


def row_tiling(*case: tuple[int, ...], width: int = 32, in_order: bool = False) -> RowTiling:
    shape = ReductionShape(*case)
    return tiling_of_rows(shape, [width], [own_start(shape)], device("sm_90a"), in_order)


def column_tiling(*case: tuple[int, ...], width: int = 32, in_order: bool = False) -> ColumnTiling:
    shape = ReductionShape(*case)
    return tiling_of_columns(shape, [width], [4], device("sm_90a"), in_order)


def rows_of(case: Case, widths: list[int], in_order: bool) -> Iterator[RowTiling]:
    for target in devices():
        shape = ReductionShape(*case)
        for starts in ([own_start(shape)], [own_start(shape) + 3], [own_start(shape), own_start(shape) + 1]):
            yield tiling_of_rows(shape, widths, starts, target, in_order)


def held_rows_of(case: Case, widths: list[int]) -> Iterator[RowTiling]:
    for target in devices():
        shape = ReductionShape(*case)
        for starts in ([own_start(shape)], [own_start(shape) + 3]):
            chosen = RowsSchedule.chosen(shape, widths, starts, target, 16)
            numbers = RowSchedule(chosen.vector, chosen.lanes, 1, chosen.groups, chosen.unroll, 1, aligned=False)
            yield RowTiling(shape, numbers, None, in_order=False)


def columns_of(case: Case, widths: list[int], in_order: bool) -> Iterator[ColumnTiling]:
    for target in devices():
        for accumulators in ([4], [1, 16]):
            shape = ReductionShape(*case)
            yield tiling_of_columns(shape, widths, accumulators, target, in_order)


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_rows(case: Case, in_order: bool) -> None:
    for widths in WIDTHS:
        for tiling in rows_of(case, widths, in_order):
            assert tiling.shape.is_rows
            assert tiling.threads.threads % WARP == 0
            assert is_exact(tiling.reading(), case[0]), tiling
            assert is_exact(tiling.writing(), tiling.shape.result_shape), tiling


@pytest.mark.parametrize("widths", [[8], [16], [32], [64], [16, 32]], ids=str)
@pytest.mark.parametrize("case", HELD, ids=str)
def test_held_rows(case: Case, widths: list[int]) -> None:
    for tiling in held_rows_of(case, widths):
        threads, reading = tiling.threads, tiling.reading()
        assert threads.threads % WARP == 0
        assert threads.threads <= 1024
        assert reading.is_bijection(case[0]) is True, tiling
        assert is_exact(tiling.writing(), tiling.shape.result_shape), tiling
        # All that a thread holds is unrolled, and it holds a whole row's part unless a block has too few threads.
        unrolled = reading.symbols[-3].size == 1
        assert unrolled == (case[0][1] <= tiling.schedule.lanes * 512 // max(widths)), tiling
        assert unrolled or tiling.schedule.lanes == 1024


def test_a_row_is_held_by_as_few_threads_as_can() -> None:
    """With rows enough, 16 elements of f32 or 32 of bf16 a thread; with few, more threads share a row."""

    def lanes(rows: int, minor: int, width: int) -> int:
        shape = ReductionShape((rows, minor), (1,))
        return RowsSchedule.chosen(shape, [width], [own_start(shape)], device("sm_90a"), 16).lanes

    assert lanes(1 << 16, 1024, 16) == 32
    assert lanes(1 << 16, 1024, 32) == 64
    assert lanes(1 << 16, 16384, 32) == 1024
    assert lanes(3, 1024, 16) == 128


def test_threads_of_many_short_rows_read_two_vectors() -> None:
    def lanes(rows: int, minor: int, width: int) -> int:
        return row_tiling((rows, minor), (1,), width=width).schedule.lanes

    assert [lanes(1 << 20, 16, 32), lanes(1 << 20, 16, 16), lanes(1 << 20, 128, 32)] == [2, 1, 16]
    # Few rows: more threads.
    assert lanes(1 << 12, 16, 32) == 4
    # A vector for each thread would not come out even.
    assert lanes(1 << 20, 100, 32) == 4


def test_threads_of_short_rows_have_16_bytes_in_flight() -> None:
    """Rows of odd lengths are read element by element, by as few lanes as that takes where rows are many."""

    def lanes(minor: int, rows: int = 1 << 20, bits: int = 32) -> int:
        shape = ReductionShape((rows, minor), (1,))
        vector = 16 * 8 // bits
        return RowSchedule.chosen(shape, [bits], [own_start(shape)], device("sm_90a"), vector, False).lanes

    assert [lanes(minor) for minor in (5, 7, 9, 13, 15, 31, 63)] == [1, 2, 2, 4, 4, 8, 16]
    assert [lanes(minor, bits=16) for minor in (7, 13, 15)] == [1, 1, 2]
    # As many as there are threads for.
    assert [lanes(15, rows=1 << 12), lanes(15, rows=1 << 16)] == [16, 8]

    def lanes_of_held(minor: int, bits: int) -> int:
        shape = ReductionShape((1 << 20, minor), (1,))
        return RowsSchedule.chosen(shape, [bits, bits], [own_start(shape)], device("sm_90a"), 128 // bits).lanes

    # What is stored again has four accesses each way, so that neighbours write runs.
    assert [[lanes_of_held(minor, bits) for minor in (5, 7, 13, 15, 31)] for bits in (32, 16)] == [[1, 2, 4, 4, 8]] * 2


def test_rows_of_what_caches_deliver_have_few_threads() -> None:
    """Those of distances between all pairs: each row reads two of few vectors."""

    def lanes(rows: int, minor: int) -> int:
        shape = ReductionShape((rows, minor), (1,))
        return RowSchedule.chosen(shape, [], [own_start(shape)], device("sm_90a"), 16, False, code=3).lanes

    assert [lanes(1 << 24, 64), lanes(1 << 24, 125), lanes(1 << 20, 512)] == [4, 16, 8]
    # As many as there are threads for.
    assert [lanes(1 << 14, 512), lanes(1 << 8, 512)] == [32, 128]


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("case", COLUMNS, ids=str)
def test_columns(case: Case, in_order: bool) -> None:
    for widths in WIDTHS:
        for tiling in columns_of(case, widths, in_order):
            assert tiling.threads.threads % WARP == 0
            assert is_exact(tiling.reading(), case[0]), tiling
            written = tiling.writing()
            if tiling.threads.warps > 1:
                finishing = tiling.finishing()
                written = replace(finishing, results=finishing.results[:-1])
            assert is_exact(written, tiling.shape.result_shape), tiling


@pytest.mark.parametrize("columns", [2, 3, 5, 7, 8, 9])
def test_few_columns_of_what_caches_deliver_are_one_threads(columns: int) -> None:
    """As of forces between all pairs of points: what is the same for all dimensions of a pair is read once."""
    for rows in (7, 300, 3000):
        tiling = tiling_of_columns(ReductionShape((50, rows, columns), (1,)), [], [4], device("sm_90a"), False)
        assert tiling.schedule.vector == (columns if columns <= 8 else 1)
        assert is_exact(tiling.reading(), tiling.shape.shape)
    # An accumulator for each column and hero.
    many = tiling_of_columns(ReductionShape((50, 300, 7), (1,)), [], [4] * 5, device("sm_90a"), False)
    assert many.schedule.vector == 1


@pytest.mark.parametrize("held", [0, 4, 24, 100])
@pytest.mark.parametrize("accumulators", [[4], [4, 4], [8]], ids=str)
def test_registers_bound_the_threads_of_columns(accumulators: list[int], held: int) -> None:
    """Registers of a thread, for its columns and 40 more, bound the threads of a block."""
    target = device("sm_90a")
    shape = ReductionShape((1 << 16, 256), (0,))
    chosen = ColumnSchedule.chosen(shape, [16], accumulators, [own_start(shape)], target, 16, held)
    tiling = ColumnTiling(shape, chosen, False, max(accumulators))
    registers = 40 + chosen.vector * (sum(accumulators) + held) // 4
    assert tiling.threads.threads * registers <= target.registers_per_sm
    # No fewer threads than that: the next power of two has too many registers, or is more than a block has.
    assert 2 * tiling.threads.threads * registers > target.registers_per_sm or tiling.threads.threads == 1024
    assert is_exact(tiling.reading(), shape.shape)


def test_what_is_held_for_columns_are_the_vectors_of_all_rows() -> None:
    def function(x: Any, mean: Any, scale: Any, one: Any) -> Any:
        return ((x.astype("float32") - mean) * scale + one).sum(0)

    specs = ("bf16[8192,512]", "f32[512]", "bf16[512]", "f32[]")
    emitter = emitter_of(xgpu.compile(function, *specs))
    assert isinstance(emitter, ColumnReductionEmitter)
    assert emitter.reductions.held_bytes == 4 + 2


def read_by_block(map_: IndexingMap) -> np.ndarray:
    """The indices that block 0 reads, thread by thread and step by step."""
    box = [interval.size for interval in (map_.dims[0], *map_.symbols)]
    thread, *steps = np.ix_(*(np.arange(size) for size in box))
    inside = np.ones(box, bool)
    for expr, interval in map_.constraints:
        value = expr.evaluate([thread, 0], steps)
        inside &= (value >= interval.lower) & (value <= interval.upper)
    return np.stack([np.broadcast_to(expr.evaluate([thread, 0], steps), box)[inside] for expr in map_.results])


@pytest.mark.parametrize(
    ("tiling", "kept"),
    [
        (row_tiling((1025,), (0,), in_order=True), ()),
        (row_tiling((5, 1024), (1,), width=16, in_order=True), (0,)),
        (column_tiling((1025, 3), (0,), in_order=True), (1,)),
        (column_tiling((7, 11, 8), (0, 1), in_order=True), (2,)),
    ],
    ids=str,
)
def test_in_order(tiling: RowTiling | ColumnTiling, kept: tuple[int, ...]) -> None:
    """Taken thread by thread and step by step, the elements of a result come in their order."""
    indices = read_by_block(tiling.reading())
    position = np.ravel_multi_index(tuple(indices), tiling.shape.shape)
    result = sum((indices[i] * 10**i for i in kept), np.zeros_like(position))
    for each in np.unique(result):
        assert (np.diff(position[result == each]) > 0).all()


@pytest.mark.parametrize("case", [*ROWS, ((2, 16384), (1,)), ((3, 100, 2000), (0, 2))], ids=str)
def test_rows_exchange_what_warps_have(case: Case) -> None:
    exchanges_what_warps_have(rows_of(case, [32], False))


@pytest.mark.parametrize("case", [case for case in HELD if case[0][0] == 3], ids=str)
def test_held_rows_exchange_what_warps_have(case: Case) -> None:
    exchanges_what_warps_have(held_rows_of(case, [16]))


def exchanges_what_warps_have(tilings: Iterable[RowTiling]) -> None:
    for tiling in tilings:
        threads = tiling.threads
        if threads.warps == 1:
            continue
        first = threads.tile_writing()
        written = {point: first.evaluate(*point) for point in first.points() if not point[0][1]}
        assert sorted(written.values()) == [(i,) for i in range(threads.threads // WARP)]
        reading = threads.tile_reading()
        for group in range(threads.count):
            warps = {reading.evaluate((group * threads.size + lane, 0)) for lane in range(threads.warps)}
            assert warps == {written[(group * threads.size + w * WARP, 0), ()] for w in range(threads.warps)}
        assert bank_conflicts(reading, 4) == 0


@pytest.mark.parametrize(
    "case", [*COLUMNS, ((200, 1024), (0,)), ((500, 40), (0,)), ((4096, 8), (0,)), ((999, 48), (0,))], ids=str
)
def test_columns_exchange_what_warps_have(case: Case) -> None:
    for widths in WIDTHS:
        for tiling in columns_of(case, widths, False):
            threads = tiling.threads
            if threads.warps == 1:
                continue
            assert tiling.tile_size * tiling.widest <= 48 * 1024
            group, warp, lane, j = np.ix_(
                *map(np.arange, (threads.count, threads.warps, tiling.schedule.lanes, tiling.schedule.vector))
            )
            first = group * threads.size
            put = at(tiling.tile_writing(), [first + warp * WARP + lane, 0], [j])
            assert len(np.unique(put)) == put.size
            assert put.min() >= 0
            assert put.max() < tiling.tile_size
            column = lane * tiling.schedule.vector + j
            finishing = replace(tiling.finishing(), results=tiling.finishing().results[-1:])
            start = at(finishing, [first + column % threads.size, 0], [column // threads.size])
            found = np.where(warp > 0, at(tiling.gathering(), [start], [warp]), start)
            assert (found == put).all()
            assert bank_conflicts(tiling.tile_writing(), tiling.widest) == 0, tiling
            active = Interval(0, min(threads.size, tiling.schedule.lanes * tiling.schedule.vector) - 1)
            taken = IndexingMap((active, finishing.dims[1]), finishing.symbols, finishing.results)
            assert bank_conflicts(taken, tiling.widest) == 0, tiling


@pytest.mark.parametrize(
    ("case", "width"),
    [(((16384, 16384), (1,)), 32), (((1 << 20, 32), (1,)), 16), (((64, 512, 8192), (0, 2)), 32)],
    ids=str,
)
def test_large_rows_are_decided_by_reasoning(case: Case, width: int) -> None:
    tiling = row_tiling(*case, width=width)
    assert tiling.reading().is_bijection(case[0]) is True
    assert tiling.writing().is_bijection(tiling.shape.result_shape) is True


@pytest.mark.parametrize(
    ("case", "width"),
    [(((16384, 16384), (0,)), 32), (((64, 512, 8192), (1,)), 16), (((128, 1000, 1000), (1,)), 32)],
    ids=str,
)
def test_large_columns_are_decided_by_reasoning(case: Case, width: int) -> None:
    tiling = column_tiling(*case, width=width)
    assert tiling.reading().is_bijection(case[0]) is True
    assert math.prod(case[0]) > 1 << 22


def test_blocks_of_columns_are_narrower_where_they_are_few() -> None:
    """1,024 columns of f32 with masks of a byte, whose vector is eight: 64 bytes of f32, not of masks."""
    shape, target = ReductionShape((1024, 1024), (0,)), device("sm_90a")
    chosen = ColumnSchedule.chosen(shape, [32, 8], [4], [own_start(shape)], target, 16)
    assert chosen.vector * chosen.lanes == 16
    assert ColumnTiling(shape, chosen, False, 4).threads.units == 64
    alone = ColumnSchedule.chosen(shape, [32], [4], [own_start(shape)], target, 16)
    assert alone.vector * alone.lanes == 16

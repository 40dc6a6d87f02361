"""The maps of the concatenate emitters: every element once, and a tile's places filled once before they are read."""

import math
from dataclasses import replace

import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.dtypes import dtype_named
from xgpu.emit.families.concatenate import ConcatenateEmitter
from xgpu.emit.families.concatenate_tiled import TiledConcatenateEmitter
from xgpu.indexing.affine import dim
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap


def emitter_for(dtype: str, shape: tuple[int, ...], axis: int, sizes: tuple[int, ...]) -> object:
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    specs = [f"{dtype}[{','.join(map(str, each))}]" for each in shapes]
    return emitter_of(xgpu.compile(lambda *arrays: lax.concatenate(arrays, axis), *specs))


def result_shape(shape: tuple[int, ...], axis: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:axis], sum(sizes), *shape[axis + 1 :])


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "sizes"),
    [
        ("f32", (33, 0), 1, (8, 8)),
        ("bf16", (31, 0), 1, (16, 48, 16)),
        ("s8", (4099, 0), 1, (32, 32)),
        ("f32", (0,), 0, (1, 31, 33, 331)),
        ("f32", (2, 3, 0, 2, 4), 2, (1, 1, 1)),
        ("bf16", (20011, 0), 1, (64, 64)),
        ("f32", (100003, 0), 1, (10, 10)),
    ],
    ids=str,
)
def test_direct(dtype: str, shape: tuple[int, ...], axis: int, sizes: tuple[int, ...]) -> None:
    emitter = emitter_for(dtype, shape, axis, sizes)
    assert isinstance(emitter, ConcatenateEmitter)
    whole = result_shape(shape, axis, sizes)
    offset = 0
    covered = np.zeros(whole, np.int64)
    for number, size in enumerate(sizes):
        reading, writing = emitter.thread_to_operand(number), emitter.thread_to_output(0, number)
        assert reading.is_bijection((*shape[:axis], size, *shape[axis + 1 :])) is True
        # What is read of an operand is written as far along the axis as all operands before it reach.
        points = _all_points(replace(reading, results=(*reading.results, *writing.results)))
        source, target = points[: len(shape)], points[len(shape) :]
        source[axis] = source[axis] + offset
        assert all((one == other).all() for one, other in zip(source, target, strict=True))
        np.add.at(covered, tuple(target), 1)
        offset += size
    assert (covered == 1).all()


TILED = [
    ("f32", (33, 0), 1, (1, 102)),
    ("s8", (5, 0), 1, (1023, 1025)),
    ("f32", (1025, 0), 1, (3, 31, 2)),
    ("bf16", (331, 0), 1, (33, 31)),
    ("s8", (1021, 0), 1, (5, 1, 3)),
    ("s16", (2, 0), 1, (7, 6)),
    ("f64", (7, 3, 0, 1), 2, (1, 1, 3)),
    ("f32", (64, 0), 1, (3,) * 32),
    ("c128", (13, 0), 1, (1, 2)),
]


@pytest.mark.parametrize(("dtype", "shape", "axis", "sizes"), TILED, ids=str)
def test_tiled(dtype: str, shape: tuple[int, ...], axis: int, sizes: tuple[int, ...]) -> None:
    emitter = emitter_for(dtype, shape, axis, sizes)
    assert isinstance(emitter, TiledConcatenateEmitter)
    whole = result_shape(shape, axis, sizes)
    assert emitter.thread_to_output(0).coverage(whole).is_exact
    blocks = emitter.launch_dimensions().grid[0]
    # Which element of the result each place of a block's tile holds: -1 for none yet.
    held = np.full((blocks, emitter.schedule.rows * emitter.schedule.pitch), -1)
    offset = 0
    for number, extent in enumerate(sizes):
        reading, putting = emitter.thread_to_operand(number), emitter.thread_to_tile(number)
        assert reading.coverage((*shape[:axis], extent, *shape[axis + 1 :])).is_exact
        assert replace(reading, results=putting.results) == putting
        block, *index, place = _all_points(replace(reading, results=(dim(1), *reading.results, *putting.results)))
        assert (held[block, place] == -1).all()
        index[axis] = index[axis] + offset
        held[block, place] = np.ravel_multi_index(index, whole)
        assert np.count_nonzero(held != -1) == math.prod(shape[:axis]) * (offset + extent) * math.prod(
            shape[axis + 1 :]
        )
        offset += extent
    taking = emitter.tile_to_hero()
    block, *index, place = _all_points(replace(taking, results=(dim(1), *taking.results)))
    assert (held[block, place] == np.ravel_multi_index(index, whole)).all()


def _all_points(map_: IndexingMap) -> list[np.ndarray]:
    """Return an array for each result of a map, with its values at all points of the domain."""
    intervals = (*map_.dims, *map_.symbols)
    grid = np.meshgrid(*(np.arange(each.lower, each.upper + 1) for each in intervals), indexing="ij")
    dims, symbols = grid[: len(map_.dims)], grid[len(map_.dims) :]
    inside = np.ones(grid[0].shape, bool)
    for expr, allowed in map_.constraints:
        value = expr.evaluate(dims, symbols)
        inside &= (value >= allowed.lower) & (value <= allowed.upper)
    results = (np.broadcast_to(expr.evaluate(dims, symbols), inside.shape) for expr in map_.results)
    return [result[inside] for result in results]


@pytest.mark.parametrize(
    ("dtype", "shape", "sizes"),
    [
        ("f32", (4096, 0), (100, 63)),
        ("f32", (4096, 0), (3, 5, 8)),
        ("f32", (4096, 0), (3,) * 40),
        ("f32", (4096, 0), (1,) * 3),
        ("bf16", (4096, 0), (100, 63)),
        ("bf16", (4096, 0), (33, 31)),
        ("bf16", (4096, 0), (7,) * 16),
        ("s8", (4096, 0), (100, 63)),
        ("f64", (4096, 0), (3, 5, 8)),
        ("c128", (4096, 0), (1, 2)),
    ],
    ids=str,
)
def test_banks(dtype: str, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    """At most two threads meet in a bank when vectors are taken from a tile, three when elements are put into it.

    They are where a warp goes on to another row; a thread alone puts one element at a time.
    """
    emitter = emitter_for(dtype, shape, 1, sizes)
    assert isinstance(emitter, TiledConcatenateEmitter)
    element = dtype_named(dtype).storage_bits // 8
    taking = emitter.tile_to_hero()
    assert bank_conflicts(replace(taking, results=taking.results[-1:]), element, emitter.schedule.vector) <= 1
    for number in range(len(sizes)):
        assert bank_conflicts(emitter.thread_to_tile(number), element) <= 2


@pytest.mark.parametrize(("dtype", "width"), [("s8", 256), ("bf16", 128), ("f32", 64), ("f64", 32)])
def test_more_elements_than_32_bits_count(dtype: str, width: int) -> None:
    """Decided by reasoning; there are too many to count them."""
    rows = (1 << 32) // width
    direct = emitter_for(dtype, (rows, 0), 1, (width,) * 3)
    assert isinstance(direct, ConcatenateEmitter)
    for number in range(3):
        assert direct.thread_to_operand(number).is_bijection((rows, width)) is True
    tiled = emitter_for(dtype, (rows, 0), 1, (39, 25))
    assert isinstance(tiled, TiledConcatenateEmitter)
    for number, extent in enumerate((39, 25)):
        assert tiled.thread_to_operand(number).is_bijection((rows, extent)) is True
    assert tiled.thread_to_output(0).is_bijection((rows, 64)) is True

"""The maps of products by tiles: each element of the result is written once, whatever the schedule."""

import itertools

import jax.numpy as jnp
import pytest

from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.products.product import ProductEmitter
from xgpu.indexing.tiles.fragments import warpgroup_accumulators
from xgpu.indexing.tiles.tile_order import tile_order

from .products import compiled


@pytest.mark.parametrize(
    "schedule",
    [
        {},
        {"tile_m": 64, "groups": 1, "tile_n": 64, "blocks": 1, "cluster": 1, "band": 1},
        {"tile_m": 64, "groups": 1, "tile_n": 64, "blocks": 6, "cluster": 2, "band": 2},
        {"tile_m": 128, "groups": 2, "tile_n": 64, "blocks": 5, "cluster": 1, "band": 2},
        {"tile_m": 128, "groups": 1, "tile_n": 128, "blocks": 2, "cluster": 2, "band": 1},
        {"tile_m": 64, "groups": 1, "tile_n": 192, "blocks": 100, "cluster": 4, "band": 1},
        {"tile_m": 64, "groups": 1, "tile_n": 64, "blocks": 5, "cluster": 1, "band": 3, "swapped": True},
    ],
    ids=str,
)
def test_every_element_is_written_once(schedule: dict[str, int]) -> None:
    more = {"stages": 2, "staged": False} if schedule else {}
    program = compiled(jnp.matmul, "bf16[2,230,64]", "bf16[2,64,136]", **schedule, **more)
    emitter = emitter_of(program)
    assert isinstance(emitter, ProductEmitter)
    assert emitter.thread_to_output(0).coverage((2, 230, 136)).is_exact


@pytest.mark.parametrize(
    ("grid", "cluster", "band"),
    [
        ((batch, rows, columns), cluster, band)
        for batch, rows, columns in itertools.product((1, 3), (1, 4, 6), (1, 5))
        for cluster in (1, 2)
        if rows % cluster == 0
        for band in (1, 2, 3)
        if rows // cluster % band == 0
    ],
)
def test_every_tile_is_computed_once(grid: tuple[int, int, int], cluster: int, band: int) -> None:
    assert tile_order(grid, cluster, band).coverage(grid).is_exact


@pytest.mark.parametrize("columns", [8, 24, 256])
def test_threads_of_a_warp_group_hold_each_element_once(columns: int) -> None:
    map_ = warpgroup_accumulators(columns)
    row, column, number = map_.results
    assert type(map_)(map_.dims, map_.symbols, (row, column)).coverage((64, columns)).is_exact
    held = type(map_)((), map_.symbols, (number,))
    assert held.coverage((columns // 2,)).is_exact

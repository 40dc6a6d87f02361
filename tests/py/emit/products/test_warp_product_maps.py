"""The maps of products of warps: each element of the result is held once, and handed on from thread to thread once."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from tests.py.planned import TARGET, planned
from xgpu.emit.families.products.warp_product import WarpProductEmitter
from xgpu.indexing.tiles.fragments import Holders
from xgpu.indexing.tiles.row_panels import Panels

from .products import KERNELS


@pytest.mark.parametrize(
    "schedule",
    [
        {},
        {"tile_m": 64, "tile_n": 96, "tile_k": 32, "down": 2, "across": 3, "blocks": 1, "band": 1},
        {"tile_m": 128, "tile_n": 32, "tile_k": 32, "down": 8, "across": 1, "blocks": 5, "band": 2},
        {"tile_m": 16, "tile_n": 128, "tile_k": 32, "down": 1, "across": 4, "blocks": 100, "band": 3},
    ],
    ids=str,
)
def test_every_element_is_held_once(schedule: dict[str, int]) -> None:
    specs = ("bf16[2,230,63]", "bf16[2,63,137]")
    options = KERNELS
    if schedule:
        name = planned(jnp.matmul, specs, TARGET, KERNELS).kernels[0].name
        options = replace(KERNELS, schedules={name: {**schedule, "resident": 1}})
    program = xgpu.compile(jnp.matmul, *specs, options=options)
    emitter = emitter_of(program)
    assert isinstance(emitter, WarpProductEmitter)
    assert emitter.thread_to_output(0).coverage((2, 230, 137)).is_exact


@pytest.mark.parametrize(
    ("holders", "most", "neighbours"),
    [
        (Holders(teams=1, warps=4, share=1, across=1, columns=88), 64, 8),
        (Holders(teams=4, warps=1, share=1, across=2, columns=64), 64, 8),
        (Holders(teams=1, warps=1, share=1, across=1, columns=80), 64, 4),
        (Holders(teams=2, warps=1, share=1, across=2, columns=48), 48, 2),
        (Holders(teams=1, warps=1, share=1, across=1, columns=16), 16, 1),
    ],
    ids=str,
)
def test_sums_are_read_where_they_were_written(holders: Holders, most: int, neighbours: int) -> None:
    panels = Panels(holders, neighbours, most)
    for first in range(0, holders.columns, most):
        width = min(most, holders.columns - first)
        written = {}
        held = {dims + symbols: holders.accumulators.evaluate(dims, symbols) for dims, symbols in _points(holders)}
        writing, reading = panels.written(first, width), panels.read(width)
        for dims, (half, eighth) in writing.points():
            byte, _ = _at(writing.evaluate(dims, (half, eighth)))
            for neighbour in range(2):
                row, column, _ = _at(held[(*dims, half, eighth + first // 8, neighbour)])
                written[dims[0] // holders.size, byte + 4 * neighbour] = (row, column - first)
        read = {}
        for dims, symbols in reading.points():
            row, column, byte = _at(reading.evaluate(dims, symbols))
            for neighbour in range(neighbours):
                place = dims[0] // holders.size, byte + 4 * neighbour
                assert place not in read
                read[place] = (row, column + neighbour)
        assert read == written
        assert max(byte for _, byte in written) < panels.bytes
        assert len(written) == holders.teams * holders.rows * width


def _points(holders: Holders) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return list(holders.accumulators.points())


def _at(found: tuple[int, ...] | None) -> tuple[int, ...]:
    assert found is not None
    return found

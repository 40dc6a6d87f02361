"""Layouts of what warp groups multiply: what descriptors can say, and each element in a place of its own."""

import itertools

import pytest

from xgpu.block_plan.graph import Tile
from xgpu.block_plan.memory.panels import panel_layout
from xgpu.block_plan.memory.strides import TilePanel, are_apart, split, tile_bytes


@pytest.mark.parametrize(
    ("shape", "innermost", "together", "strides", "panel"),
    [
        ((64, 64), 1, (64, 64), (64, 1), None),
        ((64, 128), 1, (64, 128), (64, 1), TilePanel(1, 64, 4096)),
        ((64, 32), 1, (64, 32), (32, 1), None),
        ((64, 48), 1, (64, 48), (16, 1), TilePanel(1, 16, 1024)),
        ((32, 56), 1, (56, 32), (8, 1), TilePanel(1, 8, 256)),
        ((128, 64), 0, (64, 64), (1, 64), TilePanel(0, 64, 4096)),
        ((32, 96), 1, (32, 48), (16, 1), TilePanel(1, 16, 512)),
    ],
)
def test_rows_are_as_wide_as_can_be(
    shape: tuple[int, int],
    innermost: int,
    together: tuple[int, int],
    strides: tuple[int, int],
    panel: TilePanel | None,
) -> None:
    assert panel_layout(Tile(shape, 16), innermost, together) == (strides, panel)


def test_all_elements_have_places_without_gaps() -> None:
    for rows, columns, innermost in itertools.product((8, 64, 128), (16, 40, 64, 192), (0, 1)):
        strides, panel = panel_layout(Tile((rows, columns), 16), innermost, (rows, columns))
        assert are_apart((rows, columns), strides, panel)
        assert tile_bytes((rows, columns), strides, 2, None, panel) == 2 * rows * columns
        sizes, steps = split((rows, columns), strides, panel)
        assert len(sizes) == len(steps) == (2 if panel is None else 3)

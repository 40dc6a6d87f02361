"""Which products warps compute about as fast as a library is expected to, and by which tiles."""

import pytest

from xgpu.costs.products.warp_products import MOST_HELD, WARP_TILES, is_fast
from xgpu.device import device


@pytest.mark.parametrize(
    ("target", "sizes", "units", "expected"),
    [
        ("sm_80", (1, 4096, 4096, 4096), (16, 16), True),
        ("sm_120", (1, 4096, 4096, 4096), (16, 16), True),
        ("sm_90", (1, 4096, 4096, 4096), (16, 16), False),
        ("sm_90a", (1, 4095, 4097, 4093), (2, 2), True),
        ("sm_90a", (1, 405, 435, 63), (2, 2), True),
        ("sm_80", (1, 64, 64, 4096), (16, 16), False),
    ],
)
def test_what_is_fast(target: str, sizes: tuple[int, int, int, int], units: tuple[int, int], expected: bool) -> None:
    """Libraries are slow where rows are not aligned, and use warp groups on sm_90; nothing splits long sums."""
    assert is_fast(sizes, units, 2, device(target)) is expected


@pytest.mark.parametrize("units", [(16, 16), (2, 16), (2, 2)])
def test_registers_are_enough(units: tuple[int, int]) -> None:
    """Blocks that a multiprocessor has room for leave each thread registers for what it holds."""
    for target in ("sm_80", "sm_90a", "sm_120"):
        for tile in WARP_TILES:
            resident = tile.resident(units, 2 * tile.step_bytes, device(target))
            if tile.held(units) <= MOST_HELD:
                assert resident * tile.threads * tile.held(units) < device(target).registers_per_sm
            assert resident == 1 or resident * 2 * tile.step_bytes < device(target).shared_bytes_optin

"""How much work keeps a device busy: thresholds follow from its numbers."""

from dataclasses import replace

from xgpu.costs.occupancy import blocks_that_fill, elements_of_a_launch
from xgpu.device import device

H200 = device("sm_90a")


def test_blocks_that_fill() -> None:
    assert blocks_that_fill(H200) == 4 * 132


def test_elements_of_a_launch() -> None:
    assert elements_of_a_launch(H200) == 1 << 16
    assert elements_of_a_launch(replace(H200, launch_seconds=5e-6)) == 1 << 17
    assert elements_of_a_launch(replace(H200, max_threads_per_block=512)) == 1 << 15

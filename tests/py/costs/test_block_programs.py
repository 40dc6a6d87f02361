"""The time of kernels that are written on tiles: no less than its parts, and less with more copies ahead."""

from dataclasses import replace

import pytest

from xgpu.costs.block_programs import BlockWork, block_program_seconds, resident_blocks
from xgpu.costs.products.warp_products import STEP_CYCLES
from xgpu.device import DEVICES

H200 = DEVICES["sm_90a"]
STEP = BlockWork(times=64, ahead=2, array_bytes=32768, shared_bytes=98304, tensor_cycles=800.0, meetings=1)


def test_what_takes_longest_decides() -> None:
    assert 800 < STEP.cycles(H200) < 800 + 32768 / 48 + 98304 / 128
    assert replace(STEP, tensor_cycles=8000.0).cycles(H200) > 8000
    assert BlockWork().cycles(H200) == 0


def test_blocks_in_waves_take_longer() -> None:
    times = [block_program_seconds([STEP], blocks, 1, H200) for blocks in (1, 132, 133, 1320)]
    assert times[0] == times[1] < times[2] < times[3]
    assert times[0] >= H200.launch_seconds + 64 * STEP.cycles(H200) / H200.clock


@pytest.mark.parametrize("meetings", [0, 2])
def test_copies_ahead_hide_latency(meetings: int) -> None:
    small = BlockWork(times=10, array_bytes=512, meetings=meetings)
    times = [block_program_seconds([replace(small, ahead=ahead)], 1, 1, H200) for ahead in (0, 1, 3)]
    assert times[0] > times[1] >= times[2]
    assert times[2] >= H200.launch_seconds + 10 * STEP_CYCLES * meetings / H200.clock


def test_blocks_at_once() -> None:
    assert resident_blocks(256, 0, H200) == 8
    assert resident_blocks(256, 100_000, H200) == 2
    assert resident_blocks(1024, 232_448, H200) == 1

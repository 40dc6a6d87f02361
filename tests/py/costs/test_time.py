"""What takes how long: numbers of the device, not of one GPU."""

from dataclasses import replace

import pytest

from xgpu.costs.time import bytes_per_instruction, launch_bytes, seconds_to_move
from xgpu.device import DEVICES, device

H200 = device("sm_90a")


def test_launches_move_bytes_in_their_time() -> None:
    assert launch_bytes(H200) == 12_000_000
    assert launch_bytes(replace(H200, launch_seconds=5e-6)) == 24_000_000
    assert launch_bytes(device("sm_86")) < launch_bytes(H200)


def test_instructions_cost_half_of_what_is_moved_while_they_are_issued() -> None:
    assert bytes_per_instruction(H200) == pytest.approx(0.0718, abs=1e-4)
    assert bytes_per_instruction(replace(H200, sm_count=66)) == pytest.approx(2 * bytes_per_instruction(H200))


@pytest.mark.parametrize("name", DEVICES)
def test_the_latency_of_instructions_counts_where_threads_are_few(name: str) -> None:
    each = device(name)
    many = bytes_per_instruction(each, each.resident_threads)
    assert many == bytes_per_instruction(each)
    assert bytes_per_instruction(each, 64) > many
    assert bytes_per_instruction(each, 32) == pytest.approx(2 * bytes_per_instruction(each, 64))


def test_kernels_take_a_launch_at_least() -> None:
    assert seconds_to_move(1, H200) == H200.launch_seconds
    assert seconds_to_move(48_000_000, H200) == pytest.approx(1e-5)

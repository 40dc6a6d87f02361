"""How much of a row threads hold, by the widths of the arrays that are read and stored."""

from dataclasses import replace

import pytest

from xgpu.costs.registers import held_elements, longest_row
from xgpu.device import DEVICES, device


@pytest.mark.parametrize("name", DEVICES)
def test_a_thread_holds_64_bytes_of_an_array(name: str) -> None:
    widths = ([], [8], [16], [32], [64], [128], [8, 32])
    assert [held_elements(each, device(name)) for each in widths] == [16, 64, 32, 16, 8, 4, 16]


def test_more_registers_hold_more() -> None:
    target = device("sm_90a")
    twice = replace(target, registers_per_sm=2 * target.registers_per_sm)
    assert held_elements([32], twice) == 2 * held_elements([32], target)
    assert longest_row([32], [32], twice) == 2 * longest_row([32], [32], target)


@pytest.mark.parametrize(
    ("read", "stored", "expected"),
    [
        ([16], [16], 1 << 15),
        ([16], [], 1 << 15),
        # The elements are computed as numbers of 32 bits, however narrow.
        ([8], [8], 1 << 15),
        ([], [], 1 << 15),
        ([8, 8], [16], 1 << 15),
        ([16], [16, 16], 1 << 15),
        # Two arrays are held beside each other.
        ([16, 16], [16], 1 << 14),
        ([32], [16], 1 << 14),
        ([16], [32], 1 << 14),
        # Too long rows of wide elements are read again.
        ([32, 32], [32], 1 << 14),
        ([64], [64], 1 << 14),
    ],
    ids=str,
)
def test_the_longest_row(read: list[int], stored: list[int], expected: int) -> None:
    assert longest_row(read, stored, device("sm_90a")) == expected

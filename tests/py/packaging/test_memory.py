"""Values that are needed at the same time never share bytes, and those that are not may."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from xgpu.packaging.memory import Lifetime, place_values

ALIGNMENT = 128


@st.composite
def intervals(draw: st.DrawFn) -> list[Lifetime]:
    values = []
    for _ in range(draw(st.integers(0, 12))):
        first, length = draw(st.integers(0, 20)), draw(st.integers(0, 8))
        values.append(Lifetime(draw(st.integers(1, 1000)), first, first + length))
    return values


@given(intervals())
def test_values_of_one_time_lie_apart(values: list[Lifetime]) -> None:
    offsets, end = place_values(values, ALIGNMENT)
    for (a, at_a), (b, at_b) in itertools.combinations(zip(values, offsets, strict=True), 2):
        if a.first <= b.last and b.first <= a.last:
            assert at_a + a.bytes <= at_b or at_b + b.bytes <= at_a
    assert all(offset % ALIGNMENT == 0 for offset in offsets)
    assert end == max((offset + value.bytes for value, offset in zip(values, offsets, strict=True)), default=0)


@given(intervals())
def test_no_more_than_all_of_them_take(values: list[Lifetime]) -> None:
    _, end = place_values(values, ALIGNMENT)
    assert end <= sum(-(-value.bytes // ALIGNMENT) * ALIGNMENT for value in values)


def test_a_chain_takes_two_places() -> None:
    offsets, end = place_values([Lifetime(1000, step, step + 1) for step in range(8)], ALIGNMENT)
    assert end == 2024
    assert set(offsets) == {0, 1024}


def test_a_gap_is_filled() -> None:
    values = [Lifetime(512, 0, 9), Lifetime(384, 0, 1), Lifetime(256, 0, 9), Lifetime(128, 3, 4)]
    offsets, end = place_values(values, ALIGNMENT)
    assert offsets == (0, 512, 896, 512)
    assert end == 1152

"""The name that an error message suggests."""

import pytest

from xgpu.errors import did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "suggested"),
    [
        ("optimised", ["optimized", "lowered"], " (did you mean 'optimized'?)"),
        ("F32", ["f32", "f64"], " (did you mean 'f32'?)"),
        ("nothing", ["f32", "f64"], ""),
        ("tile", ["tile_m", "tile_n"], ""),  # One is as near as the other.
        ("", ["f32"], ""),
        ("f32", [], ""),
        (32, ["f32"], ""),  # A user may give anything for a name.
    ],
)
def test_the_nearest_name_is_suggested(name: object, known: list[str], suggested: str) -> None:
    assert did_you_mean(name, known) == suggested

"""Options that no kernel can have are refused where they are given."""

from typing import Any

import pytest

import xgpu


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("threads_per_block", -1, "from 1 to 1024"),
        ("threads_per_block", 2048, "from 1 to 1024"),
        ("max_elements_per_thread", 0, "from 1 on"),
        ("opt_level", 4, "from 0 to 3"),
        ("opt_level", "3", "from 0 to 3"),
    ],
)
def test_what_no_kernel_can_have(option: str, value: Any, expected: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option {option}: expected a number {expected}, got {value!r}"):
        xgpu.Options(**{option: value})

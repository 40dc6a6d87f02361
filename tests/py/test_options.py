"""Options that no kernel can have are refused where they are given."""

from typing import Any

import pytest

import xgpu


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("threads_per_block", -1, "from 1 to 1024"),
        ("threads_per_block", 2048, "from 1 to 1024"),
        ("max_elements_per_thread", 0, "of at least 1"),
        ("opt_level", 4, "from 0 to 3"),
        ("opt_level", "3", "from 0 to 3"),
        ("threads_per_block", True, "from 1 to 1024"),
    ],
)
def test_what_no_kernel_can_have(option: str, value: Any, expected: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option {option}: expected a number {expected}, got {value!r}"):
        xgpu.Options(**{option: value})


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("deterministic", "yes", "True or False"),
        ("keep_barriers", 1, "True or False"),
        ("pad_products", 0, "True or False"),
        ("fuse_attention", None, "True or False"),
        ("fuse_attention_gradients", 1, "True or False"),
        ("attention_parts", 0, "a number of at least 1"),
        ("autotune", "once", "True or False"),
        ("products", "cublas", "'auto', 'library', 'kernels', 'all'"),
        ("schedules", 3, "numbers by name for each fusion"),
        ("schedules", {"f": 3}, "numbers by name for fusion 'f'"),
    ],
)
def test_what_is_of_another_kind(option: str, value: Any, expected: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option {option}: expected {expected}, got "):
        xgpu.Options(**{option: value})


def test_a_dictionary_instead_of_options() -> None:
    given: Any = {"opt_level": 3}
    message = r"options: expected an xgpu\.Options, got \{'opt_level': 3\}"
    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.compile(abs, "f32[8]", options=given)
    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.jit(abs, options=given)

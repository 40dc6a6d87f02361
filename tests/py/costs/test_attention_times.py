"""Which attention is one kernel: by the times of it and of its parts, as both were measured."""

import pytest

from xgpu.costs.attention import (
    AttentionSizes,
    gradient_seconds,
    is_fast,
    is_gradient_fast,
    kernel_seconds,
    library_gradient_seconds,
    library_seconds,
)
from xgpu.device import device

H200 = device("sm_90a")


@pytest.mark.parametrize(
    ("sizes", "kernel", "library"),
    [
        (AttentionSizes(256, 2048, 2048, 128, 128), 838e-6, 3786e-6),
        (AttentionSizes(64, 4096, 4096, 128, 128), 817e-6, 3533e-6),
        (AttentionSizes(256, 2048, 2048, 64, 64), 629e-6, 3548e-6),
        (AttentionSizes(64, 2048, 2048, 256, 256), 694e-6, None),
    ],
)
def test_times_are_about_those_measured(sizes: AttentionSizes, kernel: float, library: float | None) -> None:
    assert kernel_seconds(sizes, H200) == pytest.approx(kernel, rel=0.15)
    assert library is None or library_seconds(sizes, H200) == pytest.approx(library, rel=0.25)


@pytest.mark.parametrize(
    ("sizes", "seconds"),
    [
        (AttentionSizes(256, 2048, 2048, 128, 128), 3574e-6),
        (AttentionSizes(64, 4096, 4096, 128, 128), 3363e-6),
        (AttentionSizes(256, 2048, 2048, 64, 64), 2672e-6),
        (AttentionSizes(64, 2048, 2048, 256, 256), 2739e-6),
    ],
)
def test_gradients_take_about_what_was_measured(sizes: AttentionSizes, seconds: float) -> None:
    assert gradient_seconds(sizes, H200) == pytest.approx(seconds, rel=0.15)


def test_few_rows_with_many_keys_are_left() -> None:
    """Blocks share the rows alone: 8 of them would read all keys."""
    assert is_fast(AttentionSizes(8, 64, 512, 128, 128), H200)
    assert not is_fast(AttentionSizes(8, 64, 65536, 128, 128), H200)
    assert not is_fast(AttentionSizes(8, 8, 512, 128, 128), H200)


def test_gradients_have_more_products() -> None:
    """Kernels compute the logits twice more, and the gradients of weights once more; parts have these in memory."""
    sizes = AttentionSizes(256, 2048, 2048, 128, 128)
    assert gradient_seconds(sizes, H200) / kernel_seconds(sizes, H200) > 4
    assert library_gradient_seconds(sizes, H200) / library_seconds(sizes, H200) == 2
    assert is_gradient_fast(sizes, H200)


def test_gradients_of_few_long_rows_are_left() -> None:
    assert not is_gradient_fast(AttentionSizes(8, 64, 65536, 128, 128), H200)
    assert not is_gradient_fast(AttentionSizes(8, 8, 512, 128, 128), H200)

"""Which attention is one kernel: by the times of it and of its parts, as both were measured."""

import pytest

from xgpu.costs.attention import (
    SPLIT_KEYS,
    AttentionSizes,
    gradient_seconds,
    is_fast,
    is_gradient_fast,
    kernel_seconds,
    library_gradient_seconds,
    library_seconds,
    split_keys,
    splits_of,
)
from xgpu.device import device

H200 = device("sm_90a")


@pytest.mark.parametrize(
    ("sizes", "kernel", "library"),
    [
        (AttentionSizes(256, 2048, 2048, 128, 128), 899e-6, 3786e-6),
        (AttentionSizes(64, 4096, 4096, 128, 128), 875e-6, 3533e-6),
        (AttentionSizes(256, 2048, 2048, 64, 64), 683e-6, 3548e-6),
        (AttentionSizes(256, 2048, 2048, 64, 64, 4), 1340e-6, 4896e-6),
        (AttentionSizes(192, 1024, 1024, 64, 64, 4), 300e-6, 1030e-6),
        (AttentionSizes(8, 8192, 8192, 64, 64, 4), 640e-6, 2243e-6),
        (AttentionSizes(64, 2048, 2048, 64, 64, 2, 20), 375e-6, 1024e-6),
        (AttentionSizes(64, 2048, 2048, 64, 64, 4, 20), 500e-6, 1521e-6),
    ],
)
def test_times_are_about_those_measured(sizes: AttentionSizes, kernel: float, library: float) -> None:
    assert kernel_seconds(sizes, H200) == pytest.approx(kernel, rel=0.15)
    assert library_seconds(sizes, H200) == pytest.approx(library, rel=0.25)


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


@pytest.mark.parametrize(
    "sizes",
    [
        AttentionSizes(8, 64, 65536, 128, 128),
        AttentionSizes(8, 4, 131072, 128, 128),
        AttentionSizes(64, 4, 32768, 128, 128),
        AttentionSizes(8, 512, 8192, 128, 128),
        AttentionSizes(1, 1, 4096, 64, 64),
    ],
)
def test_few_tiles_of_rows_with_many_keys_are_split(sizes: AttentionSizes) -> None:
    """As many tiles as there are multiprocessors, about, of one part each: all of them read keys."""
    splits = splits_of(sizes, H200)
    tiles = sizes.batch * -(-sizes.rows // 128) * splits
    assert splits > 1
    assert 0.5 * H200.sm_count < tiles <= H200.sm_count or split_keys(sizes.keys, splits) == SPLIT_KEYS
    assert is_fast(sizes, H200)
    assert kernel_seconds(sizes, H200, splits) < kernel_seconds(sizes, H200)


def test_keys_of_many_tiles_are_left_together() -> None:
    """Parts have to be combined, which takes another kernel; of few keys that is longer than what it saves."""
    assert splits_of(AttentionSizes(512, 4, 4096, 128, 128), H200) == 1
    assert splits_of(AttentionSizes(8, 64, 256, 64, 64), H200) == 1
    assert splits_of(AttentionSizes(8, 64, 0, 64, 64), H200) == 1


@pytest.mark.parametrize(("keys", "splits"), [(4096, 3), (601, 3), (128, 1), (1, 4), (131072, 1000)])
def test_parts_have_whole_steps(keys: int, splits: int) -> None:
    length = split_keys(keys, splits)
    assert length % SPLIT_KEYS == 0
    assert -(-keys // length) <= splits


def test_gradients_have_more_products() -> None:
    """Kernels compute the logits twice more, and the gradients of weights once more; parts have these in memory."""
    sizes = AttentionSizes(256, 2048, 2048, 128, 128)
    assert gradient_seconds(sizes, H200) / kernel_seconds(sizes, H200) > 3.8
    assert library_gradient_seconds(sizes, H200) / library_seconds(sizes, H200) == 2
    assert is_gradient_fast(sizes, H200)


def test_gradients_of_few_long_rows_are_left() -> None:
    assert not is_gradient_fast(AttentionSizes(8, 64, 65536, 128, 128), H200)

"""How long products by tiles are expected to take: what was measured, and by bytes whatever their elements are."""

import math

import pytest

from xgpu.costs.products import is_fast, pays_joined, product_seconds
from xgpu.device import device
from xgpu.indexing.tiles.product_maps import ROW_BYTES

H200 = device("sm_90a")


def seconds(sizes: tuple[int, int, int], element_bytes: int, result_bytes: int) -> float:
    """Return the time of a product in tiles of 128 x 256."""
    m, n, k = sizes
    waves = math.ceil(math.ceil(m / 128) * math.ceil(n / 256) / H200.sm_count)
    steps = math.ceil(k * element_bytes / ROW_BYTES)
    return product_seconds((128, 256, ROW_BYTES), steps, waves, 128 * 256 * result_bytes, H200)


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        ((2048, 2048, 2048), 24.8e-6),
        ((4096, 4096, 4096), 170.3e-6),
        ((8192, 8192, 8192), 1364e-6),
        ((8192, 1024, 8192), 169.9e-6),
        ((4096, 14336, 4096), 588.7e-6),
        ((4096, 4096, 14336), 578.7e-6),
    ],
)
def test_large_products_of_16_bits_take_what_was_measured(sizes: tuple[int, int, int], measured: float) -> None:
    assert seconds(sizes, 2, 2) == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("element_bytes", [1, 4])
def test_steps_take_as_long_as_their_bytes(element_bytes: int) -> None:
    """The dense rates of the data sheet: 1,979 f8 and int8, 990 bf16, 495 tf32, in tera-operations a second."""
    assert seconds((4096, 4096, 8192 // element_bytes), element_bytes, 4) == seconds((4096, 4096, 4096), 2, 4)


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_few_tiles_of_long_sums_are_the_librarys(element_bytes: int) -> None:
    assert is_fast((1, 4096, 4096, 4096), element_bytes, 4, H200)
    assert not is_fast((1, 64, 64, 65536), element_bytes, 4, H200)
    assert is_fast((132, 64, 64, 65536), element_bytes, 4, H200)


def test_products_with_one_left_operand_are_fast_together_or_not() -> None:
    assert is_fast((1, 4096, 4096, 1024), 2, 2, H200, rights=2)
    assert not is_fast((1, 64, 64, 65536), 2, 2, H200, rights=2)
    # Few blocks have less to do than a library that waits for one product, and more than one that waits for two.
    assert [is_fast((1, 256, 4096, 4096), 2, 2, H200, rights) for rights in (1, 2, 4)] == [False, True, True]


def test_products_are_joined_where_that_is_faster_than_a_kernel_for_each() -> None:
    assert pays_joined((1, 4096, 4096, 1024), 2, 2, H200, 2)
    # Tiles of 160 columns are two waves for each of two, tiles of 128 for both are three of longer steps.
    assert not pays_joined((1, 4096, 1176, 4096), 2, 2, H200, 2)

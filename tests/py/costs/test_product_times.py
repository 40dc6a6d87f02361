"""How long products by tiles are expected to take: what was measured, and by bytes whatever their elements are."""

import pytest

from xgpu.costs.products import ProductTile, is_fast, product_seconds
from xgpu.device import device

H200 = device("sm_90a")


def seconds(sizes: tuple[int, int, int], element_bytes: int, result_bytes: int) -> float:
    """Return the time of a product in tiles of 128 x 256."""
    return product_seconds(ProductTile(128, 256), (1, *sizes), (element_bytes, result_bytes), H200)


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

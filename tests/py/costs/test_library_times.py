"""How long products take that are left to XLA: what was measured on an H200, of 16-bit floats."""

import pytest

from xgpu.costs.products.library_products import library_product_seconds
from xgpu.device import device

H200 = device("sm_90a")


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        ((512, 512, 512), 5.3e-6),
        ((1024, 1024, 1024), 5.9e-6),
        ((2048, 2048, 2048), 23.8e-6),
        ((4096, 4096, 4096), 174.3e-6),
        ((8192, 8192, 8192), 1369e-6),
        ((8192, 1024, 8192), 169.3e-6),
        ((4096, 14336, 4096), 589.4e-6),
        ((4096, 4096, 14336), 575.3e-6),
        ((4096, 4096, 1024), 44.9e-6),
        ((4096, 1024, 4096), 43.7e-6),
        ((4096, 8192, 1024), 87.4e-6),
        ((4096, 4104, 4096), 177e-6),
        ((64, 14336, 4096), 36.9e-6),
        ((16, 14336, 4096), 31.7e-6),
        ((1, 14336, 4096), 29.7e-6),
        ((16, 4096, 14336), 30.4e-6),
        ((64, 4096, 4096), 13.5e-6),
        ((128, 4096, 4096), 16.1e-6),
        ((256, 256, 4096), 6.5e-6),
        ((256, 1024, 4096), 11.4e-6),
        ((512, 512, 8192), 15.4e-6),
        ((128, 128, 16384), 6.3e-6),
    ],
    ids=str,
)
def test_products_take_what_was_measured(sizes: tuple[int, int, int], measured: float) -> None:
    assert library_product_seconds((1, *sizes), 2, 2, H200) == pytest.approx(measured, rel=0.1)


def test_more_work_takes_longer_but_where_sums_are_no_longer_split() -> None:
    """A batch has as many tiles as there are in all its products."""
    one = library_product_seconds((1, 512, 512, 4096), 2, 2, H200)
    assert library_product_seconds((1, 512, 512, 8192), 2, 2, H200) > one
    assert library_product_seconds((1, 512, 512, 4096), 2, 4, H200) >= one
    assert library_product_seconds((4, 512, 512, 4096), 2, 2, H200) < 2 * one

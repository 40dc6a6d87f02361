"""How long products by tiles are expected to take: what was measured, and by bytes whatever their elements are."""

import pytest

from xgpu.costs.products.products import TILES, ProductTile, is_fast, pays_joined, product_seconds, timed_tiles
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


_BF16 = 2, 2


def best(sizes: tuple[int, int, int]) -> ProductTile:
    """Return the tile that takes the least time by estimate."""
    return min(TILES, key=lambda tile: product_seconds(tile, (1, *sizes), _BF16, H200))


@pytest.mark.parametrize(
    ("sizes", "tile", "measured"),
    [
        ((512, 512, 512), ProductTile(64, 64), 3.9e-6),
        ((1024, 1024, 1024), ProductTile(64, 128), 6.4e-6),
        ((1024, 1024, 1024), ProductTile(128, 128, 2), 8.5e-6),
        ((256, 256, 4096), ProductTile(64, 64), 10.7e-6),
        ((256, 256, 4096), ProductTile(64, 64, 4), 5.6e-6),
        ((256, 256, 4096), ProductTile(64, 128, 8), 5.7e-6),
        ((512, 512, 8192), ProductTile(64, 64, 2), 17.2e-6),
        ((512, 512, 8192), ProductTile(128, 128, 4), 14.8e-6),
        ((128, 128, 16384), ProductTile(64, 32, 8, is_swapped=True), 7.2e-6),
        ((16, 14336, 4096), ProductTile(128, 16, is_swapped=True), 29.3e-6),
        ((64, 14336, 4096), ProductTile(64, 128), 30.9e-6),
        ((16, 4096, 14336), ProductTile(64, 16, 2, is_swapped=True), 29.6e-6),
        ((16, 4096, 14336), ProductTile(64, 8, is_swapped=True), 40.0e-6),
        ((128, 4096, 4096), ProductTile(64, 128, 2), 13.9e-6),
    ],
    ids=str,
)
def test_few_tiles_and_few_rows(sizes: tuple[int, int, int], tile: ProductTile, measured: float) -> None:
    """Blocks that wait for loads, for memory, for others' parts of sums, or for a place."""
    assert product_seconds(tile, (1, *sizes), _BF16, H200) == pytest.approx(measured, rel=0.2)


def test_few_tiles_are_split_and_few_rows_are_columns_of_tiles() -> None:
    """As was fastest, of what was measured."""
    assert best((256, 256, 4096)) == ProductTile(64, 64, 4)
    assert best((512, 512, 8192)).split == 4
    assert best((16, 14336, 4096)) == ProductTile(128, 16, is_swapped=True)
    assert best((16, 4096, 14336)) == ProductTile(64, 16, 2, is_swapped=True)
    assert best((14336, 16, 4096)) == ProductTile(128, 16)
    assert best((4096, 4096, 4096)) == ProductTile(128, 256)


def test_what_few_tiles_pay_for() -> None:
    """A library splits them too, and takes a kernel more for it; a tile or four are too few for blocks of clusters."""
    assert is_fast((1, 256, 256, 4096), *_BF16, H200)
    assert is_fast((1, 512, 512, 8192), *_BF16, H200)
    assert is_fast((1, 256, 1024, 4096), *_BF16, H200)
    assert not is_fast((1, 128, 128, 16384), *_BF16, H200)
    assert not is_fast((1, 64, 64, 16384), *_BF16, H200)


def test_products_with_one_left_operand_are_fast_together_or_not() -> None:
    assert is_fast((1, 4096, 4096, 1024), 2, 2, H200, rights=2)
    assert not is_fast((1, 64, 64, 65536), 2, 2, H200, rights=2)


def test_products_are_joined_where_that_is_faster_than_a_kernel_for_each() -> None:
    assert pays_joined((1, 4096, 4096, 1024), 2, 2, H200, 2)
    # Blocks that compute a tile together are for one product.
    assert not pays_joined((1, 256, 256, 16384), 2, 2, H200, 2)


def test_groups_of_rows_end_with_a_part_of_a_tile() -> None:
    """Of 64 rows on average, half of the groups have more: tiles of 64 would read their matrices twice."""
    sizes = 8, 64, 14336, 4096
    assert ProductTile(64, 256, has_groups=True).grid(sizes) == (1.5, 56)
    assert ProductTile(128, 256, has_groups=True).grid(sizes) == (1.0, 56)
    assert timed_tiles(sizes, *_BF16, H200, 1)[0][1].rows == 64
    assert timed_tiles(sizes, *_BF16, H200, 1, has_groups=True)[0][1].rows == 128


def test_tiles_of_groups_are_neither_split_nor_swapped() -> None:
    sizes = 1, 16, 1408, 4096
    assert not timed_tiles(sizes, *_BF16, H200)[0][1].is_plain
    assert all(tile.is_plain for _, tile in timed_tiles(sizes, *_BF16, H200, has_groups=True))

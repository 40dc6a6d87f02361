"""How warps share products: as evenly as can be, and then with the fewest elements read."""

import itertools

import pytest

from xgpu.block_plan.warps import WarpProduct, arrange, arrange_groups, busiest, elements_read, group_problem


@pytest.mark.parametrize(
    ("product", "warps", "expected"),
    [
        (WarpProduct(1, 128, 128, 32), 4, (2, 2)),
        (WarpProduct(1, 256, 64, 32), 4, (4, 1)),
        (WarpProduct(1, 64, 256, 32), 4, (1, 4)),
        (WarpProduct(1, 16, 256, 32), 8, (1, 8)),
        (WarpProduct(1, 256, 8, 32), 8, (8, 1)),
        (WarpProduct(1, 64, 32, 16), 4, (4, 1)),
        (WarpProduct(1, 15, 15, 15), 1, (1, 1)),
    ],
)
def test_usual_products(product: WarpProduct, warps: int, expected: tuple[int, int]) -> None:
    assert arrange([product], warps) == expected


def test_the_best_of_all_ways() -> None:
    for rows, columns, warps in itertools.product((16, 48, 96, 381), (8, 57, 62, 128), (1, 2, 4, 6, 8)):
        product = WarpProduct(2, rows, columns, 64)
        found = arrange([product], warps)
        ways = [(down, warps // down) for down in range(1, warps + 1) if warps % down == 0]
        assert found[0] * found[1] == warps
        assert busiest(product, *found) == min(busiest(product, *way) for way in ways)
        same = [way for way in ways if busiest(product, *way) == busiest(product, *found)]
        assert elements_read(product, *found) == min(elements_read(product, *way) for way in same)


def test_products_that_lie_alike_share_their_warps() -> None:
    """One alone would be four warps down; the other, whose contracted dimension is long, weighs more."""
    tall, wide = WarpProduct(1, 256, 64, 16), WarpProduct(1, 64, 256, 1024)
    assert arrange([tall], 4) == (4, 1)
    assert arrange([tall, wide], 4) == (1, 4)


@pytest.mark.parametrize(
    ("product", "warps", "expected"),
    [
        (WarpProduct(1, 64, 64, 32), 4, (4, 1)),
        (WarpProduct(1, 128, 128, 32), 4, (4, 1)),
        (WarpProduct(1, 128, 128, 32), 8, (8, 1)),
        (WarpProduct(1, 64, 128, 32), 8, (4, 2)),
        (WarpProduct(1, 192, 128, 32), 8, (4, 2)),
        (WarpProduct(1, 64, 512, 32), 4, None),
        (WarpProduct(1, 64, 512, 32), 8, (4, 2)),
        (WarpProduct(1, 64, 72, 32), 8, None),
        (WarpProduct(1, 32, 64, 32), 4, None),
        (WarpProduct(2, 64, 64, 32), 4, None),
        (WarpProduct(1, 64, 64, 32), 2, None),
    ],
)
def test_warp_groups_have_whole_instructions(
    product: WarpProduct, warps: int, expected: tuple[int, int] | None
) -> None:
    assert arrange_groups(product, warps) == expected
    if expected is not None:
        assert group_problem(product, expected) is None

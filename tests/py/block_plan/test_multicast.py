"""Who copies a tile for whom, against a look at every block of every cluster."""

import functools
import itertools

import pytest

from xgpu.block_plan.multicast import blocks_of, copies_for, masks, masks_problem, same_tile, without_multicast
from xgpu.indexing.affine import delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

GRIDS = [(1, 1), (2, 2), (4, 4), (3, 5), (6, 4), (5, 8), (8, 16), (7, 7), (16, 3)]
STEPS = 3


def operands(grid: tuple[int, int]) -> dict[str, IndexingMap]:
    """Tiles of the operands of a product, of what all blocks need, and of what each needs alone."""
    dims = (Interval(0, grid[0] - 1), Interval(0, grid[1] - 1), Interval(0, STEPS - 1))
    element = (Interval(0, 3), Interval(0, 3))
    d0, d1, d2, s0, s1 = dim(0), dim(1), dim(2), symbol(0), symbol(1)
    bound = ((d0 * 4 + s0, Interval(0, grid[0] * 4 - 3)),)
    return {
        "left": IndexingMap(dims, element, (d0 * 4 + s0, d2 * 4 + s1), bound),
        "right": IndexingMap(dims, element, (d2 * 4 + s0, d1 * 4 + s1)),
        "all": IndexingMap(dims, element, (d2 * 4 + s0, s1)),
        "own": IndexingMap(dims, element, (d0 * 4 + s0, d1 * 4 + s1)),
        "halves": IndexingMap(dims, element, (d1 // 2 * 4 + s0, d2 * 4 + s1)),
        "skewed": IndexingMap(dims, element, ((d1 + d2) // 2 * 4 + s0, s1)),
    }


def grouped(grid: tuple[int, int], cluster: int) -> IndexingMap:
    """Blocks go down two rows of the grid before the next column, as grids that keep operands in a cache do."""
    plain = blocks_of(grid, cluster)
    count = grid[0] * grid[1]
    number = dim(0) * cluster + dim(1)
    pair, column, row = delinearize(number, (grid[0] // 2, grid[1], 2))
    bound = plain.constraints if plain.constraints else ()
    assert count % 2 == 0
    return IndexingMap(plain.dims, (), (pair * 2 + row, column), bound)


def tiles_of_cluster(tile: IndexingMap, numbers: IndexingMap, cluster: int) -> list[object]:
    """What each block of a cluster copies at all steps: a frozen list of elements; None for a block there is not."""
    found: list[object] = []
    for rank in range(numbers.dims[1].size):
        at = numbers.evaluate((cluster, rank))
        if at is None:
            found.append(None)
            continue
        found.append(elements(tile, at))
    return found


@functools.cache
def elements(tile: IndexingMap, at: tuple[int, ...]) -> object:
    return tuple(
        tile.evaluate((*at, step), index)
        for step in range(STEPS)
        for index in itertools.product(*(range(each.size) for each in tile.symbols))
    )


def equal_in_all(tile: IndexingMap, numbers: IndexingMap) -> list[list[bool]]:
    size = numbers.dims[1].size
    every = [tiles_of_cluster(tile, numbers, cluster) for cluster in range(numbers.dims[0].size)]
    return [
        [i == j or all(tiles[i] is not None and tiles[i] == tiles[j] for tiles in every) for j in range(size)]
        for i in range(size)
    ]


@pytest.mark.parametrize("grid", GRIDS)
def test_as_by_looking_at_all_blocks(grid: tuple[int, int]) -> None:
    for cluster in range(1, 17):
        for order in (blocks_of, grouped) if grid[0] % 2 == 0 else (blocks_of,):
            numbers = order(grid, cluster)
            for name, tile in operands(grid).items():
                found, equal = masks(tile, numbers), equal_in_all(tile, numbers)
                for rank in range(cluster):
                    (copier,) = (other for other in range(cluster) if found[other] >> rank & 1)
                    assert copier == min(other for other in range(cluster) if equal[other][rank]), (cluster, name)
                    assert not found[copier] or found[copier] >> copier & 1


@pytest.mark.parametrize(
    ("grid", "cluster", "along"), [((8, 16), 4, 4), ((8, 16), 8, 8), ((4, 2), 4, 2), ((6, 4), 8, 4)]
)
def test_closed_form(grid: tuple[int, int], cluster: int, along: int) -> None:
    """Where a row of the grid has ``along`` blocks of a cluster, each copies the left operand for its row."""
    found = masks(operands(grid)["left"], blocks_of(grid, cluster))
    expected = [(1 << along) - 1 << rank // along * along if rank % along == 0 else 0 for rank in range(cluster)]
    assert list(found) == expected
    assert copies_for(found) == cluster // along


def test_uneven_grids_copy_more_never_less() -> None:
    """Five columns of blocks and clusters of two: some clusters lie in one row, and some do not."""
    tile, numbers = operands((4, 5))["left"], blocks_of((4, 5), 2)
    assert masks(tile, numbers) == without_multicast(2)
    assert not same_tile(tile, numbers, 0, 1)
    assert masks(operands((4, 5))["all"], numbers) == (3, 0)


def test_given_masks_may_be_narrower() -> None:
    found = (0b0011, 0, 0b1100, 0)
    assert masks_problem((0b0001, 0b0010, 0b0100, 0b1000), found) is None
    assert masks_problem((0, 0b0011, 0b1100, 0), found) is None
    assert masks_problem((0b1111, 0, 0, 0), found) == "no more than the blocks 0x3, which need the tile of block 0"
    assert masks_problem((0b0011, 0, 0b0100, 0), found) == "masks that have each of 4 blocks once"
    assert masks_problem((0b0011, 0b0001, 0b1011, 0), found) == "masks that have each of 4 blocks once"
    assert masks_problem((3,), found) == "a mask for each of 4 blocks of a cluster"


def test_a_block_that_there_is_not_gets_nothing() -> None:
    """Of 15 blocks the last cluster of four has three: nothing is copied to the fourth."""
    assert masks(operands((3, 5))["all"], blocks_of((3, 5), 4)) == (0b0111, 0, 0, 0b1000)

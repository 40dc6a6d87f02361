"""The blocks of a cluster that share copies: those that need the same tile in every cluster and step.

The tile of a block is where the map of its number in the cluster, then the map of the tile lead to. Two blocks need the
same tile if both maps are equal but for the block's rank (nvFuser 3689: ``same_bulk``). Of those that do, the first one
copies it for all. What is equal in some clusters only, because the grid is no multiple of the cluster, counts as
different: that is always right, and only copies more.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier

MOST_CLUSTERS = 1 << 20
"""Clusters whose blocks are compared one by one, where that their tiles are equal does not follow from the maps."""


def blocks_of(grid: Sequence[int], cluster: int) -> IndexingMap:
    """Return (cluster, rank) -> numbers of the block: blocks are counted along the last dimension of the grid first.

    The last cluster may have fewer blocks than the others.
    """
    count = int(np.prod(grid))
    clusters = -(-count // cluster)
    number = dim(0) * cluster + dim(1)
    dims = (Interval(0, clusters - 1), Interval(0, cluster - 1))
    bound = () if clusters * cluster == count else ((number, Interval(0, count - 1)),)
    return IndexingMap(dims, (), delinearize(number, grid), bound)


def masks(tile: IndexingMap, numbers: IndexingMap) -> tuple[int, ...]:
    """Return, for each rank, the blocks of the cluster for which it copies its tile, a bit for each rank; 0 for none.

    ``numbers`` maps (cluster, rank) to the first dimensions of ``tile``; the others are those of steps.
    """
    size = numbers.dims[1].size
    found = [0] * size
    for rank in range(size):
        first = next((other for other in range(rank) if found[other] and same_tile(tile, numbers, other, rank)), rank)
        found[first] |= 1 << rank
    return tuple(found)


def same_tile(tile: IndexingMap, numbers: IndexingMap, one: int, other: int) -> bool:
    """Whether two ranks need the same tile in all clusters, at all steps; False where that is not known."""
    if not all(_is_always_there(numbers, rank) for rank in (one, other)):
        return False
    given = [_at_rank(tile, numbers, rank) for rank in (one, other)]
    for first, second in zip(*given, strict=True):
        if not _are_equal(first, second, (numbers.dims[0], *tile.dims[len(numbers.results) :]), tile.symbols):
            return False
    return True


def _at_rank(tile: IndexingMap, numbers: IndexingMap, rank: int) -> list[AffineExpr]:
    """Return where a tile's elements are, and what is asked of them to be inside of the array, for a rank.

    Dimension 0 is the cluster, the others are those of ``tile`` that are no numbers of the block.
    """
    at = [each.substitute([dim(0), constant(rank)]) for each in numbers.results]
    rest = [dim(number + 1) for number in range(len(tile.dims) - len(at))]
    asked = [expression for expression, _ in tile.constraints]
    return [each.substitute([*at, *rest]) for each in (*tile.results, *asked)]


def _is_always_there(numbers: IndexingMap, rank: int) -> bool:
    """Whether each cluster has a block of this rank."""
    last = numbers.dims[0].upper
    return all(bound.contains(each.evaluate([last, rank])) for each, bound in numbers.constraints)


def _are_equal(
    first: AffineExpr, second: AffineExpr, dims: tuple[Interval, ...], symbols: tuple[Interval, ...]
) -> bool:
    if first == second:
        return True
    simplifier = Simplifier(dims, symbols)
    difference = simplifier.simplify(simplifier.simplify(first) - simplifier.simplify(second))
    if difference.is_constant:
        return difference.constant == 0
    in_dims, in_symbols = difference.variables()
    if in_symbols or in_dims != {0} or dims[0].size > MOST_CLUSTERS:
        return False
    at: Any = np.arange(dims[0].lower, dims[0].upper + 1)
    return not np.any(difference.evaluate([at, *([0] * (len(dims) - 1))], [0] * len(symbols)))


def masks_problem(given: Sequence[int], found: Sequence[int]) -> str | None:
    """Return what masks would have to be; None if they copy each block its tile, once, as some of the ``found`` do."""
    size = len(found)
    if len(given) != size:
        return f"a mask for each of {size} blocks of a cluster"
    if sum(given) != (1 << size) - 1 or any(one & other for one, other in itertools.combinations(given, 2)):
        return f"masks that have each of {size} blocks once"
    for rank, mask in enumerate(given):
        group = next(each for each in found if each >> rank & 1)
        if mask & ~group:
            return f"no more than the blocks {group:#x}, which need the tile of block {rank}"
    return None


def copies_for(found: Sequence[int]) -> int:
    """Return how many of the copies of a cluster are left."""
    return sum(mask != 0 for mask in found)


def without_multicast(size: int) -> tuple[int, ...]:
    """Return the masks of blocks that all copy for themselves."""
    return tuple(1 << rank for rank in range(size))

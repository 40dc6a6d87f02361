"""The maps of threads: each iteration once, and as few sectors as any map of the family touches."""

import itertools
import math

import pytest

from xgpu.indexing.affine import AffineExpr, dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.nests.maps import mapping
from xgpu.nests.maps.mapping import choose, family
from xgpu.nests.maps.scores import Space, Touch, score_of


def position(order: tuple[int, ...], extents: tuple[int, ...]) -> AffineExpr:
    """The position in an array whose dimensions are the loops in some order."""
    return linearize([dim(number) for number in order], [extents[number] for number in order])


@pytest.mark.parametrize(
    "space",
    [
        Space((7,), 32, True),
        Space((100,), 32, False),
        Space((5, 9), 32, True),
        Space((8, 16), 64, False),
        Space((3, 4, 10), 64, True),
        Space((4, 6, 5), 32, False),
    ],
)
def test_every_map_has_each_iteration_once(space: Space) -> None:
    maps = list(family(space, (1, 2)))
    assert maps
    for map_ in maps:
        assert map_.dims[0].size == space.threads
        assert map_.coverage(space.extents).is_exact


def best_by_trying_all(space: Space, touches: list[Touch], runs: tuple[int, ...]) -> float:
    return min(score_of(map_, space, touches).sectors for map_ in family(space, runs))


_COPIES = [((64, 96), (0, 1)), ((64, 96), (1, 0)), ((33, 50), (1, 0))]


@pytest.mark.parametrize(("extents", "order"), _COPIES)
def test_copies_coalesce(extents: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Rows or columns, whichever loop is outside: a warp touches what its elements fill."""
    space = Space(extents, 128, True)
    touches = [Touch(position(order, extents), 32)] * 2
    choice = choose(space, touches)
    assert choice.complete
    assert choice.score.sectors == best_by_trying_all(space, touches, (1,))
    assert choice.score.sectors <= 2 * 4 / 32 * 1.1


@pytest.mark.parametrize("order", [order for order in itertools.permutations(range(3)) if order != (0, 1, 2)])
def test_transposes_of_rank_3(order: tuple[int, ...]) -> None:
    extents = (16, 24, 32)
    space = Space(extents, 128, True)
    touches = [Touch(position((0, 1, 2), extents), 32), Touch(position(order, extents), 32)]
    choice = choose(space, touches)
    assert choice.complete
    assert choice.score.sectors == best_by_trying_all(space, touches, (1,))
    # Where the last dimension stays the last, both arrays coalesce; else no map has both do.
    assert (choice.score.sectors == 2 * 4 / 32) == (order[-1] == 2)


@pytest.mark.parametrize("stride", [2, 3, 8, 64])
def test_strided_gathers(stride: int) -> None:
    extents = (stride, 64)
    space = Space(extents, 64, True)
    # Element j * stride + i: loops over columns inside have neighbours far apart.
    touches = [Touch(dim(1) * stride + dim(0), 32), Touch(dim(0) * 64 + dim(1), 32, times=1)]
    choice = choose(space, touches)
    assert choice.score.sectors == best_by_trying_all(space, touches, (1,))


def test_the_maximum_decides_and_not_the_sum_of_distances() -> None:
    """Neighbours that are 64 apart within a warp cost more than those that are far apart across warps."""
    extents = (8, 64)
    space = Space(extents, 128, True)
    touches = [Touch(dim(0) * 64 + dim(1), 32)]
    assert choose(space, touches).score.sectors == 4 / 32


def test_runs_make_fewer_accesses() -> None:
    space = Space((64, 256), 128, True)
    touches = [Touch(position((0, 1), space.extents), 32)] * 2
    choice = choose(space, touches, (1, 2, 4))
    assert choice.map.symbols[-1].size == 4
    assert choice.score.accesses == 0.5


def test_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "MOST_EVALUATIONS", 5)
    space = Space((16, 24, 32), 128, True)
    touches = [Touch(position((2, 1, 0), space.extents), 32)]
    choice = choose(space, touches)
    assert (choice.tried, choice.complete) == (5, False)
    assert choice == choose(space, touches)


def test_many_bands_share_the_search() -> None:
    space = Space((16, 24, 32, 8), 128, True)
    touches = [Touch(position((3, 2, 1, 0), space.extents), 32)]
    alone, shared = (choose(space, touches, (1,), bands) for bands in (2, 40))
    assert alone.complete
    assert not shared.complete
    assert shared.tried == 28


@pytest.mark.parametrize("extent", [1, 2])
@pytest.mark.parametrize("blocks", [False, True])
def test_the_search_ends_for_many_loops(extent: int, blocks: bool) -> None:
    """Orders in which an access has the loops in memory are among the first: a reversed copy coalesces."""
    rank = 16
    space = Space((extent,) * rank, 64, blocks)
    order = tuple(reversed(range(rank)))
    choice = choose(space, [Touch(position(order, space.extents), 32)])
    assert choice.tried <= 200
    assert choice.score.sectors == (4 / 32 if extent == 2 else 1)


def test_threads_without_iterations_do_nothing() -> None:
    (map_,) = (choose(Space((20,), 32, True), []).map,)
    assert map_.dims[0].size == 32
    assert math.prod(map_.dims[n].size for n in range(2)) == 32
    assert isinstance(map_, IndexingMap)
    assert map_.evaluate((25, 0)) is None
    assert map_.evaluate((19, 0)) == (19,)


def test_a_run_that_begins_anywhere_takes_an_access_for_each_element() -> None:
    space = Space((64, 256), 128, True)
    row = dim(0) * 256 + dim(1)
    assert choose(space, [Touch(row * 1, 32)], (1, 4)).score.accesses == 0.25
    assert choose(space, [Touch(row + 1, 32)], (1, 4)).score.accesses == 1


def test_threads_without_iterations_do_not_make_a_map_better() -> None:
    """Lanes that are idle touch nothing: sectors are counted for each iteration that is there."""
    space = Space((8, 16, 32, 20), 256, True)
    touches = [Touch(position((0, 1, 2, 3), space.extents), 32)] * 2
    choice = choose(space, touches, (1, 2, 4))
    assert choice.score.places == 1
    assert choice.score.sectors == 2 * 4 / 32
    several = (score_of(each, space, touches) for each in family(space, (4,)))
    idle = list(itertools.islice((score for score in several if score.places > 2), 5))
    assert len(idle) == 5
    assert all(score.sectors >= 2 * 4 / 32 for score in idle)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_what_is_not_looked_at_is_no_better(order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space((6, 17, 20), 64, True)
    touches = [Touch(position((0, 1, 2), space.extents), 32), Touch(position(order, space.extents), 16)]
    quick = choose(space, touches, (1, 2, 4))
    monkeypatch.setattr(mapping, "least_sectors", lambda space, touches: 0.0)
    assert choose(space, touches, (1, 2, 4)) == quick
    assert quick.score.key == min(score_of(each, space, touches).key for each in family(space, (1, 2, 4)))

"""Maps from threads to the iterations of a band of par loops, and the search for the best one.

A map sends (thread, block)[steps..., run] to the variables of the band's loops, one-to-one onto the iterations. The
family has two kinds. *Lines* go through the iterations in the order of some permutation of the loops, threads taking
runs of them one after the other. *Tiles* give the lanes of a warp a box of iterations, and the warps of a block a box
of these. Both have runs: consecutive iterations of one loop that a thread takes itself.
Either may be a map of *boxes*, whose iterations a thread goes through together (`xgpu.nests.maps.boxes`).

The best map touches the fewest sectors of memory (`xgpu.costs.sectors`, which costs of other kernels are made of, too),
then takes the fewest accesses, then is the simplest.
"""

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.maps.box_scores import least_passes, score_of_boxes
from xgpu.nests.maps.boxes import Box, in_boxes
from xgpu.nests.maps.scores import Score, Space, Touch, least_sectors, optimum, score_of
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

MOST_EVALUATIONS = 1000
"""Maps of three loops that are made for a band at most: some seconds' work. A map of more loops counts for more, by the
square of their number, which its expressions grow with. The first ones are those that most programs want."""
_BANDS = 2
"""Of so many bands of a program each has all these maps; of more, a share."""


@dataclass(frozen=True)
class ChosenMap:
    """The map that was chosen, its score, and of how many it is the best; ``complete`` if these were all.

    A thread goes through ``box`` together, so many iterations of each loop.
    """

    map: IndexingMap
    score: Score
    tried: int
    complete: bool
    box: tuple[int, ...]


def choose(space: Space, touches: Sequence[Touch], runs: Sequence[int] = (1,), bands: int = 1) -> ChosenMap:
    """Return the best map of a band, with runs of one of these lengths. Equal inputs give the same.

    Where a program has many ``bands``, the search for each is shorter.
    """
    best: tuple[IndexingMap, Score] | None = None
    search = _Search(_most(space, bands))
    least = least_sectors(space, touches)
    for map_ in search.maps(space, touches, runs):
        if best is not None and optimum(map_, space, touches, least).key >= best[1].key:
            continue
        score = score_of(map_, space, touches)
        if best is None or score.key < best[1].key:
            best = (map_, score)
    assert best is not None, "lines are maps of any space"
    sides = (1,) * len(space.extents)
    return ChosenMap(_without_single_steps(best[0]), best[1], search.tried, search.complete, sides)


def choose_boxes(space: Space, touches: Sequence[Touch], boxes: Sequence[tuple[int, ...]], bands: int = 1) -> ChosenMap:
    """Return the best map of a band by boxes of one of these sizes. Equal inputs give the same.

    Its score is by passes (`xgpu.nests.maps.box_scores`).
    """
    best: tuple[IndexingMap, Score, Box] | None = None
    search = _Search(_most(space, bands))
    for box in _boxes_of(space, touches, boxes):
        if best is not None and least_passes(touches, box) >= best[1].sectors:
            continue
        outer = replace(space, extents=box.outer(space.extents))
        for map_ in search.maps(outer, touches, (1,), box.sides):
            score = score_of_boxes(map_, outer, touches, box)
            if best is None or score.key < best[1].key:
                best = (map_, score, box)
    assert best is not None, "there is a box, and lines are maps of any space"
    map_, score, box = best
    whole = in_boxes(_without_single_steps(map_), box.sides, box.apart)
    return ChosenMap(whole, score, search.tried, search.complete, box.sides)


# Loops that are written out are often the same ones, and passes ask one after the other.
best_map = lru_cache(maxsize=256)(choose)
best_boxes = lru_cache(maxsize=256)(choose_boxes)


def _most(space: Space, bands: int) -> int:
    share = MOST_EVALUATIONS * _BANDS // max(_BANDS, bands)
    return max(2, share * 9 // max(9, len(space.extents) ** 2))


def _boxes_of(space: Space, touches: Sequence[Touch], boxes: Sequence[tuple[int, ...]]) -> Iterator[Box]:
    """Yield the boxes to try: of neighbours, and where shared memory is read of iterations far from each other, too.

    Lanes then have neighbours, which lie in different banks.
    """
    for sides in boxes:
        yield Box(sides)
        if any(touch.is_shared for touch in touches) and math.prod(sides) > 1:
            yield Box(sides, Box(sides).outer(space.extents))


class _Search:
    """The first maps of a family, up to a limit; lines are at most half of them."""

    def __init__(self, most: int):
        self._most = most
        self.tried = 0
        self.complete = True

    def maps(
        self, space: Space, touches: Sequence[Touch], runs: Sequence[int], sides: Sequence[int] = ()
    ) -> Iterator[IndexingMap]:
        """Yield maps, each once; counts those that are made. Each iteration may be a box with such ``sides``."""
        found: set[IndexingMap] = set()
        kinds = ((_lines(space, runs, touches), -(-self._most // 2)), (_tiles(space, runs, sides), self._most))
        for kind, most in ((_groups(space, touches), self._most),) if space.side else kinds:
            for map_ in kind:
                if self.tried == most:
                    self.complete = False
                    break
                self.tried += 1
                if map_ not in found:
                    found.add(map_)
                    yield map_


def _without_single_steps(map_: IndexingMap) -> IndexingMap:
    """Return a map without the range variables that have one value."""
    kept = [number for number, interval in enumerate(map_.symbols) if not interval.is_point]
    places = {
        number: symbol(kept.index(number)) if number in kept else constant(interval.lower)
        for number, interval in enumerate(map_.symbols)
    }
    return IndexingMap(
        map_.dims,
        tuple(map_.symbols[number] for number in kept),
        tuple(result.substitute(None, places) for result in map_.results),
        tuple((expr.substitute(None, places), interval) for expr, interval in map_.constraints),
    )


def runs_at_once(map_: IndexingMap, extent: int, side: int) -> bool:
    """Whether a map gives the iterations of its last result, all at once, the first threads of a group of ``side``.

    Threads of a group then differ in that result alone, and do as much as each other.
    """
    threads = map_.dims[0].size
    if threads % side:
        return False
    group, lane, others = dim(0), dim(len(map_.dims)), map_.dims[1:]
    places = {0: group * side + lane}
    apart = IndexingMap(
        (Interval(0, threads // side - 1), *others, Interval(0, side - 1)),
        map_.symbols,
        tuple(each.substitute(places) for each in map_.results),
        tuple((each.substitute(places), interval) for each, interval in map_.constraints),
    ).simplify()
    number = len(map_.dims)
    *outer, last = apart.results
    if any(number in each.variables()[0] for each in outer):
        return False
    if apart.dims[number] == Interval(0, extent - 1) and extent == 1:
        return last.is_constant
    tests = [(each, interval) for each, interval in apart.constraints if number in each.variables()[0]]
    inside = tests in ([], [(lane, Interval(0, extent - 1))]) and (tests or apart.dims[number].size == extent)
    return bool(inside) and last == lane


def family(space: Space, runs: Sequence[int]) -> Iterator[IndexingMap]:
    """Yield the maps of a space, each once."""
    yield from _Search(sys.maxsize).maps(space, (), runs)


def _orders(space: Space, touches: Sequence[Touch]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the loops: as written, as each access has them in memory, then all others.

    Loops of one iteration stay in front: where they are makes no difference.
    """
    single = [number for number, extent in enumerate(space.extents) if extent == 1]
    moving = [number for number, extent in enumerate(space.extents) if extent != 1]
    strides = [{str(atom): abs(c) for atom, c in touch.position.terms} for touch in touches]
    likely = [sorted(moving, key=lambda n, its=its: -its.get(f"d{n}", 0)) for its in strides]  # type: ignore[misc]
    for order in dict.fromkeys(map(tuple, (moving, *likely))):
        yield (*single, *order)
    for order in itertools.permutations(moving):
        if list(order) not in (moving, *likely):
            yield (*single, *order)


def _lines(space: Space, runs: Sequence[int], touches: Sequence[Touch]) -> Iterator[IndexingMap]:
    """Yield maps that number all iterations, the loops in some order, and give threads runs one after the other."""
    rank = len(space.extents)
    for order, run in ((order, run) for order in _orders(space, touches) for run in runs):
        shape = [space.extents[number] for number in order]
        if run > 1 and shape[-1] % run:
            continue
        each = space.threads * run
        steps = 1 if space.blocks else -(-space.size // each)
        blocks = -(-space.size // each) if space.blocks else 1
        outer = dim(1) if space.blocks else symbol(0)
        position = (outer * space.threads + dim(0)) * run + symbol(1)
        indices = delinearize(position, shape)
        results = tuple(indices[order.index(number)] for number in range(rank))
        constraints = ((position, Interval(0, space.size - 1)),)
        yield _made(space, blocks, (steps, run), results, constraints)


def _groups(space: Space, touches: Sequence[Touch]) -> Iterator[IndexingMap]:
    """Yield maps that give each iteration of the last loop a thread of a group, the groups taking the other loops."""
    outer = replace(space, extents=space.extents[:-1])
    groups, rank = space.threads // space.side, len(outer.extents)
    together = -(-outer.size // groups)
    lane = dim(0) % space.side
    for order in _orders(outer, touches):
        number = (dim(1) if space.blocks else symbol(0)) * groups + dim(0) // space.side
        indices = delinearize(number, [outer.extents[n] for n in order]) if rank else []
        results = (*(indices[order.index(n)] for n in range(rank)), lane)
        constraints = ((number, Interval(0, outer.size - 1)), (lane, Interval(0, space.extents[-1] - 1)))
        steps = 1 if space.blocks else together
        yield _made(space, together if space.blocks else 1, (steps, 1), results, constraints)


def _tiles(space: Space, runs: Sequence[int], sides: Sequence[int]) -> Iterator[IndexingMap]:
    """Yield maps that give each warp a box of iterations."""
    rank = len(space.extents)
    if rank == 1 or space.threads % WARP_SIZE:
        return
    warps = space.threads // WARP_SIZE
    for lanes in _boxes(WARP_SIZE, [_power_above(extent) for extent in space.extents]):
        single = [number for number in range(rank) if lanes[number] == 1]
        # Of loops of which a warp has one iteration any order is the same map.
        for several in itertools.permutations(number for number in range(rank) if lanes[number] > 1):
            order = (*single, *several)
            for along, run in itertools.product(range(rank), runs):
                if run == 1 and along:
                    continue
                if run > 1 and space.extents[along] % run:
                    continue
                placed = [run if number == along else 1 for number in range(rank)]
                boxes = _warp_boxes(space, lanes, placed, warps, sides)
                yield _tile(space, lanes, order, boxes, along, run)


def _tile(
    space: Space, lanes: Sequence[int], order: Sequence[int], boxes: Sequence[int], along: int, run: int
) -> IndexingMap:
    rank = len(space.extents)
    runs = [run if number == along else 1 for number in range(rank)]
    lane = delinearize(dim(0) % WARP_SIZE, [lanes[number] for number in order])
    warp = delinearize(dim(0) // WARP_SIZE, boxes)
    tiles = [-(-extent // (lanes[n] * boxes[n] * runs[n])) for n, extent in enumerate(space.extents)]
    if space.blocks:
        outer: Sequence[AffineExpr] = delinearize(dim(1), tiles)
        steps: tuple[int, ...] = ()
    else:
        outer = [symbol(number) for number in range(rank)]
        steps = tuple(tiles)
    results, constraints = [], []
    for number, extent in enumerate(space.extents):
        place = (outer[number] * boxes[number] + warp[number]) * lanes[number] + lane[list(order).index(number)]
        result = place * runs[number] + (symbol(len(steps)) if number == along else constant(0))
        results.append(result)
        constraints.append((result, Interval(0, extent - 1)))
    return _made(space, math.prod(tiles) if space.blocks else 1, (*steps, run), tuple(results), tuple(constraints))


def _warp_boxes(space: Space, lanes: Sequence[int], runs: Sequence[int], warps: int, sides: Sequence[int]) -> list[int]:
    """Return how many warps of a block lie along each loop, powers of two: as many as it takes, last loops first.

    Of boxes with ``sides`` it is the loop along which the block has the fewest iterations: warps then share what they
    read.
    """
    boxes = [1] * len(lanes)
    while warps % 2 == 0:
        covered = [lane * run * box for lane, run, box in zip(lanes, runs, boxes, strict=True)]
        open_ = [number for number in reversed(range(len(lanes))) if covered[number] < space.extents[number]]
        if not open_:
            break
        number = min(open_, key=lambda n: covered[n] * sides[n]) if sides else open_[0]
        boxes[number] *= 2
        warps //= 2
    boxes[0] *= warps
    return boxes


def _made(
    space: Space,
    blocks: int,
    steps: Sequence[int],
    results: tuple[AffineExpr, ...],
    constraints: tuple[tuple[AffineExpr, Interval], ...],
) -> IndexingMap:
    dims = (Interval(0, space.threads - 1), *((Interval(0, blocks - 1),) if space.blocks else ()))
    map_ = IndexingMap(dims, tuple(Interval(0, size - 1) for size in steps), results, constraints).simplify()
    # Threads beyond the iterations do nothing; to narrow their numbers' ranges is the same as to say so.
    narrowed = [(dim(n), own) for n, own in enumerate(map_.dims) if own != dims[n]]
    return replace(map_, dims=dims, constraints=(*narrowed, *map_.constraints))


def _boxes(product: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the boxes of powers of two with this product, no side larger than ``most``; flat ones first."""
    if len(most) == 1:
        if product <= most[0]:
            yield (product,)
        return
    side = 1
    while side <= min(product, most[0]):
        for rest in _boxes(product // side, most[1:]):
            yield (side, *rest)
        side *= 2


def _power_above(size: int) -> int:
    return 1 << (size - 1).bit_length()

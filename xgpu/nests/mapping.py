"""Maps from threads to the iterations of a band of par loops, and the search for the best one.

A map sends (thread, block)[steps..., run] to the variables of the band's loops, one-to-one onto the iterations. The
family has two kinds. *Lines* go through the iterations in the order of some permutation of the loops, threads taking
runs of them one after the other. *Tiles* give the lanes of a warp a box of iterations, and the warps of a block a box
of these. Both have runs: consecutive iterations of one loop that a thread takes itself.

The best map touches the fewest sectors of memory (`xgpu.costs.sectors`, which costs of other kernels are made of, too),
then takes the fewest accesses, then is the simplest.
"""

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xgpu.costs.sectors import SECTOR_BYTES, are_runs, elements, sectors
from xgpu.indexing.affine import AffineExpr, Dim, constant, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.target_machine import WARP_SIZE

MOST_EVALUATIONS = 1000
"""Maps of three loops that are made for a band at most: some seconds' work. A map of more loops counts for more, by the
square of their number, which its expressions grow with. The first ones are those that most programs want."""
_BANDS = 2
"""Of so many bands of a program each has all these maps; of more, a share."""


@dataclass(frozen=True)
class Space:
    """The iterations of a band: how many each loop has, and what runs them.

    ``blocks``: those of a grid share them; if not, the threads of one block run all. Iterations of the last loop run
    at once, on a group of ``side`` threads side by side, unless that is 0.
    """

    extents: tuple[int, ...]
    threads: int
    blocks: bool
    side: int = 0

    @property
    def size(self) -> int:
        """The number of iterations."""
        return math.prod(self.extents)


@dataclass(frozen=True)
class Touch:
    """An access to global memory: the element's position as a function of the band's variables alone.

    It is made ``times`` for each iteration; elements have ``bits``.
    """

    position: AffineExpr
    bits: int
    times: int = 1


@dataclass(frozen=True)
class Score:
    """The score of a map: sectors, accesses and threads' places for each iteration, and the size of its expressions."""

    sectors: float
    accesses: float
    places: float
    size: int

    @property
    def key(self) -> tuple[float, float, float, int]:
        """The numbers to compare; less is better. A few threads that do nothing are as good as none."""
        return (round(self.sectors * max(1.0, self.places / 1.25), 6), round(self.accesses, 6), self.places, self.size)


@dataclass(frozen=True)
class Choice:
    """The map that was chosen, its score, and of how many it is the best; ``complete`` if these were all."""

    map: IndexingMap
    score: Score
    tried: int
    complete: bool


def choose(space: Space, touches: Sequence[Touch], runs: Sequence[int] = (1,), bands: int = 1) -> Choice:
    """Return the best map of a band, with runs of one of these lengths. Equal inputs give the same.

    Where a program has many ``bands``, the search for each is shorter.
    """
    best: tuple[IndexingMap, Score] | None = None
    share = MOST_EVALUATIONS * _BANDS // max(_BANDS, bands)
    most = max(2, share * 9 // max(9, len(space.extents) ** 2))
    search = _Search(most)
    least = _least_sectors(space, touches)
    for map_ in search.maps(space, touches, runs):
        if best is not None and _optimum(map_, space, touches, least).key >= best[1].key:
            continue
        score = score_of(map_, space, touches)
        if best is None or score.key < best[1].key:
            best = (map_, score)
    assert best is not None, "lines are maps of any space"
    return Choice(_without_single_steps(best[0]), best[1], search.tried, search.complete)


class _Search:
    """The first maps of a family, up to a limit; lines are at most half of them."""

    def __init__(self, most: int):
        self._most = most
        self.tried = 0
        self.complete = True

    def maps(self, space: Space, touches: Sequence[Touch], runs: Sequence[int]) -> Iterator[IndexingMap]:
        """Yield maps, each once; counts those that are made."""
        found: set[IndexingMap] = set()
        kinds = ((_lines(space, runs, touches), -(-self._most // 2)), (_tiles(space, runs), self._most))
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


def score_of(map_: IndexingMap, space: Space, touches: Sequence[Touch]) -> Score:
    """Return how good a map is, by the accesses of the first block's threads."""
    run = map_.symbols[-1].size
    counted: dict[tuple[Interval, ...], int] = {}
    touched, accesses = 0.0, 0.0
    for touch in touches:
        position = touch.position.substitute(list(map_.results))
        together = run == 1 or (
            are_runs(replace(map_, symbols=_first_steps(map_.symbols), results=(position,)))
            and _is_one_access(_composed(map_, touch.position), len(map_.symbols) - 1, run)
        )
        # Any other run takes an access for each element.
        symbols = _first_steps(map_.symbols if together else (*map_.symbols, Interval(0, 0)))
        seen = replace(map_, symbols=symbols, results=(position,))
        # Threads that have no iteration touch nothing: they do not make a map better.
        if symbols not in counted:
            counted[symbols] = max(1, elements(seen))
        touched += touch.times * sectors(seen, touch.bits).sectors / counted[symbols]
        accesses += touch.times * (1 if together else run) / run
    return _score(touched, accesses, map_, space)


def _score(touched: float, accesses: float, map_: IndexingMap, space: Space) -> Score:
    places = math.prod(each.size for each in (*map_.dims, *map_.symbols)) / space.size
    return Score(touched, accesses, places, sum(result.size() for result in map_.results))


def _least_sectors(space: Space, touches: Sequence[Touch]) -> float:
    """Return the fewest sectors that any map touches for an iteration, as far as that is known.

    Elements that differ from iteration to iteration fill sectors at best; others may all be one.
    """
    return sum(touch.times * touch.bits / (8 * SECTOR_BYTES) for touch in touches if _is_injective(touch, space))


def _is_injective(touch: Touch, space: Space) -> bool:
    """Whether iterations access different elements: each loop's stride is beyond all that faster ones go through."""
    strides = {atom.index: abs(factor) for atom, factor in touch.position.terms if isinstance(atom, Dim)}
    if len(strides) < len(touch.position.terms):
        return False
    reach = 0
    for number in sorted(range(len(space.extents)), key=lambda n: strides.get(n, 0)):
        if space.extents[number] > 1 and strides.get(number, 0) <= reach:
            return False
        reach += (space.extents[number] - 1) * strides.get(number, 0)
    return True


def _optimum(map_: IndexingMap, space: Space, touches: Sequence[Touch], least: float) -> Score:
    """Return a score that a map's is not below, which takes no looking at accesses."""
    run = map_.symbols[-1].size
    return _score(least, sum(touch.times for touch in touches) / run, map_, space)


_STEPS_SEEN = 2
"""Steps of a thread along each range variable that are looked at: the others are like them."""
_MOST_STEPS_SEEN = 16
"""Steps of a thread along all of them, at most."""


def _first_steps(symbols: Sequence[Interval]) -> tuple[Interval, ...]:
    *steps, last = symbols
    seen: list[Interval] = []
    for each in steps:
        first = each if each.size <= 8 else Interval(0, _STEPS_SEEN - 1)
        is_enough = math.prod(other.size for other in seen) * first.size > _MOST_STEPS_SEEN
        seen.append(Interval(0, 0) if is_enough else first)
    return (*seen, last)


def _composed(map_: IndexingMap, position: AffineExpr) -> AffineExpr:
    composed = position.substitute(list(map_.results))
    return replace(map_, results=(composed,)).with_simple_results().results[0]


def _is_one_access(position: AffineExpr, run: int, length: int) -> bool:
    """Whether ``length`` elements along a range variable are one access, as far as the expression shows it.

    They lie one after the other, and the first one where an access of that many may begin.
    """
    coefficient = {str(atom): c for atom, c in position.terms}.get(f"s{run}", 0)
    others = AffineExpr(tuple((a, c) for a, c in position.terms if str(a) != f"s{run}"), position.constant)
    return coefficient == 1 and run not in others.variables()[1] and others.divisor() % length == 0


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


def _tiles(space: Space, runs: Sequence[int]) -> Iterator[IndexingMap]:
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
                yield _tile(space, lanes, order, warps, along, run)


def _tile(space: Space, lanes: Sequence[int], order: Sequence[int], warps: int, along: int, run: int) -> IndexingMap:
    rank = len(space.extents)
    runs = [run if number == along else 1 for number in range(rank)]
    boxes = _warp_boxes(space, lanes, runs, warps)
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


def _warp_boxes(space: Space, lanes: Sequence[int], runs: Sequence[int], warps: int) -> list[int]:
    """Return how many warps of a block lie along each loop: as many as it takes, the last loop first, powers of two."""
    boxes = [1] * len(lanes)
    for number in reversed(range(len(lanes))):
        while warps % 2 == 0 and lanes[number] * runs[number] * boxes[number] < space.extents[number]:
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

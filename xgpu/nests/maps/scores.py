"""Scores a map from threads to iterations: which sectors of memory its warps touch, and in how many accesses."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xgpu.costs.sectors import SECTOR_BYTES, are_runs, elements, sectors
from xgpu.indexing.affine import AffineExpr, Dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass


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

    It is made ``times`` for each iteration; elements have ``bits``. ``run`` is how many elements along a seq loop are
    one access. In shared memory no sectors count, but conflicts between banks: there it has ``indices``, of a buffer
    of a ``shape``.
    """

    position: AffineExpr
    bits: int
    times: int = 1
    run: int = 1
    indices: tuple[AffineExpr, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether it is to shared memory."""
        return bool(self.shape)


@dataclass(frozen=True)
class Score:
    """The score of a map: sectors, accesses and threads' places for each iteration, and the size of its expressions.

    For boxes, ``sectors`` are passes through memory's banks, and ``lines`` those that its lines alone would take.
    """

    sectors: float
    accesses: float
    places: float
    size: int
    lines: float = 0.0

    @property
    def key(self) -> tuple[float, float, float, float, int]:
        """The numbers to compare; less is better. A few threads that do nothing are as good as none."""
        idle = max(1.0, self.places / 1.25)
        moved = (round(self.sectors * idle, 6), round(self.lines * idle, 6))
        return (*moved, round(self.accesses, 6), self.places, self.size)


def score_of(map_: IndexingMap, space: Space, touches: Sequence[Touch]) -> Score:
    """Return how good a map is, by the accesses of the first block's threads."""
    run = map_.symbols[-1].size
    counted: dict[tuple[Interval, ...], int] = {}
    touched, accesses = 0.0, 0.0
    for touch in touches:
        position = touch.position.substitute(list(map_.results))
        together = run == 1 or (
            are_runs(replace(map_, symbols=first_steps(map_.symbols), results=(position,)))
            and is_one_access(_composed(map_, touch.position), len(map_.symbols) - 1, run)
        )
        # Any other run takes an access for each element.
        symbols = first_steps(map_.symbols if together else (*map_.symbols, Interval(0, 0)))
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


def least_sectors(space: Space, touches: Sequence[Touch]) -> float:
    """Return the fewest sectors that any map touches for an iteration, as far as that is known.

    Elements that differ from iteration to iteration fill sectors at best; others may all be one.
    """
    apart = (touch for touch in touches if is_injective(touch.position, space.extents))
    return sum(touch.times * touch.bits / (8 * SECTOR_BYTES) for touch in apart)


def is_injective(position: AffineExpr, extents: Sequence[int]) -> bool:
    """Whether loops access different elements in all iterations: each one's stride is beyond all that faster ones do.

    ``extents`` are those of the position's variables.
    """
    strides = {atom.index: abs(factor) for atom, factor in position.terms if isinstance(atom, Dim)}
    if len(strides) < len(position.terms):
        return False
    reach = 0
    for number in sorted(range(len(extents)), key=lambda n: strides.get(n, 0)):
        if extents[number] > 1 and strides.get(number, 0) <= reach:
            return False
        reach += (extents[number] - 1) * strides.get(number, 0)
    return True


def optimum(map_: IndexingMap, space: Space, touches: Sequence[Touch], least: float) -> Score:
    """Return a score that a map's is not below, which takes no looking at accesses."""
    run = map_.symbols[-1].size
    return _score(least, sum(touch.times for touch in touches) / run, map_, space)


_STEPS_SEEN = 2
"""Steps of a thread along each range variable that are looked at: the others are like them."""
_MOST_STEPS_SEEN = 16
"""Steps of a thread along all of them, at most."""


def first_steps(symbols: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return the ranges of range variables that are looked at; the last one is that of an access."""
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


def is_one_access(position: AffineExpr, run: int, length: int) -> bool:
    """Whether ``length`` elements along a range variable are one access, as far as the expression shows it.

    They lie one after the other, and the first one where an access of that many may begin.
    """
    coefficient = {str(atom): c for atom, c in position.terms}.get(f"s{run}", 0)
    others = AffineExpr(tuple((a, c) for a, c in position.terms if str(a) != f"s{run}"), position.constant)
    return coefficient == 1 and run not in others.variables()[1] and others.divisor() % length == 0

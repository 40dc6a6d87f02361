"""Iterations that a thread goes through together: a box of them, the last range variables of a band's map.

Each statement is done for all of the box before the next one, so that what several need is read once, and a ``seq``
inside has as many independent results in flight.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from xgpu.dialects.nests.loops import ParOp
from xgpu.indexing.affine import AffineExpr, constant, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass


def boxed(band: Sequence[ParOp]) -> list[ParOp]:
    """Return the loops of a band of which a thread goes through several iterations together."""
    return [loop for loop in band if (loop.together or 1) > 1]


def in_boxes(map_: IndexingMap, box: Sequence[int], apart: Sequence[int] = ()) -> IndexingMap:
    """Return the map of iterations in boxes, where ``map_`` is that of the boxes; ``box``: how many along each loop.

    Those of a box are neighbours, or as far from each other as ``apart`` says for each loop.
    """
    count = len(map_.symbols)
    several = [number for number, size in enumerate(box) if size > 1]
    places = {number: symbol(count + place) for place, number in enumerate(several)}
    results = tuple(
        result + places.get(number, constant(0)) * apart[number]
        if apart
        else result * size + places.get(number, constant(0))
        for number, (result, size) in enumerate(zip(map_.results, box, strict=True))
    )
    symbols = (*map_.symbols, *(Interval(0, box[number] - 1) for number in several))
    return replace(map_, symbols=symbols, results=results)


@dataclass(frozen=True)
class Box:
    """So many iterations of each loop, neighbours or as far ``apart`` as it says."""

    sides: tuple[int, ...]
    apart: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of its iterations."""
        return math.prod(self.sides)

    def outer(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Return how many boxes lie along each loop."""
        return tuple(extent // side for extent, side in zip(extents, self.sides, strict=True))


@dataclass(frozen=True)
class BoxSteps:
    """The steps of a thread, a box each: a map to all indices that the box has, each once.

    ``points`` are the box's iterations: for each loop the number of the result that is its index.
    """

    map: IndexingMap
    points: tuple[tuple[int, ...], ...]


def steps_of(map_: IndexingMap, count: int) -> BoxSteps:
    """Return a thread's steps, where the last ``count`` range variables are those of a box."""
    first = len(map_.symbols) - count
    found: dict[tuple[int, AffineExpr], int] = {}
    points = []
    for place in itertools.product(*(range(each.lower, each.upper + 1) for each in map_.symbols[first:])):
        at = {first + number: constant(value) for number, value in enumerate(place)}
        indices = [result.substitute(None, at) for result in map_.results]
        points.append(tuple(found.setdefault((number, index), len(found)) for number, index in enumerate(indices)))
    lowest = {first + number: constant(each.lower) for number, each in enumerate(map_.symbols[first:])}
    constraints = tuple((expr.substitute(None, lowest), interval) for expr, interval in map_.constraints)
    results = tuple(index for _, index in found)
    return BoxSteps(IndexingMap(map_.dims, map_.symbols[:first], results, constraints), tuple(points))


def box_problems(map_: IndexingMap, band: Sequence[ParOp]) -> Iterator[str]:
    """Yield what is wrong with the boxes of a band's map: each has a range variable of its own, and is whole."""
    loops = boxed(band)
    first = len(map_.symbols) - len(loops)
    expected = [Interval(0, (loop.together or 1) - 1) for loop in loops]
    if first < 0 or list(map_.symbols[first:]) != expected:
        yield f"attribute 'map': expected its last range variables to be {[str(each) for each in expected]}, got {map_}"
        return
    numbers = {list(band).index(loop): first + place for place, loop in enumerate(loops)}
    for number, result in enumerate(map_.results):
        others = result.variables()[1] - {numbers.get(number, -1)}
        if any(each >= first for each in others):
            called = band[number].called
            yield f"attribute 'map': expected the range variable of its box alone in the index of '{called}'"
    if any(each >= first for expr, _ in map_.constraints for each in expr.variables()[1]):
        yield "attribute 'map': expected whole boxes, got a condition on what is inside of them"

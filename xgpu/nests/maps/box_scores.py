"""Scores a map of boxes, whose iterations a thread goes through together: in how few passes memory is read."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu.costs.sectors import LINE_BITS, bank_passes, passes
from xgpu.indexing.affine import AffineExpr, Dim, constant, linearize
from xgpu.indexing.bank_conflicts import bank_conflicts
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.nests.maps.boxes import Box, in_boxes
from xgpu.nests.maps.scores import Score, Space, Touch, first_steps
from xgpu.target_machine import WARP_SIZE

ACCESS_BITS = 128
"""The widest access of a thread."""
_PADS = (0, 1)
"""Elements after the rows of a buffer in shared memory, of which the pass that pads them may choose."""


def score_of_boxes(map_: IndexingMap, space: Space, touches: Sequence[Touch], box: Box) -> Score:
    """Return the score of a map of boxes, by passes through the first cache, or shared memory, for each iteration.

    What is the same element for several iterations of a box is accessed once.
    """
    total, lines, accesses = 0.0, 0.0, 0.0
    for touch in touches:
        sides = _own_sides(touch, box)
        if touch.is_shared:
            share = math.prod(sides.values()) / box.size
            total += touch.times * share * (1 + conflicts_of(map_, touch, box)) / WARP_SIZE
            accesses += touch.times * share
            continue
        width = _width(map_, touch, box)
        share = math.prod(sides.values()) / (box.size * width * touch.run)
        of_banks, of_lines = _passes(map_, touch, box, width)
        total += touch.times * share * max(of_banks, of_lines)
        lines += touch.times * share * of_lines
        accesses += touch.times * share
    places = math.prod(each.size for each in (*map_.dims, *map_.symbols)) / space.size
    return Score(total, accesses, places, sum(result.size() for result in map_.results), lines)


def least_passes(touches: Sequence[Touch], box: Box) -> float:
    """Return passes that no map of such boxes has less of: as many as bring the bytes, and one for each access."""
    found = 0.0
    for touch in touches:
        sides = _own_sides(touch, box)
        width = max((_most_elements(touch, side) for side in sides.values()), default=1)
        share = math.prod(sides.values()) / box.size
        least = 1 / WARP_SIZE
        if not touch.is_shared:
            least = max(least / max(width, touch.run), touch.bits / LINE_BITS)
        found += touch.times * share * least
    return found


def _own_sides(touch: Touch, box: Box) -> dict[int, int]:
    """Return the sides of a box along which an access is to other elements, by loop."""
    used = touch.position.variables()[0]
    return {number: side for number, side in enumerate(box.sides) if side > 1 and number in used}


def _most_elements(touch: Touch, side: int) -> int:
    return math.gcd(side, max(1, ACCESS_BITS // touch.bits))


def _along(touch: Touch, box: Box) -> int | None:
    """Return the loop of a box along which an access's elements are neighbours; None if there is none."""
    strides = {atom.index: factor for atom, factor in touch.position.terms if isinstance(atom, Dim)}
    own = _own_sides(touch, box)
    return next((number for number in own if strides.get(number) == 1 and not box.apart), None)


def _width(map_: IndexingMap, touch: Touch, box: Box) -> int:
    """Return how many elements of a box are one access: neighbours, the first where such an access may begin."""
    along = _along(touch, box)
    if along is None or touch.run > 1:
        return 1
    width = _most_elements(touch, box.sides[along])
    first = touch.position.substitute([each * side for each, side in zip(map_.results, box.sides, strict=True)])
    others = AffineExpr(first.terms, first.constant)
    return width if others.divisor() % width == 0 else 1


def _passes(map_: IndexingMap, touch: Touch, box: Box, width: int) -> tuple[float, float]:
    """Return the passes of an access of all threads of the first block, for each of these threads that makes it.

    First those that banks take, then those that lines take.
    """
    inside, steps = in_boxes(map_, box.sides, box.apart), first_steps((*map_.symbols, Interval(0, 0)))[:-1]
    own, along = _own_sides(touch, box), _along(touch, box)
    ranges: list[Any] = [np.arange(map_.dims[0].size), *(np.arange(each.lower, each.upper + 1) for each in steps)]
    several = [number for number, side in enumerate(box.sides) if side > 1]
    for number in several:
        ranges.append(np.arange(0, own.get(number, 1), width if number == along else 1))
    grid: list[Any] = list(np.meshgrid(*ranges, indexing="ij"))
    thread, points = grid[0], grid[1:]
    dims: list[Any] = [thread, *(each.lower for each in map_.dims[1:])]
    position = touch.position.substitute(list(inside.results))
    starts = np.broadcast_to(position.evaluate(dims, points), thread.shape)
    made = np.ones(thread.shape, bool)
    for expr, interval in map_.constraints:
        value = expr.evaluate(dims, points)
        made &= (value >= interval.lower) & (value <= interval.upper)
    starts = np.where(made, starts, -1).reshape(thread.shape[0], -1)
    idle = -starts.shape[0] % WARP_SIZE
    starts = np.pad(starts, ((0, idle), (0, 0)), constant_values=-1)
    requests = starts.reshape(-1, WARP_SIZE, starts.shape[1]).transpose(0, 2, 1).reshape(-1, WARP_SIZE)
    count = max(1, int(made.sum()))
    of_banks = bank_passes(requests, touch.bits, touch.bits * width * touch.run)
    return of_banks / count, passes(requests, touch.bits) / count


def conflicts_of(map_: IndexingMap, touch: Touch, box: Box) -> int:
    """Return the extra wavefronts of an access to shared memory, if its buffer's rows are padded as is best for it."""
    inside = in_boxes(map_, box.sides, box.apart)
    indices = [index.substitute(list(inside.results)) for index in touch.indices]
    # Steps are like each other.
    first = {number: constant(0) for number in range(len(inside.symbols))}
    shapes = ((*touch.shape[:-1], touch.shape[-1] + pad) for pad in _PADS)
    positions = (linearize(indices, shape).substitute(None, first) for shape in shapes)
    maps = (IndexingMap(map_.dims, (), (position,)) for position in positions)
    return min(bank_conflicts(each, max(1, touch.bits // 8)) for each in maps)

"""What the tests of the indexing package share: random expressions and maps, and evaluation by brute force."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xgpu.indexing import AffineExpr, IndexingMap, Interval, constant, dim, symbol

DIVISORS = [1, 2, 3, 4, 5, 6, 8, 12, 16]

small = st.integers(-12, 12)
divisors = st.sampled_from(DIVISORS)
sizes = st.integers(1, 9)


@st.composite
def intervals(draw: st.DrawFn, low: int = -12, high: int = 12, longest: int = 14) -> Interval:
    """An interval with at least one member."""
    lower = draw(st.integers(low, high))
    return Interval(lower, lower + draw(st.integers(0, longest)))


@st.composite
def exprs(draw: st.DrawFn, rank: int = 2, symbols: int = 1, depth: int = 4) -> AffineExpr:
    """Any expression of these numbers of variables: sums, products, quotients and remainders."""
    leaves = [dim(i) for i in range(rank)] + [symbol(i) for i in range(symbols)]
    if not depth or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([*leaves, constant(draw(small))]))
    operand = exprs(rank, symbols, depth - 1)
    match draw(st.sampled_from(["sum", "sum", "product", "floordiv", "mod"])):
        case "sum":
            return draw(operand) + draw(operand) * draw(st.integers(-6, 6))
        case "product":
            return draw(operand) * draw(st.integers(-6, 6))
        case "floordiv":
            return draw(operand) // draw(divisors)
        case _:
            return draw(operand) % draw(divisors)


@st.composite
def boxes(draw: st.DrawFn, rank: int = 2, symbols: int = 1) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """Ranges of the variables."""
    ranges = intervals(-6, 6, 9)
    return tuple(draw(ranges) for _ in range(rank)), tuple(draw(ranges) for _ in range(symbols))


@st.composite
def maps(draw: st.DrawFn, results: int = 2, depth: int = 3) -> IndexingMap:
    """A map with two dimensions, one symbol, and up to three constraints of which some say much, some little."""
    dims, symbols = draw(boxes())
    constraints = []
    for _ in range(draw(st.integers(0, 3))):
        expr = draw(exprs(depth=draw(st.integers(0, depth))))
        possible = expr.interval(dims, symbols)
        middle = draw(st.integers(possible.lower, possible.upper))
        constraints.append((expr, Interval(middle - draw(st.integers(0, 20)), middle + draw(st.integers(0, 20)))))
    return IndexingMap(dims, symbols, tuple(draw(exprs(depth=depth)) for _ in range(results)), tuple(constraints))


def grid(dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> tuple[list[Any], list[Any]]:
    """The values of all variables at all points, as flat arrays."""
    ranges = [np.arange(i.lower, i.upper + 1, dtype=np.int64) for i in (*dims, *symbols)]
    values: list[Any] = [axis.ravel() for axis in np.meshgrid(*ranges, indexing="ij")]
    return values[: len(dims)], values[len(dims) :]


def brute_force(expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> Any:
    """The values of ``expr`` at all points, as a flat array."""
    points = grid(dims, symbols)
    count = math.prod(interval.size for interval in (*dims, *symbols))
    return np.broadcast_to(expr.evaluate(*points), (count,))


def in_domain(indexing_map: IndexingMap, dims: Sequence[Interval], symbols: Sequence[Interval]) -> Any:
    """For all points of a box, whether they are in the domain of the map."""
    values = grid(dims, symbols)
    result = np.ones(math.prod(interval.size for interval in (*dims, *symbols)), dtype=bool)
    variables = zip((*values[0], *values[1]), (*indexing_map.dims, *indexing_map.symbols), strict=True)
    for value, interval in variables:
        result &= (value >= interval.lower) & (value <= interval.upper)
    for expr, interval in indexing_map.constraints:
        value = expr.evaluate(*values)
        result &= (value >= interval.lower) & (value <= interval.upper)
    return result


def assert_same_map(simplified: IndexingMap, original: IndexingMap) -> None:
    """Both have the same points, and the same results there."""
    box = original.dims, original.symbols
    expected = in_domain(original, *box)
    np.testing.assert_array_equal(in_domain(simplified, *box), expected)
    for new, old in zip(simplified.results, original.results, strict=True):
        np.testing.assert_array_equal(brute_force(new, *box)[expected], brute_force(old, *box)[expected])


def has_division(expr: AffineExpr) -> bool:
    """Whether a quotient or a remainder is left."""
    return "floordiv" in str(expr) or "mod" in str(expr)

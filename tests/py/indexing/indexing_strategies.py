"""Common parts of the tests of the indexing package: random expressions and maps, and evaluation by brute force.

Each test of a rule tries hundreds of cases, others for every commit: ``@hundreds``.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from tests.py import effort
from xgpu.indexing import AffineExpr, IndexingMap, Interval, constant, dim, symbol

Box = tuple[tuple[Interval, ...], tuple[Interval, ...]]

hundreds = settings(max_examples=effort.by_level(50, 400, 30_000))
"""The number of cases tried of a rule."""

DIVISORS = [1, 2, 3, 4, 5, 6, 8, 12, 16]


class Decisions(random.Random):
    """Random numbers that are read from a string of bytes, all zero after its end.

    A case that is made of one of these costs Hypothesis one draw; drawn one by one, the decisions behind an expression
    take ten times as long as testing it. Failing cases still shrink: ever more of the string is zero.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._bits = int.from_bytes(data, "little")

    def getrandbits(self, k: int) -> int:
        """Return a number of ``k`` bits; what `random.Random` chooses with."""
        bits = self._bits & ((1 << k) - 1)
        self._bits >>= k
        return bits

    def random(self) -> float:
        """Return a number from 0 to below 1."""
        return self.getrandbits(16) / (1 << 16)

    def __repr__(self) -> str:
        return f"Decisions({self._data.rstrip(bytes(1))!r})"


decisions = st.binary(min_size=64, max_size=64).map(Decisions)
more_decisions = st.binary(min_size=128, max_size=128).map(Decisions)
"""Enough for two maps, of which each takes 36 bytes on average; one byte costs two microseconds."""


def make_interval(rng: random.Random, low: int = -12, high: int = 12, longest: int = 14) -> Interval:
    """Return an interval with at least one member."""
    lower = rng.randint(low, high)
    return Interval(lower, lower + rng.randint(0, longest))


def make_expr(rng: random.Random, depth: int = 4) -> AffineExpr:
    """Return any expression of two dimensions and a symbol, with at most so many levels of operators."""
    if not depth or rng.randrange(6) == 0:
        return rng.choice([dim(0), dim(1), symbol(0), constant(rng.randint(-12, 12))])
    operand = make_expr(rng, depth - 1)
    match rng.choice(["sum", "sum", "product", "floordiv", "mod"]):
        case "sum":
            return operand + make_expr(rng, depth - 1) * rng.randint(-6, 6)
        case "product":
            return operand * rng.randint(-6, 6)
        case "floordiv":
            return operand // rng.choice(DIVISORS)
        case _:
            return operand % rng.choice(DIVISORS)


def make_box(rng: random.Random) -> Box:
    """Return ranges of two dimensions and a symbol."""
    first, second, third = (make_interval(rng, -6, 6, 9) for _ in range(3))
    return (first, second), (third,)


def make_map(rng: random.Random, results: int = 2, depth: int = 3) -> IndexingMap:
    """Return a map of two dimensions and a symbol; of up to three constraints some say much, some little."""
    box = make_box(rng)
    constraints = []
    for _ in range(rng.randint(0, 3)):
        expr = make_expr(rng, rng.randint(0, depth))
        possible = expr.interval(*box)
        middle = rng.randint(possible.lower, possible.upper)
        constraints.append((expr, Interval(middle - rng.randint(0, 20), middle + rng.randint(0, 20))))
    return IndexingMap(*box, tuple(make_expr(rng, depth) for _ in range(results)), tuple(constraints))


def grid(dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> tuple[list[Any], list[Any]]:
    """The values of all variables at all points of a box, as arrays that broadcast to the box."""
    ranges = [np.arange(i.lower, i.upper + 1, dtype=np.int64) for i in (*dims, *symbols)]
    values: list[Any] = list(np.meshgrid(*ranges, indexing="ij", sparse=True))
    return values[: len(dims)], values[len(dims) :]


def brute_force(expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> Any:
    """The values of ``expr`` at all points of a box, as an array of its shape."""
    return np.broadcast_to(expr.evaluate(*grid(dims, symbols)), [interval.size for interval in (*dims, *symbols)])


def holds(indexing_map: IndexingMap, dims: Sequence[Any], symbols: Sequence[Any]) -> Any:
    """Whether points are in the domain of the map; arrays of values of its variables that broadcast to each other."""
    result: Any = np.array(True)
    variables = zip((*dims, *symbols), (*indexing_map.dims, *indexing_map.symbols), strict=True)
    for value, interval in variables:
        result = result & (value >= interval.lower) & (value <= interval.upper)
    for expr, interval in indexing_map.constraints:
        value = expr.evaluate(dims, symbols)
        result = result & (value >= interval.lower) & (value <= interval.upper)
    return result


def in_domain(indexing_map: IndexingMap, dims: Sequence[Interval], symbols: Sequence[Interval]) -> Any:
    """For all points of a box, whether they are in the domain of the map, as an array of its shape."""
    shape = [interval.size for interval in (*dims, *symbols)]
    return np.broadcast_to(holds(indexing_map, *grid(dims, symbols)), shape)


def assert_same_values(
    new: AffineExpr, old: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval] = (), where: Any = True
) -> None:
    """Both have the same values at all points of a box, or at those that ``where`` is true at."""
    points = grid(dims, symbols)
    differs = np.not_equal(new.evaluate(*points), old.evaluate(*points)) & where
    assert not differs.any(), f"{new} is not {old}, first at {[int(i[0]) for i in np.nonzero(differs)]} of the box"


def assert_same_map(simplified: IndexingMap, original: IndexingMap) -> None:
    """Both have the same points, and the same results there."""
    box = original.dims, original.symbols
    expected = in_domain(original, *box)
    np.testing.assert_array_equal(in_domain(simplified, *box), expected)
    for new, old in zip(simplified.results, original.results, strict=True):
        assert_same_values(new, old, *box, where=expected)


def has_division(expr: AffineExpr) -> bool:
    """Whether a quotient or a remainder is left."""
    return "floordiv" in str(expr) or "mod" in str(expr)

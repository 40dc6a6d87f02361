"""Indexing maps: which element, for which thread, block and loop step; for analyses and code generation alike."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache

from xgpu.indexing import bijection
from xgpu.indexing.affine import AffineExpr, Ranges, constant, dim, symbol
from xgpu.indexing.constraints import Constraint, simplify_domain
from xgpu.indexing.interval import EMPTY, Interval
from xgpu.indexing.parse import parse_map
from xgpu.indexing.simplify import Simplifier
from xgpu.records import dataclass


@dataclass(frozen=True, slots=True)
class IndexingMap:
    """A function from dimensions (threads, blocks, outer indices) and symbols (inner loops) to indices, on a domain.

    The domain is the set of points whose variables are in the ranges ``dims`` and ``symbols`` (inclusive) and whose
    ``constraints`` all hold: each is an expression and the interval it must be in. Outside it the map is undefined.
    """

    dims: tuple[Interval, ...]
    symbols: tuple[Interval, ...]
    results: tuple[AffineExpr, ...]
    constraints: tuple[Constraint, ...] = ()
    # Maps are keys of caches, in which a program looks the same ones up very often.
    _hash: int = field(init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            made = hash((self.dims, self.symbols, self.results, self.constraints))
            object.__setattr__(self, "_hash", made)
            return made

    @classmethod
    def parse(cls, text: str) -> "IndexingMap":
        """The map that ``str`` printed as ``text``; raises ``InvalidInput`` with the column if it is not one."""
        return _parse(text)

    def __str__(self) -> str:
        dims = [f"d{i}" for i in range(len(self.dims))]
        symbols = [f"s{i}" for i in range(len(self.symbols))]
        names = f"({', '.join(dims)})" + (f"[{', '.join(symbols)}]" if symbols else "")
        parts = [f"{names} -> ({', '.join(map(str, self.results))})"]
        for name, interval in zip((*dims, *symbols), (*self.dims, *self.symbols), strict=True):
            parts.append(f"{name} in {interval}")
        parts += [f"{expr} in {interval}" for expr, interval in self.constraints]
        return ", ".join(parts)

    def simplify(self) -> "IndexingMap":
        """The same domain and, on it, the same results, simply expressed.

        Constraints narrow the ranges of variables, dimensions included: whoever evaluates the result for values that
        are known only to be in the old ranges must check the new ones (``domain_checks``). An empty domain becomes the
        canonical empty map: empty ranges, results 0, and the constraint ``0 in [0, -1]``.
        """
        return _simplify(self)

    def compose(self, producer: "IndexingMap") -> "IndexingMap":
        """This map, then ``producer`` on its results. Not simplified.

        The dimensions are this map's, the symbols this map's and then the producer's. The ranges of the producer's
        dimensions become constraints, unless the results are always inside them.
        """
        return _compose(self, producer)

    def with_constraint(self, expr: AffineExpr, interval: Interval) -> "IndexingMap":
        """This map on the points where ``expr`` is in ``interval``."""
        return replace(self, constraints=(*self.constraints, (expr, interval)))

    def is_empty(self) -> bool:
        """Whether the domain is known to have no points; False may mean unknown (``simplify`` first to know more)."""
        if any(interval.is_empty for interval in (*self.dims, *self.symbols)):
            return True
        possible = [(expr.interval(self.dims, self.symbols), interval) for expr, interval in self.constraints]
        return any(interval.is_empty or own.intersect(interval).is_empty for own, interval in possible)

    def contains(self, dims: Sequence[int], symbols: Sequence[int] = ()) -> bool:
        """Whether the point is in the domain."""
        in_ranges = zip((*dims, *symbols), (*self.dims, *self.symbols), strict=True)
        if not all(interval.contains(value) for value, interval in in_ranges):
            return False
        return all(interval.contains(expr.evaluate(dims, symbols)) for expr, interval in self.constraints)

    def evaluate(self, dims: Sequence[int], symbols: Sequence[int] = ()) -> tuple[int, ...] | None:
        """The results at the point; None outside the domain."""
        if not self.contains(dims, symbols):
            return None
        return tuple(expr.evaluate(dims, symbols) for expr in self.results)

    def points(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """All points ``(dims, symbols)`` of the domain, last variable fastest. For small domains."""
        ranges = [range(interval.lower, interval.upper + 1) for interval in (*self.dims, *self.symbols)]
        rank = len(self.dims)
        for values in itertools.product(*ranges):
            if self.contains(values[:rank], values[rank:]):
                yield values[:rank], values[rank:]

    def box_size(self) -> int:
        """The number of points that the ranges alone allow."""
        return math.prod(interval.size for interval in (*self.dims, *self.symbols))

    def with_simple_results(self) -> "IndexingMap":
        """The map with its results simply expressed; the variables keep their ranges, and the constraints stay."""
        return _with_simple_results(self)

    def result_ranges(self) -> tuple[Interval, ...]:
        """The ranges of the results on the domain; they may be wider than they need be."""
        domain = simplify_domain(self.dims, self.symbols, self.constraints)
        if domain is None:
            return (EMPTY,) * len(self.results)
        known, bounds = Ranges(domain.dims, domain.symbols, domain.facts()), dict(self.constraints)
        found = [(known.interval(each), bounds.get(each)) for each in self.results]
        return tuple(each if bound is None else each.intersect(bound) for each, bound in found)

    def domain_checks(self, dims: Sequence[Interval], symbols: Sequence[Interval]) -> tuple[Constraint, ...]:
        """The conditions that put variables with these wider ranges in the domain, cheapest first."""
        given = [(dim(i), interval) for i, interval in enumerate(dims)]
        given += [(symbol(i), interval) for i, interval in enumerate(symbols)]
        own = zip(given, (*self.dims, *self.symbols), strict=True)
        checks = [(expr, needed) for (expr, known), needed in own if not needed.contains_interval(known)]
        return (*checks, *self.constraints)

    def remove_unused_symbols(self) -> tuple["IndexingMap", tuple[int, ...]]:
        """The map without the symbols that occur nowhere, and the indices of those kept.

        A symbol with an empty range is kept: it makes the domain empty.
        """
        used = self._used()[1]
        kept = tuple(i for i, interval in enumerate(self.symbols) if i in used or interval.is_empty)
        new = self._substitute(None, {old: symbol(i) for i, old in enumerate(kept)})
        return replace(new, symbols=tuple(self.symbols[i] for i in kept)), kept

    def remove_unused_dims(self) -> tuple["IndexingMap", tuple[int, ...]]:
        """The map without the dimensions that occur nowhere, and the indices of those kept, as for symbols."""
        used = self._used()[0]
        kept = tuple(i for i, interval in enumerate(self.dims) if i in used or interval.is_empty)
        new = self._substitute({old: dim(i) for i, old in enumerate(kept)}, None)
        return replace(new, dims=tuple(self.dims[i] for i in kept)), kept

    def is_bijection(self, shape: Sequence[int]) -> bool | None:
        """Whether the domain maps one-to-one onto all indices of an array of ``shape``; None if that is not known.

        See ``xgpu.indexing.bijection`` for what is decided by reasoning, and up to which size by enumeration.
        """
        return bijection.is_bijection(self, shape)

    def coverage(self, shape: Sequence[int]) -> bijection.Coverage:
        """The number of points of the domain that map to each index of an array of ``shape``, by enumeration."""
        return bijection.coverage(self, shape)

    def _used(self) -> tuple[set[int], set[int]]:
        dims: set[int] = set()
        symbols: set[int] = set()
        for expr in (*self.results, *[expr for expr, _ in self.constraints]):
            its_dims, its_symbols = expr.variables()
            dims |= its_dims
            symbols |= its_symbols
        return dims, symbols

    def _substitute(self, dims: dict[int, AffineExpr] | None, symbols: dict[int, AffineExpr] | None) -> "IndexingMap":
        results = tuple(expr.substitute(dims, symbols) for expr in self.results)
        constraints = tuple((expr.substitute(dims, symbols), interval) for expr, interval in self.constraints)
        return replace(self, results=results, constraints=constraints)


@lru_cache(maxsize=1 << 12)
def _parse(text: str) -> IndexingMap:
    parts = parse_map(text)
    return IndexingMap(parts.dims, parts.symbols, parts.results, parts.constraints)


@lru_cache(maxsize=1 << 12)
def _simplify(indexing_map: IndexingMap) -> IndexingMap:
    domain = simplify_domain(indexing_map.dims, indexing_map.symbols, indexing_map.constraints)
    if domain is None:
        return IndexingMap(
            (EMPTY,) * len(indexing_map.dims),
            (EMPTY,) * len(indexing_map.symbols),
            (constant(0),) * len(indexing_map.results),
            ((constant(0), EMPTY),),
        )
    simplifier = Simplifier(domain.dims, domain.symbols, domain.facts())
    results = tuple(simplifier.simplify(expr) for expr in indexing_map.results)
    return IndexingMap(domain.dims, domain.symbols, results, domain.constraints)


@lru_cache(maxsize=1 << 12)
def _with_simple_results(indexing_map: IndexingMap) -> IndexingMap:
    domain = simplify_domain(indexing_map.dims, indexing_map.symbols, indexing_map.constraints)
    if domain is None:
        return indexing_map
    simplifier = Simplifier(domain.dims, domain.symbols, domain.facts())
    return replace(indexing_map, results=tuple(simplifier.simplify(each) for each in indexing_map.results))


@lru_cache(maxsize=1 << 12)
def _compose(outer: IndexingMap, producer: IndexingMap) -> IndexingMap:
    if len(outer.results) != len(producer.dims):
        raise ValueError(f"{len(outer.results)} results do not feed {len(producer.dims)} dimensions")
    shifted = [symbol(len(outer.symbols) + i) for i in range(len(producer.symbols))]
    constraints = list(outer.constraints)
    for result, interval in zip(outer.results, producer.dims, strict=True):
        if not interval.contains_interval(result.interval(outer.dims, outer.symbols)):
            constraints.append((result, interval))
    constraints += [(expr.substitute(outer.results, shifted), interval) for expr, interval in producer.constraints]
    results = tuple(expr.substitute(outer.results, shifted) for expr in producer.results)
    return IndexingMap(outer.dims, outer.symbols + producer.symbols, results, tuple(constraints))

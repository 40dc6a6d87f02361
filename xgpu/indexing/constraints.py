"""Simplification of the domain of an indexing map: ranges of variables, and constraints on expressions of them.

Constraints narrow the ranges, ranges make constraints superfluous, until nothing changes. Every step keeps the set of
points of the domain as it is.
"""

from collections.abc import Sequence

from xgpu.indexing.affine import VARIABLES, AffineExpr, Dim, Mod, Symbol, Terms, primitive_terms
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier, as_quotient, common_factors, count_divisions
from xgpu.records import dataclass

MAX_ROUNDS = 16
"""Rounds after which a domain is left as it is: bounds that chase each other may take as many as there are values."""

Constraint = tuple[AffineExpr, Interval]


@dataclass(frozen=True, slots=True)
class Domain:
    """Ranges of the variables, and constraints with primitive linear forms (see ``Ranges``), at most one for each."""

    dims: tuple[Interval, ...]
    symbols: tuple[Interval, ...]
    constraints: tuple[Constraint, ...]

    def facts(self) -> dict[Terms, Interval]:
        """The constraints, in the form that ``Simplifier`` takes."""
        return {expr.terms: interval for expr, interval in self.constraints}


def simplify_domain(
    dims: Sequence[Interval], symbols: Sequence[Interval], constraints: Sequence[Constraint]
) -> Domain | None:
    """The same set of points, described simply; None if it is known to be empty."""
    domain = Domain(tuple(dims), tuple(symbols), tuple(constraints))
    for _ in range(MAX_ROUNDS):
        if any(interval.is_empty for interval in (*domain.dims, *domain.symbols)):
            return None
        if not domain.constraints:
            return domain
        simplified = _Round(domain).run()
        if simplified is None or simplified == domain:
            return simplified
        domain = simplified
    return domain


class _EmptyDomain(Exception):
    """No point satisfies a constraint."""


class _Round:
    """One pass over all constraints with the ranges as they are at its start; collects narrower ranges."""

    def __init__(self, domain: Domain):
        self._constraints = domain.constraints
        self._simplifier = Simplifier(domain.dims, domain.symbols)
        self._dims = list(domain.dims)
        self._symbols = list(domain.symbols)
        self._kept: dict[Terms, Interval] = {}

    def run(self) -> Domain | None:
        try:
            for expr, interval in self._constraints:
                self._add(expr, interval)
            for terms, interval in self._kept.items():
                self._narrow_by(terms, interval)
        except _EmptyDomain:
            return None
        constraints = [(AffineExpr(terms, 0), interval) for terms, interval in self._kept.items()]
        constraints.sort(key=lambda constraint: constraint[0].key)
        return Domain(tuple(self._dims), tuple(self._symbols), tuple(constraints))

    def _add(self, expr: AffineExpr, interval: Interval) -> None:
        """Rewrites one constraint until nothing applies, and takes it over if anything is left of it."""
        while True:
            normal = self._normalize(self._simplifier.simplify(expr), interval)
            if normal is None:
                return
            terms, interval = normal
            rewritten = self._multiply(terms, interval) or self._unwrap(terms, interval)
            rewritten = rewritten or self._round_off(terms, interval)
            if rewritten is None:
                break
            expr, interval = rewritten
        interval = interval.intersect(self._kept.get(terms, interval))
        if interval.is_empty:
            raise _EmptyDomain
        if len(terms) == 1 and isinstance(terms[0][0], VARIABLES):
            self._narrow(terms[0][0], interval)
        else:
            self._kept[terms] = interval

    def _normalize(self, expr: AffineExpr, interval: Interval) -> tuple[Terms, Interval] | None:
        """Primitive terms and the bounds of their sum, no wider than its range; None if the constraint always holds."""
        if interval.is_empty or (expr.is_constant and not interval.contains(expr.constant)):
            raise _EmptyDomain
        if expr.is_constant:
            return None
        terms, factor = primitive_terms(expr.terms)
        interval = interval - expr.constant
        if factor < 0:
            interval, factor = -interval, -factor
        interval = Interval(-(-interval.lower // factor), interval.upper // factor)
        possible = Interval(*self._simplifier.bounds(AffineExpr(terms, 0)))
        if interval.contains_interval(possible):
            return None
        interval = interval.intersect(possible)
        if interval.is_empty:
            raise _EmptyDomain
        return terms, interval

    def _multiply(self, terms: Terms, interval: Interval) -> Constraint | None:
        """``a + x floordiv k in [lo, hi] -> a*k + x in [lo*k, hi*k + k - 1]``, and likewise ``a - x floordiv k``."""
        expr = AffineExpr(terms, 0)
        for atom, sign in terms:
            nested = as_quotient(atom) if sign in (1, -1) else None
            if nested is None:
                continue
            k = nested.divisor
            own = AffineExpr(((atom, sign),), 0)
            multiplied = self._simplifier.simplify((expr - own) * k + nested.expr * sign)
            # Where other digits of x are in a, they would only take other forms.
            if len(terms) == 1 or count_divisions(multiplied) < count_divisions(expr):
                below, above = (0, k - 1) if sign == 1 else (k - 1, 0)
                return multiplied, Interval(interval.lower * k - below, interval.upper * k + above)
        return None

    def _unwrap(self, terms: Terms, interval: Interval) -> Constraint | None:
        """A constraint on a remainder, as one on what it divides, if one interval of that satisfies it."""
        atom = terms[0][0]
        if len(terms) == 1 and isinstance(atom, Mod):
            low, high = self._simplifier.bounds(atom.expr)
            k = atom.divisor
            # The first and the last value of the dividend that satisfy the constraint.
            first = low + max(0, interval.lower - low % k)
            if low % k > interval.upper:
                first = low + k - low % k + interval.lower
            last = high - max(0, high % k - interval.upper)
            if high % k < interval.lower:
                last = high - high % k - k + interval.upper
            if first > last:
                raise _EmptyDomain
            if first // k == last // k:
                return atom.expr, Interval(first, last)
            if Interval(first, last) != Interval(low, high):
                self._narrow_by(atom.expr.terms, Interval(first, last) - atom.expr.constant)
        return None

    def _round_off(self, terms: Terms, interval: Interval) -> Constraint | None:
        """``g*a + r`` within bounds that no value of ``r`` can decide, as bounds of ``a``.

        ``g*a + r <= hi`` is ``a <= (hi - r) floordiv g``, which is the same for every ``r`` if it is for its smallest
        and largest value; likewise for the lower bound. A bound that the range of the sum implies does not matter.
        """
        possible = Interval(*self._simplifier.bounds(AffineExpr(terms, 0)))
        for g in common_factors(terms):
            rest = Interval(*self._simplifier.bounds(AffineExpr(tuple([t for t in terms if t[1] % g]), 0)))
            upper = (interval.upper - rest.lower) // g
            lower = -((rest.upper - interval.lower) // g)
            upper_free, lower_free = interval.upper >= possible.upper, interval.lower <= possible.lower
            if not upper_free and upper != (interval.upper - rest.upper) // g:
                continue
            if not lower_free and lower != -((rest.lower - interval.lower) // g):
                continue
            whole = AffineExpr(tuple([(atom, c // g) for atom, c in terms if c % g == 0]), 0)
            own = Interval(*self._simplifier.bounds(whole))
            return whole, Interval(own.lower if lower_free else lower, own.upper if upper_free else upper)
        return None

    def _narrow_by(self, terms: Terms, interval: Interval) -> None:
        """Narrows the range of every variable that is a term by what the other terms leave to it."""
        bounds = [Interval(*self._simplifier.bounds(AffineExpr((term,), 0))) for term in terms]
        total = sum(bounds, Interval(0, 0))
        for (atom, c), own in zip(terms, bounds, strict=True):
            if isinstance(atom, VARIABLES):
                left = Interval(interval.lower - total.upper + own.upper, interval.upper - total.lower + own.lower)
                if c < 0:
                    left, c = -left, -c
                self._narrow(atom, Interval(-(-left.lower // c), left.upper // c))

    def _narrow(self, variable: Dim | Symbol, interval: Interval) -> None:
        ranges = self._dims if isinstance(variable, Dim) else self._symbols
        ranges[variable.index] = ranges[variable.index].intersect(interval)
        if ranges[variable.index].is_empty:
            raise _EmptyDomain

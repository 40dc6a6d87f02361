"""Simplification of index expressions whose variables have known ranges.

An expression has two forms here, both exact:

- *Expanded*: remainders written out, ``x mod k`` as ``x - (x floordiv k) * k``, so that an expression is a linear form
  over variables and quotients. Quotients have one canonical form (``Simplifier.quotient``), hence whatever cancels does
  so when the linear form is built: ``(x mod c) * d + (x floordiv c) * c * d`` is ``x * d`` with no rule of its own, and
  the linearization of a delinearized index is that index, for any shapes.
- *Folded*: differences put back into remainders. ``q * x + p * (x floordiv k)`` is split into its digits,
  ``q * (x mod k) + (p + q * k) * (x floordiv k)``. Digits do not cancel each other, so intervals of this form are
  tight, and the rules for quotients see what they divide. In results, ``q * (x mod k) + p * (x floordiv k)`` with
  ``p`` above ``q * k`` is then undone: that costs one division less, and the interval is as tight.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from xgpu.indexing.affine import (
    VARIABLES,
    AffineExpr,
    Atom,
    Division,
    FloorDiv,
    Mod,
    Ranges,
    Terms,
    constant,
    linear,
    weighted_sum,
)
from xgpu.indexing.interval import Interval

MAX_GROWTH = 4
"""An expression whose simple form is this many times its size is left as it is: digits of sums can be many."""
MAX_NUMBER = 1 << 62
"""Divisors and coefficients are not multiplied beyond this: they are to be 64-bit numbers."""


def simplify_expr(expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> AffineExpr:
    """An expression with the value of ``expr`` wherever the variables are in their ranges."""
    return _simplify_expr(expr, tuple(dims), tuple(symbols))


@lru_cache(maxsize=1 << 13)
def _simplify_expr(expr: AffineExpr, dims: tuple[Interval, ...], symbols: tuple[Interval, ...]) -> AffineExpr:
    return Simplifier(dims, symbols).simplify(expr)


class Simplifier:
    """Simplifies expressions over variables with these ranges; remembers what it found, so use one object for a map.

    ``facts`` are the intervals of linear forms known from constraints, as ``Ranges`` takes them: results are then exact
    only where the constraints hold.
    """

    def __init__(
        self, dims: Sequence[Interval], symbols: Sequence[Interval], facts: Mapping[Terms, Interval] | None = None
    ):
        self._ranges = Ranges(dims, symbols, facts)
        self._expanded: dict[Atom, AffineExpr] = {}
        self._folded: dict[AffineExpr, AffineExpr] = {}
        self._quotients: dict[tuple[AffineExpr, int], AffineExpr] = {}

    def simplify(self, expr: AffineExpr) -> AffineExpr:
        """The folded form of ``expr``."""
        folded = self.fold(self.expand(expr))
        low, high = self.bounds(folded)
        if low == high:
            return constant(low)
        joined = self._join_digits(folded)
        return joined if joined.size() <= MAX_GROWTH * expr.size() else expr

    def bounds(self, folded: AffineExpr) -> tuple[int, int]:
        """Lower and upper bound of an expression in folded form."""
        return self._ranges.bounds(folded.terms, folded.constant)

    def expand(self, expr: AffineExpr) -> AffineExpr:
        """The expanded form of any expression."""
        terms = expr.terms
        if not terms:
            return expr
        if len(terms) == 1 and terms[0][1] == 1 and not expr.constant:
            return self._expand_atom(terms[0][0])
        return weighted_sum([(self._expand_atom(atom), c) for atom, c in terms], expr.constant)

    def _expand_atom(self, atom: Atom) -> AffineExpr:
        known = self._expanded.get(atom)
        if known is None:
            if isinstance(atom, Division):
                inner = self.expand(atom.expr)
                quotient = self.quotient(self.fold(inner), atom.divisor)
                known = quotient
                if isinstance(atom, Mod):
                    known = weighted_sum(((inner, 1), (quotient, -atom.divisor)))
            else:
                assert isinstance(atom, VARIABLES)
                low, high = self._ranges.bounds(((atom, 1),))
                known = constant(low) if low == high else AffineExpr(((atom, 1),), 0)
            self._expanded[atom] = known
        return known

    def quotient(self, folded: AffineExpr, divisor: int) -> AffineExpr:
        """The expanded form of ``folded floordiv divisor``."""
        if divisor == 1:
            return self.expand(folded)
        key = (folded, divisor)
        known = self._quotients.get(key)
        if known is None:
            known = self._quotients[key] = self._quotient(folded, divisor)
        return known

    def _quotient(self, folded: AffineExpr, k: int) -> AffineExpr:
        """One step of ``quotient``: each rule goes on with a smaller division, so that no two rules undo each other.

        Smaller means fewer divisions in the dividend (``_merge_nested``), else a smaller divisor
        (``_divide_by_common_factor``), else a smaller dividend: fewer terms or ``mod`` or a smaller coefficient.
        """
        low, high = self.bounds(folded)
        if low // k == high // k:
            return constant(low // k)
        # Multiples of the divisor come out: (k*a + b) floordiv k -> a + b floordiv k.
        inside = [item for item in folded.terms if item[1] % k]
        if len(inside) < len(folded.terms) or not 0 <= folded.constant < k:
            outside = AffineExpr(
                tuple([(atom, c // k) for atom, c in folded.terms if c % k == 0]), folded.constant // k
            )
            rest = AffineExpr(tuple(inside), folded.constant % k)
            return self.expand(outside) + self.quotient(rest, k)
        atom, c = inside[0]
        if len(inside) == 1 and abs(c) > k:
            return self._reduce_coefficient(atom, c, folded.constant, k)
        # (-a) floordiv k -> -((a + k - 1) floordiv k): one form for indices that run backwards.
        if c < 0:
            return -self.quotient(-folded + (k - 1), k)
        rules = (
            self._take_out_multiples,
            self._divide_by_common_factor,
            self._merge_nested,
            self._drop_inner_remainders,
        )
        for rule in rules:
            found = rule(folded, k)
            if found is not None:
                return found
        result = FloorDiv(folded, k)
        return self._expanded.setdefault(result, AffineExpr(((result, 1),), 0))

    def _reduce_coefficient(self, atom: Atom, c: int, b: int, k: int) -> AffineExpr:
        """``(c*x + b) floordiv k -> q*x + ((c - q*k)*x + b) floordiv k``, if possible so that no quotient is left."""
        towards_zero = abs(c) // k * (1 if c > 0 else -1)
        for q in (towards_zero, towards_zero + (1 if c > 0 else -1)):
            rest = self.quotient(AffineExpr(((atom, c - q * k),), b), k)
            if rest.is_constant:
                return self._expand_atom(atom) * q + rest
        rest = self.quotient(AffineExpr(((atom, c - towards_zero * k),), b), k)
        return self._expand_atom(atom) * towards_zero + rest

    def _take_out_multiples(self, folded: AffineExpr, k: int) -> AffineExpr | None:
        """``((q*k + r)*x + b) floordiv k -> q*x + (r*x + b) floordiv k`` for all such ``x``, if no quotient is left.

        So ``(x*(k + 1) + y) floordiv k`` is ``x`` where ``x + y < k``: rows of ``k`` read as if they had one more.
        """
        multiples = AffineExpr(
            tuple([(atom, abs(c) // k * (1 if c > 0 else -1)) for atom, c in folded.terms if abs(c) > k]), 0
        )
        if not multiples.terms:
            return None
        low, high = self.bounds(weighted_sum(((folded, 1), (multiples, -k))))
        return self.expand(multiples) + low // k if low // k == high // k else None

    def _divide_by_common_factor(self, folded: AffineExpr, k: int) -> AffineExpr | None:
        """``(g*a + r) floordiv (g*n) -> (a + r floordiv g) floordiv n`` where ``r floordiv g`` is no more than ``r``.

        It is a constant if ``r`` stays inside a multiple of ``g``, and one quotient if ``r`` is one. Not where the new
        dividend has more divisions, as ``r floordiv g`` and ``a`` can share digits: ``_merge_nested`` would undo it.
        """
        for g in common_factors(folded.terms, k):
            rest = AffineExpr(tuple([item for item in folded.terms if item[1] % g]), folded.constant % g)
            quotient = self.quotient(rest, g)
            folded_quotient = self.fold(quotient)
            fewer_terms = len(folded_quotient.terms) <= len(rest.terms)
            if fewer_terms and count_divisions(folded_quotient) <= count_divisions(rest):
                terms = tuple([(atom, c // g) for atom, c in folded.terms if c % g == 0])
                whole = AffineExpr(terms, folded.constant // g)
                if quotient.is_constant:
                    return self.quotient(whole + quotient, k // g)
                dividend = self.fold(self.expand(whole) + quotient)
                if count_divisions(dividend) <= count_divisions(folded):
                    return self.quotient(dividend, k // g)
        return None

    def _merge_nested(self, folded: AffineExpr, k: int) -> AffineExpr | None:
        """``(a + x floordiv m) floordiv k -> (a*m + x) floordiv (k*m)``, and the same for ``a - x floordiv m``.

        ``(x floordiv m) mod n`` is taken as ``(x mod m*n) floordiv m``. Not where ``a`` has other digits of ``x``: they
        would be put together and come apart again.
        """
        for atom, sign in folded.terms:
            nested = as_quotient(atom) if sign in (1, -1) else None
            if nested is None:
                continue
            own = AffineExpr(((atom, 1),), 0)
            digits = AffineExpr(tuple([t for t in folded.terms if isinstance(t[0], Division) and t[0] != atom]), 0)
            if len(nested.expr.terms) == 1 and not _are_disjoint(own, digits):
                continue
            m = nested.divisor
            if k * m > MAX_NUMBER:
                continue
            parts = [(folded, m), (own, -sign * m), (nested.expr, sign)]
            merged = self.fold(self.expand(weighted_sum(parts, 0 if sign == 1 else m - 1)))
            if count_divisions(merged) < count_divisions(folded):
                return self.quotient(merged, k * m)
        return None

    def _drop_inner_remainders(self, folded: AffineExpr, k: int) -> AffineExpr | None:
        """``(c*(x mod m) + b) floordiv k -> (c*x + b) floordiv k - (x floordiv m) * (c*m/k)`` if ``k`` divides ``c*m``.

        Not where ``b`` has variables of ``x``: other digits of the same index are to stay apart.
        """
        for atom, c in folded.terms:
            if isinstance(atom, Mod) and c * atom.divisor % k == 0:
                others = AffineExpr(tuple([item for item in folded.terms if item[0] != atom]), folded.constant)
                if _are_disjoint(atom.expr, others):
                    inner = self.quotient(others + atom.expr * c, k)
                    outer = self.quotient(atom.expr, atom.divisor)
                    return weighted_sum([(inner, 1), (outer, -c * atom.divisor // k)])
        return None

    def fold(self, expanded: AffineExpr) -> AffineExpr:
        """The folded form of an expression in expanded form."""
        quotients = [atom for atom, _ in expanded.terms if isinstance(atom, FloorDiv)]
        if not quotients:
            return expanded
        known = self._folded.get(expanded)
        if known is None:
            # Larger dividends first: their terms include the smaller ones'. Then small divisors, that is low digits.
            quotients.sort(key=lambda atom: (-atom.expr.size(), atom.divisor))
            sums = _Accumulator(expanded)
            for exact in (True, False):
                for atom in quotients:
                    self._fold_remainder(sums, atom, exact)
            for atom in quotients:
                self._fold_inner_remainder(sums, atom)
            known = self._folded[expanded] = sums.result()
        return known

    def _fold_remainder(self, sums: "_Accumulator", atom: FloorDiv, exact: bool) -> None:
        """Takes ``q*x + p*(x floordiv n)`` out of the sum and puts in ``q*(x mod n) + (p + q*n)*(x floordiv n)``.

        ``atom`` is ``x floordiv n``, for the ``x`` that can be in the sum. ``exact`` allows only ``p = -q*n``, where
        the quotient vanishes.
        """
        p = sums.terms.get(atom, 0)
        if not p:
            return
        for x, n in self._dividends_of(atom, sums):
            q, whole = sums.multiple(x)
            if not q or (p != -q * n if exact else not whole and (p > 0) == (q > 0)) or abs(p + q * n) > MAX_NUMBER:
                continue
            remainder = Mod(self.fold(x), n)
            quotient = AffineExpr(((atom, 1),), 0)
            self._expanded.setdefault(remainder, weighted_sum(((x, 1), (quotient, -n))))
            sums.add(x, -q)
            sums.add(AffineExpr(((remainder, 1),), 0), q)
            sums.add(quotient, q * n)
            return

    def _dividends_of(self, atom: FloorDiv, sums: "_Accumulator") -> Iterator[tuple[AffineExpr, int]]:
        """The ``x`` and ``n`` for which ``atom`` is ``x floordiv n``, as far as they can be in the sum.

        Where ``atom`` is ``z floordiv m`` that is ``z floordiv a`` and ``m / a``. Another quotient may be one too, if
        dividing it further gives ``atom``: its dividend has terms that do not matter to ``atom``.
        """
        m = atom.divisor
        steps = {a.divisor for a in sums.terms if isinstance(a, FloorDiv) and a.divisor < m and m % a.divisor == 0}
        for a in (*sorted(steps, reverse=True), 1):
            yield self.quotient(atom.expr, a), m // a
        own = AffineExpr(((atom, 1),), 0)
        p = sums.terms[atom]
        for other, q in list(sums.terms.items()):
            if isinstance(other, FloorDiv) and other.expr != atom.expr and q and p % q == 0 and p // q < -1:
                n = -p // q
                if self.quotient(other.expr, other.divisor * n) == own:
                    yield AffineExpr(((other, 1),), 0), n

    def _join_digits(self, folded: AffineExpr) -> AffineExpr:
        """``q*(x mod n) + p*(x floordiv n) -> q*x + (p - q*n)*(x floordiv n)`` where both terms keep one sign."""
        sums = _Accumulator(folded)
        for atom, q in folded.terms:
            if isinstance(atom, Mod):
                quotient = self.quotient(atom.expr, atom.divisor)
                p, whole = sums.multiple(quotient)
                if whole and p * q > 0 and abs(p) > abs(q * atom.divisor):
                    sums.add(quotient, -q * atom.divisor)
                    sums.add(AffineExpr(((atom, 1),), 0), -q)
                    sums.add(atom.expr, q)
        return sums.result()

    def _fold_inner_remainder(self, sums: "_Accumulator", outer: FloorDiv) -> None:
        """Puts ``(z floordiv k)*p - (x floordiv m)*p*q*m/k`` back to ``((z - q*x + q*(x mod m)) floordiv k)*p``.

        The undoing of ``_drop_inner_remainders``: as good to compute, with a tight interval.
        """
        p = sums.terms.get(outer, 0)
        k = outer.divisor
        for inner, r in list(sums.terms.items()):
            if not p or not r or inner == outer or not isinstance(inner, FloorDiv):
                continue
            m = inner.divisor
            q, remainder = divmod(-r * k, p * m)
            if remainder or not q or q * m % k:
                continue
            others = weighted_sum([(self.expand(outer.expr), 1), (self.expand(inner.expr), -q)])
            if not _are_disjoint(inner.expr, others):
                continue
            modulo = AffineExpr(((Mod(inner.expr, m), 1),), 0)
            dividend = self.fold(self.expand(weighted_sum([(outer.expr, 1), (inner.expr, -q), (modulo, q)])))
            atom = FloorDiv(dividend, k)
            old = weighted_sum([(AffineExpr(((outer, 1),), 0), 1), (AffineExpr(((inner, 1),), 0), -q * m // k)])
            self._expanded.setdefault(atom, old)
            sums.add(old, -p)
            sums.add(AffineExpr(((atom, 1),), 0), p)
            return


class _Accumulator:
    """A linear form while terms are moved in it."""

    def __init__(self, expr: AffineExpr):
        self.terms = dict(expr.terms)
        self.constant = expr.constant

    def add(self, expr: AffineExpr, factor: int) -> None:
        """Adds ``expr * factor``."""
        self.constant += expr.constant * factor
        for atom, coefficient in expr.terms:
            self.terms[atom] = self.terms.get(atom, 0) + coefficient * factor

    def multiple(self, expr: AffineExpr) -> tuple[int, bool]:
        """The largest ``q`` (by magnitude) for which all terms of ``q * expr`` are here, and whether none is left."""
        ratios = []
        whole = True
        for atom, coefficient in expr.terms:
            here = self.terms.get(atom, 0)
            ratio = abs(here) // abs(coefficient)
            if not ratio:
                return 0, False
            ratios.append(ratio if (here > 0) == (coefficient > 0) else -ratio)
            whole = whole and here % coefficient == 0
        if not ratios or min(ratios) < 0 < max(ratios):
            return 0, False
        q = min(ratios, key=abs)
        return q, whole and all(ratio == q for ratio in ratios)

    def result(self) -> AffineExpr:
        """The linear form."""
        return linear(self.terms, self.constant)


def _are_disjoint(x: AffineExpr, y: AffineExpr) -> bool:
    return all(map(set.isdisjoint, x.variables(), y.variables()))


def common_factors(terms: Terms, k: int = 0) -> list[int]:
    """The numbers above 1 that divide ``k`` and that some of the coefficients share, largest first."""
    own = sorted({math.gcd(c, k) for _, c in terms}, reverse=True)
    shared = set(own)
    running = 0
    for factor in own:
        running = math.gcd(running, factor)
        shared.add(running)
    return sorted((g for g in shared if g > 1), reverse=True)


def count_divisions(expr: AffineExpr) -> int:
    """The number of divisions in ``expr``, a digit ``(x floordiv m) mod n`` being one."""
    count = 0
    for atom, _ in expr.terms:
        if isinstance(atom, Division):
            digit = as_quotient(atom)
            count += 1 + count_divisions(atom.expr) - (isinstance(atom, Mod) and digit is not None)
    return count


def as_quotient(atom: Atom) -> FloorDiv | None:
    """``atom`` as a quotient, if it is one or a digit of one."""
    if isinstance(atom, FloorDiv):
        return atom
    if isinstance(atom, Mod) and len(atom.expr.terms) == 1 and not atom.expr.constant:
        inner, coefficient = atom.expr.terms[0]
        if isinstance(inner, FloorDiv) and coefficient == 1:
            digits = Mod(inner.expr, inner.divisor * atom.divisor)
            return FloorDiv(AffineExpr(((digits, 1),), 0), inner.divisor)
    return None

"""Quasi-affine index expressions: sums of variables, floor divisions and remainders with integer coefficients.

Every expression is kept in one linear form, ``c0 * atom0 + c1 * atom1 + ... + constant``, so that like terms merge and
products distribute when an expression is built. An atom is a dimension, a symbol, or the quotient or the remainder of
an expression by a positive constant. Division rounds down and a remainder is never negative, as in Python.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from xgpu.indexing.interval import EMPTY, Interval

PRODUCT_OF_INDICES = "is not affine: one of the factors must be a constant"
DIVISION_BY_INDEX = "is not affine: the divisor must be a constant"
"""Errors about an index expression that people wrote, without the expression, which comes first."""

Substitution = Sequence["AffineExpr"] | Mapping[int, "AffineExpr"]
_SEQUENCES = (tuple, list)


class Atom:
    """A variable of a linear form: ``Dim``, ``Symbol``, ``FloorDiv`` or ``Mod``. Immutable and hashable.

    ``key`` is a nested tuple that is equal for equal atoms; ordering by it makes the linear form deterministic.
    """

    __slots__ = ("_hash", "key")
    key: Final[tuple[Any, ...]]

    def __init__(self, key: tuple[Any, ...], content: tuple[object, ...]):
        self.key = key
        self._hash: Final = hash((key[0], content))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self._hash == other._hash and self.key == other.key)


class Dim(Atom):
    """Dimension variable ``d<index>`` of a map."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        super().__init__((0, index), (index,))
        self.index: Final = index

    def __str__(self) -> str:
        return f"d{self.index}"


class Symbol(Atom):
    """Symbol (range variable) ``s<index>`` of a map."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        super().__init__((1, index), (index,))
        self.index: Final = index

    def __str__(self) -> str:
        return f"s{self.index}"


VARIABLES: Final = (Dim, Symbol)
"""The types for `isinstance`: to make a union takes as long as to simplify a term."""


class Division(Atom):
    """Base of ``FloorDiv`` and ``Mod``; ``divisor`` is positive. Built with ``//`` and ``%``, which fold constants."""

    __slots__ = ("divisor", "expr")
    kind: int
    symbol: str

    def __init__(self, expr: "AffineExpr", divisor: int):
        super().__init__((self.kind, divisor, expr.key), (divisor, expr))
        self.expr: Final = expr
        self.divisor: Final = divisor

    def __str__(self) -> str:
        terms = self.expr.terms
        plain = (
            len(terms) == 1 and terms[0][1] == 1 and not self.expr.constant and not isinstance(terms[0][0], Division)
        )
        return f"{self.expr if plain else f'({self.expr})'} {self.symbol} {self.divisor}"


class FloorDiv(Division):
    """``expr floordiv divisor``: the quotient, rounded down."""

    __slots__ = ()
    kind = 2
    symbol = "floordiv"


class Mod(Division):
    """``expr mod divisor``: the remainder, in ``[0, divisor)``."""

    __slots__ = ()
    kind = 3
    symbol = "mod"


Terms = tuple[tuple[Atom, int], ...]


class AffineExpr:
    """``sum(coefficient * atom) + constant``; ``terms`` are sorted by atom and hold no zero coefficient.

    Immutable and hashable: two expressions are equal if their linear forms are.
    """

    __slots__ = ("_hash", "_key", "_size", "constant", "terms")

    def __init__(self, terms: Terms, constant: int):
        self.terms: Final = terms
        self.constant: Final = constant
        # Most expressions are steps on the way to others.
        self._hash: int | None = None
        self._key: tuple[Any, ...] | None = None
        self._size = 0

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.terms, self.constant))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AffineExpr):
            return NotImplemented
        return self.constant == other.constant and self.terms == other.terms

    @property
    def key(self) -> tuple[Any, ...]:
        """A nested tuple that orders expressions; equal for equal expressions."""
        if self._key is None:
            self._key = (self.constant, tuple((atom.key, coefficient) for atom, coefficient in self.terms))
        return self._key

    @property
    def is_constant(self) -> bool:
        """Whether the expression has no terms, so that ``constant`` is its value."""
        return not self.terms

    def __add__(self, other: "AffineExpr | int") -> "AffineExpr":
        if isinstance(other, int):
            return AffineExpr(self.terms, self.constant + other) if other else self
        return weighted_sum(((self, 1), (other, 1)))

    __radd__ = __add__

    def __neg__(self) -> "AffineExpr":
        return self * -1

    def __sub__(self, other: "AffineExpr | int") -> "AffineExpr":
        return self + -other

    def __rsub__(self, other: int) -> "AffineExpr":
        return -self + other

    def __mul__(self, other: "AffineExpr | int") -> "AffineExpr":
        if isinstance(other, AffineExpr):
            if self.is_constant:
                return other * self.constant
            if not other.is_constant:
                raise ValueError(f"not affine: ({self}) * ({other})")
            other = other.constant
        if other == 1:
            return self
        if other == 0:
            return _ZERO
        return AffineExpr(tuple([(atom, c * other) for atom, c in self.terms]), self.constant * other)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: "AffineExpr | int") -> "AffineExpr":
        k = _as_divisor(divisor)
        if self.is_constant:
            return constant(self.constant // k)
        return self if k == 1 else AffineExpr(((FloorDiv(self, k), 1),), 0)

    def __mod__(self, divisor: "AffineExpr | int") -> "AffineExpr":
        k = _as_divisor(divisor)
        if self.is_constant:
            return constant(self.constant % k)
        return _ZERO if k == 1 else AffineExpr(((Mod(self, k), 1),), 0)

    def __rfloordiv__(self, other: int) -> "AffineExpr":
        return constant(other) // self

    def __rmod__(self, other: int) -> "AffineExpr":
        return constant(other) % self

    def evaluate(self, dims: Sequence[int], symbols: Sequence[int] = ()) -> int:
        """The value for these values of the variables."""
        total = self.constant
        for atom, coefficient in self.terms:
            if isinstance(atom, Dim):
                value = dims[atom.index]
            elif isinstance(atom, Symbol):
                value = symbols[atom.index]
            elif isinstance(atom, FloorDiv):
                value = atom.expr.evaluate(dims, symbols) // atom.divisor
            else:
                assert isinstance(atom, Mod)
                value = atom.expr.evaluate(dims, symbols) % atom.divisor
            total = total + coefficient * value
        return total

    def substitute(self, dims: Substitution | None = None, symbols: Substitution | None = None) -> "AffineExpr":
        """The expression with variables replaced: by a sequence all of a kind, by a mapping those that it names."""
        terms = self.terms
        if not terms:
            return self
        if len(terms) == 1:
            ((atom, coefficient),) = terms
            found = _substitute_atom(atom, dims, symbols)
            if coefficient != 1:
                found = found * coefficient
            return found + self.constant if self.constant else found
        parts = [(_substitute_atom(atom, dims, symbols), coefficient) for atom, coefficient in terms]
        return weighted_sum(parts, self.constant)

    def interval(self, dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> Interval:
        """Bounds of the values for variables in these intervals; exact for sums of different variables."""
        return Ranges(dims, symbols).interval(self)

    def divisor(self) -> int:
        """The largest integer known to divide every value; 0 for the constant 0, which everything divides."""
        return math.gcd(self.constant, *[c * _atom_divisor(atom) for atom, c in self.terms])

    def variables(self) -> tuple[set[int], set[int]]:
        """The indices of the dimensions and of the symbols that occur."""
        dims: set[int] = set()
        symbols: set[int] = set()
        _collect_variables(self, dims, symbols)
        return dims, symbols

    def size(self) -> int:
        """The number of nodes of the expression as a tree of constants, variables and binary operations."""
        if not self._size:
            count = max(1, len(self.terms)) + max(0, len(self.terms) - 1)
            count += 2 * sum(coefficient != 1 for _, coefficient in self.terms)
            count += 2 if self.constant and self.terms else 0
            self._size = count + sum(atom.expr.size() + 1 for atom, _ in self.terms if isinstance(atom, Division))
        return self._size

    def __str__(self) -> str:
        text = ""
        for atom, coefficient in self.terms:
            magnitude = abs(coefficient)
            factor = f"({atom})" if isinstance(atom, Division) and coefficient != 1 else str(atom)
            if magnitude != 1:
                factor += f" * {magnitude}"
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {factor}" if text else f"-{factor}" if coefficient < 0 else factor
        if not text:
            return str(self.constant)
        return text + (f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}" if self.constant else "")

    def __repr__(self) -> str:
        return f"<{self}>"


_ZERO = AffineExpr((), 0)


def constant(value: int) -> AffineExpr:
    """The expression that always has this value."""
    return AffineExpr((), value) if value else _ZERO


@lru_cache(maxsize=256)
def dim(index: int) -> AffineExpr:
    """The dimension variable ``d<index>``."""
    return AffineExpr(((Dim(index), 1),), 0)


@lru_cache(maxsize=256)
def symbol(index: int) -> AffineExpr:
    """The symbol (range variable) ``s<index>``."""
    return AffineExpr(((Symbol(index), 1),), 0)


def linear(terms: Mapping[Atom, int], constant_term: int) -> AffineExpr:
    """The expression with these coefficients, some of which may be zero."""
    kept = [item for item in terms.items() if item[1]]
    if len(kept) > 1:
        kept.sort(key=_atom_key)
    return AffineExpr(tuple(kept), constant_term)


def weighted_sum(parts: Iterable[tuple[AffineExpr, int]], constant_term: int = 0) -> AffineExpr:
    """``sum(coefficient * expr) + constant_term`` in one pass, which is linear where repeated ``+`` is not."""
    terms: dict[Atom, int] = {}
    for expr, factor in parts:
        constant_term += expr.constant * factor
        for atom, coefficient in expr.terms:
            terms[atom] = terms.get(atom, 0) + coefficient * factor
    return linear(terms, constant_term)


class Ranges:
    """Intervals of expressions, given those of the variables. Those of divisions are cached: reuse one object.

    ``facts`` gives intervals known for whole linear forms (constraints of a domain): terms without a common divisor,
    the first coefficient positive. Variables with an empty range are taken to be at their lower bound.
    """

    def __init__(
        self, dims: Sequence[Interval], symbols: Sequence[Interval], facts: Mapping[Terms, Interval] | None = None
    ):
        self._atoms: dict[Atom, tuple[int, int]] = {}
        for kind, intervals in ((Dim, dims), (Symbol, symbols)):
            for index, interval in enumerate(intervals):
                self._atoms[kind(index)] = (interval.lower, max(interval.lower, interval.upper))
        self._facts = sorted((facts or {}).items(), key=lambda fact: -len(fact[0]))
        self._has_empty = any(i.is_empty for i in (*dims, *symbols))

    def define(self, variable: Atom, interval: Interval) -> None:
        """Gives a variable that no expression has had so far its interval, which has members."""
        self._atoms[variable] = (interval.lower, interval.upper)

    def interval(self, expr: AffineExpr) -> Interval:
        """The interval of ``expr``; empty if that of any variable is."""
        return EMPTY if self._has_empty else Interval(*self.bounds(expr.terms, expr.constant))

    def bounds(self, terms: Terms, constant_term: int = 0) -> tuple[int, int]:
        """Lower and upper bound of ``sum(terms) + constant_term``."""
        lower, upper = self._sum(terms)
        if self._facts:
            lower, upper = self._apply_facts(terms, lower, upper)
        return lower + constant_term, upper + constant_term

    def magnitude(self, expr: AffineExpr) -> int:
        """A bound of the absolute values of the numbers in ``expr``, and of all that is computed for its value.

        It holds in whichever order terms are added.
        """
        total = abs(expr.constant)
        largest = 0
        for atom, coefficient in expr.terms:
            low, high = self._atom(atom)
            total += abs(coefficient) * max(1, abs(low), abs(high))
            if isinstance(atom, Division):
                largest = max(largest, atom.divisor, self.magnitude(atom.expr))
        return max(total, largest)

    def _sum(self, terms: Terms) -> tuple[int, int]:
        lower = upper = 0
        for atom, coefficient in terms:
            low, high = self._atom(atom)
            if coefficient > 0:
                lower += coefficient * low
                upper += coefficient * high
            else:
                lower += coefficient * high
                upper += coefficient * low
        return lower, upper

    def _apply_facts(self, terms: Terms, lower: int, upper: int) -> tuple[int, int]:
        """Narrows the bounds of a sum by the facts of which it contains multiples, each term used once."""
        left = dict(terms)
        own_lower, own_upper = lower, upper
        for form, fact in self._facts:
            factor = left.get(form[0][0], 0) // form[0][1]
            if not factor or any(left.get(atom, 0) != factor * c for atom, c in form):
                continue
            low, high = self._sum(form)
            below, above = max(0, fact.lower - low), max(0, high - fact.upper)
            if factor < 0:
                below, above = above, below
            lower += abs(factor) * below
            upper -= abs(factor) * above
            for atom, _ in form:
                del left[atom]
        # Facts that contradict the ranges describe an empty domain, where any answer will do.
        return (lower, upper) if lower <= upper else (own_lower, own_upper)

    def _atom(self, atom: Atom) -> tuple[int, int]:
        known = self._atoms.get(atom)
        if known is None:
            assert isinstance(atom, Division), f"no range is known for {atom}"
            low, high = self.bounds(atom.expr.terms, atom.expr.constant)
            k = atom.divisor
            if isinstance(atom, FloorDiv):
                known = (low // k, high // k)
            elif low // k == high // k:
                known = (low % k, high % k)
            else:
                # All values are congruent modulo the divisor of the terms, so the largest remainders may not occur.
                step = math.gcd(k, *[c for _, c in atom.expr.terms])
                residue = atom.expr.constant % step
                known = (residue, k - step + residue)
            self._atoms[atom] = known
        return known


def primitive_terms(terms: Terms) -> tuple[Terms, int]:
    """``terms`` divided by a factor so that they have no common divisor and the first coefficient is positive."""
    factor = math.gcd(*[c for _, c in terms])
    if terms[0][1] < 0:
        factor = -factor
    return (terms if factor == 1 else tuple([(atom, c // factor) for atom, c in terms])), factor


def linearize(indices: Sequence[AffineExpr], shape: Sequence[int]) -> AffineExpr:
    """The row-major position of the element at ``indices`` in an array of ``shape``."""
    if len(indices) != len(shape):
        raise ValueError(f"{len(indices)} indices for an array of rank {len(shape)}")
    parts = []
    stride = 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        parts.append((index, stride))
        stride *= size
    return weighted_sum(parts)


def delinearize(expr: AffineExpr, shape: Sequence[int]) -> tuple[AffineExpr, ...]:
    """The indices of the element at row-major position ``expr`` of an array of ``shape``.

    The caller guarantees that the position is inside: the leading index is not wrapped. Indices into dimensions of
    size 1 are the constant 0, and so are all indices of an array without elements.
    """
    if math.prod(shape) == 0:
        return (_ZERO,) * len(shape)
    indices = []
    stride = math.prod(shape)
    leading = True
    for size in shape:
        stride //= size
        if size == 1:
            indices.append(_ZERO)
            continue
        quotient = expr // stride
        indices.append(quotient if leading else quotient % size)
        leading = False
    return tuple(indices)


def _atom_key(item: tuple[Atom, int]) -> tuple[Any, ...]:
    return item[0].key


def _as_divisor(value: AffineExpr | int) -> int:
    if isinstance(value, AffineExpr):
        if not value.is_constant:
            raise ValueError(f"not affine: division by {value}")
        value = value.constant
    if value <= 0:
        raise ValueError(f"the divisor must be positive, got {value}")
    return value


def _substitute_atom(atom: Atom, dims: Substitution | None, symbols: Substitution | None) -> AffineExpr:
    if isinstance(atom, Division):
        inner = atom.expr.substitute(dims, symbols)
        return inner // atom.divisor if isinstance(atom, FloorDiv) else inner % atom.divisor
    assert isinstance(atom, VARIABLES)
    values = dims if isinstance(atom, Dim) else symbols
    # To ask for a protocol takes longer than all else here.
    if isinstance(values, _SEQUENCES):
        return values[atom.index]
    if values is None:
        return AffineExpr(((atom, 1),), 0)
    found = values.get(atom.index) if isinstance(values, Mapping) else values[atom.index]
    return AffineExpr(((atom, 1),), 0) if found is None else found


def _atom_divisor(atom: Atom) -> int:
    if not isinstance(atom, Division):
        return 1
    inner = atom.expr.divisor()
    if isinstance(atom, Mod):
        return math.gcd(inner, atom.divisor)
    return inner // atom.divisor if inner % atom.divisor == 0 else 1


def _collect_variables(expr: AffineExpr, dims: set[int], symbols: set[int]) -> None:
    for atom, _ in expr.terms:
        if isinstance(atom, Dim):
            dims.add(atom.index)
        elif isinstance(atom, Symbol):
            symbols.add(atom.index)
        elif isinstance(atom, Division):
            _collect_variables(atom.expr, dims, symbols)

"""The gradient of a scan as another scan, from the end, of numbers and of proof points alike."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from xgpu import ir
from xgpu.passes.normalize.scans.polynomials import Algebra, NoPolynomialError, Number, Polynomials
from xgpu.passes.normalize.scans.transitions import Transitions

_MOST_ARRAYS = 16
"""Arrays of a gradient's scan at most."""


class Arrays[T](Algebra[T], Protocol):
    """Arrays with a dimension along which scans go."""

    def filled(self, number: Number, like: T) -> T:
        """Return an array of the size of another, of one number."""

    def part(self, value: T, start: int, end: int) -> T:
        """Return the elements from ``start`` until before ``end``."""

    def padded(self, value: T, before: int, after: int) -> T:
        """Return an array with zeros before and after its elements."""

    def joined(self, first: T, second: T) -> T:
        """Return the elements of one array and then another's."""

    def scan(self, arrays: Sequence[T], from_end: bool, combine: Callable[[list[T]], Sequence[T]]) -> list[T]:
        """Return the scans of arrays."""


class Recurrence:
    """How elements of a scan make the next ones: ``s[i] = c(s[i-1], e[i])``, where ``c`` is some polynomials.

    With cotangents ``t`` of ``s``, what a result depends on ``s[i]`` by, in all, and the gradients are

        u[i] = t[i] + (dc/ds)(s[i], e[i+1])^T u[i+1];  g[i] = (dc/de)(s[i-1], e[i])^T u[i];  g[0] = u[0]

    A chain of ``u = t + M u`` is a scan of pairs ``(M, t)``, in which the matrices are `Transitions`.
    """

    def __init__(self, block: ir.Block):
        self.polynomials, self.results = Polynomials.of_region(block)
        self.count = len(self.results)

    @cached_property
    def _by_scan(self) -> list[list[int]]:
        """What each result depends on what comes before by: row for each result, column for each array."""
        return [[self.polynomials.derivative(each, i) for i in range(self.count)] for each in self.results]

    @cached_property
    def _by_element(self) -> list[list[int]]:
        columns = range(self.count, 2 * self.count)
        return [[self.polynomials.derivative(each, i) for i in columns] for each in self.results]

    def scans[T](self, arrays: Arrays[T], elements: Sequence[T], from_end: bool = False) -> list[T]:
        """Return the scans of the arrays."""

        def combine(operands: list[T]) -> list[T]:
            found = self.polynomials.values(self.results, arrays, dict(enumerate(operands)))
            return [self._array(arrays, each, operands[0]) for each in found]

        return arrays.scan(elements, from_end, combine)

    def _array[T](self, arrays: Arrays[T], value: T | Number, like: T) -> T:
        return arrays.filled(value, like) if isinstance(value, int | float) else value

    def reached(self, given: frozenset[int]) -> list[int]:
        """Return the arrays that have a ``u`` other than zero where those of these numbers have cotangents."""
        return self._closure(given, lambda i: [j for j in range(self.count) if self._is_set(self._by_scan[i][j])])

    def _is_set(self, node: int) -> bool:
        return node != self.polynomials.number(0)

    def _closure(self, first: frozenset[int], after: Callable[[int], Sequence[int]]) -> list[int]:
        found, pending = set(first), list(first)
        while pending:
            new = set(after(pending.pop())) - found
            found |= new
            pending += new
        return sorted(found)

    def concerns(self, result: int, wanted: int) -> bool:
        """Whether the gradient by an array depends on the cotangent of a result."""
        return bool(self.needed(frozenset([result]), frozenset([wanted])))

    def needed(self, given: frozenset[int], wanted: frozenset[int]) -> list[int]:
        """Return the arrays whose ``u`` the gradients of the wanted arrays need."""
        reached = self.reached(given)
        first = frozenset(i for i in reached if any(self._is_set(self._by_element[i][j]) for j in wanted))
        first |= wanted & frozenset(reached)
        return self._closure(first, lambda i: [j for j in reached if self._is_set(self._by_scan[j][i])])

    def gradients[T](
        self,
        arrays: Arrays[T],
        size: int,
        elements: Mapping[int, T],
        prefixes: Callable[[], Sequence[T]],
        cotangents: Mapping[int, T],
        wanted: frozenset[int],
    ) -> dict[int, T]:
        """Return the gradients by the wanted arrays that are not zero. There are two elements or more."""
        needed = self.needed(frozenset(cotangents), wanted)
        chains = dict(zip(needed, self._chains(arrays, size, elements, prefixes, cotangents, needed), strict=True))
        found = {i: self._gradient(arrays, size, elements, prefixes, chains, i) for i in wanted}
        return {i: gradient for i, gradient in found.items() if gradient is not None}

    def _chains[T](
        self,
        arrays: Arrays[T],
        size: int,
        elements: Mapping[int, T],
        prefixes: Callable[[], Sequence[T]],
        cotangents: Mapping[int, T],
        needed: Sequence[int],
    ) -> list[T]:
        """Return ``u`` of the needed arrays."""
        like = next(iter(cotangents.values()))
        vectors = [cotangents[i] if i in cotangents else arrays.filled(0, like) for i in needed]
        matrix = Transitions(self.polynomials, [[self._by_scan[j][i] for j in needed] for i in needed])
        if len(matrix.entries) + len(vectors) > _MOST_ARRAYS:
            raise NoPolynomialError
        found = self._shifted(arrays, size, elements, prefixes, matrix.entries)
        entries = [arrays.padded(self._array(arrays, each, arrays.part(like, 1, size)), 0, 1) for each in found]

        def combine(operands: list[T]) -> list[T]:
            return [self._array(arrays, each, operands[0]) for each in matrix.combined(arrays, operands)]

        return arrays.scan([*entries, *vectors], True, combine)[len(entries) :]

    def _shifted[T](
        self,
        arrays: Arrays[T],
        size: int,
        elements: Mapping[int, T],
        prefixes: Callable[[], Sequence[T]],
        nodes: Sequence[int],
        others: Mapping[int, T] | None = None,
    ) -> list[T | Number]:
        """Return the values of nodes for each element but the first, and what is before it."""
        known = dict(others or {})
        for i in self.polynomials.arguments(nodes) - known.keys():
            if i < self.count:
                known[i] = arrays.part(prefixes()[i], 0, size - 1)
            elif i - self.count in elements:
                known[i] = arrays.part(elements[i - self.count], 1, size)
            else:
                raise NoPolynomialError
        return self.polynomials.values(nodes, arrays, known)

    def _gradient[T](
        self,
        arrays: Arrays[T],
        size: int,
        elements: Mapping[int, T],
        prefixes: Callable[[], Sequence[T]],
        chains: Mapping[int, T],
        wanted: int,
    ) -> T | None:
        factors = {i: self._by_element[i][wanted] for i in chains if self._is_set(self._by_element[i][wanted])}
        if not factors:
            return None
        if factors == {wanted: self.polynomials.number(1)}:
            return chains[wanted]
        # The chains count as more arguments.
        others = {2 * self.count + i: arrays.part(chains[i], 1, size) for i in factors}
        terms = [
            self.polynomials.apply("multiply", [factor, self.polynomials.argument(2 * self.count + i)])
            for i, factor in factors.items()
        ]
        (rest,) = self._shifted(arrays, size, elements, prefixes, [self.polynomials.total(terms)], others)
        assert not isinstance(rest, int | float)
        if wanted not in chains:
            return arrays.padded(rest, 1, 0)
        return arrays.joined(arrays.part(chains[wanted], 0, 1), rest)

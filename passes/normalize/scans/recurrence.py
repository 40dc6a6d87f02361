"""The gradient of a scan as another scan, from the end, of numbers and of proof points alike."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from xgpu import ir
from xgpu.passes.normalize.scans.polynomials import Algebra, NoPolynomialError, Number, Polynomials
from xgpu.passes.normalize.scans.transitions import Transitions
from xgpu.records import dataclass

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


class Combination:
    """A scan's combination of the previous state and an element, as polynomials."""

    def __init__(self, block: ir.Block):
        self.polynomials, self.results = Polynomials.of_region(block)
        self.count = len(self.results)

    def scans[T](self, arrays: Arrays[T], elements: Sequence[T], from_end: bool = False) -> list[T]:
        """Return the scans of the arrays."""

        def combine(operands: list[T]) -> list[T]:
            found = self.polynomials.values(self.results, arrays, dict(enumerate(operands)))
            return [_array(arrays, each, operands[0]) for each in found]

        return arrays.scan(elements, from_end, combine)


@dataclass(frozen=True)
class Given[T]:
    """A scan's arrays, which are ``size`` long, at least 2, and what computes its results if they are needed."""

    arrays: Arrays[T]
    size: int
    elements: Sequence[T]
    prefixes: Callable[[], Sequence[T]]


class ScanRecurrence(Combination):
    """The recurrence of a scan, ``s[i] = c(s[i-1], e[i])``, where ``c`` is some polynomials.

    With cotangents ``t`` of ``s``, what a result depends on ``s[i]`` by, in all, and the gradients are

        u[i] = t[i] + (dc/ds)(s[i], e[i+1])^T u[i+1];  g[i] = (dc/de)(s[i-1], e[i])^T u[i];  g[0] = u[0]

    A chain of ``u = t + M u`` is a scan of pairs ``(M, t)``, in which the matrices are `Transitions`.
    """

    def __init__(self, block: ir.Block):
        super().__init__(block)
        # What each result depends on what comes before by, and on the element: row for each result.
        self._by_scan = self._derivatives(0)
        self._by_element = self._derivatives(self.count)

    def _derivatives(self, first: int) -> list[list[int]]:
        """Return each result's derivatives by the arguments from the first on. Raises `NoPolynomialError`."""
        columns = range(first, first + self.count)
        return [[self.polynomials.derivative(each, i) for i in columns] for each in self.results]

    @cached_property
    def constants(self) -> tuple[Number, ...] | None:
        """The derivatives if all are numbers, so that gradients depend on cotangents alone; None for others."""
        nodes = [self.polynomials.nodes[i] for row in (*self._by_scan, *self._by_element) for i in row]
        return tuple(node.number for node in nodes) if all(node.kind == "number" for node in nodes) else None

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

    def gradients[T](self, given: Given[T], cotangents: Mapping[int, T], wanted: frozenset[int]) -> dict[int, T]:
        """Return the gradients by the wanted arrays that are not zero."""
        needed = self.needed(frozenset(cotangents), wanted)
        chains = dict(zip(needed, self._chains(given, cotangents, needed), strict=True))
        found = {i: self._gradient(given, chains, i) for i in wanted}
        return {i: gradient for i, gradient in found.items() if gradient is not None}

    def _chains[T](self, given: Given[T], cotangents: Mapping[int, T], needed: Sequence[int]) -> list[T]:
        """Return ``u`` of the needed arrays."""
        arrays, like = given.arrays, next(iter(cotangents.values()))
        vectors = [cotangents[i] if i in cotangents else arrays.filled(0, like) for i in needed]
        matrix = Transitions(self.polynomials, [[self._by_scan[j][i] for j in needed] for i in needed])
        if len(matrix.entries) + len(vectors) > _MOST_ARRAYS:
            raise NoPolynomialError
        found = self._shifted(given, matrix.entries, {})
        entries = [arrays.padded(_array(arrays, each, arrays.part(like, 1, given.size)), 0, 1) for each in found]

        def combine(operands: list[T]) -> list[T]:
            return [_array(arrays, each, operands[0]) for each in matrix.combined(arrays, operands)]

        return arrays.scan([*entries, *vectors], True, combine)[len(entries) :]

    def _shifted[T](self, given: Given[T], nodes: Sequence[int], chains: Mapping[int, T]) -> list[T | Number]:
        """Return the values of nodes for each element but the first, and what is before it. Chains are arguments, too.

        These have numbers after those of the elements.
        """
        known = {2 * self.count + i: given.arrays.part(chain, 1, given.size) for i, chain in chains.items()}
        for i in self.polynomials.arguments(nodes) - known.keys():
            if i < self.count:
                known[i] = given.arrays.part(given.prefixes()[i], 0, given.size - 1)
            else:
                known[i] = given.arrays.part(given.elements[i - self.count], 1, given.size)
        return self.polynomials.values(nodes, given.arrays, known)

    def _gradient[T](self, given: Given[T], chains: Mapping[int, T], wanted: int) -> T | None:
        factors = {i: self._by_element[i][wanted] for i in chains if self._is_set(self._by_element[i][wanted])}
        if not factors:
            return None
        if factors == {wanted: self.polynomials.number(1)}:
            return chains[wanted]
        terms = [
            self.polynomials.apply("multiply", [factor, self.polynomials.argument(2 * self.count + i)])
            for i, factor in factors.items()
        ]
        (rest,) = self._shifted(given, [self.polynomials.total(terms)], {i: chains[i] for i in factors})
        assert not isinstance(rest, int | float)
        if wanted not in chains:
            return given.arrays.padded(rest, 1, 0)
        return given.arrays.joined(given.arrays.part(chains[wanted], 0, 1), rest)


def _array[T](arrays: Arrays[T], value: T | Number, like: T) -> T:
    return arrays.filled(value, like) if isinstance(value, int | float) else value

"""The matrices of a linear recurrence, as few arrays as possible."""

from collections.abc import Sequence
from functools import cached_property

from xgpu.passes.normalize.scans.polynomials import Algebra, NoPolynomialError, Number, Polynomials
from xgpu.records import dataclass


@dataclass(frozen=True)
class _Entry:
    """An entry that is 0 where ``gate`` is given and does not hold, and else ``factor``, which is 1 if not given.

    Both are nodes. What is not let through a gate is not multiplied by 0, which would make NaN of infinity.
    """

    gate: int | None
    factor: int | None


class Transitions:
    """A square matrix of nodes, to be multiplied: entries that are equal in all products are one node.

    ``entries`` are the nodes of arrays that say the matrix, from which products are made again. Raises
    `NoPolynomialError` if a product has numbers where the matrix has zeros: what these are multiplied by may be NaN.
    """

    def __init__(self, polynomials: Polynomials, nodes: Sequence[Sequence[int]]):
        self._polynomials = polynomials
        self._nodes = nodes
        self._size = len(nodes)
        rows, zero = range(self._size), polynomials.number(0)
        self._factors = {
            (i, j): [k for k in rows if zero not in (nodes[i][k], nodes[k][j])] for i in rows for j in rows
        }
        if any(factors and nodes[i][j] == zero for (i, j), factors in self._factors.items()):
            raise NoPolynomialError
        self._factors = {(i, j): factors for (i, j), factors in self._factors.items() if nodes[i][j] != zero}
        self._kinds = self._refined()
        self._firsts = {
            kind: next(at for at in self._kinds if self._kinds[at] == kind) for kind in self._kinds.values()
        }
        entries = {kind: self._entry(at) for kind, at in self._firsts.items()}
        self._gates = {kind: entry.gate for kind, entry in entries.items() if entry.gate is not None}
        self._multiplied = {kind: entry.factor for kind, entry in entries.items() if entry.factor is not None}
        self.entries = [*self._gates.values(), *self._multiplied.values()]

    def _refined(self) -> dict[tuple[int, int], int]:
        """Return a number for each entry, which those have in common that have the same node and the same products."""
        kinds = {(i, j): self._nodes[i][j] for i, j in self._factors}
        while True:
            found = {
                (i, j): (kinds[i, j], tuple((kinds[i, k], kinds[k, j]) for k in factors))
                for (i, j), factors in self._factors.items()
            }
            numbers = {each: number for number, each in enumerate(dict.fromkeys(found.values()))}
            refined = {at: numbers[found[at]] for at in found}
            if len(set(refined.values())) == len(set(kinds.values())):
                return refined
            kinds = refined

    def _entry(self, at: tuple[int, int]) -> _Entry:
        """Return what an entry is made of. It has a gate only if products have the product of two such entries."""
        made, (i, j) = self._polynomials, at
        factor, gate, zero, one = self._nodes[i][j], None, made.number(0), made.number(1)
        is_own = i == j and self._factors[at] == [i]
        while made.nodes[factor].kind == "select" and zero in made.nodes[factor].operands[1:]:
            condition, left, right = made.nodes[factor].operands
            holds = condition if right == zero else made.apply("not", [condition])
            gate = holds if gate is None else made.apply("and", [gate, holds])
            factor = left if right == zero else right
        if gate is not None and not is_own:
            raise NoPolynomialError
        return _Entry(gate, None if is_own and factor == one else factor)

    def combined[T](self, algebra: Algebra[T], operands: Sequence[T]) -> list[T | Number]:
        """Return what entries and vectors come to: those of what comes before, and those of an element, are given."""
        made, results = self._products
        return made.values(results, algebra, dict(enumerate(operands)))

    @cached_property
    def _products(self) -> tuple[Polynomials, list[int]]:
        """The polynomials of the entries and vectors of what comes before, and of those of an element."""
        made, half = Polynomials(), len(self.entries) + self._size
        gates = {kind: place for place, kind in enumerate(self._gates)}
        multiplied = {kind: len(gates) + place for place, kind in enumerate(self._multiplied)}

        def factor(kind: int, side: int) -> int:
            return made.argument(half * side + multiplied[kind]) if kind in multiplied else made.number(1)

        def vector(i: int, side: int) -> int:
            return made.argument(half * side + len(self.entries) + i)

        results = [made.apply("and", [made.argument(half + i), made.argument(i)]) for i in gates.values()]
        for kind in multiplied:
            i, j = self._firsts[kind]
            pairs = [(self._kinds[i, k], self._kinds[k, j]) for k in self._factors[i, j]]
            terms = [made.apply("multiply", [factor(left, 1), factor(right, 0)]) for left, right in pairs]
            results.append(made.total(terms))
        for i in range(self._size):
            total = vector(i, 1)
            for k, kind in ((k, self._kinds[i, k]) for k in range(self._size) if (i, k) in self._kinds):
                term = made.apply("multiply", [factor(kind, 1), vector(k, 0)])
                if kind in gates:
                    term = made.apply("select", [made.argument(half + gates[kind]), term, made.number(0)])
                total = made.apply("add", [total, term])
            results.append(total)
        return made, results

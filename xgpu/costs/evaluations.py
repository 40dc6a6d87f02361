"""Counts how often the kernels of a plan compute each value of a block.

Operations are placed as emission will place them (`xgpu.analysis.placement`): consumers that read a value at the same
indices share one computation, all others recompute it. Going backwards through the block, each read passes its count on
to what it reads.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xgpu import ir
from xgpu.analysis.placement import Placement, Reads, Scope
from xgpu.costs.footprint import footprint
from xgpu.costs.recomputation import LOAD, MOST_VISITED
from xgpu.costs.values import instructions, is_immediate
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import captured, producer

_RUN = 8
"""Neighbouring elements of a result for which a thread computes a common value once."""


class Kernel(Protocol):
    """A kernel as the planner knows it: a key that tells it from others."""

    def shares(self, op: ir.Operation) -> bool:
        """Whether its threads share what ``op`` reads, so that the kernel computes each element of that once."""
        ...


class Evaluations[K: Kernel]:
    """Counts evaluations of a block's operations in reverse order, in which `want` and `compute` are called."""

    def __init__(self, operations: Sequence[ir.Operation]):
        self._operations = operations
        self._numbers = {op: number for number, op in enumerate(operations)}
        self._known: dict[ir.Operation, _Known] = {}
        self._wanted: dict[ir.Value, dict[K, set[Scope]]] = {}
        self._placements: dict[K, Placement] = {}
        self._roots: dict[tuple[K, Shape], Scope] = {}
        self._counts: dict[Scope, float] = {}
        self._scopes: dict[tuple[ir.Operation, K], Scope] = {}

    def start(self) -> None:
        """Forget all kernels; what is known of operations is kept."""
        for table in (self._wanted, self._placements, self._roots, self._counts, self._scopes):
            table.clear()

    def want(self, value: ir.Value, kernel: K) -> None:
        """Record that ``kernel`` computes all elements of ``value``."""
        self._want(value, kernel, self._root(kernel, shape_of(value)))

    def of(self, value: ir.Value) -> dict[K, float]:
        """Return how many elements of ``value`` each kernel computes that reads it and does not find it in memory."""
        wanted = self._wanted.get(value)
        if wanted is None:
            return {}
        op = producer(value)
        return {kernel: self._place(op, kernel) for kernel in wanted}

    def compute(self, op: ir.Operation, kernels: Iterable[K]) -> None:
        """Pass the counts of ``op`` on to its operands, for ``kernels``, whose results it computes."""
        inside = captured(op)
        for kernel in kernels:
            if op.name not in OPERATIONS or kernel.shares(op):
                for operand in (*op.operands, *inside):
                    self.want(operand, kernel)
                continue
            times = self._place(op, kernel)
            scope, known, placement = self._scopes[op, kernel], self._known_of(op), self._placements[kernel]
            for position, operand in enumerate(known.operands):
                child = placement.child(known.reads, position, scope)
                if child not in self._counts:
                    self._counts[child] = known.repeats[position].times(times)
                self._want(operand, kernel, child)
            for value in inside:
                self._want(value, kernel, scope)

    def _place(self, op: ir.Operation, kernel: K) -> float:
        """Place ``op`` in ``kernel``, after all its consumers; return how often it is computed there."""
        scope = self._scopes.get((op, kernel))
        if scope is None:
            wanted = set[Scope]()
            for number in range(len(op.results)):
                wanted |= self._wanted.get(op.results[number], {}).get(kernel, set())
            scope = self._scopes[op, kernel] = self._placements[kernel].place(op, wanted)
            if scope not in self._counts:
                self._counts[scope] = sum(self._counts[each] for each in wanted)
        return self._counts[scope]

    def instructions_again(self, value: ir.Value, is_stored: Callable[[ir.Value], bool], most: float) -> float:
        """Return how many more instructions it takes to compute an element of ``value`` than to load it.

        Stored inputs are loaded from caches. The count stops at ``most`` instructions; for very many operations it is
        infinite.
        """
        placement, size = Placement(), math.prod(shape_of(value))
        root = placement.root(shape_of(value))
        counts: dict[Scope, float] = {root: size}
        wanted = {producer(value): {root}}
        pending = [-self._numbers[producer(value)]]
        read = set[tuple[ir.Value, Scope]]()
        total = -float(LOAD * size)
        for _ in range(MOST_VISITED):
            if not pending or total > most * size:
                return total / size
            op = self._operations[-heapq.heappop(pending)]
            scopes, known = wanted[op], self._known_of(op)
            scope = placement.place(op, scopes)
            times = counts.setdefault(scope, sum(counts[each] for each in scopes))
            total += times * instructions(op)
            for position, operand in enumerate(known.operands):
                child = placement.child(known.reads, position, scope)
                if child not in counts:
                    counts[child] = known.repeats[position].times(times)
                if is_immediate(operand):
                    continue
                if is_stored(operand) or producer(operand).name not in OPERATIONS:
                    # What has no indexing maps is a hero, stored by a kernel whichever other values are.
                    total += LOAD * counts[child] * ((operand, child) not in read)
                    read.add((operand, child))
                    continue
                if producer(operand) not in wanted:
                    heapq.heappush(pending, -self._numbers[producer(operand)])
                wanted.setdefault(producer(operand), set()).add(child)
        return math.inf

    def _want(self, value: ir.Value, kernel: K, scope: Scope) -> None:
        self._wanted.setdefault(value, {}).setdefault(kernel, set()).add(scope)

    def _root(self, kernel: K, shape: Shape) -> Scope:
        placement = self._placements.setdefault(kernel, Placement())
        if (kernel, shape) not in self._roots:
            scope = self._roots[kernel, shape] = placement.root(shape)
            self._counts[scope] = math.prod(shape)
        return self._roots[kernel, shape]

    def _known_of(self, op: ir.Operation) -> "_Known":
        known = self._known.get(op)
        if known is None:
            reads = Reads.of(self._numbers[op], op)
            repeats = tuple(_Repeat.of(reads, position) for position in range(len(reads.accesses)))
            operands = tuple(op.operands[access.operand] for access in reads.accesses)
            known = self._known[op] = _Known(reads, repeats, operands)
        return known


@dataclass(frozen=True)
class _Repeat:
    """The frequency of a read: ``factor`` times for each evaluation of its operation, and ``least`` times at least."""

    factor: float
    least: int

    @classmethod
    def of(cls, reads: Reads, position: int) -> "_Repeat":
        """Return the count of an access.

        Where an access happens at some indices only, these are taken to be as frequent as all others.
        """
        map_ = reads.maps[position]
        factor = float(math.prod(interval.size for interval in map_.symbols))
        for expression, interval in map_.constraints:
            possible = expression.interval(map_.dims, map_.symbols)
            factor *= possible.intersect(interval).size / max(1, possible.size)
        # Not the indices of gathers: chains of them execute four times the operations that would be counted.
        alike = _neighbours_alike(map_) if reads.kind == "indexing" and len(reads.accesses) == 1 else 1
        return cls(factor / _shared_by_neighbours(alike), footprint(map_) if alike > 1 else 0)

    def times(self, computed: float) -> float:
        """Return how often the read happens if its operation is computed so often."""
        return max(self.factor * computed, self.least)


def _shared_by_neighbours(alike: int) -> int:
    """Return how many of so many neighbours that need a common value a thread computes it for once.

    Short runs are neither elements of a vector nor steps of a thread's loop, but for their powers of two.
    """
    return _RUN if alike >= _RUN else math.gcd(alike, _RUN)


def _neighbours_alike(map_: IndexingMap) -> int:
    """Return how many neighbours in the dimensions of a map have the same results."""
    used = set[int]().union(*(expr.variables()[0] for expr in map_.results))
    return math.prod(max(1, interval.size) for interval in map_.dims[max(used, default=-1) + 1 :])


@dataclass(frozen=True)
class _Known:
    """The reads of an operation, however it is placed: for each access how often it happens, and the operand."""

    reads: Reads
    repeats: "tuple[_Repeat, ...]"
    operands: tuple[ir.Value, ...]

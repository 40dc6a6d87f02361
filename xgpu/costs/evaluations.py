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
from xgpu.analysis.captures import captured, maker
from xgpu.analysis.placement import Placement, Reads, Scope
from xgpu.costs.footprint import footprint
from xgpu.costs.recomputation import LOAD, MOST_VISITED
from xgpu.costs.values import instructions, is_immediate
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.indexing_map import IndexingMap

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
        self._reads: dict[ir.Operation, Reads] = {}
        self._repeats: dict[ir.Operation, list[_Repeat]] = {}
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
        return {kernel: self._place(maker(value), kernel) for kernel in self._wanted.get(value, {})}

    def compute(self, op: ir.Operation, kernels: Iterable[K]) -> None:
        """Pass the counts of ``op`` on to its operands, for ``kernels``, whose results it computes."""
        for kernel in kernels:
            if op.name not in OPERATIONS or kernel.shares(op):
                for operand in (*op.operands, *captured(op)):
                    self.want(operand, kernel)
                continue
            times = self._place(op, kernel)
            scope, reads = self._scopes[op, kernel], self._reads_of(op)
            for position, child in self._placements[kernel].children(reads, scope):
                if child not in self._counts:
                    self._counts[child] = self._repeats[op][position].times(times)
                self._want(op.operands[reads.accesses[position].operand], kernel, child)
            for value in captured(op):
                self._want(value, kernel, scope)

    def _place(self, op: ir.Operation, kernel: K) -> float:
        """Place ``op`` in ``kernel``, after all its consumers; return how often it is computed there."""
        if (op, kernel) not in self._scopes:
            wanted = set[Scope]().union(*(self._wanted.get(value, {}).get(kernel, ()) for value in op.results))
            scope = self._scopes[op, kernel] = self._placements[kernel].place(op, wanted)
            self._counts.setdefault(scope, sum(self._counts[each] for each in wanted))
        return self._counts[self._scopes[op, kernel]]

    def instructions_again(self, value: ir.Value, is_stored: Callable[[ir.Value], bool], most: float) -> float:
        """Return how many more instructions it takes to compute an element of ``value`` than to load it.

        Stored inputs are loaded from caches. The count stops at ``most`` instructions; for very many operations it is
        infinite.
        """
        placement, size = Placement(), math.prod(shape_of(value))
        root = placement.root(shape_of(value))
        counts: dict[Scope, float] = {root: size}
        wanted = {maker(value): {root}}
        pending = [-self._numbers[maker(value)]]
        read = set[tuple[ir.Value, Scope]]()
        total = -float(LOAD * size)
        for _ in range(MOST_VISITED):
            if not pending or total > most * size:
                return total / size
            op = self._operations[-heapq.heappop(pending)]
            scopes, reads = wanted[op], self._reads_of(op)
            scope = placement.place(op, scopes)
            times = counts.setdefault(scope, sum(counts[each] for each in scopes))
            total += times * instructions(op)
            for position, child in placement.children(reads, scope):
                operand = op.operands[reads.accesses[position].operand]
                if child not in counts:
                    counts[child] = self._repeats[op][position].times(times)
                if is_immediate(operand):
                    continue
                if is_stored(operand) or maker(operand).name not in OPERATIONS:
                    # What has no indexing maps is a hero, stored by a kernel whichever other values are.
                    total += LOAD * counts[child] * ((operand, child) not in read)
                    read.add((operand, child))
                    continue
                if maker(operand) not in wanted:
                    heapq.heappush(pending, -self._numbers[maker(operand)])
                wanted.setdefault(maker(operand), set()).add(child)
        return math.inf

    def _want(self, value: ir.Value, kernel: K, scope: Scope) -> None:
        self._wanted.setdefault(value, {}).setdefault(kernel, set()).add(scope)

    def _root(self, kernel: K, shape: Shape) -> Scope:
        placement = self._placements.setdefault(kernel, Placement())
        if (kernel, shape) not in self._roots:
            scope = self._roots[kernel, shape] = placement.root(shape)
            self._counts[scope] = math.prod(shape)
        return self._roots[kernel, shape]

    def _reads_of(self, op: ir.Operation) -> Reads:
        if op not in self._reads:
            reads = self._reads[op] = Reads.of(self._numbers[op], op)
            self._repeats[op] = [_Repeat.of(reads, position) for position in range(len(reads.accesses))]
        return self._reads[op]


@dataclass(frozen=True)
class _Repeat:
    """How often a read happens: ``factor`` times for each evaluation of its operation, and ``least`` times at least."""

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
        return cls(factor / min(_RUN, alike), footprint(map_) if alike > 1 else 0)

    def times(self, computed: float) -> float:
        """Return how often the read happens if its operation is computed so often."""
        return max(self.factor * computed, self.least)


def _neighbours_alike(map_: IndexingMap) -> int:
    """Return how many neighbours in the dimensions of a map have the same results."""
    used = set[int]().union(*(expr.variables()[0] for expr in map_.results))
    return math.prod(max(1, interval.size) for interval in map_.dims[max(used, default=-1) + 1 :])

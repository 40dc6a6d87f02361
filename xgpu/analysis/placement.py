"""Places the operations of a kernel: finds the scopes at which they are read, and the subgraphs that these make.

Operations are placed from the last to the first, so that all users of one are placed before it. Emission and the
planner's cost model place them by the same rules: the one counts how often what the other writes will run.

A *scope* stands for "at these indices, in this region". Users that read an operand at their own indices share their
scope with it; every other read opens a child scope. Two reads through equal maps from the same scope open the same
child scope, so transposing a value twice in the same way does not split the fusion.
"""

import math
from collections.abc import Collection, Iterator, Set
from dataclasses import replace
from functools import lru_cache

from xgpu import ir
from xgpu.hlo.operations import AccessKind
from xgpu.indexing.access import Access, Shape, shape_of
from xgpu.indexing.affine import constant
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass

MAX_REGION_DEPTH = 8
"""Conditional reads and reduction loops that one subgraph nests; the next one starts a new subgraph."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Indices and region at which operations are emitted.

    ``reader`` and ``access`` opened it from its parent; both are -1 at a root, and where all ``rank`` indices are 0, at
    the only element of arrays. ``region`` is the scope that opened the region, None for that of the function itself.
    ``map`` leads from the root's indices to these, if the partition composes maps and none of them needs a runtime
    index.
    """

    subgraph: int
    parent: "Scope | None" = None
    reader: int = -1
    access: int = -1
    depth: int = 0
    region: "Scope | None" = None
    map: IndexingMap | None = None
    rank: int = 0


@dataclass(frozen=True)
class Reads:
    """The accesses of an operation, with its number in program order and how it uses them.

    Facts that are asked for often are found once for each access: ``own``, whether it is at the operation's own
    indices; ``maps``, one object for all equal maps; ``deferred``, whether it is made inside a region that the
    operation opens (an ``if`` or a loop); ``single``, whether it reads an array of one element, so that all such reads
    are at one place; ``operands``, what it reads.
    """

    number: int
    op: ir.Operation
    kind: AccessKind
    accesses: tuple[Access, ...]
    own: tuple[bool, ...]
    maps: tuple[IndexingMap, ...]
    deferred: tuple[bool, ...]
    single: tuple[bool, ...]
    operands: tuple[ir.Value, ...]

    @classmethod
    def of(cls, number: int, op: ir.Operation) -> "Reads":
        """Look the operation up in the table of indexing maps. Raises `Unsupported` if it is not there."""
        kind, found = access_kind(op), accesses(op)
        feeding = {index.access for access in found for index in access.runtime}
        if kind == "piecewise":
            deferred = tuple(position not in feeding for position in range(len(found)))
        else:
            # The initial values of a reduction, which are as many as its results, are read before the loop.
            inside = len(found) if kind == "contract" else len(op.results) if kind == "reduce" else 0
            deferred = tuple(position < inside for position in range(len(found)))
        facts = [_facts(access.map) for access in found]
        is_own = kind == "elementwise"
        own = tuple([is_own and same and not access.runtime for access, (_, same) in zip(found, facts, strict=True)])
        given = list(op.operands)
        operands = tuple([given[access.operand] for access in found])
        single = tuple([math.prod(shape_of(operand)) == 1 for operand in operands])
        return cls(number, op, kind, found, own, tuple([map_ for map_, _ in facts]), deferred, single, operands)

    def is_only(self, position: int) -> bool:
        """Whether an access reads an only element, unconditionally: at the same place wherever its region reads it."""
        return self.single[position] and not self.deferred[position]


class Placement:
    """The scopes and subgraphs of one kernel; grows as operations are placed."""

    def __init__(self) -> None:
        self._subgraphs: list[Scope] = []
        self._callers: list[Set[Scope]] = []
        self._called_from: dict[frozenset[Scope], int] = {}
        self._children: dict[tuple[object, ...], Scope] = {}

    def root(self, shape: Shape, map_: IndexingMap | None = None) -> Scope:
        """Open a subgraph without callers, for values of ``shape`` that a kernel stores, and return its scope.

        Where ``map_``, the identity on the indices, is given, scopes are distinguished by the map from the root,
        whatever steps lead to it.
        """
        scope = self._open_subgraph(frozenset(), shape, map_)
        if map_ is not None:
            # Steps that lead back to the root's own indices, as two reshapes do, lead to its scope.
            self._children[scope, map_] = scope
        return scope

    def place(self, op: ir.Operation, wanted: Collection[Scope]) -> Scope:
        """Return the scope of ``op``, which is read at the scopes ``wanted``: that of a new subgraph if they differ."""
        if len(wanted) == 1:
            (scope,) = wanted
            if scope.depth <= MAX_REGION_DEPTH:
                return scope
        callers = frozenset(wanted)
        joined = self._joined(callers)
        if joined is not None:
            return self._subgraphs[joined]
        return self._open_subgraph(callers, shape_of(op.results[0]))

    def is_called(self, scope: Scope) -> bool:
        """Whether a scope is in a subgraph that others call, with indices of their own."""
        return bool(self._callers[scope.subgraph])

    def child(self, reads: Reads, position: int, scope: Scope) -> Scope:
        """Return the scope at which an operation placed at ``scope`` reads the operand of its access ``position``."""
        if reads.own[position]:
            return scope
        key = _scope_key(reads, position, scope)
        is_only = reads.is_only(position)
        if (scope.map is None or is_only) and (known := self._children.get(key)) is not None:
            return known
        child = _only(_home(scope), len(reads.maps[position].results)) if is_only else _child(reads, position, scope)
        if child.map is not None and not is_only:
            key = (_home(child), child.map)
        child = self._children.setdefault(key, child)
        if reads.deferred[position] and reads.single[position]:
            self._children[child, len(reads.maps[position].results)] = child
        return child

    def children(self, reads: Reads, scope: Scope) -> Iterator[tuple[int, Scope]]:
        """Yield the number of each access of an operation placed at ``scope``, and the scope that it opens."""
        for position in range(len(reads.accesses)):
            yield position, self.child(reads, position, scope)

    def _open_subgraph(self, callers: frozenset[Scope], shape: Shape, map_: IndexingMap | None = None) -> Scope:
        scope = Scope(len(self._subgraphs), map=map_)
        self._subgraphs.append(scope)
        self._callers.append(callers)
        if callers:
            self._called_from[callers] = scope.subgraph
        if math.prod(shape) == 1:
            self._children[scope, len(shape)] = scope
        return scope

    def _joined(self, wanted: frozenset[Scope]) -> int | None:
        """Return the subgraph that can compute a value at the scopes ``wanted`` without another call, if any."""
        for scope in wanted:
            if scope.parent is None and wanted - {scope} <= self._callers[scope.subgraph]:
                return scope.subgraph
        return self._called_from.get(wanted)


def _home(scope: Scope) -> Scope:
    """Return the scope that opens the region of ``scope``, or its function: values are shared within a region."""
    while scope.parent is not None and scope.parent.depth == scope.depth:
        scope = scope.parent
    return scope


def _only(home: Scope, rank: int) -> Scope:
    """Return the scope of only elements: a child of the scope that opens the region, so that no other must be open."""
    map_ = None
    if home.map is not None:
        map_ = replace(home.map, results=(constant(0),) * rank).simplify()
    return Scope(home.subgraph, home, depth=home.depth, region=home.region, map=map_, rank=rank)


def _child(reads: Reads, position: int, parent: Scope) -> Scope:
    if reads.deferred[position]:
        return Scope(parent.subgraph, parent, reads.number, position, parent.depth + 1, parent)
    access, map_ = reads.accesses[position], None
    if parent.map is not None and not access.runtime:
        map_ = parent.map.compose(access.map).simplify()
    return Scope(parent.subgraph, parent, reads.number, position, parent.depth, parent.region, map_)


def _scope_key(reads: Reads, position: int, scope: Scope) -> tuple[object, ...]:
    """Key of equal reads: at the same indices in the same region."""
    if reads.kind in ("reduce", "contract") and reads.deferred[position]:
        return (scope, reads.number, id(reads.maps[position]))
    if reads.deferred[position]:
        return (scope, reads.number, position)
    if reads.is_only(position):
        return (_home(scope), len(reads.maps[position].results))
    if reads.accesses[position].runtime:
        return (scope, reads.number, position)
    return (scope, id(reads.maps[position]))


@lru_cache(maxsize=1 << 16)
def _facts(map_: IndexingMap) -> tuple[IndexingMap, bool]:
    """Return an equal map seen before, and whether it is the identity: comparing maps again would take too long."""
    names = [f"d{i}" for i in range(len(map_.dims))]
    return map_, [str(result) for result in map_.results] == names

"""Where the operations of a kernel are placed: the scopes that they are read at, and the subgraphs that this makes.

Operations are placed from the last to the first, so that all users of one are placed before it. Emission and the
planner's cost model place them by the same rules: the one counts how often what the other writes will run.

A *scope* stands for "at these indices, in this region". Users that read an operand at their own indices share their
scope with it; every other read opens a child scope. Two reads through equal maps from the same scope open the same
child scope, so transposing a value twice in the same way does not split the fusion.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

from xgpu import ir
from xgpu.indexing.access import Access, AccessKind
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap

MAX_REGION_DEPTH = 8
"""Conditional reads and reduction loops that one subgraph nests; the next one starts a new subgraph."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Indices and region at which operations are emitted; ``reader`` and ``access`` opened it (None at a root).

    ``region`` is the scope that opened the region, None for that of the function itself. ``map`` leads from the root's
    indices to these, if the partition composes maps and none of them needs a runtime index.
    """

    subgraph: int
    parent: "Scope | None" = None
    reader: int = -1
    access: int = -1
    depth: int = 0
    region: "Scope | None" = None
    map: IndexingMap | None = None


@dataclass(frozen=True)
class Reads:
    """What an operation reads: its number in program order, how it uses its accesses, and these."""

    number: int
    op: ir.Operation
    kind: AccessKind
    accesses: tuple[Access, ...]

    @classmethod
    def of(cls, number: int, op: ir.Operation) -> "Reads":
        """Look the operation up in the table of indexing maps. Raises `Unsupported` if it is not there."""
        return cls(number, op, access_kind(op), accesses(op))

    def is_deferred(self, access: int) -> bool:
        """Whether a read happens inside a region that this operation opens (an ``if`` or a loop)."""
        if self.kind == "piecewise":
            return not self._feeds_an_index(access)
        # The initial values of a reduction, which are as many as its results, are read before the loop.
        return self.kind == "contract" or (self.kind == "reduce" and access < len(self.op.results))

    def _feeds_an_index(self, access: int) -> bool:
        return any(runtime.access == access for later in self.accesses for runtime in later.runtime)


class Placement:
    """The scopes and subgraphs of one kernel; grows as operations are placed."""

    def __init__(self) -> None:
        self._subgraphs: list[Scope] = []
        self._callers: list[Set[Scope]] = []
        self._called_from: dict[frozenset[Scope], int] = {}
        self._children: dict[tuple[object, ...], Scope] = {}

    def root(self, map_: IndexingMap | None = None) -> Scope:
        """Open a subgraph that nothing calls, for the values that a kernel stores, and return its scope.

        Where ``map_``, the identity on the indices, is given, scopes are told apart by the map from the root, however
        many steps lead to it.
        """
        scope = self._open_subgraph(frozenset(), map_)
        if map_ is not None:
            # Steps that lead back to the root's own indices, as two reshapes do, lead to its scope.
            self._children[scope.subgraph, None, map_] = scope
        return scope

    def place(self, wanted: Set[Scope]) -> Scope:
        """Return the scope for an operation that is wanted at some scopes, that of a subgraph of its own if need be."""
        if len(wanted) == 1:
            (scope,) = wanted
            if scope.depth <= MAX_REGION_DEPTH:
                return scope
        joined = self._joined(wanted)
        return self._subgraphs[joined] if joined is not None else self._open_subgraph(frozenset(wanted))

    def child(self, reads: Reads, position: int, scope: Scope) -> Scope:
        """Return the scope at which an operation placed at ``scope`` wants what its access ``position`` reads."""
        access = reads.accesses[position]
        if reads.kind == "elementwise" and _is_identity(access):
            return scope
        child = _child(reads, position, scope)
        key = _scope_key(reads, position, scope)
        if child.map is not None:
            key = (child.subgraph, child.region, child.map)
        return self._children.setdefault(key, child)

    def children(self, reads: Reads, scope: Scope) -> Iterator[tuple[int, Scope]]:
        """Yield the number of each access of an operation placed at ``scope``, and the scope that it opens."""
        for position in range(len(reads.accesses)):
            yield position, self.child(reads, position, scope)

    def _open_subgraph(self, callers: frozenset[Scope], map_: IndexingMap | None = None) -> Scope:
        scope = Scope(len(self._subgraphs), map=map_)
        self._subgraphs.append(scope)
        self._callers.append(callers)
        if callers:
            self._called_from[callers] = scope.subgraph
        return scope

    def _joined(self, wanted: Set[Scope]) -> int | None:
        """Return the subgraph that computes what is ``wanted`` at these scopes with no further call."""
        for scope in wanted:
            if scope.parent is None and wanted - {scope} <= self._callers[scope.subgraph]:
                return scope.subgraph
        return self._called_from.get(frozenset(wanted))


def _child(reads: Reads, position: int, parent: Scope) -> Scope:
    if reads.is_deferred(position):
        return Scope(parent.subgraph, parent, reads.number, position, parent.depth + 1, parent)
    access, map_ = reads.accesses[position], None
    if parent.map is not None and not access.runtime:
        map_ = parent.map.compose(access.map).simplify()
    return Scope(parent.subgraph, parent, reads.number, position, parent.depth, parent.region, map_)


def _scope_key(reads: Reads, position: int, scope: Scope) -> tuple[object, ...]:
    """What two reads must agree on to be at the same indices in the same region."""
    access = reads.accesses[position]
    if reads.kind in ("reduce", "contract") and reads.is_deferred(position):
        return (scope, reads.number, access.map)
    if reads.is_deferred(position) or access.runtime:
        return (scope, reads.number, position)
    return (scope, access.map)


def _is_identity(access: Access) -> bool:
    map_ = access.map
    return (
        not access.runtime
        and len(map_.results) == len(map_.dims)
        and all(str(result) == f"d{i}" for i, result in enumerate(map_.results))
    )

"""Partitions a fusion into subgraphs: the functions that the emitters will write, each operation in exactly one.

An operation goes where all its users are, if they all want it at the same indices; otherwise it starts a subgraph of
its own, which its users call. So calls may repeat, but no operation is ever emitted twice, and the size of the code
is linear in the size of the fusion. (Source: the partitioning of XLA's GPU emitters.)

A *scope* stands for "at these indices, in this region". Users that read an operand at their own indices share their
scope with it; every other read opens a child scope. Two reads through equal maps from the same scope open the same
child scope, so transposing a value twice in the same way does not split the fusion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xgpu import ir
from xgpu.indexing.access import Access, AccessKind, identity_map, shape_of
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


@dataclass
class Node:
    """An operation of the fusion: its number in program order, its reads, and the scope it was placed in."""

    number: int
    op: ir.Operation
    kind: AccessKind
    accesses: tuple[Access, ...]
    users: list[tuple[int, int]] = field(default_factory=list)
    scope: Scope = field(init=False)

    @property
    def is_free(self) -> bool:
        """Constants cost nothing to repeat: they are emitted wherever they are read, and belong to no subgraph."""
        return self.op.name == "stablehlo.constant"

    def is_deferred(self, access: int) -> bool:
        """Whether a read happens inside a region that this operation opens (an ``if`` or a loop)."""
        if self.kind == "piecewise":
            return not self._feeds_an_index(access)
        # The initial values of a reduction, which are as many as its results, are read before the loop.
        return self.kind == "contract" or (self.kind == "reduce" and access < len(self.op.results))

    def _feeds_an_index(self, access: int) -> bool:
        return any(runtime.access == access for later in self.accesses for runtime in later.runtime)


@dataclass(frozen=True)
class Subgraph:
    """A function to emit: ``roots`` are the node numbers whose results it returns, all at the same indices."""

    number: int
    roots: tuple[int, ...]
    scope: Scope


@dataclass(frozen=True)
class Partition:
    """A fusion's nodes in program order and its subgraphs, subgraph 0 being the one of the roots.

    ``results`` are the roots; ``injected`` are the values that are handed to the function of subgraph 0 as scalars.
    ``producer`` maps a value of the fusion to (node number, result number); parameters and injected values are not in
    it. ``scope_of`` gives the scope in which a read, (node number, access number), wants its operand.
    """

    nodes: tuple[Node, ...]
    subgraphs: tuple[Subgraph, ...]
    results: tuple[ir.Value, ...]
    producer: dict[ir.Value, tuple[int, int]]
    scope_of: dict[tuple[int, int], Scope]
    injected: Mapping[ir.Value, IndexingMap] = field(default_factory=dict)

    def is_injected(self, value: ir.Value, scope: Scope) -> bool:
        """Whether a read of ``value`` at ``scope`` takes the scalar that is handed in."""
        return scope.map is not None and scope.subgraph == 0 and self.injected.get(value) == scope.map


def partition(
    block: ir.Block,
    roots: Sequence[ir.Value] | None = None,
    injected: Mapping[ir.Value, IndexingMap] | None = None,
) -> Partition:
    """Partition what computes ``roots``, which are the results of the fusion if not given, in the body of a fusion.

    All roots that are not parameters have the same shape. The function of the roots is given ``injected`` values as
    scalars, at the indices that these maps make of the roots'; at other indices they are computed as any other value.
    Raises `Unsupported` for an operation that is not a function of its result's indices.
    """
    operations = [op.operation for op in block.operations]
    results = tuple(operations[-1].operands if roots is None else roots)
    injected = injected or {}
    needed = _needed(results)
    chosen = [op for op in operations[:-1] if op in needed]
    nodes = [Node(i, op, access_kind(op), accesses(op)) for i, op in enumerate(chosen)]
    producer: dict[ir.Value, tuple[int, int]] = {
        value: (node.number, i) for node in nodes for i, value in enumerate(node.op.results)
    }
    for node in nodes:
        for position, access in enumerate(node.accesses):
            operand = producer.get(node.op.operands[access.operand])
            if operand is not None:
                nodes[operand[0]].users.append((node.number, position))
    numbers = sorted({producer[value][0] for value in results if value in producer})
    empty = Partition(tuple(nodes), (), results, producer, {}, injected)
    return _Partitioner(empty, numbers).run()


def _needed(roots: Sequence[ir.Value]) -> set[ir.Operation]:
    """Return the operations that compute ``roots``."""
    pending = list(roots)
    needed: set[ir.Operation] = set()
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, ir.Block) and owner.operation not in needed:
            needed.add(owner.operation)
            pending += owner.operation.operands
    return needed


class _Partitioner:
    """Places nodes from the last to the first, so that all users of a node are placed before it."""

    def __init__(self, empty: Partition, roots: Sequence[int]):
        self.empty = empty
        self.nodes = empty.nodes
        self.roots = set(roots)
        # Where values are handed in, scopes are told apart by the map from the roots, however many steps lead to it.
        self.root_scope = Scope(0, map=self._root_map() if empty.injected else None)
        self.subgraphs = [Subgraph(0, tuple(roots), self.root_scope)]
        self.scope_of: dict[tuple[int, int], Scope] = {}
        self.children: dict[tuple[object, ...], Scope] = {}

    def _root_map(self) -> IndexingMap:
        return identity_map(shape_of(self.empty.results[0]))

    def run(self) -> Partition:
        for node in reversed(self.nodes):
            wanted = {self.scope_of[use] for use in node.users if self._is_wanted(node, use)}
            if node.number in self.roots and not self._is_given(node):
                wanted.add(self.root_scope)
            if wanted and not node.is_free:
                node.scope = self._place(node, wanted)
                self._open_scopes(node)
        return replace(self.empty, subgraphs=tuple(self.subgraphs), scope_of=self.scope_of)

    def _is_wanted(self, node: Node, use: tuple[int, int]) -> bool:
        """Whether a use needs the node to be computed: not if its user is not, or if it takes a value handed in."""
        if use not in self.scope_of:
            return False
        user, position = self.nodes[use[0]], use[1]
        value = user.op.operands[user.accesses[position].operand]
        return not self.empty.is_injected(value, self.scope_of[use])

    def _is_given(self, node: Node) -> bool:
        """Whether all results of a root are handed in at the root's own indices."""
        return all(self.empty.is_injected(value, self.root_scope) for value in node.op.results)

    def _place(self, node: Node, wanted: set[Scope]) -> Scope:
        if len(wanted) == 1:
            (scope,) = wanted
            if scope.depth <= MAX_REGION_DEPTH:
                return scope
        number = len(self.subgraphs)
        scope = Scope(number)
        self.subgraphs.append(Subgraph(number, (node.number,), scope))
        return scope

    def _open_scopes(self, node: Node) -> None:
        for position, access in enumerate(node.accesses):
            if node.kind == "elementwise" and _is_identity(access):
                self.scope_of[node.number, position] = node.scope
                continue
            scope = self._child(node, position, access)
            key = _scope_key(node, position, access)
            if scope.map is not None:
                key = (scope.subgraph, scope.region, scope.map)
            self.scope_of[node.number, position] = self.children.setdefault(key, scope)

    def _child(self, node: Node, position: int, access: Access) -> Scope:
        parent = node.scope
        if node.is_deferred(position):
            return Scope(parent.subgraph, parent, node.number, position, parent.depth + 1, parent)
        map_ = None
        if parent.map is not None and not access.runtime:
            map_ = parent.map.compose(access.map).simplify()
        return Scope(parent.subgraph, parent, node.number, position, parent.depth, parent.region, map_)


def _scope_key(node: Node, position: int, access: Access) -> tuple[object, ...]:
    """What two reads must agree on to be at the same indices in the same region."""
    if node.kind in ("reduce", "contract") and node.is_deferred(position):
        return (node.scope, node.number, access.map)
    if node.is_deferred(position) or access.runtime:
        return (node.scope, node.number, position)
    return (node.scope, access.map)


def _is_identity(access: Access) -> bool:
    map_ = access.map
    return (
        not access.runtime
        and len(map_.results) == len(map_.dims)
        and all(str(result) == f"d{i}" for i, result in enumerate(map_.results))
    )

"""Partitions a fusion into subgraphs: the functions that the emitters will write, each operation in exactly one.

An operation goes where all its users are, if they all want it at the same indices; otherwise it starts a subgraph of
its own, which its users call. So calls may repeat, but no operation is ever emitted twice, and the size of the code
is linear in the size of the fusion. (Source: the partitioning of XLA's GPU emitters.)

A *scope* stands for "at these indices, in this region". Users that read an operand at their own indices share their
scope with it; every other read opens a child scope. Two reads through equal maps from the same scope open the same
child scope, so transposing a value twice in the same way does not split the fusion.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xgpu import ir
from xgpu.indexing.access import Access, AccessKind
from xgpu.indexing.hlo_maps import access_kind, accesses

MAX_REGION_DEPTH = 8
"""Conditional reads and reduction loops that one subgraph nests; the next one starts a new subgraph."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Indices and region at which operations are emitted; ``reader`` and ``access`` opened it (None at a root)."""

    subgraph: int
    parent: "Scope | None" = None
    reader: int = -1
    access: int = -1
    depth: int = 0


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
    """A fusion's nodes in program order and its subgraphs, subgraph 0 being the one of the fusion's results.

    ``producer`` maps a value of the fusion to (node number, result number); parameters are not in it.
    ``scope_of`` gives the scope in which a read, (node number, access number), wants its operand.
    """

    nodes: tuple[Node, ...]
    subgraphs: tuple[Subgraph, ...]
    results: tuple[ir.Value, ...]
    producer: dict[ir.Value, tuple[int, int]]
    scope_of: dict[tuple[int, int], Scope]


def partition(block: ir.Block) -> Partition:
    """Partition the body of a fusion. All results that are not parameters have the same shape.

    Raises `Unsupported` for an operation that is not a function of its result's indices.
    """
    operations = [op.operation for op in block.operations]
    nodes = [Node(i, op, access_kind(op), accesses(op)) for i, op in enumerate(operations[:-1])]
    producer: dict[ir.Value, tuple[int, int]] = {
        value: (node.number, i) for node in nodes for i, value in enumerate(node.op.results)
    }
    results = tuple(operations[-1].operands)
    for node in nodes:
        for position, access in enumerate(node.accesses):
            operand = producer.get(node.op.operands[access.operand])
            if operand is not None:
                nodes[operand[0]].users.append((node.number, position))
    roots = sorted({producer[value][0] for value in results if value in producer})
    return _Partitioner(nodes, producer, roots).run(results)


class _Partitioner:
    """Places nodes from the last to the first, so that all users of a node are placed before it."""

    def __init__(self, nodes: list[Node], producer: dict[ir.Value, tuple[int, int]], roots: Sequence[int]):
        self.nodes = nodes
        self.producer = producer
        self.roots = set(roots)
        self.root_scope = Scope(0)
        self.subgraphs = [Subgraph(0, tuple(roots), self.root_scope)]
        self.scope_of: dict[tuple[int, int], Scope] = {}
        self.children: dict[tuple[object, ...], Scope] = {}

    def run(self, results: tuple[ir.Value, ...]) -> Partition:
        for node in reversed(self.nodes):
            wanted = {self.scope_of[use] for use in node.users if use in self.scope_of}
            if node.number in self.roots:
                wanted.add(self.root_scope)
            if wanted and not node.is_free:
                node.scope = self._place(node, wanted)
                self._open_scopes(node)
        return Partition(tuple(self.nodes), tuple(self.subgraphs), results, self.producer, self.scope_of)

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
            key = _scope_key(node, position, access)
            if key not in self.children:
                depth = node.scope.depth + node.is_deferred(position)
                self.children[key] = Scope(node.scope.subgraph, node.scope, node.number, position, depth)
            self.scope_of[node.number, position] = self.children[key]


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

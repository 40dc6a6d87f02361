"""Partitions a fusion into subgraphs: the functions that the emitters will write, each operation in exactly one.

An operation goes where all its users are, if they all want it at the same indices; otherwise it starts a subgraph of
its own, which its users call. So calls may repeat, but no operation is ever emitted twice, and the size of the code
is linear in the size of the fusion. (Source: the partitioning of XLA's GPU emitters.)

A call at one scope returns all that is wanted there: an operation joins a subgraph that is called at the same scopes,
or one that reads it itself and is called wherever else it is wanted. Otherwise two values that are computed from each
other step by step, as the words of a random number are, would be two subgraphs a step, and calls would double with
every step.

Which operation goes where is decided in `xgpu.analysis.placement`.
"""

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace

from xgpu import ir
from xgpu.analysis.placement import Placement, Reads, Scope
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import backward_slice


@dataclass
class Node:
    """An operation of the fusion: its accesses, its users, and the scope in which it is placed."""

    reads: Reads
    users: list[tuple[int, int]] = field(default_factory=list)
    scope: Scope = field(init=False)
    is_free: bool = field(init=False)
    """Constants cost nothing to repeat: they are emitted wherever they are read, and belong to no subgraph."""

    def __post_init__(self) -> None:
        self.is_free = self.op.name == "stablehlo.constant"

    @property
    def number(self) -> int:
        """Its number in program order."""
        return self.reads.number

    @property
    def op(self) -> ir.Operation:
        """The operation itself."""
        return self.reads.op

    def operand(self, access: int) -> ir.Value:
        """Return the value that an access reads."""
        return self.reads.operands[access]


@dataclass(frozen=True)
class Subgraph:
    """A function to emit: ``roots`` are the nodes whose results it returns, by number, all at the same indices."""

    number: int
    roots: tuple[int, ...]
    scope: Scope


@dataclass(frozen=True)
class Partition:
    """A fusion's nodes in program order and its subgraphs, subgraph 0 being the one of the roots.

    ``results`` are the roots; ``injected`` are the values that are handed to the function of subgraph 0 as scalars,
    with the maps from the roots' indices to those of the scalars, which are all the same map in other words.
    ``producer`` maps a value of the fusion to (node number, result number); parameters and injected values are not in
    it. ``scope_of`` gives the scope in which a read, (node number, access number), wants its operand.
    """

    nodes: tuple[Node, ...]
    subgraphs: tuple[Subgraph, ...]
    results: tuple[ir.Value, ...]
    producer: dict[ir.Value, tuple[int, int]]
    scope_of: dict[tuple[int, int], Scope]
    injected: Mapping[ir.Value, Set[IndexingMap]] = field(default_factory=dict)

    def is_injected(self, value: ir.Value, scope: Scope) -> bool:
        """Whether a read of ``value`` at ``scope`` takes the scalar that is handed in."""
        return scope.map is not None and scope.subgraph == 0 and scope.map in self.injected.get(value, ())


def partition(
    block: ir.Block,
    roots: Sequence[ir.Value] | None = None,
    injected: Mapping[ir.Value, IndexingMap] | None = None,
    followers: Container[ir.Value] = (),
) -> Partition:
    """Partition the operations that compute ``roots``, by default the fusion's results, in the body of a fusion.

    All roots that are not parameters have the same shape. The function of the roots is given ``injected`` values as
    scalars, at the indices that these maps make of the roots'; at other indices they are computed as any other value.
    Each element of the ``followers`` is made of the injected scalars alone, as far as it is made of injected values.
    Raises `Unsupported` for an operation that is not a function of its result's indices.
    """
    operations = [op.operation for op in block.operations]
    results = tuple(operations[-1].operands if roots is None else roots)
    maps = {value: {map_.simplify()} for value, map_ in (injected or {}).items()}
    needed = _needed(results)
    chosen = [op for op in operations[:-1] if op in needed]
    nodes = [Node(Reads.of(i, op)) for i, op in enumerate(chosen)]
    producer: dict[ir.Value, tuple[int, int]] = {
        value: (node.number, i) for node in nodes for i, value in enumerate(node.op.results)
    }
    for node in nodes:
        for position, value in enumerate(node.reads.operands):
            operand = producer.get(value)
            if operand is not None:
                nodes[operand[0]].users.append((node.number, position))
    numbers = sorted({producer[value][0] for value in results if value in producer})
    for value, map_ in _maps_by_steps(results, nodes, producer, maps, followers):
        maps[value].add(map_)
    empty = Partition(tuple(nodes), (), results, producer, {}, maps)
    return _Partitioner(empty, numbers).run()


def _maps_by_steps(
    results: Sequence[ir.Value],
    nodes: Sequence[Node],
    producer: Mapping[ir.Value, tuple[int, int]],
    injected: Container[ir.Value],
    followers: Container[ir.Value],
) -> Iterator[tuple[ir.Value, IndexingMap]]:
    """Yield the injected values that ``followers`` lead to, with their maps as scopes have them: step by step.

    What a map is simplified to depends on the order in which it was composed.
    """
    same = identity_map(shape_of(results[0])).simplify()
    pending = [(value, same) for value in results if value in followers]
    seen = set(pending)
    while pending:
        value, map_ = pending.pop()
        if value in injected:
            yield value, map_
            continue
        reads = nodes[producer[value][0]].reads
        for own, access, operand in zip(reads.own, reads.accesses, reads.operands, strict=True):
            read = (operand, map_ if own else map_.compose(access.map).simplify())
            if operand in followers and read not in seen:
                seen.add(read)
                pending.append(read)


def _needed(roots: Sequence[ir.Value]) -> set[ir.Operation]:
    """Return the backward slice of ``roots``."""
    return set(backward_slice(roots, lambda _: False))


class _Partitioner:
    """Places nodes in reverse topological order, so that all users of a node are placed before it."""

    def __init__(self, empty: Partition, roots: Sequence[int]):
        self.empty = empty
        self.nodes = empty.nodes
        self.roots = set(roots)
        self.placement = Placement()
        # Where values are injected, scopes are distinguished by the map from the roots, whatever steps lead to it.
        shape = shape_of(empty.results[0])
        same = identity_map(shape).simplify() if empty.injected else None
        self.root_scope = self.placement.root(shape, same)
        self.subgraphs = [Subgraph(0, tuple(roots), self.root_scope)]
        self.scope_of: dict[tuple[int, int], Scope] = {}

    def run(self) -> Partition:
        for node in reversed(self.nodes):
            wanted = {self.scope_of[use] for use in node.users if self._is_wanted(node, use)}
            if node.number in self.roots and not self._is_given(node):
                wanted.add(self.root_scope)
            if wanted and not node.is_free:
                node.scope = self.placement.place(node.op, wanted)
                self._note_root(node, wanted)
                for position, scope in self.placement.children(node.reads, node.scope):
                    self.scope_of[node.number, position] = scope
        return replace(self.empty, subgraphs=tuple(self.subgraphs), scope_of=self.scope_of)

    def _is_wanted(self, node: Node, use: tuple[int, int]) -> bool:
        """Whether a use needs the node computed: not if its user is dead, or if the value is injected."""
        if use not in self.scope_of:
            return False
        user, position = self.nodes[use[0]], use[1]
        return not self.empty.is_injected(user.operand(position), self.scope_of[use])

    def _is_given(self, node: Node) -> bool:
        """Whether all results of a root are injected at the root's own indices."""
        return all(self.empty.is_injected(value, self.root_scope) for value in node.op.results)

    def _note_root(self, node: Node, wanted: set[Scope]) -> None:
        """Record a node with users in other subgraphs, whose result its subgraph's function returns."""
        if wanted == {node.scope}:
            return
        number = node.scope.subgraph
        if number == len(self.subgraphs):
            self.subgraphs.append(Subgraph(number, (), node.scope))
        if number:
            subgraph = self.subgraphs[number]
            self.subgraphs[number] = replace(subgraph, roots=(*subgraph.roots, node.number))

"""The accesses of a block's threads to shared memory, as events in order, and pairs that need a barrier between.

Two events meet over a tile if one writes what the other reads or writes: other threads may do so, and all threads of
the block have to meet in between. Memory of a tile is a number: what steps carry, and what their bodies compute for it,
is the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from xgpu.block_plan.chains import Where
from xgpu.block_plan.graph import Carried, Graph
from xgpu.records import dataclass


@dataclass(frozen=True)
class Event:
    """A node, and the memory that it reads and writes."""

    node: int
    reads: frozenset[int]
    writes: frozenset[int]

    def meets(self, other: "Event") -> bool:
        """Whether this event and a later one must not be close."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass(frozen=True)
class StagedGraph:
    """A graph, where its tiles are, and the stages of its steps, by node."""

    graph: Graph
    where: Mapping[int, Where]
    stages: Mapping[int, int]

    @cached_property
    def memory(self) -> Mapping[int, int]:
        """The memory of each tile in shared memory."""
        same = {tile: self.graph.kept[tile] for tile in range(len(self.graph.tiles)) if self.where[tile] == "shared"}
        for each in self.graph.carried:
            if self.where[each.result] == self.where[each.yielded] == "shared":
                same[each.yielded] = each.result
            if each in self._begun:
                same[each.init] = each.result
        return same

    @cached_property
    def _begun(self) -> list[Carried]:
        """Carried values that are computed in their tile from the beginning, as nothing else reads the old value."""
        loops = {each.result for each in self.graph.carried}
        return [
            each
            for each in self.graph.carried
            if self.where[each.result] == self.where[each.init] == "shared"
            and each.init not in loops
            and self.graph.nodes[self.graph.maker[each.init]].region == self.graph.nodes[each.steps].region
            and list(self.graph.readers[each.init]) == [each.steps]
        ]

    @cached_property
    def ahead(self) -> Mapping[int, int]:
        """The steps of each node that copies a tile ahead of the step that reads it."""
        found: dict[int, int] = {}
        for number, node in enumerate(self.graph.nodes):
            if node.kind == "steps" and self.stages.get(number, 1) > 1:
                reads = (each for each in self.graph.within(node.body) if self.graph.nodes[each].kind == "read")
                found |= {each: number for each in reads if self.graph.nodes[each].results[0] in self.memory}
        return found

    def acts(self, number: int) -> bool:
        """Whether a node does anything where it stands: computed tiles are computed where they are read."""
        results = self.graph.nodes[number].results
        return len(results) != 1 or self.graph.nodes[number].kind == "steps" or self.where[results[0]] != "computed"

    def roots(self, tile: int) -> frozenset[int]:
        """Return the tiles that are read where ``tile`` is: itself, or what it is computed from."""
        return self.graph.sources(tile, lambda each: self.where[each] == "computed")

    def event(self, number: int) -> Event:
        """Return what a node does: steps where they begin, what is copied ahead without what it writes."""
        node = self.graph.nodes[number]
        operands = [] if node.kind == "yield" else list(node.operands)
        reads = {self.memory[root] for tile in operands for root in self.roots(tile) if root in self.memory}
        writes = {self.memory[tile] for tile in node.results if tile in self.memory}
        if node.kind == "steps":
            there = {self.memory[each.result] for each in self._begun if each.steps == number}
            reads, writes = reads - there, writes - there
        return Event(number, frozenset(reads), frozenset(() if number in self.ahead else writes))

    def readers(self, memory: int, region: int) -> Iterator[int]:
        """Yield the nodes of a region that read a memory."""
        return (each for each in self.graph.within(region) if self.acts(each) and memory in self.event(each).reads)


@dataclass(frozen=True)
class BlockOrder:
    """The order in which a block does things: the acting nodes of each region, what ends a step not among them."""

    regions: Mapping[int, Sequence[int]]


def text_order(plan: StagedGraph) -> BlockOrder:
    """Return the order in which nodes are numbered, but that tiles are read before they are changed in place."""
    regions = sorted({node.region for node in plan.graph.nodes})
    return BlockOrder({region: _sorted(plan, region) for region in regions})


def needs(plan: StagedGraph, region: int) -> dict[int, set[int]]:
    """Return, for each acting node of a region but its end, the others that it must follow."""
    nodes = [n for n in plan.graph.within(region) if plan.acts(n) and plan.graph.nodes[n].kind != "yield"]
    found: dict[int, set[int]] = {number: set() for number in nodes}
    for number in nodes:
        pending = [*plan.graph.nodes[number].operands]
        found[number] |= set(plan.graph.nodes[number].after)
        if plan.graph.nodes[number].kind == "steps":
            pending += _captured(plan.graph, number)
        for tile in pending:
            for root in plan.roots(tile):
                maker = plan.graph.maker[root]
                if maker in found and maker != number:
                    found[number].add(maker)
    users: dict[int, set[int]] = {}
    for number in nodes:
        for tile in plan.graph.nodes[number].operands:
            for root in plan.roots(tile):
                users.setdefault(root, set()).add(number)
    for each in plan.graph.carried:
        maker = plan.graph.maker[each.yielded]
        if plan.memory.get(each.result) is not None and maker in found and each.yielded != each.argument:
            found[maker] |= users.get(each.argument, set()) - {maker}
    return found


def _captured(graph: Graph, steps: int) -> list[int]:
    body = graph.nodes[steps].body
    return [tile for number in graph.within(body) for tile in graph.nodes[number].operands]


def _sorted(plan: StagedGraph, region: int) -> list[int]:
    waiting = needs(plan, region)
    found: list[int] = []
    while waiting:
        ready = [number for number, before in waiting.items() if not before & waiting.keys()]
        if not ready:
            raise ValueError(f"the nodes {sorted(waiting)} need each other")
        found.append(min(ready))
        del waiting[found[-1]]
    return found

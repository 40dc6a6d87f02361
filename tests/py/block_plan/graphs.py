"""Graphs of blocks for tests: drawn ones, and what their threads do to bytes of shared memory, event by event."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from xgpu.block_plan.chains import MissingCopy, choose, missing_copies
from xgpu.block_plan.graph import Carried, Graph, Kind, PlanNode, Tile
from xgpu.block_plan.order.events import BlockOrder, StagedGraph
from xgpu.indexing.dot_dimensions import OperandDimensions

MATRIX = OperandDimensions((), (1,), (0,)), OperandDimensions((), (0,), (1,))
SHAPE = (16, 16)
THREADS = 32


@dataclass
class Writer:
    """Writes a graph, node by node."""

    nodes: list[PlanNode] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)

    def tile(self, shape: tuple[int, ...] = SHAPE, bits: int = 32) -> int:
        self.tiles.append(Tile(shape, bits))
        return len(self.tiles) - 1

    def node(self, kind: Kind, operands: tuple[int, ...] = (), region: int = 0, results: int = 1, cost: int = 1) -> int:
        """Add a node and return its first result."""
        made = tuple(self.tile() for _ in range(results))
        dimensions = MATRIX if kind == "product" else None
        fragment = "f32" if kind == "product" else ""
        self.nodes.append(
            PlanNode(kind, operands, made, region, instructions=cost, dimensions=dimensions, fragment=fragment)
        )
        return made[0] if made else -1

    def steps(self, inits: tuple[int, ...], count: int = 3) -> tuple[int, list[int], list[int]]:
        """Add steps; return their region, what a step sees, and the results."""
        number = len(self.nodes)
        results = [self.tile() for _ in inits]
        self.nodes.append(PlanNode("steps", inits, tuple(results), 0, number + 1, count))
        return number + 1, [self.tile() for _ in inits], results

    def end(self, region: int, arguments: list[int], yielded: list[int]) -> None:
        """End the body of steps."""
        steps = region - 1
        for init, argument, value, result in zip(
            self.nodes[steps].operands, arguments, yielded, self.nodes[steps].results, strict=True
        ):
            self.carried.append(Carried(steps, init, argument, value, result))
        self.nodes.append(PlanNode("yield", tuple(yielded), (), region))

    def graph(self) -> Graph:
        return Graph(tuple(self.nodes), tuple(self.tiles), tuple(self.carried))


def drawn(rng: random.Random) -> Graph:
    """Draw a block: tiles read, one or two loops, and what follows them."""
    writer = Writer()
    known = [writer.node("read") for _ in range(rng.randrange(1, 3))]
    for _ in range(rng.randrange(0, 3)):
        known.append(_made(writer, rng, known, 0))
    for _ in range(rng.randrange(1, 3)):
        inits = tuple(rng.choice([writer.node("constant"), *known]) for _ in range(rng.randrange(1, 3)))
        region, arguments, results = writer.steps(inits, rng.choice((0, 1, 2, 4)))
        inside = [*known, *arguments, *(writer.node("read", (), region) for _ in range(rng.randrange(0, 3)))]
        first = len(inside)
        for _ in range(rng.randrange(1, 6)):
            inside.append(_made(writer, rng, inside, region))
        choices = [*inside[first:], *arguments, *inside]
        writer.end(region, arguments, [rng.choice(choices) for _ in inits])
        known += results
    for _ in range(rng.randrange(1, 4)):
        known.append(_made(writer, rng, known, 0))
    writer.node("write", (known[-1],), results=0)
    return writer.graph()


def _made(writer: Writer, rng: random.Random, known: list[int], region: int) -> int:
    kind: Kind = rng.choice(("elementwise", "elementwise", "reduce", "product", "move", "spread"))
    count = 2 if kind == "product" else rng.randrange(1, 3) if kind == "elementwise" else 1
    return writer.node(kind, tuple(rng.choice(known) for _ in range(count)), region, cost=rng.choice((1, 20)))


def with_copies(graph: Graph) -> StagedGraph:
    """Return where the tiles of a graph are, with all copies that are missing."""
    while True:
        given = {graph.nodes[n].results[0]: "shared" for n in copies_in(graph)}
        chains = choose(graph, THREADS, given)  # type: ignore[arg-type]
        missing = missing_copies(graph, chains)
        if not missing:
            return StagedGraph(graph, chains.where, {})
        graph = _with_copy(graph, missing[0])


COPY = 1234
"""What marks copies: the instructions of an element."""


def copies_in(graph: Graph) -> list[int]:
    return [number for number, node in enumerate(graph.nodes) if node.instructions == COPY]


def _with_copy(graph: Graph, copy: MissingCopy) -> Graph:
    tile, readers, before = copy.tile, copy.readers, copy.before
    made = len(graph.tiles)
    nodes: list[PlanNode] = []

    def moved(number: int) -> int:
        return number + (number >= before)

    for number, node in enumerate(graph.nodes):
        if number == before:
            nodes.append(PlanNode("elementwise", (tile,), (made,), node.region, instructions=COPY))
        operands = tuple(
            made if each == tile and number in readers and copy.operand in (None, place) else each
            for place, each in enumerate(node.operands)
        )
        body = moved(node.body - 1) + 1 if node.body else 0
        region = moved(node.region - 1) + 1 if node.region else 0
        nodes.append(
            PlanNode(
                node.kind, operands, node.results, region, body, node.count, node.instructions,
                dimensions=node.dimensions, fragment=node.fragment,
            )
        )  # fmt: skip
    nodes = [
        node if node.instructions != COPY or number != before
        else PlanNode("elementwise", node.operands, node.results, nodes[number + 1].region, instructions=COPY)
        for number, node in enumerate(nodes)
    ]  # fmt: skip
    carried = tuple(
        Carried(
            moved(each.steps),
            made if each.init == tile and each.steps in readers else each.init,
            each.argument,
            made
            if each.yielded == tile and end_of(graph, each) in readers and copy.operand in (None, place)
            else each.yielded,
            each.result,
        )
        for place, each in ((graph.carried_by(each.steps).index(each), each) for each in graph.carried)
    )
    return Graph(tuple(nodes), (*graph.tiles, graph.tiles[tile]), carried)


def end_of(graph: Graph, carried: Carried) -> int:
    region = graph.nodes[carried.steps].body
    return next(n for n in graph.within(region) if graph.nodes[n].kind == "yield")


@dataclass(frozen=True)
class Access:
    """An access of all threads to some bytes, at a time between two meetings, by an event."""

    event: int
    span: int
    first: int
    last: int
    writes: bool
    node: int

    def races(self, other: "Access") -> bool:
        """Whether two threads may be at one byte at once. A thread writes where it did before, for one node."""
        if self.event == other.event or self.span != other.span or not (self.writes or other.writes):
            return False
        return (self.node != other.node or not self.writes or not other.writes) and (
            self.first < other.last and other.first < self.last
        )


def accesses(
    plan: StagedGraph, order: BlockOrder, met: frozenset[int], offsets: dict[int, int], sizes: dict[int, int]
) -> Iterator[Access]:
    """Yield all accesses of a block, steps one by one. ``sizes`` are those of one buffer."""
    span = 0
    time = 0
    graph = plan.graph

    def touch(node: int, memory: int, writes: bool, slot: int = 0) -> Access:
        first = offsets[memory] + slot * sizes[memory]
        return Access(time, span, first, first + sizes[memory], writes, node)

    def run(number: int, step: int, stages: int, count: int) -> Iterator[Access]:
        event = plan.event(number)
        for memory in event.reads:
            is_ahead = plan.graph.maker[memory] in plan.ahead
            yield touch(number, memory, False, step % stages if is_ahead else 0)
        for memory in event.writes:
            yield touch(number, memory, True)
        if number in plan.ahead and step + stages - 1 < count:
            yield touch(number, plan.memory[graph.nodes[number].results[0]], True, (step + stages - 1) % stages)

    for number in order.regions[0]:
        time += 1
        span += number in met
        yield from run(number, 0, 1, 0)
        node = graph.nodes[number]
        if node.kind != "steps":
            continue
        stages = plan.stages.get(number, 1)
        end = next(n for n in graph.within(node.body) if graph.nodes[n].kind == "yield")
        for copied in (each for each, steps in plan.ahead.items() if steps == number):
            for step in range(min(stages - 1, node.count)):
                time += 1
                yield touch(copied, plan.memory[graph.nodes[copied].results[0]], True, step)
        for step in range(node.count):
            # The step's own copies arrive where it begins: as if they were written there.
            for copied in (each for each, steps in plan.ahead.items() if steps == number):
                time += 1
                yield touch(copied, plan.memory[graph.nodes[copied].results[0]], True, step % stages)
            for inner in order.regions.get(node.body, ()):
                time += 1
                span += inner in met
                yield from run(inner, step, stages, node.count)
            span += end in met and step + 1 < node.count

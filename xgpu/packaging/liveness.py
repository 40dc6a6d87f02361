"""Liveness of variables in a program of loops and choices.

Time is counted along the program's text: every node has a time, at which it reads, and sets variables at the one after.
A loop's time is that of its head, where it asks whether to go on, and what is live there is live at its end too.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace

from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, Run, set_by
from xgpu.records import dataclass

type Span = tuple[int, int]
"""The first and the last time of a stretch."""


def needed(nodes: Sequence[Node], live: Set[int]) -> tuple[tuple[Node, ...], set[int]]:
    """Return the nodes without those that nobody needs, and the variables that are live before them.

    ``live`` are those that are live after them.
    """
    kept: list[Node] = []
    before = set(live)
    for node in reversed(nodes):
        if isinstance(node, Move):
            node = Move(tuple(pair for pair in node.pairs if pair[0] in before))
            if not node.pairs:
                continue
            before -= {target for target, _ in node.pairs}
            before |= {source for _, source in node.pairs}
        elif before.isdisjoint(set_by([node])):
            continue
        elif isinstance(node, Run):
            before -= set(node.outputs)
            before |= set(node.inputs)
        elif isinstance(node, Repeating):
            body, before = _needed_of_loop(node, before)
            before |= _read_once(node)
            node = replace(node, body=body)
        else:
            done = [needed(branch, before) for branch in node.branches]
            node = replace(node, branches=tuple(branch for branch, _ in done))
            before = {node.index}.union(*(each for _, each in done))
        kept.append(node)
    return tuple(reversed(kept)), before


def _needed_of_loop(loop: Repeating, after: Set[int]) -> tuple[tuple[Node, ...], set[int]]:
    """Return the needed nodes of a loop's body, and the variables that are live at its head."""
    head = set(after) | ({loop.condition} if loop.condition is not None else set[int]())
    while True:
        body, before = needed(loop.body, head)
        if before <= head:
            return body, head
        head |= before


def _read_once(loop: Repeating) -> set[int]:
    """Return what the host reads when a loop begins, and then no more."""
    return set() if loop.count is None else {loop.count}


@dataclass(frozen=True)
class Lifetimes:
    """The times of a program: those of its nodes, the ``spans`` in which each variable is live, and the ``end``."""

    times: Mapping[Node, int]
    spans: Mapping[int, Sequence[Span]]
    end: int


def lifetimes(flow: Flow, results: Iterable[int]) -> Lifetimes:
    """Return when the variables of a program are live, all of whose nodes are `needed`; ``results`` are at its end."""
    counter = _Counter()
    counter.count(flow.nodes)
    spans = _Spans(counter.times, counter.ends, {})
    spans.walk(flow.nodes, set(results), counter.now)
    return Lifetimes(counter.times, {each: sorted(its) for each, its in spans.found.items()}, counter.now)


@dataclass
class _Counter:
    """Gives nodes their times; ``ends`` has those of the ends of loops, of branches, and of choices."""

    now: int = 0
    times: dict[Node, int] = field(default_factory=dict)
    ends: dict[Node | tuple[Node, int], int] = field(default_factory=dict)

    def count(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.times[node] = self._next()
            if isinstance(node, Repeating):
                self.count(node.body)
                self.ends[node] = self._next()
            elif isinstance(node, Branching):
                for number, branch in enumerate(node.branches):
                    self.count(branch)
                    self.ends[node, number] = self._next()
                self.ends[node] = self._next()

    def _next(self) -> int:
        now = self.now
        self.now += 2
        return now


@dataclass
class _Spans:
    """Finds the spans of variables, backwards."""

    times: Mapping[Node, int]
    ends: Mapping[Node | tuple[Node, int], int]
    found: dict[int, list[Span]]

    def add(self, variable: int, first: int, last: int) -> None:
        self.found.setdefault(variable, []).append((first, last))

    def walk(self, nodes: Sequence[Node], live: Set[int], end: int) -> set[int]:
        """Note when variables are live in nodes, and return which are before them; ``live`` are at the ``end``."""
        last = dict.fromkeys(live, end)
        for node in reversed(nodes):
            time = self.times[node]
            if isinstance(node, Run | Move):
                self._step(node, time, last)
                continue
            for variable, until in last.items():
                self.add(variable, self.ends[node], until)
            before = self._inside(node, set(last))
            last = dict.fromkeys(before, time)
        start = self.times[nodes[0]] if nodes else end
        for variable, until in last.items():
            self.add(variable, start, until)
        return set(last)

    def _step(self, node: Run | Move, time: int, last: dict[int, int]) -> None:
        if isinstance(node, Run):
            # A kernel still reads while it writes.
            targets, sources, read = node.outputs, node.inputs, time + 1
        else:
            targets, sources, read = tuple(t for t, _ in node.pairs), tuple(s for _, s in node.pairs), time
        for target in targets:
            self.add(target, time + 1, max(last.pop(target, 0), time + 1))
        for source in sources:
            last.setdefault(source, read)

    def _inside(self, node: Repeating | Branching, after: set[int]) -> set[int]:
        """Note when variables are live inside a node, and return which are before it."""
        if isinstance(node, Branching):
            branches = [self.walk(each, after, self.ends[node, n]) for n, each in enumerate(node.branches)]
            return {node.index}.union(*branches)
        _, head = _needed_of_loop(node, after)
        self.walk(node.body, head, self.ends[node])
        return head | _read_once(node)

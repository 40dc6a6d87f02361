"""Memory for the variables of a program: which share it, and what moves between them then still do.

Variables that are never needed at the same time have one *home* where a move would otherwise copy one to the other:
loops and branches then compute in place. Where that cannot be, a value that nobody needs in its old place any more
changes hands by a swap of two pointers: such homes have *slots*, and share no memory with others while any of them is
in use. All other moves are copies.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from xgpu.packaging.flow import Flow, Move, Node, Repeating, all_nodes
from xgpu.packaging.liveness import Lifetimes, Span
from xgpu.records import dataclass


@dataclass(eq=False)
class Home:
    """Memory of variables that are never needed at the same time.

    ``argument`` or ``result`` is the number of the caller's array that it is, else it is scratch. ``slot`` is its
    number among those that move.
    """

    variables: list[int]
    bytes: int
    spans: list[Span]
    argument: int | None = None
    result: int | None = None
    slot: int | None = None

    def meets(self, other: "Home") -> bool:
        """Whether both have a value at the same time."""
        short, long = sorted((self.spans, other.spans), key=len)
        return any(_reaches(long, first, last) for first, last in short)

    def is_live_at(self, time: int) -> bool:
        """Whether it has a value then."""
        return _reaches(self.spans, time, time)


@dataclass(frozen=True)
class Swap:
    """Two homes exchange their memory."""

    first: Home
    second: Home


@dataclass(frozen=True)
class HomeCopy:
    """The value of one home is copied to another."""

    source: Home
    target: Home


@dataclass(frozen=True)
class Homes:
    """The home of each variable, what is left to do for each move, and the groups of homes that swap memory."""

    of: Mapping[int, Home]
    moves: Mapping[Move, Sequence[Swap | HomeCopy]]
    groups: Sequence[Sequence[Home]]


def make_homes(flow: Flow, times: Lifetimes, results: Mapping[int, int]) -> Homes:
    """Return homes for the variables of a program.

    ``results`` are the variables that are the caller's results, with their numbers.
    """
    homes = {
        variable: Home([variable], flow.sizes[variable], _merged([times.spans[variable]]))
        for variable in sorted(times.spans, key=lambda each: (times.spans[each][0], each))
    }
    for variable in range(flow.arguments):
        homes.setdefault(variable, Home([variable], flow.sizes[variable], [])).argument = variable
    for variable, number in results.items():
        homes[variable].result = number
    for target, source in _by_weight(flow):
        _join(homes, homes[target], homes[source])
    moves = {
        node: list(_done(node, homes, times.times[node] + 1))
        for node in all_nodes(flow.nodes)
        if isinstance(node, Move)
    }
    groups = list(_groups(each for move in moves.values() for each in move if isinstance(each, Swap)))
    slots = 0
    for group in groups:
        for home in group:
            home.slot = slots
            slots += 1
    return Homes(homes, moves, groups)


def _reaches(spans: Sequence[Span], first: int, last: int) -> bool:
    """Whether one of ``spans``, which are in order and apart, has a time from ``first`` to ``last``."""
    place = bisect_left(spans, (last + 1,)) - 1
    return place >= 0 and spans[place][1] >= first


def _by_weight(flow: Flow) -> list[tuple[int, int]]:
    """Return the pairs of all moves; those of inner loops first, and of these the ones of more bytes."""
    weighed: list[tuple[int, int, tuple[int, int]]] = []

    def visit(nodes: Sequence[Node], depth: int) -> None:
        for node in nodes:
            if isinstance(node, Move):
                weighed.extend((depth, flow.sizes[pair[0]], pair) for pair in node.pairs)
            elif isinstance(node, Repeating):
                visit(node.body, depth + 1)
            else:
                for branch in getattr(node, "branches", ()):
                    visit(branch, depth)

    visit(flow.nodes, 0)
    return [pair for _, _, pair in sorted(weighed, key=lambda each: (-each[0], -each[1]))]


def _join(homes: dict[int, Home], first: Home, second: Home) -> None:
    """Make one home of two, if both can be."""
    if first is second or first.argument is not None or second.argument is not None:
        return
    if first.bytes != second.bytes or (first.result is not None and second.result is not None) or first.meets(second):
        return
    if first.spans[0] > second.spans[0]:
        first, second = second, first
    first.variables += second.variables
    first.spans = _merged([first.spans, second.spans])
    first.result = second.result if first.result is None else first.result
    homes.update(dict.fromkeys(second.variables, first))


def _merged(spans: Iterable[Sequence[Span]]) -> list[Span]:
    """Return spans in order, those that follow or meet each other as one."""
    merged: list[Span] = []
    for first, last in sorted(each for some in spans for each in some):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _done(move: Move, homes: Mapping[int, Home], after: int) -> Iterator[Swap | HomeCopy]:
    """Yield what makes a move, which is over at the time ``after``, one after the other.

    First come swaps, of values that nobody needs where they are; then copies, whose sources stay in their places.
    """
    pairs = [(homes[target], homes[source]) for target, source in move.pairs]
    targets = {target for target, _ in pairs}
    taken = {source for target, source in pairs if target is source}
    # The home whose value a home's memory has, and the other way round, after the swaps so far.
    value, place = dict[Home, Home](), dict[Home, Home]()
    copies = []
    for target, source in pairs:
        if target is source or not target.bytes:
            continue
        # What is in the home of a target after the move is none of what was there before.
        stays = source.argument is not None or (source not in targets and source.is_live_at(after))
        if stays or source in taken:
            copies.append((target, source))
            continue
        taken.add(source)
        now = place.get(source, source)
        if now is not target:
            yield Swap(target, now)
            moved = value.get(target, target)
            value[target], place[source] = source, target
            value[now], place[moved] = moved, now
    for target, source in copies:
        yield HomeCopy(place.get(source, source), target)


def _groups(swaps: Iterable[Swap]) -> Iterator[list[Home]]:
    """Yield the homes that exchange memory, directly or by way of others."""
    groups: dict[Home, list[Home]] = {}
    for swap in swaps:
        first, second = (groups.setdefault(home, [home]) for home in (swap.first, swap.second))
        if first is not second:
            first += second
            groups.update(dict.fromkeys(second, first))
    seen = set[int]()
    for group in groups.values():
        if id(group) not in seen:
            seen.add(id(group))
            yield group

"""The steps of a compiled program on memory that its caller gives: launches, and the copies and zeros they need."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, Run, all_nodes
from xgpu.packaging.homes import Home, HomeCopy, make_homes
from xgpu.packaging.in_place import pairs_in_place
from xgpu.packaging.liveness import Lifetimes, Span, lifetimes, needed
from xgpu.packaging.memory import Lifetime, place_values
from xgpu.packaging.model import (
    SCRATCH_ALIGNMENT,
    Base,
    ChoiceStep,
    CopyStep,
    LaunchStep,
    LoopStep,
    Step,
    StepMemory,
    SwapStep,
    ZeroStep,
)
from xgpu.packaging.slots import final_order
from xgpu.records import dataclass

_WORD_BYTES = 8


@dataclass(frozen=True)
class Steps:
    """A program's steps, the bytes of scratch they need, which result may be which argument, and the first slots."""

    steps: tuple[Step, ...]
    scratch_bytes: int
    in_place: tuple[tuple[int, int], ...]
    slots: tuple[StepMemory, ...] = ()


def make_steps(flow: Flow) -> Steps:
    """Return the steps of a program.

    A result is computed where the caller wants it, if that can be; other values live in scratch. A value that is
    updated in place keeps its memory if nothing reads it afterwards, else what is updated is a copy. The values of a
    loop's state do so from one iteration to the next, see `xgpu.packaging.homes`.
    """
    return _Planner(flow).plan()


@dataclass
class _Own:
    """Memory that one launch alone uses: ``is_zeroed`` before it."""

    bytes: int
    time: int
    is_zeroed: bool
    place: StepMemory = field(default_factory=lambda: StepMemory(Base.SCRATCH, 0))


class _Planner:
    def __init__(self, flow: Flow):
        # A result is a variable of its own, which the last move sets.
        numbers = [(position, number) for position, number in enumerate(flow.result_values) if number is not None]
        first = len(flow.values)
        self._results = {first + each: position for each, (position, _) in enumerate(numbers)}
        self._last = Move(tuple((first + each, number) for each, (_, number) in enumerate(numbers)))
        values = (*flow.values, *(flow.values[number] for _, number in numbers))
        nodes, _ = needed(flow.nodes, {number for _, number in numbers})
        nodes = (*nodes, self._last) if numbers else nodes
        self._flow = replace(flow, values=values, nodes=nodes)
        self._times: Lifetimes = lifetimes(self._flow, self._results)
        self._homes = make_homes(self._flow, self._times, self._results)
        self._kernel_numbers = {kernel: number for number, kernel in enumerate(flow.kernels)}
        self._own = {node: list(self._own_of(node)) for node in all_nodes(nodes) if isinstance(node, Run)}
        self._places: dict[Home, StepMemory] = {}

    def plan(self) -> Steps:
        steps = list(self._steps(self._flow.nodes))
        order, moved = final_order(steps, sum(map(len, self._homes.groups)))
        of_groups = [{home.slot for home in group if home.slot is not None} for group in self._homes.groups]
        unknown = frozenset[int]().union(*(slots for slots in of_groups if not slots.isdisjoint(moved)))
        self._keep_results(unknown)
        scratch_bytes = self._place_all()
        slots = self._first_slots(order, unknown)
        # The places are known now.
        steps, last = list(self._steps(self._flow.nodes)), list(self._copies_to_results(unknown))
        return Steps((*steps, *last), scratch_bytes, tuple(pairs_in_place(steps, last, slots)), slots)

    def _own_of(self, node: Run) -> Iterator[_Own]:
        time = self._times.times[node]
        if node.kernel.scratch_words:
            yield _Own(node.kernel.scratch_words * _WORD_BYTES, time, is_zeroed=True)
        if node.kernel.workspace_bytes:
            yield _Own(node.kernel.workspace_bytes, time, is_zeroed=False)

    def _keep_results(self, unknown: frozenset[int]) -> None:
        """Let at most one result be the memory of a group, if it is not known where the group's memory ends up.

        Else one result might be copied to where another one still is.
        """
        for group in self._homes.groups:
            if any(home.slot in unknown for home in group):
                for home in [home for home in group if home.result is not None][1:]:
                    home.result = None

    def _place_all(self) -> int:
        """Choose the memory of each home, that of homes with slots for the time of all of their group."""
        homes = list(dict.fromkeys(self._homes.of.values()))
        whole = {home: _extent(home.spans) for home in homes if home.argument is None}
        for group in self._homes.groups:
            whole |= dict.fromkeys(group, _extent([whole[home] for home in group]))
        inside = [home for home in homes if home.argument is None and home.result is None]
        intervals = [Lifetime(home.bytes, *whole[home]) for home in inside]
        own = [each for its in self._own.values() for each in its]
        intervals += [Lifetime(each.bytes, each.time, each.time + 1) for each in own]
        offsets, end = place_values(intervals, SCRATCH_ALIGNMENT)
        places = [StepMemory(Base.SCRATCH, offset) for offset in offsets]
        for home in homes:
            if home.argument is not None:
                self._places[home] = StepMemory(Base.ARGUMENT, home.argument)
            elif home.result is not None:
                self._places[home] = StepMemory(Base.RESULT, home.result)
        self._places |= dict(zip(inside, places[: len(inside)], strict=True))
        for each, place in zip(own, places[len(inside) :], strict=True):
            each.place = place
        return end

    def _first_slots(self, order: Sequence[int], unknown: frozenset[int]) -> tuple[StepMemory, ...]:
        """Return the first memory of each slot: such that results end up in their places, where that is known."""
        slots: dict[int, StepMemory] = {}
        for group in self._homes.groups:
            is_known = not any(home.slot in unknown for home in group)
            for home in group:
                assert home.slot is not None
                slots[order[home.slot] if is_known else home.slot] = self._places[home]
        return tuple(slots[number] for number in range(len(slots)))

    def _steps(self, nodes: Sequence[Node]) -> Iterator[Step]:
        for node in nodes:
            if isinstance(node, Run):
                yield from self._launch(node)
            elif isinstance(node, Repeating):
                condition = None if node.condition is None else self._place(node.condition)
                count = None if node.count is None else self._place(node.count)
                yield LoopStep(tuple(self._steps(node.body)), node.trips, condition, count)
            elif isinstance(node, Branching):
                branches = tuple(tuple(self._steps(branch)) for branch in node.branches)
                yield ChoiceStep(branches, self._place(node.index), node.is_truth)
            elif node is not self._last:
                for each in self._homes.moves[node]:
                    if isinstance(each, HomeCopy):
                        yield CopyStep(self._place_of(each.source), self._place_of(each.target), each.source.bytes)
                    else:
                        assert each.first.slot is not None and each.second.slot is not None
                        yield SwapStep(each.first.slot, each.second.slot)

    def _launch(self, node: Run) -> Iterator[Step]:
        """Yield a launch after what it needs; its parameters are inputs, board, outputs, board, and its own memory."""
        read, written = [self._place(each) for each in node.inputs], [self._place(each) for each in node.outputs]
        own = self._own[node]
        board = [each.place for each in own if each.is_zeroed]
        for each in own:
            if each.is_zeroed:
                yield ZeroStep(each.place, each.bytes)
        before = [*read, *board]
        places = (*before, *written, *board, *(each.place for each in own if not each.is_zeroed))
        yield LaunchStep(self._kernel_numbers[node.kernel], places, tuple(range(len(before), len(places))))

    def _copies_to_results(self, unknown: frozenset[int]) -> Iterator[Step]:
        """Yield copies of what is not where the caller wants it: of arguments, and of values that are two results.

        A result whose own memory has changed hands comes last: others may be there.
        """
        late: list[CopyStep] = []
        for target, source in self._last.pairs:
            home, result = self._homes.of[source], StepMemory(Base.RESULT, self._results[target])
            if not home.bytes or self._place_of(home) == result:
                continue
            is_own = home.result == self._results[target]
            if is_own and home.slot not in unknown:
                continue
            step = CopyStep(self._place_of(home), result, home.bytes)
            if is_own:
                late.append(step)
            else:
                yield step
        yield from late

    def _place(self, variable: int) -> StepMemory:
        return self._place_of(self._homes.of[variable])

    def _place_of(self, home: Home) -> StepMemory:
        if home.slot is not None:
            return StepMemory(Base.SLOT, home.slot)
        return self._places.get(home, StepMemory(Base.SCRATCH, 0))


def _extent(spans: Sequence[Span]) -> Span:
    """Return the first and the last time of spans."""
    return min(first for first, _ in spans), max(last for _, last in spans)

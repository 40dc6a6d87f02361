"""Copies ahead of steps, simulated for all numbers of stages, steps ahead and steps: none races with a read."""

import itertools
from dataclasses import dataclass, field

import pytest

from xgpu.block_plan.pipelines import Pipeline, stages_of

CASES = [
    (stages, prefetch, count)
    for stages in range(1, 7)
    for prefetch in range(stages)
    for count in (0, 1, 2, 3, 5, 6, 7, 12, 13)
]


@dataclass
class Memory:
    """Buffers, which copies may change until they have been waited for: then what a read sees is not known."""

    stages: int
    holds: dict[int, int] = field(default_factory=dict)
    on_their_way: list[list[tuple[int, int]]] = field(default_factory=list)
    read_since_meeting: set[int] = field(default_factory=set)

    def copy(self, buffer: int, step: int, group: list[tuple[int, int]]) -> None:
        assert buffer not in self.read_since_meeting, "another thread may still read the buffer"
        assert all(buffer != other for copies in self.on_their_way for other, _ in copies), "two copies into a buffer"
        self.holds.pop(buffer, None)
        group.append((buffer, step))

    def commit(self, group: list[tuple[int, int]]) -> None:
        self.on_their_way.append(group)

    def wait(self, left: int) -> None:
        while len(self.on_their_way) > left:
            for buffer, step in self.on_their_way.pop(0):
                self.holds[buffer] = step

    def meet(self) -> None:
        self.read_since_meeting.clear()

    def read(self, buffer: int, step: int) -> None:
        assert self.holds.get(buffer) == step, f"step {step} reads {self.holds.get(buffer)}"
        self.read_since_meeting.add(buffer)


def run(pipeline: Pipeline, left: int | None = None) -> Memory:
    """Follow a block by groups of copies, as the module says it."""
    memory = Memory(pipeline.stages)
    left = pipeline.groups_in_flight if left is None else left

    def start(step: int) -> None:
        group: list[tuple[int, int]] = []
        if pipeline.exists(step):
            memory.copy(pipeline.buffer(step), step, group)
        memory.commit(group)

    for step in pipeline.prologue():
        start(step)
    for step in range(pipeline.count):
        if pipeline.prefetch:
            memory.wait(left)
            memory.meet()
            start(step + pipeline.prefetch)
        else:
            memory.meet()
            start(step)
            memory.wait(0)
        memory.read(pipeline.buffer(step), step)
    memory.wait(0)
    return memory


@pytest.mark.parametrize(("stages", "prefetch", "count"), CASES)
def test_groups_do_not_race(stages: int, prefetch: int, count: int) -> None:
    memory = run(Pipeline(count, stages, prefetch))
    assert not memory.on_their_way


@pytest.mark.parametrize("prefetch", range(1, 5))
def test_to_wait_for_fewer_groups_is_a_race(prefetch: int) -> None:
    """The number of groups left on their way is the largest: the simulation sees the race of one more."""
    pipeline = Pipeline(12, prefetch + 1, prefetch)
    with pytest.raises(AssertionError, match="reads"):
        run(pipeline, pipeline.groups_in_flight + 1)


def test_prefetch_leaves_a_buffer_to_be_read() -> None:
    for stages in range(1, 5):
        with pytest.raises(ValueError, match="expected to prefetch"):
            Pipeline(8, stages, stages)


@pytest.mark.parametrize(("stages", "prefetch", "count"), CASES)
def test_started_copies_are_those_of_all_steps(stages: int, prefetch: int, count: int) -> None:
    pipeline = Pipeline(count, stages, prefetch)
    before = [step for step in pipeline.prologue() if pipeline.exists(step)]
    inside = [step for each in range(count) if (step := pipeline.copied_in(each)) is not None]
    assert before + inside == list(range(count))


class Phases:
    """A barrier that counts arrivals, and is over them by phases."""

    def __init__(self, arrivals: int):
        self.arrivals, self.pending, self.phase = arrivals, arrivals, 0

    def arrive(self) -> None:
        self.pending -= 1
        if not self.pending:
            self.phase, self.pending = self.phase + 1, self.arrivals

    def is_over(self, parity: int) -> bool:
        """Whether the phase of this parity is over, as the instruction sees it: that before the first one is."""
        return self.phase % 2 != parity


@pytest.mark.parametrize(("stages", "prefetch", "count"), [case for case in CASES if case[2] <= 7])
def test_roles_neither_race_nor_wait_for_ever(stages: int, prefetch: int, count: int) -> None:
    """A producer and two consumers, whichever of them goes on first: here the first that can, in each order."""
    pipeline = Pipeline(count, stages, prefetch)
    for order in itertools.permutations(range(3)):
        full, empty = [Phases(1) for _ in range(stages)], [Phases(2) for _ in range(stages)]
        holds: dict[int, int] = {}
        reading: dict[tuple[int, int], int] = {}
        done = [0, 0, 0]
        for _ in range(3 * count):
            for role in order:
                step = done[role]
                if step == count:
                    continue
                buffer = pipeline.buffer(step)
                if role == 0 and empty[buffer].is_over(pipeline.empty_parity(step)):
                    assert buffer not in reading.values(), "a product still reads the buffer"
                    holds[buffer] = step
                    full[buffer].arrive()
                elif role and full[buffer].is_over(pipeline.full_parity(step)):
                    assert holds[buffer] == step
                    reading[role, step] = buffer
                    free = pipeline.released_after(step)
                    if free is not None:
                        del reading[role, free]
                        empty[pipeline.buffer(free)].arrive()
                else:
                    continue
                done[role] += 1
                break
        assert done == [count] * 3


def test_as_many_stages_as_fit() -> None:
    sizes = {stages: 1000 * stages for stages in (2, 3, 4)}
    assert [stages_of(64, sizes, available) for available in (8000, 7999, 5999, 3999, 1999)] == [4, 3, 2, 2, 1]
    assert [stages_of(count, sizes, 8000) for count in (0, 1, 2, 3, 4)] == [1, 1, 2, 3, 4]

"""The steps of a compiled program on memory that its caller gives: launches, and the copies and zeros they need."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xgpu.packaging.memory import Interval, place_values
from xgpu.packaging.model import (
    SCRATCH_ALIGNMENT,
    Base,
    CopyStep,
    LaunchStep,
    Step,
    StepMemory,
    ZeroStep,
    bytes_of,
)
from xgpu.runtime.program import CompiledKernel, CompiledProgram

_WORD_BYTES = 8


@dataclass(frozen=True)
class Steps:
    """A program's steps, the bytes of scratch they need, and which result may be the memory of which argument."""

    steps: tuple[Step, ...]
    scratch_bytes: int
    in_place: tuple[tuple[int, int], ...]


def make_steps(program: CompiledProgram, arguments: int) -> Steps:
    """Return the steps of a program of ``arguments`` arguments that is all kernels.

    A result that a launch writes is written where the caller wants it, other values live in scratch. A value that is
    updated in place keeps its memory if nothing reads it afterwards; else what is updated is a copy.
    """
    return _Planner(program, arguments).plan()


@dataclass
class _Home:
    """Memory of one value or of several, each an update in place of the one before."""

    values: list[int]
    bytes: int
    first: int
    last: int
    place: StepMemory | None = None


@dataclass
class _Own:
    """Memory that one launch alone uses: ``is_zeroed`` before it."""

    bytes: int
    launch: int
    is_zeroed: bool
    place: StepMemory = field(default_factory=lambda: StepMemory(Base.SCRATCH, 0))


class _Planner:
    def __init__(self, program: CompiledProgram, arguments: int):
        self._program, self._arguments = program, arguments
        self._last_use = {number: step for step, launch in enumerate(program.launches) for number in launch.inputs}
        self._results: dict[int, int] = {}
        for position, number in enumerate(program.result_values):
            if number is not None:
                self._results.setdefault(number, position)
        self._homes: dict[int, _Home] = {}
        self._kernel_numbers = {kernel: number for number, kernel in enumerate(program.kernels)}

    def plan(self) -> Steps:
        for step, launch in enumerate(self._program.launches):
            self._make_homes(step, launch.kernel, launch.inputs, launch.outputs)
        own = [list(self._own_of(step, launch.kernel)) for step, launch in enumerate(self._program.launches)]
        scratch_bytes = self._place_all([each for launch in own for each in launch])
        steps: list[Step] = []
        for launch, its_own in zip(self._program.launches, own, strict=True):
            steps += self._launch(launch.kernel, launch.inputs, launch.outputs, its_own)
        steps += self._copies_to_results()
        return Steps(tuple(steps), scratch_bytes, tuple(self._in_place()))

    def _make_homes(self, step: int, kernel: CompiledKernel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        for output, source in zip(outputs, kernel.aliases, strict=True):
            last = self._last_use.get(output, step)
            if source >= 0 and self._is_taken_over(step, inputs, inputs[source]):
                home = self._homes[output] = self._homes[inputs[source]]
                home.values.append(output)
                home.last = max(last, step)
            else:
                self._homes[output] = _Home([output], self._bytes(output), step, last)

    def _is_taken_over(self, step: int, inputs: Sequence[int], value: int) -> bool:
        """Whether nobody needs a value any more once a launch has read it as the input that it updates."""
        is_free = value >= self._arguments and value not in self._results
        return is_free and self._last_use[value] == step and Counter(inputs)[value] == 1

    def _own_of(self, step: int, kernel: CompiledKernel) -> Iterator[_Own]:
        if kernel.scratch_words:
            yield _Own(kernel.scratch_words * _WORD_BYTES, step, is_zeroed=True)
        if kernel.workspace_bytes:
            yield _Own(kernel.workspace_bytes, step, is_zeroed=False)

    def _place_all(self, own: Sequence[_Own]) -> int:
        homes = list({id(home): home for home in self._homes.values()}.values())
        for home in homes:
            position = next((self._results[value] for value in home.values if value in self._results), None)
            home.place = None if position is None else StepMemory(Base.RESULT, position)
        inside = [home for home in homes if home.place is None]
        intervals = [Interval(home.bytes, home.first, home.last) for home in inside]
        intervals += [Interval(each.bytes, each.launch, each.launch) for each in own]
        offsets, end = place_values(intervals, SCRATCH_ALIGNMENT)
        places = [StepMemory(Base.SCRATCH, offset) for offset in offsets]
        for home, place in zip(inside, places[: len(inside)], strict=True):
            home.place = place
        for each, place in zip(own, places[len(inside) :], strict=True):
            each.place = place
        return end

    def _launch(
        self, kernel: CompiledKernel, inputs: Sequence[int], outputs: Sequence[int], own: Sequence[_Own]
    ) -> Iterator[Step]:
        """Yield a launch after what it needs; its parameters are inputs, board, outputs, board, and its own memory."""
        read, written = [self._place(value) for value in inputs], [self._place(value) for value in outputs]
        for output, source in zip(outputs, kernel.aliases, strict=True):
            if source >= 0:
                if self._homes.get(inputs[source]) is not self._homes[output] and self._bytes(output):
                    yield CopyStep(read[source], self._place(output), self._bytes(output))
                read[source] = self._place(output)
        board = [each.place for each in own if each.is_zeroed]
        for each in own:
            if each.is_zeroed:
                yield ZeroStep(each.place, each.bytes)
        before = [*read, *board]
        places = (*before, *written, *board, *(each.place for each in own if not each.is_zeroed))
        yield LaunchStep(self._kernel_numbers[kernel], places, tuple(range(len(before), len(places))))

    def _copies_to_results(self) -> Iterator[Step]:
        """Yield copies of arguments that are results, and of values that are more than one result."""
        for position, number in enumerate(self._program.result_values):
            target = StepMemory(Base.RESULT, position)
            if number is not None and (source := self._place(number)) != target and self._bytes(number):
                yield CopyStep(source, target, self._bytes(number))

    def _in_place(self) -> Iterator[tuple[int, int]]:
        """Yield each result that begins as a copy of an argument which nothing else reads then or afterwards."""
        for step, launch in enumerate(self._program.launches):
            for output, source in zip(launch.outputs, launch.kernel.aliases, strict=True):
                argument = launch.inputs[source] if source >= 0 else self._arguments
                if argument >= self._arguments or argument in self._results:
                    continue
                is_last = self._last_use[argument] == step and Counter(launch.inputs)[argument] == 1
                place = self._place(output)
                if is_last and place.base is Base.RESULT and self._homes[output].first == step:
                    yield place.number, argument

    def _place(self, value: int) -> StepMemory:
        if value < self._arguments:
            return StepMemory(Base.ARGUMENT, value)
        place = self._homes[value].place
        assert place is not None
        return place

    def _bytes(self, value: int) -> int:
        spec = self._program.values[value]
        return bytes_of(spec.dtype, spec.shape)

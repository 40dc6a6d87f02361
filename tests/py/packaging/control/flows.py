"""Random programs of loops and choices, whose kernels mix the bytes of what they read, and two ways to run them.

One runs a flow on values. The other runs its steps on memory, as a package does: it finds whatever is overwritten too
early, read too late, or copied to the wrong place.
"""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xgpu.dtypes import parse_spec
from xgpu.frontend.signature import ArgumentSpec
from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, launched
from xgpu.packaging.model import (
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
from xgpu.packaging.steps import Steps

SPECS = ("f32[1]", "f32[40]", "f32[64]")
MOST_TRIPS = 40


class TooLongError(Exception):
    """A loop does not seem to end."""


@dataclass(eq=False)
class FakeKernel:
    """A kernel as steps see it, of outputs of some sizes."""

    aliases: tuple[int, ...]
    sizes: tuple[int, ...]
    scratch_words: int = 0
    workspace_bytes: int = 0

    def outputs(self, inputs: Sequence[bytes]) -> list[bytes]:
        """What it computes: bytes, of which the first four are a number from 0 to 2."""
        read = hashlib.sha256(b"".join(inputs)).digest()
        return [mixed(read + bytes([number]), size) for number, size in enumerate(self.sizes)]


def mixed(seed: bytes, size: int) -> bytes:
    """Bytes that follow from a seed."""
    made = random.Random(hashlib.sha256(seed).digest()).randbytes(size)
    return bytes([made[0] % 3, 0, 0, 0]) + made[4:]


class Maker:
    """Makes a program, as it is read from IR: values are set once, and a loop's state has values of its own."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._values: list[str] = []
        self._kernels: list[FakeKernel] = []

    def make(self) -> Flow:
        arguments = self._random.randint(0, 3)
        known = [self._add(self._random.choice(SPECS)) for _ in range(arguments)]
        nodes: list[Node] = []
        self._fill(nodes, known, self._random.randint(2, 6), depth=0)
        late = known[-5:] if self._random.random() < 0.7 else known
        results = (
            [self._random.choice(late) if self._random.random() < 0.9 else None for _ in range(3)] if known else []
        )
        values = [parse_spec(each) for each in self._values]
        specs = tuple(ArgumentSpec(f"v{n}", shape, dtype) for n, (dtype, shape) in enumerate(values))
        kernels: Any = tuple(self._kernels)
        return Flow(kernels, arguments, specs, tuple(nodes), tuple(results))

    def _add(self, spec: str) -> int:
        self._values.append(spec)
        return len(self._values) - 1

    def _size(self, value: int) -> int:
        return {"f32[1]": 4, "f32[40]": 160, "f32[64]": 256}[self._values[value]]

    def _fill(self, nodes: list[Node], known: list[int], count: int, depth: int) -> None:
        for _ in range(count):
            kind = self._random.random()
            if kind < 0.55 or depth == 3 or not known:
                self._launch(nodes, known)
            elif kind < 0.8:
                self._loop(nodes, known, depth)
            else:
                self._choice(nodes, known, depth)

    def _launch(self, nodes: list[Node], known: list[int]) -> None:
        inputs = self._random.choices(known, k=self._random.randint(0, 3)) if known else []
        outputs, aliases = list[int](), list[int]()
        for _ in range(self._random.randint(1, 2)):
            free = [position for position in range(len(inputs)) if position not in aliases]
            updated = self._random.choice(free) if free and self._random.random() < 0.5 else -1
            spec = self._values[inputs[updated]] if updated >= 0 else self._random.choice(SPECS)
            outputs.append(self._add(spec))
            aliases.append(updated)
        words, workspace = self._random.choice([(0, 0), (0, 0), (2, 0), (0, 100), (1, 60)])
        kernel: Any = FakeKernel(tuple(aliases), tuple(map(self._size, outputs)), words, workspace)
        self._kernels.append(kernel)
        nodes += launched(kernel, tuple(inputs), tuple(outputs))
        known += outputs

    def _like(self, known: Sequence[int], value: int) -> int:
        """One of ``known`` of the type of ``value``, or that itself if there is none."""
        alike = [each for each in known if self._values[each] == self._values[value]]
        return self._random.choice(alike or [value])

    def _loop(self, nodes: list[Node], known: list[int], depth: int) -> None:
        starts = self._random.choices(known, k=self._random.randint(1, 4))
        state = [self._add(self._values[start]) for start in starts]
        inside, body = [*known, *state], list[Node]()
        self._fill(body, inside, self._random.randint(0, 4), depth + 1)
        # What the body made, and values of the state in other places, are more likely than what is from around it.
        near = inside[len(known) :]
        ends = [self._like(near if self._random.random() < 0.85 else inside, each) for each in state]
        body.append(Move(tuple(zip(state, ends, strict=True))))
        is_counted = self._random.random() < 0.5
        trips = self._random.randint(1, 5) if is_counted else None
        nodes.append(Move(tuple(zip(state, starts, strict=True))))
        condition = None if is_counted else self._random.choice(state)
        # A count is read where the loop begins, from any value of before.
        count = None if is_counted or self._random.random() < 0.7 else self._random.choice(known)
        nodes.append(Repeating(tuple(body), trips, condition if count is None else None, count))
        known += state

    def _choice(self, nodes: list[Node], known: list[int], depth: int) -> None:
        is_truth = self._random.random() < 0.3
        types = [self._random.choice(known) for _ in range(self._random.randint(1, 3))]
        results = [self._add(self._values[each]) for each in types]
        branches = []
        for _ in range(2 if is_truth else self._random.randint(1, 3)):
            inside, branch = list(known), list[Node]()
            self._fill(branch, inside, self._random.randint(0, 3), depth + 1)
            ends = [self._like(inside[-4:], each) for each in types]
            branch.append(Move(tuple(zip(results, ends, strict=True))))
            branches.append(tuple(branch))
        nodes.append(Branching(tuple(branches), self._random.choice(known), is_truth))
        known += results


def chosen(branches: int, is_truth: bool, index: bytes) -> int:
    """The branch that a choice takes."""
    if is_truth:
        return 0 if index[0] else 1
    number = int.from_bytes(index[:4], "little", signed=True)
    return number if 0 <= number < branches else branches - 1


def run_values(nodes: Sequence[Node], values: dict[int, bytes]) -> None:
    """Run nodes on values."""
    for node in nodes:
        if isinstance(node, Move):
            values |= {target: values[source] for target, source in node.pairs}
        elif isinstance(node, Branching):
            run_values(node.branches[chosen(len(node.branches), node.is_truth, values[node.index])], values)
        elif isinstance(node, Repeating):
            run_loop(node, values)
        else:
            kernel: Any = node.kernel
            values |= zip(node.outputs, kernel.outputs([values[each] for each in node.inputs]), strict=True)


def run_loop(loop: Repeating, values: dict[int, bytes]) -> None:
    """Run a loop on values."""
    condition = -1 if loop.condition is None else loop.condition
    trips = loop.trips if loop.count is None else values[loop.count][0]
    repeated(trips, lambda: values[condition], lambda: run_values(loop.body, values))


def repeated(trips: int | None, condition: Callable[[], bytes], run: Callable[[], None]) -> None:
    """Run so many times, or while a condition's first byte is not 0."""
    trip = 0
    while trip < trips if trips is not None else condition()[0]:
        if trip > MOST_TRIPS:
            raise TooLongError
        run()
        trip += 1


class Machine:
    """Memory on which steps run: what is not written yet has other bytes than any value."""

    def __init__(self, flow: Flow, steps: Steps, memories: Mapping[tuple[Base, int], bytearray]):
        self._flow, self._steps = flow, steps
        self._memories = dict(memories)
        self._scratch = bytearray(b"\xee" * steps.scratch_bytes)
        self._slots = list(steps.slots)

    def run(self) -> None:
        self._run(self._steps.steps)

    def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case LaunchStep():
                    self._launch(step)
                case CopyStep():
                    self._write(step.target, self._read(step.source, step.bytes))
                case ZeroStep():
                    self._write(step.target, bytes(step.bytes))
                case SwapStep():
                    one, other = self._slots[step.first], self._slots[step.second]
                    self._slots[step.first], self._slots[step.second] = other, one
                case LoopStep():
                    at, body = step.condition, step.body
                    trips = step.trips if step.count is None else self._read(step.count, 1)[0]
                    repeated(trips, lambda at=at: self._read(at, 1), lambda body=body: self._run(body))
                case ChoiceStep():
                    index = self._read(step.index, 1 if step.is_truth else 4)
                    self._run(step.branches[chosen(len(step.branches), step.is_truth, index)])

    def _where(self, place: StepMemory) -> tuple[bytearray, int]:
        if place.base is Base.SLOT:
            place = self._slots[place.number]
            assert place.base is not Base.SLOT
        if place.base is Base.SCRATCH:
            return self._scratch, place.number
        return self._memories[place.base, place.number], 0

    def _read(self, place: StepMemory, size: int) -> bytes:
        memory, start = self._where(place)
        assert start + size <= len(memory)
        return bytes(memory[start : start + size])

    def _write(self, place: StepMemory, data: bytes) -> None:
        memory, start = self._where(place)
        assert start + len(data) <= len(memory)
        memory[start : start + len(data)] = data

    def _launch(self, step: LaunchStep) -> None:
        """Run a kernel: outputs are written before inputs are read again, so that they must not share memory."""
        kernel: Any = self._flow.kernels[step.kernel]
        count = step.written[0] - bool(kernel.scratch_words)
        sizes = self._input_sizes[step.kernel]
        inputs = [self._read(place, size) for place, size in zip(step.places[:count], sizes, strict=True)]
        made = kernel.outputs(inputs)
        board = [kernel.scratch_words * 8] if kernel.scratch_words else []
        for size, place in zip(board, step.places[count:], strict=False):
            assert self._read(place, size) == bytes(size)
        own = [kernel.workspace_bytes] if kernel.workspace_bytes else []
        written = [step.places[number] for number in step.written]
        for size, place in zip([*board, *own], written[len(made) :], strict=True):
            self._write(place, b"\xdd" * size)
        for number, (place, data) in enumerate(zip(written, made, strict=False)):
            source = kernel.aliases[number]
            shared = [
                n for n, each in enumerate(step.places[:count]) if self._overlap(each, sizes[n], place, len(data))
            ]
            assert shared == ([source] if source >= 0 else [])
            self._write(place, data)

    def _overlap(self, one: StepMemory, one_bytes: int, other: StepMemory, other_bytes: int) -> bool:
        (memory, start), (others, at) = self._where(one), self._where(other)
        return memory is others and start < at + other_bytes and at < start + one_bytes

    @property
    def _input_sizes(self) -> list[tuple[int, ...]]:
        found: dict[Any, tuple[int, ...]] = {}

        def visit(nodes: Sequence[Node]) -> None:
            for node in nodes:
                if isinstance(node, Repeating):
                    visit(node.body)
                elif isinstance(node, Branching):
                    for branch in node.branches:
                        visit(branch)
                elif not isinstance(node, Move):
                    found[node.kernel] = tuple(self._flow.sizes[each] for each in node.inputs)

        visit(self._flow.nodes)
        return [found.get(kernel, ()) for kernel in self._flow.kernels]

"""The steps of a program: what is launched on which memory, what is copied and zeroed, and which memory is shared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xgpu.dtypes import parse_spec
from xgpu.frontend.signature import ArgumentSpec
from xgpu.packaging.flow import Flow, launched
from xgpu.packaging.model import Base, CopyStep, LaunchStep, StepMemory, ZeroStep
from xgpu.packaging.steps import Steps, make_steps


@dataclass(eq=False)
class FakeKernel:
    """A kernel as steps see it."""

    aliases: tuple[int, ...] = (-1,)
    scratch_words: int = 0
    workspace_bytes: int = 0


@dataclass
class FakeLaunch:
    kernel: FakeKernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


ARGUMENT = [StepMemory(Base.ARGUMENT, number) for number in range(4)]
RESULT = [StepMemory(Base.RESULT, number) for number in range(4)]


def scratch(offset: int) -> StepMemory:
    return StepMemory(Base.SCRATCH, offset)


def steps_of(launches: Sequence[FakeLaunch], results: tuple[int | None, ...], arguments: int = 1) -> Steps:
    """The steps of a program of launches; every value is an f32[64]."""
    numbers = [n for launch in launches for n in (*launch.inputs, *launch.outputs)]
    dtype, shape = parse_spec("f32[64]")
    values = tuple(ArgumentSpec(f"v{n}", shape, dtype) for n in range(max(numbers) + 1))
    kernels: Any = tuple(dict.fromkeys(launch.kernel for launch in launches))
    nodes = [node for each in launches for node in launched(*cast(Any, (each.kernel, each.inputs, each.outputs)))]
    return make_steps(Flow(kernels, arguments, values, tuple(nodes), results))


def test_a_chain_alternates() -> None:
    kernel = FakeKernel()
    chain = [FakeLaunch(kernel, (n,), (n + 1,)) for n in range(4)]
    made = steps_of(chain, (4,))
    assert [step.places for step in made.steps if isinstance(step, LaunchStep)] == [
        (ARGUMENT[0], scratch(0)),
        (scratch(0), scratch(256)),
        (scratch(256), scratch(0)),
        (scratch(0), RESULT[0]),
    ]
    assert made.scratch_bytes == 512
    assert all(step.kernel == 0 and step.written == (1,) for step in made.steps if isinstance(step, LaunchStep))


def test_an_update_takes_over_what_nobody_reads_any_more() -> None:
    update = FakeKernel(aliases=(0,))
    made = steps_of([FakeLaunch(FakeKernel(), (0,), (1,)), FakeLaunch(update, (1, 0), (2,))], (2,))
    assert made.steps == (
        LaunchStep(0, (ARGUMENT[0], RESULT[0]), (1,)),
        LaunchStep(1, (RESULT[0], ARGUMENT[0], RESULT[0]), (2,)),
    )
    assert (made.scratch_bytes, made.in_place) == (0, ())


def test_an_update_of_an_argument_is_one_of_a_copy() -> None:
    made = steps_of([FakeLaunch(FakeKernel(aliases=(0,)), (0,), (1,))], (1,))
    assert made.steps == (
        CopyStep(ARGUMENT[0], RESULT[0], 256),
        LaunchStep(0, (RESULT[0], RESULT[0]), (1,)),
    )
    assert made.in_place == ((0, 0),)


def test_an_argument_that_is_read_later_cannot_be_the_result() -> None:
    made = steps_of([FakeLaunch(FakeKernel(aliases=(0,)), (0,), (1,)), FakeLaunch(FakeKernel(), (0,), (2,))], (1, 2))
    assert made.in_place == ()


def test_an_argument_that_the_update_reads_twice_cannot_be_the_result() -> None:
    made = steps_of([FakeLaunch(FakeKernel(aliases=(0,)), (0, 0), (1,))], (1,))
    assert made.in_place == ()
    assert made.steps[1] == LaunchStep(0, (RESULT[0], ARGUMENT[0], RESULT[0]), (2,))


def test_an_argument_that_is_returned_too_cannot_be_the_result() -> None:
    made = steps_of([FakeLaunch(FakeKernel(aliases=(0,)), (0,), (1,))], (1, 0))
    assert made.in_place == ()
    assert made.steps[-1] == CopyStep(ARGUMENT[0], RESULT[1], 256)


def test_a_value_that_is_used_again_is_copied_before_an_update() -> None:
    launches = [
        FakeLaunch(FakeKernel(), (0,), (1,)),
        FakeLaunch(FakeKernel(aliases=(0,)), (1,), (2,)),
        FakeLaunch(FakeKernel(), (1,), (3,)),
    ]
    made = steps_of(launches, (2, 3))
    assert made.steps[1] == CopyStep(scratch(0), RESULT[0], 256)
    assert made.steps[3] == LaunchStep(2, (scratch(0), RESULT[1]), (1,))


def test_memory_of_a_launch_alone() -> None:
    kernel = FakeKernel(scratch_words=3, workspace_bytes=1000)
    made = steps_of([FakeLaunch(kernel, (0,), (1,)), FakeLaunch(kernel, (1,), (2,))], (2,))
    zero, first, *_ = made.steps
    board, own = scratch(1280), scratch(0)
    assert zero == ZeroStep(board, 24)
    assert first == LaunchStep(0, (ARGUMENT[0], board, scratch(1024), board, own), (2, 3, 4))
    assert made.scratch_bytes == 1304


def test_one_value_that_is_two_results() -> None:
    made = steps_of([FakeLaunch(FakeKernel(), (0,), (1,))], (1, None, 1))
    assert made.steps[1:] == (CopyStep(RESULT[0], RESULT[2], 256),)

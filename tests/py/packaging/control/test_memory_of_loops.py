"""The steps of random programs of loops and choices compute on memory what the programs compute on values."""

from typing import Any

import pytest

from tests.py.packaging.control.flows import FakeKernel, Machine, Maker, TooLongError, mixed, run_values
from xgpu.dtypes import parse_spec
from xgpu.frontend.signature import ArgumentSpec
from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, Run, all_nodes
from xgpu.packaging.model import Base, CopyStep, LaunchStep, LoopStep, StepMemory, SwapStep, all_steps
from xgpu.packaging.steps import Steps, make_steps

SEEDS = 1600


def expected_results(flow: Flow) -> list[bytes | None]:
    values = {number: mixed(b"argument%d" % number, flow.sizes[number]) for number in range(flow.arguments)}
    run_values(flow.nodes, values)
    return [None if number is None else values[number] for number in flow.result_values]


def check(flow: Flow, steps: Steps, shared: dict[int, int]) -> None:
    """Run on memory; results that are ``shared`` are in the memory of an argument."""
    memories = {(Base.ARGUMENT, n): bytearray(mixed(b"argument%d" % n, flow.sizes[n])) for n in range(flow.arguments)}
    before = {place: bytes(memory) for place, memory in memories.items()}
    for position, number in enumerate(flow.result_values):
        if number is not None:
            own = bytearray(b"\xee" * flow.sizes[number])
            memories[Base.RESULT, position] = memories[Base.ARGUMENT, shared[position]] if position in shared else own
    Machine(flow, steps, memories).run()
    for position, expected in enumerate(expected_results(flow)):
        if expected is not None:
            assert memories[Base.RESULT, position] == expected, f"result {position}"
    for (base, number), data in before.items():
        assert number in shared.values() or memories[base, number] == data


@pytest.mark.parametrize("block", range(8))
def test_steps_compute_what_the_program_does(block: int) -> None:
    ran = 0
    for seed in range(block * SEEDS // 8, (block + 1) * SEEDS // 8):
        flow = Maker(seed).make()
        steps = make_steps(flow)
        try:
            check(flow, steps, {})
        except TooLongError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        ran += 1
        together: dict[int, int] = {}
        for result, argument in steps.in_place:
            check(flow, steps, {result: argument})
            if result not in together and argument not in together.values():
                together[result] = argument
        check(flow, steps, together)
    assert ran > SEEDS // 16


def test_the_programs_have_what_they_are_for() -> None:
    flows = [Maker(seed).make() for seed in range(100)]
    nodes = [node for flow in flows for node in all_nodes(flow.nodes)]
    assert sum(isinstance(node, Repeating) and node.trips is None for node in nodes) > 20
    assert sum(isinstance(node, Repeating) and node.trips is not None for node in nodes) > 20
    assert sum(isinstance(node, Branching) for node in nodes) > 20
    made = [make_steps(flow) for flow in flows]
    steps = [step for each in made for step in all_steps(each.steps)]
    assert sum(isinstance(step, SwapStep) for step in steps) > 20
    assert sum(isinstance(step, CopyStep) for step in steps) > 20
    assert sum(len(each.in_place) for each in made) > 5


def flow_of(arguments: int, results: tuple[int, ...], values: int, *nodes: Node) -> Flow:
    dtype, shape = parse_spec("f32[64]")
    specs = tuple(ArgumentSpec(f"v{number}", shape, dtype) for number in range(values))
    kernels: Any = tuple(node.kernel for node in all_nodes(nodes) if isinstance(node, Run))
    return Flow(kernels, arguments, specs, nodes, results)


def run(*numbers: int) -> Run:
    """A launch that makes the last value of the others."""
    kernel: Any = FakeKernel((-1,), (256,))
    return Run(kernel, numbers[:-1], numbers[-1:])


def test_a_state_that_cannot_be_computed_in_place_alternates() -> None:
    loop = Repeating((run(1, 2), Move(((1, 2),))), 3, None)
    flow = flow_of(1, (1,), 3, Move(((1, 0),)), loop)
    made = make_steps(flow)
    # After three iterations the result is where it belongs.
    assert made.slots == (StepMemory(Base.SCRATCH, 0), StepMemory(Base.RESULT, 0))
    slots = StepMemory(Base.SLOT, 0), StepMemory(Base.SLOT, 1)
    assert made.steps == (
        CopyStep(StepMemory(Base.ARGUMENT, 0), slots[0], 256),
        LoopStep((LaunchStep(0, slots, (1,)), SwapStep(0, 1)), 3, None),
    )
    assert made.scratch_bytes == 256
    check(flow, made, {})


def test_a_state_that_is_read_before_it_is_set_is_computed_in_place() -> None:
    loop = Repeating((run(1, 2), run(2, 3), Move(((1, 3),))), 3, None)
    flow = flow_of(1, (1,), 4, Move(((1, 0),)), loop)
    made = make_steps(flow)
    result, between = StepMemory(Base.RESULT, 0), StepMemory(Base.SCRATCH, 0)
    assert made.steps == (
        CopyStep(StepMemory(Base.ARGUMENT, 0), result, 256),
        LoopStep((LaunchStep(0, (result, between), (1,)), LaunchStep(1, (between, result), (1,))), 3, None),
    )
    assert (made.slots, made.in_place) == ((), ((0, 0),))


@pytest.mark.parametrize("trips", [1, 2, 3, None])
def test_a_loop_that_swaps_two_results_copies_nothing_in_it(trips: int | None) -> None:
    start = Move(((3, 0), (4, 1), (5, 2)))
    loop = Repeating((run(5, 6), Move(((3, 4), (4, 3), (5, 6)))), trips, 5 if trips is None else None)
    flow = flow_of(3, (3, 4), 7, start, loop)
    made = make_steps(flow)
    (turn,) = (step for step in made.steps if isinstance(step, LoopStep))
    assert not any(isinstance(step, CopyStep) for step in turn.body)
    copies = sum(isinstance(step, CopyStep) for step in made.steps)
    # Those of the two arguments, or with the condition three, and of results of which nobody knows where they end.
    assert copies == (5 if trips is None else 2)
    check(flow, made, {})


def test_no_step_is_left_of_what_nobody_needs() -> None:
    loop = Repeating((run(1, 2), Move(((1, 2), (3, 3)))), 3, None)
    flow = flow_of(1, (0,), 4, Move(((1, 0), (3, 0))), loop)
    assert make_steps(flow).steps == (CopyStep(StepMemory(Base.ARGUMENT, 0), StepMemory(Base.RESULT, 0), 256),)


def test_a_result_needs_no_slot_for_its_copy() -> None:
    flow = flow_of(1, (1, 1), 2, run(0, 1))
    assert make_steps(flow).slots == ()

"""Where slots' memory is at the end, and which results may be the memory of arguments."""

import random
from collections.abc import Sequence

from xgpu.packaging.in_place import pairs_in_place
from xgpu.packaging.model import Base, ChoiceStep, CopyStep, LaunchStep, LoopStep, Step, StepMemory, SwapStep
from xgpu.packaging.slots import exchanged, final_order

ARGUMENT = [StepMemory(Base.ARGUMENT, number) for number in range(3)]
RESULT = [StepMemory(Base.RESULT, number) for number in range(3)]
SLOT = [StepMemory(Base.SLOT, number) for number in range(3)]
SCRATCH = StepMemory(Base.SCRATCH, 0)


def random_steps(source: random.Random, depth: int) -> tuple[Step, ...]:
    made: list[Step] = []
    for _ in range(source.randint(1, 4)):
        if depth < 2 and source.random() < 0.4:
            made.append(LoopStep(random_steps(source, depth + 1), source.randint(1, 7), None))
        else:
            made.append(SwapStep(*source.sample(range(5), 2)))
    return tuple(made)


def run(steps: Sequence[Step], slots: list[int]) -> None:
    for step in steps:
        if isinstance(step, SwapStep):
            slots[step.first], slots[step.second] = slots[step.second], slots[step.first]
        elif isinstance(step, LoopStep):
            for _ in range(step.trips or 0):
                run(step.body, slots)


def test_the_order_is_that_of_running() -> None:
    for seed in range(100):
        steps, slots = random_steps(random.Random(seed), 0), list(range(5))
        run(steps, slots)
        assert final_order(steps, 5) == (tuple(slots), frozenset())


def test_what_values_decide_is_not_known() -> None:
    swap = SwapStep(0, 1)
    assert final_order([LoopStep((swap,), None, SCRATCH)], 3)[1] == {0, 1}
    assert final_order([LoopStep((swap, swap), None, SCRATCH)], 3)[1] == set()
    assert final_order([ChoiceStep(((swap,), (SwapStep(1, 2),)), SCRATCH, True)], 3)[1] == {0, 1, 2}
    assert final_order([ChoiceStep(((swap,), (swap,)), SCRATCH, True)], 3) == ((1, 0, 2), frozenset())


def pairs(*steps: Step, last: Sequence[Step] = (), slots: Sequence[StepMemory] = ()) -> list[tuple[int, int]]:
    return list(pairs_in_place(steps, last, slots))


def test_a_copy_of_an_argument_may_be_in_its_place() -> None:
    update = LaunchStep(0, (RESULT[0], ARGUMENT[1], RESULT[0]), (2,))
    copy = CopyStep(ARGUMENT[0], RESULT[0], 4)
    assert pairs(copy, update) == [(0, 0)]
    assert pairs(LaunchStep(0, (ARGUMENT[0], SCRATCH), (1,)), copy, update) == [(0, 0)]
    assert pairs(LaunchStep(0, (ARGUMENT[1], RESULT[0]), (1,)), copy, update) == []
    assert pairs(copy, update, last=[CopyStep(ARGUMENT[0], RESULT[1], 4)]) == []
    assert pairs(copy, LoopStep((LaunchStep(0, (ARGUMENT[0], RESULT[0]), (1,)),), 2, None)) == []


def test_a_copy_in_a_branch_may_not() -> None:
    copy, other = CopyStep(ARGUMENT[0], RESULT[0], 4), LaunchStep(0, (ARGUMENT[1], RESULT[0]), (1,))
    assert pairs(ChoiceStep(((copy,), (other,)), SCRATCH, True)) == []


def test_slots_that_have_changed_hands() -> None:
    slots, copy = [RESULT[0], SCRATCH], CopyStep(ARGUMENT[0], SLOT[0], 4)
    turn = LoopStep((LaunchStep(0, (SLOT[0], SLOT[1]), (1,)), SwapStep(0, 1)), 2, None)
    assert pairs(copy, turn, slots=slots) == [(0, 0)]
    assert pairs(turn, copy, slots=slots) == []
    # The memory of the result may have been written by way of the other slot.
    other = LaunchStep(0, (ARGUMENT[1], SLOT[1]), (1,))
    assert pairs(SwapStep(0, 1), other, CopyStep(ARGUMENT[0], RESULT[0], 4), slots=slots) == []


def test_slots_that_point_to_one_memory_at_different_times_are_strangers() -> None:
    slots, copy = [SCRATCH, StepMemory(Base.SCRATCH, 512), SCRATCH, RESULT[0]], CopyStep(ARGUMENT[0], SLOT[0], 512)
    steps = copy, SwapStep(0, 1), LaunchStep(0, (SLOT[1], SLOT[2]), (1,)), SwapStep(2, 3)
    assert [len(each) for each in exchanged(steps, slots)] == [2, 2, 2, 2]
    assert pairs(*steps, slots=slots) == []

"""Memory that changes hands: what for what, and where it is at the end as far as that is known before."""

from collections.abc import Sequence

from xgpu.packaging.model import ChoiceStep, LoopStep, Step, StepMemory, SwapStep, all_steps

type Order = tuple[int, ...]
"""For each slot the one whose first memory it has."""


def final_order(steps: Sequence[Step], slots: int) -> tuple[Order, frozenset[int]]:
    """Return the order of so many slots after the steps, and those of which it is not known: values decide it."""
    unknown = set[int]()
    order = _after(steps, tuple(range(slots)), unknown)
    return order, frozenset(unknown)


def _after(steps: Sequence[Step], order: Order, unknown: set[int]) -> Order:
    for step in steps:
        if isinstance(step, SwapStep):
            now = list(order)
            now[step.first], now[step.second] = order[step.second], order[step.first]
            order = tuple(now)
        elif isinstance(step, LoopStep):
            once = _after(step.body, _same(order), unknown)
            if step.trips is None:
                unknown |= _moved(once)
            else:
                order = _composed(order, _power(once, step.trips))
        elif isinstance(step, ChoiceStep):
            first, *others = (_after(branch, _same(order), unknown) for branch in step.branches)
            if any(other != first for other in others):
                unknown |= _moved(first).union(*map(_moved, others))
            else:
                order = _composed(order, first)
    return order


def _same(order: Order) -> Order:
    return tuple(range(len(order)))


def _moved(order: Order) -> set[int]:
    return {slot for slot, origin in enumerate(order) if slot != origin}


def _composed(before: Order, after: Order) -> Order:
    return tuple(before[origin] for origin in after)


def _power(order: Order, times: int) -> Order:
    result, square = _same(order), order
    while times:
        if times & 1:
            result = _composed(result, square)
        square, times = _composed(square, square), times >> 1
    return result


def exchanged(steps: Sequence[Step], slots: Sequence[StepMemory]) -> list[Sequence[StepMemory]]:
    """Return what each slot may point to, its first memory included; ``slots`` is what each points to at first.

    Slots that are in use at different times may point to the same memory, and still be strangers.
    """
    groups = [[number] for number in range(len(slots))]
    for step in all_steps(steps):
        if isinstance(step, SwapStep):
            one, other = groups[step.first], groups[step.second]
            if one is not other:
                one += other
                for number in other:
                    groups[number] = one
    return [[slots[number] for number in group] for group in groups]

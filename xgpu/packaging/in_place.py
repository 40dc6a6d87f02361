"""Pairs results with the arguments whose memory they may be: one that is updated from a copy of it."""

from collections.abc import Iterator, Sequence

from xgpu.packaging.model import Base, CopyStep, Step, StepMemory, all_steps, places_of
from xgpu.packaging.slots import exchanged


def pairs_in_place(
    steps: Sequence[Step], last: Sequence[Step], slots: Sequence[StepMemory]
) -> Iterator[tuple[int, int]]:
    """Yield each result, and the argument, by number, from whose copy the result is computed, in its memory.

    Nothing has used the result's memory before that copy, and nothing reads the argument afterwards; nor do the
    ``last`` steps, which come after ``steps`` and are only looked at for that. ``slots`` is what each slot points to at
    first.
    """
    groups = exchanged(steps, slots)
    uses = [[place for each in all_steps([step]) for place in places_of(each)] for step in (*steps, *last)]
    last_use = {place: number for number, places in enumerate(uses) for place in places}
    used = set[StepMemory]()
    for number, step in enumerate(steps):
        if isinstance(step, CopyStep) and step.source.base is Base.ARGUMENT:
            target = _first(step.target, slots)
            others = groups[step.target.number] if step.target.base is Base.SLOT else ()
            results = [each for each in (target, *others) if each.base is Base.RESULT]
            if results and results[0] not in used and last_use[step.source] == number:
                yield results[0].number, step.source.number
        # After a swap the memory of both slots counts as used, whichever has it.
        used |= {_first(place, slots) for place in uses[number]}


def _first(place: StepMemory, slots: Sequence[StepMemory]) -> StepMemory:
    """Return the memory of a place before any slot has changed hands."""
    return slots[place.number] if place.base is Base.SLOT else place

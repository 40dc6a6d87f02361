"""Independent kernels in one launch, where each would take less time than its launch.

An optimizer's step is a loop for each shape of its parameters, and clipping by a norm a sum for each. They depend on
nothing of each other, so one launch can have blocks for all of them. (XLA's GPU compiler does so by horizontal fusion.)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xgpu import ir
from xgpu.analysis.in_place import updates_of
from xgpu.costs.footprint import elements_read
from xgpu.costs.time import launch_bytes
from xgpu.costs.values import byte_size, elements, instructions
from xgpu.device import Device
from xgpu.fusion.fallback import is_made_by_kernels
from xgpu.fusion.grouping.decisions import Decision, apart, merged
from xgpu.fusion.grouping.families import Candidate, Families, KernelFamily, Kind
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.delayed_updates import delay_lone_loops, delay_updates
from xgpu.fusion.grouping.merging.followed_loops import merge_followed_loops
from xgpu.fusion.grouping.merging.launches import States, launches_of
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import backward_slice, in_order

_MOST_PARTS = 32
"""Kernels that one launch computes at most. Kernels are compiled one beside the other, and a kernel of all is not."""
_MOST_ARRAYS = 512
"""Arrays that such a kernel reads and writes at most: 4 KB of pointers, which every driver takes."""
_MOST_INSTRUCTIONS = 4096
"""Instructions of such a kernel, for one element of each result, at most: what its text grows with."""

_SHORT = "neither reads the other's results, and it moves {:,} bytes: memory moves {:,} in the time of a launch"
_FULL = Reason(
    "one kernel has at most {} parts, of {} instructions and {} arrays together",
    (_MOST_PARTS, _MOST_INSTRUCTIONS, _MOST_ARRAYS),
)
_LONG = "it moves {:,} bytes, and memory only {:,} in the time of a launch"


@dataclass(frozen=True)
class _Work:
    """The work of a kernel: bytes that it moves, instructions for an element of each value, arrays read and written."""

    moved: int
    instructions: int
    arrays: int


def merge_small_kernels(
    grouping: Grouping, families: Families, target: Device, state: Mapping[ir.Value, ir.Value], has_host: bool = False
) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with kernels of one level put together whose launches take most of their time.

    A new group takes the place of the first of them. ``state`` maps results of a loop's body to the arguments in whose
    memory they may be made; updates of slices wait for each other there. ``has_host``: if they are made elsewhere, a
    host exchanges pointers, and nothing is copied for that.
    """
    if (family := families.of_parts) is None:
        return grouping, []

    def is_short(group: Group) -> bool:
        return _work(group, grouping).moved <= launch_bytes(target)

    if state:
        state = {} if has_host else state
        grouping = delay_updates(grouping, state, is_short)
        if has_host:
            grouping = delay_lone_loops(grouping, lambda each: _may_be_part(each, family, families) and is_short(each))
    grouping, decisions = merge_followed_loops(
        grouping, state, lambda each: _keeps_family(each, families, grouping) and is_short(each)
    )
    by_level: dict[int, list[Group]] = {}
    for group in grouping.groups:
        if _may_be_part(group, family, families):
            by_level.setdefault(group.level, []).append(group)
    states = States(grouping, state)
    moved: dict[Group, Group] = {}
    replaced: dict[Group, Group | None] = {}
    for groups in by_level.values():
        kernels = [group for group in groups if len(groups) > 1 and _keeps_family(group, families, grouping)]
        if len(kernels) < 2:
            continue
        launches = _without_conflicts([(kernel, _work(kernel, grouping)) for kernel in kernels], states, target)
        first = [kernels.index(each[0][0]) for each in launches]
        if first != sorted(first):
            moved |= zip(kernels, (kernel for each in launches for kernel, _ in each), strict=True)
        for separate in launches:
            for some in _merged(separate, target, decisions):
                replaced |= dict.fromkeys(some)
                replaced[some[0]] = _together(family, some)
    new = (replaced.get(group, group) for group in (moved.get(each, each) for each in grouping.begun))
    return replace(grouping, begun=tuple(group for group in new if group is not None)), decisions


def _without_conflicts(
    kernels: Sequence[tuple[Group, _Work]], states: States, target: Device
) -> list[list[tuple[Group, _Work]]]:
    """Return ``kernels`` in lists of which none has one that reads what another updates: blocks run in any order.

    Of a loop's state, what one overwrites and another reads is copied. They are in two lists, in their order, if that
    is copied less often, and more than once less.
    """
    works = dict(kernels)
    if not states.are_changed_by(works) and not any(kernel.kind.family.updates_in_place for kernel in works):
        return [list(kernels)]
    memories = []
    for kernel, work in kernels:
        memory = states.memory_of(kernel)
        memories.append((kernel, memory if work.moved <= launch_bytes(target) else memory.alone))
    return [[(kernel, works[kernel]) for kernel in launch] for launch in launches_of(memories)]


def _merged(
    kernels: Sequence[tuple[Group, _Work]], target: Device, decisions: list[Decision]
) -> Iterator[Sequence[Group]]:
    """Yield which of several independent ``kernels`` become one, and add the ``decisions``."""
    most, short = launch_bytes(target), []
    for number, (kernel, work) in enumerate(kernels):
        if work.moved <= most:
            short.append((kernel, work))
        elif len(kernels) > 1:
            other, _ = kernels[number - 1]
            decisions.append(apart(kernel.roots[0], other.roots[0], Reason(_LONG, (work.moved, most))))
    for number, some in enumerate(_few(short)):
        (first, _), *others = some
        if number:
            decisions.append(apart(first.roots[0], short[0][0].roots[0], _FULL))
        for kernel, work in others:
            decisions.append(merged(kernel.roots[0], first.roots[0], Reason(_SHORT, (work.moved, most))))
        if others:
            yield [kernel for kernel, _ in some]


def _may_be_part(group: Group, family: KernelFamily, families: Families) -> bool:
    """Whether a kernel can be a part of one of ``family``, unless another family is recognised for it."""
    if not group.heroes:
        return group.kind == families.loop_over(group.roots[0])
    if group.kind.family not in family.parts:
        return False
    # What each thread computes with a hero is a kernel for each shape.
    return group.kind.family.is_cooperative or len(set(map(shape_of, group.roots))) == 1


def _keeps_family(group: Group, families: Families, grouping: Grouping) -> bool:
    """Whether no other family is recognised for what a kernel without heroes computes."""
    if group.heroes:
        return True
    family, _ = families.matched(Candidate(group.roots, partial(grouping.stored_before, level=group.level)))
    return family is group.kind.family


def _work(group: Group, grouping: Grouping) -> _Work:
    read: dict[ir.Value, int] = {}
    issued = 0

    def stored(value: ir.Value) -> bool:
        return grouping.stored_before(value, group.level) and not is_made_by_kernels(value)

    written = list(group.roots)
    if group.kind.family.updates_in_place:
        written = [each for hero in group.heroes for each in updates_of(hero)]
        read.update((each, elements(each)) for each in written if stored(each))
    needed = {value: elements(value) for value in written}
    for op in reversed(in_order(backward_slice(written, stored))):
        issued += instructions(op)
        computed = max([needed.get(result, 0) for result in op.results])
        for operand, count in zip(op.operands, elements_read(op, computed), strict=True):
            found = read if stored(operand) else needed
            found[operand] = min(elements(operand), found.get(operand, 0) + count)
    moved = sum(byte_size(value, count) for value, count in read.items()) + sum(map(byte_size, written))
    return _Work(moved, issued, len(read) + len(group.roots))


def _few(kernels: Sequence[tuple[Group, _Work]]) -> Iterator[list[tuple[Group, _Work]]]:
    """Yield ``kernels`` in sequences that one launch can compute."""
    some: list[tuple[Group, _Work]] = []
    issued = arrays = 0
    for kernel, work in kernels:
        issued, arrays = issued + work.instructions, arrays + work.arrays
        if some and (len(some) == _MOST_PARTS or issued > _MOST_INSTRUCTIONS or arrays > _MOST_ARRAYS):
            yield some
            some, issued, arrays = [], work.instructions, work.arrays
        some.append((kernel, work))
    if some:
        yield some


def _together(family: KernelFamily, kernels: Sequence[Group]) -> Group:
    """Return a group of parts. Reductions are first: a block works for longer on one than on a part of a loop."""
    kernels = sorted(kernels, key=lambda kernel: not kernel.heroes)
    roots = tuple(root for kernel in kernels for root in kernel.roots)
    return Group(Kind(family, None), kernels[0].level, roots=roots, parts=tuple(kernels))

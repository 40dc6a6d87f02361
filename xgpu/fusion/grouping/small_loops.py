"""Independent loops in one kernel, where each would take less time than its launch.

An optimizer's step is a loop for each shape of its parameters. They depend on nothing of each other, so one launch can
have blocks for all of them. (XLA's GPU compiler does so by horizontal fusion.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xgpu import ir
from xgpu.costs.footprint import elements_read
from xgpu.costs.time import launch_bytes
from xgpu.costs.values import byte_size, elements, instructions
from xgpu.device import Device
from xgpu.fusion.grouping.decisions import Decision, apart, merged
from xgpu.fusion.grouping.families import Candidate, Families, Kind
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason
from xgpu.structure import backward_slice, is_constant

_MOST_LOOPS = 32
"""Loops that one kernel computes at most. Kernels are compiled one beside the other, and a kernel of all is not."""
_MOST_ARRAYS = 512
"""Arrays that such a kernel reads and writes at most: 4 KB of pointers, which every driver takes."""
_MOST_INSTRUCTIONS = 4096
"""Instructions of such a kernel, for one element of each result, at most: what its text grows with."""

_SHORT = Reason("neither reads the other's results, and each takes less time than its launch")
_FULL = Reason(
    "one kernel computes at most {} loops, of {} instructions and {} arrays together",
    (_MOST_LOOPS, _MOST_INSTRUCTIONS, _MOST_ARRAYS),
)
_LONG = "it moves {:,} bytes, for which memory takes longer than a launch takes"


@dataclass(frozen=True)
class _Work:
    """The work of a loop: bytes that it moves, instructions for an element of each result, arrays read and written."""

    moved: int
    instructions: int
    arrays: int


def merge_small_loops(grouping: Grouping, families: Families, target: Device) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with loops of one level put together whose launches take most of their time.

    A new group takes the place of the first of its loops.
    """
    by_level: dict[int, list[Group]] = {}
    for group in grouping.groups:
        if not group.heroes and group.kind == families.loop_over(group.roots[0]):
            by_level.setdefault(group.level, []).append(group)
    replaced: dict[Group, Group | None] = {}
    decisions: list[Decision] = []
    for groups in by_level.values():
        loops = [group for group in groups if len(groups) > 1 and _stays_loop(group, families, grouping)]
        short = []
        for loop in loops if len(loops) > 1 else ():
            work = _work(loop, grouping)
            if work.moved > launch_bytes(target):
                other = next(each for each in loops if each is not loop)
                decisions.append(apart(loop.roots[0], other.roots[0], Reason(_LONG, (work.moved,))))
            else:
                short.append((loop, work))
        for number, some in enumerate(_few(short)):
            if number:
                decisions.append(apart(some[0].roots[0], short[0][0].roots[0], _FULL))
            decisions += [merged(loop.roots[0], some[0].roots[0], _SHORT) for loop in some[1:]]
            if len(some) > 1:
                replaced |= dict.fromkeys(some)
                replaced[some[0]] = _together(some)
    new = (replaced.get(group, group) for group in grouping.begun)
    return replace(grouping, begun=tuple(group for group in new if group is not None)), decisions


def _stays_loop(group: Group, families: Families, grouping: Grouping) -> bool:
    """Whether no other family is recognised for what a loop computes."""
    family, _ = families.matched(Candidate(group.roots, partial(grouping.stored_before, level=group.level)))
    return family is group.kind.family


def _work(group: Group, grouping: Grouping) -> _Work:
    read: dict[ir.Value, int] = {}
    issued = 0

    def stored(value: ir.Value) -> bool:
        return grouping.stored_before(value, group.level) and not is_constant(value)

    for op in backward_slice(group.roots, stored):
        issued += instructions(op)
        if not any(map(stored, op.operands)):
            continue
        for operand, count in zip(op.operands, elements_read(op, elements(op.results[0])), strict=True):
            if stored(operand):
                read[operand] = min(elements(operand), read.get(operand, 0) + count)
    moved = sum(byte_size(value, count) for value, count in read.items()) + sum(map(byte_size, group.roots))
    return _Work(moved, issued, len(read) + len(group.roots))


def _few(loops: Sequence[tuple[Group, _Work]]) -> Iterator[list[Group]]:
    """Yield ``loops`` in sequences that one kernel can compute."""
    some: list[Group] = []
    issued = arrays = 0
    for loop, work in loops:
        issued, arrays = issued + work.instructions, arrays + work.arrays
        if some and (len(some) == _MOST_LOOPS or issued > _MOST_INSTRUCTIONS or arrays > _MOST_ARRAYS):
            yield some
            some, issued, arrays = [], work.instructions, work.arrays
        some.append(loop)
    if some:
        yield some


def _together(loops: Sequence[Group]) -> Group:
    shapes = tuple(shape_of(loop.roots[0]) for loop in loops)
    roots = tuple(root for loop in loops for root in loop.roots)
    return Group(Kind(loops[0].kind.family, shapes), loops[0].level, (), roots)

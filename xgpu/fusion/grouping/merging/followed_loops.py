"""Loops over the results of reductions in a loop's body, where each would overwrite states that the other reads.

A kernel makes the next value of a state in its memory if no other reads the present one. Blocks of one kernel run in
any order, and XLA knows no order of kernels of which none needs the other's results: it copies what they would not
overwrite.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.analysis.root_indices import MOST_ROOTS
from xgpu.costs.values import elements
from xgpu.fusion.grouping.decisions import Decision, merged
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.merging.delayed_updates import values_read
from xgpu.fusion.grouping.merging.launches import States
from xgpu.indexing.access import Shape, shape_of
from xgpu.reasons import Reason

_FOLLOWS = (
    "the thread that has a result computes these elements, too: XLA would copy {} states that the other one reads"
)


def merge_followed_loops(
    grouping: Grouping, state: Mapping[ir.Value, ir.Value], can_merge: Callable[[Group], bool]
) -> tuple[Grouping, list[Decision]]:
    """Return ``grouping`` with loops over the results of reductions merged into these, where that saves copies.

    ``state`` maps results of a loop's body to the arguments in whose memory they may be made. ``can_merge`` tells of
    which kernels this takes little time.
    """
    states, decisions = States(grouping, state), list[Decision]()
    new: dict[Group, Group | None] = {}
    for reduction, loop in _followed(grouping) if state else ():
        now = new.get(reduction, reduction)
        if now is None or loop in new or len(now.roots) + len(loop.roots) > MOST_ROOTS:
            continue
        together = replace(now, roots=(*now.roots, *loop.roots))
        alone = [states.in_place(each) for each in (now, loop)]
        read = [set(map(behind_bitcasts, values_read(each, grouping))) for each in (loop, now)]
        copied = [value for own, others in zip(alone, read, strict=True) for value in own & others]
        lost = set().union(*alone) - states.in_place(together) if copied else set()
        if len(lost) < len(copied) and can_merge(reduction) and can_merge(loop):
            new |= {reduction: together, loop: None}
            decisions.append(merged(loop.roots[0], now.heroes[0].results[0], Reason(_FOLLOWS, (len(copied),))))
    if not new:
        return grouping, decisions
    begun = (new.get(group, group) for group in grouping.begun)
    return replace(grouping, begun=tuple(group for group in begun if group is not None)), decisions


def _followed(grouping: Grouping) -> Iterator[tuple[Group, Group]]:
    """Yield reductions, each with the loops of its level over arrays of the shape of its results."""
    loops: dict[tuple[int, Shape], list[Group]] = {}
    for group in grouping.groups:
        if not (group.heroes or group.parts or any(map(is_packed, group.roots))):
            loops.setdefault((group.level, shape_of(group.roots[0])), []).append(group)
    for group in grouping.groups:
        family = group.kind.family
        if not group.heroes or not family.stores_beside or family.must_alias or group.heroes[0].name != REDUCE:
            continue
        result = group.heroes[0].results[0]
        if elements(result) != elements(group.heroes[0].operands[0]):
            yield from ((group, loop) for loop in loops.get((group.level, shape_of(result)), ()))

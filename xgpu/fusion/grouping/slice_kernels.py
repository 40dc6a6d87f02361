"""Merges the kernels that store slices of one value: one kernel for all shapes, not a loop for each."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from xgpu import ir
from xgpu.analysis.heroes import HeroKind
from xgpu.analysis.root_indices import Stored, at_root_indices
from xgpu.fusion.grouping.decisions import Decision, apart, merged
from xgpu.fusion.grouping.groups import MOST_ROOTS, TOO_MANY_ROOTS, Group
from xgpu.indexing.hlo_maps import access_kind
from xgpu.reasons import Reason

INPUT_SLICES = "input_slices"
SLICE = "stablehlo.slice"
_SAME_VALUE = Reason("both are slices of one value")


def merge_slices(
    groups: Sequence[Group], stored_before: Callable[[ir.Value, int], bool]
) -> tuple[list[Group], list[Decision]]:
    """Return ``groups`` with the loops merged that store slices of one value at one level.

    Stored values may follow their slices element by element. ``stored_before`` tells whether a value is stored, or
    given, before kernels of a level run. A new group takes the place of the first that it replaces.
    """
    alike: dict[tuple[ir.Value, int], list[tuple[Group, list[ir.Operation]]]] = {}
    for group in groups:
        if slices := _slices_of(group, partial(_before, stored_before, group.level)):
            alike.setdefault((slices[0].operands[0], group.level), []).append((group, slices))
    replaced: dict[Group, Group | None] = {}
    decisions = []
    for parts in alike.values():
        for some in _few_roots(parts):
            first = some[0][0].roots[0]
            decisions += [merged(group.roots[0], first, _SAME_VALUE) for group, _ in some[1:]]
            if some[0] is not parts[0]:
                decisions.append(apart(first, parts[0][0].roots[0], TOO_MANY_ROOTS))
            if len(some) > 1:
                replaced |= {group: None for group, _ in some}
                replaced[some[0][0]] = _merge(some)
    new = [replaced.get(group, group) for group in groups]
    return [group for group in new if group is not None], decisions


def _before(stored_before: Callable[[ir.Value, int], bool], level: int, value: ir.Value) -> bool:
    return stored_before(value, level)


def _slices_of(group: Group, stored: Stored) -> list[ir.Operation]:
    """Return the slices of one value that a loop stores, with what follows them, if it stores nothing else."""
    if group.kind.name != "loop" or group.heroes:
        return []
    found: list[ir.Operation] = []
    for root in group.roots:
        slices = []
        for op in at_root_indices([root], stored):
            if op.name == SLICE:
                slices.append(op)
            elif access_kind(op) not in ("elementwise", "generator") and op.name != "stablehlo.broadcast_in_dim":
                return []
        if not slices:
            return []
        found += [op for op in slices if op not in found]
    return found if len({op.operands[0] for op in found}) == 1 else []


def _few_roots(parts: Sequence[tuple[Group, list[ir.Operation]]]) -> Iterator[list[tuple[Group, list[ir.Operation]]]]:
    """Yield ``parts`` in sequences that one kernel can store."""
    some: list[tuple[Group, list[ir.Operation]]] = []
    for part in parts:
        if some and sum(len(group.roots) for group, _ in some) + len(part[0].roots) > MOST_ROOTS:
            yield some
            some = []
        some.append(part)
    yield some


def _merge(parts: Sequence[tuple[Group, list[ir.Operation]]]) -> Group:
    heroes = [op for _, slices in parts for op in slices]
    roots = [root for group, _ in parts for root in group.roots]
    return Group(HeroKind(INPUT_SLICES, heroes[0].operands[0]), parts[0][0].level, heroes, roots)

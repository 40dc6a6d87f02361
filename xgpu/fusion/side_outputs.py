"""Arrays stored while they are reduced: the kernel of a reduction stores what it reads, or computes from the same.

A loop of its own would read its inputs a second time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.fusion.groups import MOST_ROOTS, Group
from xgpu.fusion.heroes import is_packed
from xgpu.fusion.left import VIEWS
from xgpu.fusion.root_indices import Stored, at_root_indices, moves_elements
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses


def merge_side_outputs(groups: Sequence[Group], stored_before: Callable[[ir.Value, int], bool]) -> list[Group]:
    """Return ``groups`` with loops made part of reductions of arrays of the same shape, where both read one array.

    ``stored_before`` tells whether a value is stored, or given, before kernels of a level run.
    """
    found: dict[tuple[int, tuple[int, ...]], list[Group]] = {}
    for group in groups:
        if group.kind.name == "reduce":
            found.setdefault((group.level, shape_of(group.heroes[0].operands[0])), []).append(group)
    new = {group: group for group in groups}
    for group in groups:
        if group.kind.name != "loop" or group.heroes:
            continue
        stored = _before(group.level, stored_before)
        for reduction in found.get((group.level, shape_of(group.roots[0])), ()):
            roots = [*new[reduction].roots, *group.roots]
            if len(roots) <= MOST_ROOTS and _can_be_side_outputs(group.roots, reduction, stored):
                new[reduction] = replace(new[reduction], roots=roots)
                del new[group]
                break
    return list(new.values())


def _before(level: int, stored_before: Callable[[ir.Value, int], bool]) -> Stored:
    return lambda value: stored_before(value, level)


def _can_be_side_outputs(roots: Sequence[ir.Value], reduction: Group, stored: Stored) -> bool:
    """Whether all ``roots`` can be stored by the kernel of ``reduction``, which reads some of their inputs anyway.

    These are arrays that both read at the same indices, or elements that both gather from the same places.
    """
    if any(is_packed(root) for root in roots):
        return False
    ops = list(at_root_indices(roots, stored))
    if any(map(moves_elements, ops)):
        return False
    read = [value for hero in reduction.heroes for value in list(hero.operands)[: len(hero.results)]]
    others = list(at_root_indices(read, stored))
    if any(access_kind(op) in ("indexing", "piecewise") and op.name not in VIEWS for op in {*ops} & {*others}):
        return True
    return bool(_inputs(roots, ops, stored) & _inputs(read, others, stored))


def _inputs(roots: Sequence[ir.Value], ops: Sequence[ir.Operation], stored: Stored) -> set[ir.Value]:
    """Return the arrays in memory that are read at the roots' own indices, by ``ops`` or as roots."""
    values = set(roots)
    for op in ops:
        if access_kind(op) == "elementwise":
            same = identity_map(shape_of(op.results[0]))
            values |= {op.operands[access.operand] for access in accesses(op) if access.map == same}
    return {value for value in values if isinstance(value.owner, ir.Block) or stored(value)}

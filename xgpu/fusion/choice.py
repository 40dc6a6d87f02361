"""Chooses the family of each kernel: that of its heroes, or the first that is recognised for what it computes."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.in_place import updated_operands
from xgpu.analysis.root_indices import Stored
from xgpu.fusion.grouping.families import Candidate, Families, KernelFamily, Match
from xgpu.fusion.grouping.groups import Group
from xgpu.indexing.access import Shape, shape_of
from xgpu.reasons import Reason
from xgpu.records import dataclass


@dataclass(frozen=True)
class Choice:
    """A kernel to write: its family, its heroes, the values that it stores, and the reason for that family.

    ``aliased`` has an entry for each root: the value whose memory it takes over, None for one in memory of its own.
    """

    family: KernelFamily
    heroes: tuple[ir.Operation, ...]
    roots: tuple[ir.Value, ...]
    aliased: tuple[ir.Value | None, ...]
    why: Reason


def choose(group: Group, families: Families, stored: Stored) -> list[Choice]:
    """Return the kernels of a group: one, or one for each shape among roots that each thread computes with a hero."""
    family = group.kind.family
    if group.heroes and family.is_cooperative:
        aliased: Sequence[ir.Value | None] = [None] * len(group.roots)
        if family.updates_in_place:
            aliased = [value for hero in group.heroes for value in updated_operands(hero)]
        why = (len(group.heroes) > 1 and family.why_joined) or family.why
        return [Choice(family, group.heroes, group.roots, tuple(aliased), why)]
    by_shape: dict[Shape, list[ir.Value]] = {}
    for value in group.roots:
        by_shape.setdefault(shape_of(value), []).append(value)
    choices = []
    for values in by_shape.values():
        match = Match((), family.why)
        if not group.heroes:
            family, match = families.matched(Candidate(tuple(values), stored))
        choices.append(Choice(family, match.heroes, tuple(values), (None,) * len(values), match.why))
    return choices

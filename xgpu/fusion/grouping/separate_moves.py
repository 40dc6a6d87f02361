"""Values of one loop that are moved in several ways, each by a kernel of its own, as a tile moves elements in one way.

A loop of them all reads a sector for each element.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from xgpu import ir
from xgpu.costs.sectors import SECTOR_BYTES
from xgpu.costs.time import launch_bytes
from xgpu.costs.values import elements
from xgpu.device import Device
from xgpu.fusion.grouping.decisions import Decision, apart
from xgpu.fusion.grouping.groups import Group, Grouping
from xgpu.fusion.grouping.moves import Moves
from xgpu.reasons import Reason

_APART = "a tile moves elements in one way: a loop of both would read {:,} bytes of sectors, and a launch takes {:,}"


def separate_moves(grouping: Grouping, target: Device) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with the loops divided whose values are moved in several ways, if the arrays are large."""
    begun, decisions = list[Group](), list[Decision]()
    for group in grouping.begun:
        parts = list(_parts(group, grouping, target))
        begun += parts or [group]
        sectors = SECTOR_BYTES * elements(group.roots[0]) if parts else 0
        reason = Reason(_APART, (sectors, launch_bytes(target)))
        decisions += [apart(part.roots[0], parts[0].roots[0], reason) for part in parts[1:]]
    return replace(grouping, begun=tuple(begun)), decisions


def _parts(group: Group, grouping: Grouping, target: Device) -> Iterator[Group]:
    """Yield what a loop is divided into, nothing if it stays whole."""
    if group.heroes or group.parts or len(group.roots) < 2:
        return
    stored = partial(grouping.stored_before, level=group.level)
    if SECTOR_BYTES * elements(group.roots[0]) < launch_bytes(target) or len(Moves(group.roots, stored).transposes) < 2:
        return
    alike: dict[Hashable, list[ir.Value]] = {}
    for root in group.roots:
        alike.setdefault(frozenset(Moves([root], stored).transposes), []).append(root)
    if len(alike) > 1:
        yield from (replace(group, roots=tuple(roots)) for roots in alike.values())

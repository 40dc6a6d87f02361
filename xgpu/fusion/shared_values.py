"""Stores values that several kernels would compute again.

Grouping stores what must be stored; everything else is computed wherever it is read. Where kernels of several levels
need the same value, the first of them may store it for the others. That leaves all levels as they are: kernels of a
higher level then read it, those of the same level still compute it.
"""

from collections.abc import Mapping, Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.fusion.cost_model import BYTES_PER_INSTRUCTION, MOST_VISITED, Costs, byte_size, elements, launch_bytes
from xgpu.fusion.groups import MOST_OPERATIONS, Group, Grouping
from xgpu.fusion.heroes import HeroKind
from xgpu.fusion.left import CONTRACTIONS, VIEWS
from xgpu.fusion.regions import captured
from xgpu.indexing.access import integers, shape_of

type _Users = dict[ir.Value, dict[Group, int]]
"""The kernels that need a value, and how many elements of it each computes, some of them several times over."""
type _Choice = dict[ir.Value, int]
"""Values to store, each with the level of the kernel that does."""

_RUN = 8
"""Neighbouring elements of a result for which a thread computes what is the same for all of them once."""
_ROUNDS = 3
"""What is stored tells what other values cost, and these what else is worth storing; two rounds are mostly enough."""


def store_shared_values(operations: Sequence[ir.Operation], grouping: Grouping, target: Device) -> None:
    """Have values of a block whose operations are ``operations`` stored where that saves time on ``target``."""
    choice: _Choice = {}
    costs = Costs()
    reads = {op: list(dict.fromkeys((*op.operands, *captured(op)))) for op in operations}
    given = (operand for operands in reads.values() for operand in operands if grouping.is_given(operand))
    stored_at = dict.fromkeys(given, -1) | grouping.stored_at()
    for _ in range(_ROUNDS):
        before, choice = choice, _Round(grouping, costs, target, stored_at | choice).choose(reads)
        if choice == before:
            break
    for value, level in reversed(choice.items()):
        grouping.store_at(value, level)


class _Round:
    """Goes through the program backwards, so that what needs a value is known when it is looked at.

    These are the kernels that store it, and those that compute what is not stored for them. What a value is computed
    from is not yet decided then; that is assumed to be as it was in the round before: ``stored_at`` has the level of
    the kernel that stores each value in memory.
    """

    def __init__(self, grouping: Grouping, costs: Costs, target: Device, stored_at: Mapping[ir.Value, int]):
        self._grouping = grouping
        self._costs = costs
        self._launch = launch_bytes(target)
        self._stored_at = stored_at
        self._choice: dict[ir.Value, int] = {}

    def choose(self, reads: Mapping[ir.Operation, Sequence[ir.Value]]) -> _Choice:
        """Return the values to store, last ones first; ``reads`` has all operations in order, and what each reads."""
        grouping = self._grouping
        users: _Users = {}
        for group in grouping.groups:
            for root in group.roots:
                users.setdefault(root, {})[group] = elements(root)
        for op, operands in reversed(list(reads.items())):
            is_candidate = len(op.results) == 1 and op.name not in VIEWS and not grouping.is_left(op)
            computing: dict[Group, int] = {}
            for value in op.results:
                needed = users.pop(value, {})
                if needed and is_candidate and elements(value) and not grouping.is_stored(value):
                    self._consider(value, needed)
                stored = self._choice.get(value)
                for group, times in needed.items():
                    if not grouping.stored_before(value, group.level) and (stored is None or group.level <= stored):
                        computing[group] = max(times, computing.get(group, 0))
            for operand in operands if computing else ():
                if not grouping.is_given(operand):
                    _add(users.setdefault(operand, {}), op, operand, computing)
        return self._choice

    def _consider(self, value: ir.Value, needed: dict[Group, int]) -> None:
        """Choose ``value``, which the kernels ``needed`` compute so many times, if storing it saves time."""
        first = level = min(group.level for group in needed)
        is_extra = not any(_can_store(group, value) for group in needed if group.level == first)
        if is_extra:
            level = self._grouping.level(value)
        later = [times for group, times in needed.items() if group.level > level]
        if not later or (is_extra and len(later) == 1 and later[0] <= elements(value)):
            # A kernel of its own would read and compute as much as the one that needs the value.
            return
        # However large the computation is, it is enough to know that it is too large to be written again.
        most = MOST_OPERATIONS if len(later) > is_extra else MOST_VISITED
        cost = self._costs.of(value, self._stored_at, level + 1, most)
        size, once = byte_size(value), cost.bytes + BYTES_PER_INSTRUCTION * cost.instructions * elements(value)
        again = sum(cost.bytes + BYTES_PER_INSTRUCTION * (cost.instructions - 1) * times for times in later)
        extra = self._launch + once if is_extra else 0
        if (cost.operations >= MOST_OPERATIONS and len(later) > is_extra) or again - len(later) * size > size + extra:
            self._choice[value] = level
            if is_extra:
                needed[Group(HeroKind("loop", shape_of(value)), level)] = elements(value)


def _add(users: dict[Group, int], op: ir.Operation, operand: ir.Value, computing: Mapping[Group, int]) -> None:
    """Note that kernels which compute ``op`` so many times compute ``operand``, and how often."""
    size = elements(operand)
    for group, times in computing.items():
        if op.name in CONTRACTIONS or op.name == "stablehlo.reduce":
            times = max(times, size)
        elif op.name == "stablehlo.broadcast_in_dim" and not _varies_along_rows(op):
            times = max(size, times // _RUN)
        users[group] = max(times, users.get(group, 0))


def _varies_along_rows(op: ir.Operation) -> bool:
    """Whether neighbours in the result of a ``broadcast_in_dim`` are of different elements of its operand."""
    dimensions, rank = integers(op, "broadcast_dimensions"), len(shape_of(op.results[0]))
    return rank - 1 in dimensions and shape_of(op.operands[0])[dimensions.index(rank - 1)] > 1


def _can_store(group: Group, value: ir.Value) -> bool:
    """Whether the kernel of ``group``, which computes ``value``, computes it at its own indices and can store it."""
    if group.kind.name == "reduce":
        return shape_of(group.heroes[0].operands[0]) == shape_of(value)
    return group.kind == HeroKind("loop", shape_of(value))

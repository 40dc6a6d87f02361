"""Groups of a program's values: which kernel stores which, as an immutable result that later stages refine.

Every stored value has a *level*: the number of kernels that must run one after the other before it can be read. Stored
values of one level and one iteration space share a kernel: they are independent, since a consumer has a higher level
than its producers. `xgpu.fusion.grouping.grouper` makes the first grouping of a block; each stage after it returns
another.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property

from xgpu import ir
from xgpu.analysis.heroes import Form
from xgpu.analysis.root_indices import MOST_ROOTS
from xgpu.costs.evaluations import ONLY, Members, Need
from xgpu.fusion.grouping.families import Families, Kind
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import captured

MOST_OPERATIONS = 64
"""Operations that kernels may duplicate to recompute a value; without a bound, programs could grow quadratically."""

TOO_MANY_ROOTS = Reason("one kernel stores at most {} values", (MOST_ROOTS,))
PACKED = Reason("elements of under a byte: threads that make neighbours would write parts of one byte")
"""Reasons not to merge kernels."""


@dataclass(frozen=True, eq=False)
class Group:
    """A kernel: ``roots`` are the values it stores, ``level`` is that of its inputs.

    ``forms`` holds the values that depend on one element of a hero alone. A group without heroes computes its roots
    element by element, or is of several ``parts``, with their roots in order.
    """

    kind: Kind
    level: int
    heroes: tuple[ir.Operation, ...] = ()
    roots: tuple[ir.Value, ...] = ()
    forms: Mapping[ir.Value, Form] = field(default_factory=dict)
    parts: "tuple[Group, ...]" = ()

    @property
    def is_full(self) -> bool:
        """Whether the kernel has as many heroes or roots as it may."""
        return max(len(self.heroes), len(self.roots)) >= MOST_ROOTS

    def shares(self, op: ir.Operation) -> bool:
        """Whether threads share what ``op`` reads, as they do for a hero; in a loop each reads for its own element."""
        return self.kind.family.is_cooperative and op in self.heroes


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of the kernels that can read the values ``made`` in a block: those of ``levels`` and higher ones.

    ``stored_at`` has the level of the kernel that stores each value in memory.
    """

    made: Set[ir.Value]
    levels: Mapping[ir.Value, int]
    stored_at: Mapping[ir.Value, int]

    def is_given(self, value: ir.Value) -> bool:
        """Whether ``value`` is an argument, or comes from around the block."""
        return value not in self.made

    def is_stored(self, value: ir.Value) -> bool:
        """Whether a kernel stores ``value``, or XLA computes it."""
        return value in self.stored_at

    def stored_before(self, value: ir.Value, level: int) -> bool:
        """Whether kernels of ``level`` can read ``value`` from memory: it is given, or a lower level stores it."""
        return value not in self.made or (value in self.stored_at and self.stored_at[value] < level)

    def level(self, value: ir.Value) -> int:
        """Return the lowest level of a kernel that can compute ``value``, or read it if it is stored."""
        return self.levels.get(value, 0)


@dataclass(frozen=True, eq=False)
class Grouping(Levels):
    """The groups of a block, which ends with the values ``results``.

    ``begun`` has the groups in the order in which they were begun, such as have no roots included; ``fallbacks`` has
    the operations that fall back to XLA, in topological order, each with the level whose kernels it precedes.
    ``awaited`` are values that kernels wait for, as each would compute them longer than they take to be stored.
    """

    results: tuple[ir.Value, ...]
    begun: tuple[Group, ...]
    fallbacks: tuple[tuple[int, ir.Operation], ...]
    why_stored: Mapping[ir.Value, Reason]
    """The reason for each stored value, in the order of the decisions."""
    awaited: Set[ir.Value] = frozenset()

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups in topological order."""
        return tuple(sorted((group for group in self.begun if group.roots), key=lambda group: group.level))

    @cached_property
    def _falling_back(self) -> Set[ir.Operation]:
        return frozenset(op for _, op in self.fallbacks)

    def falls_back(self, op: ir.Operation) -> bool:
        """Whether ``op`` falls back to XLA."""
        return op in self._falling_back

    @cached_property
    def _known_reads(self) -> dict[ir.Operation, tuple[ir.Value, ...]]:
        return {}

    def read_by(self, op: ir.Operation) -> Sequence[ir.Value]:
        """Return the operands of ``op`` and what its regions use from around it.

        A loop is asked for once for each of its results, by each kernel behind it, and may have a long body.
        """
        if not len(op.regions):
            return op.operands
        found = self._known_reads.get(op)
        if found is None:
            found = self._known_reads[op] = (*op.operands, *captured(op))
        return found

    def storing(self, values: Mapping[ir.Value, tuple[int, Reason]], families: Families) -> "Grouping":
        """Return a grouping that stores ``values`` too, by loops at the levels given, for consumers of higher ones."""
        begun = list(self.begun)
        latest = {(group.kind, group.level): number for number, group in enumerate(begun)}
        for value, (level, _) in values.items():
            key = families.loop_over(value), level
            if key not in latest or begun[latest[key]].is_full:
                latest[key] = len(begun)
                begun.append(Group(*key))
            group = begun[latest[key]]
            begun[latest[key]] = replace(group, roots=(*group.roots, value))
        return replace(
            self,
            begun=tuple(begun),
            levels={**self.levels, **{value: level + 1 for value, (level, _) in values.items()}},
            stored_at={**self.stored_at, **{value: level for value, (level, _) in values.items()}},
            why_stored={**self.why_stored, **{value: why for value, (_, why) in values.items()}},
        )


class WaitCounts:
    """Counts of the kernels that wait for a kernel, each for the next, by decisions that levels do not have; mostly 0.

    Loops of one shape and level differ in nothing else than that and in what they compute: the first of them stands for
    all, and each is a member.
    """

    def __init__(self) -> None:
        self._alike: dict[tuple[Kind, int], Group] = {}
        # By members, and the members of each length.
        self._lengths: dict[Group, list[int]] = {}
        self._members: dict[Group, dict[int, Members]] = {}

    def loop(self, group: Group, length: int = 0) -> tuple[Group, Members]:
        """Return the loop that stands for all that are like ``group``, and which member this is."""
        kernel = self._alike.setdefault((group.kind, group.level), group)
        lengths = self._lengths.setdefault(kernel, [])
        member = 1 << len(lengths)
        lengths.append(length)
        members = self._members.setdefault(kernel, {})
        members[length] = members.get(length, 0) | member
        return kernel, member

    def lengthen(self, kernel: Group, length: int) -> None:
        """Let so many wait for the kernel of a hero, if they were fewer: one more than before at least."""
        length = max(length, 1 + self._lengths.get(kernel, [0])[0])
        self._lengths[kernel], self._members[kernel] = [length], {length: ONLY}

    def longest(self, needed: Iterable[Need[Group]]) -> int:
        """Return how many kernels wait for one of those that need a value."""
        longest = 0
        for each in needed:
            lengths = self._members.get(each.kernel, {})
            longest = max([longest, *(length for length, members in lengths.items() if members & each.members)])
        return longest

    def are_equal(self, needed: Sequence[Need[Group]]) -> bool:
        """Whether all kernels that need a value are of one level, and as many wait for each."""
        places = {(each.kernel.level, self._first(each.kernel, each.members)) for each in needed}
        if len(places) > 1:
            return False
        ((_, length),) = places
        return not any(each.members & ~self._like(each.kernel, length) for each in needed)

    def parts(self, kernel: Group, members: Members) -> list[tuple[Members, Members]]:
        """Split members by how many wait for them; return with each part all members for which as many do."""
        found: list[tuple[Members, Members]] = []
        while members:
            like = self._like(kernel, self._first(kernel, members))
            found.append((members & like, like))
            members &= ~like
        return found

    def _first(self, kernel: Group, members: Members) -> int:
        """Return how many kernels wait for the first of ``members``."""
        lengths = self._lengths.get(kernel)
        return lengths[(members & -members).bit_length() - 1] if lengths else 0

    def _like(self, kernel: Group, length: int) -> Members:
        return self._members.get(kernel, {0: ONLY}).get(length, 0)

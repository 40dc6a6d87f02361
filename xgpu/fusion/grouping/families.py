"""The families of kernels as the planner knows them: which operations their kernels are built around, and when.

A family is declared in one file, with its schedule and its emitter, and the planner is given the table of all. It asks
the families in the order of the table, and decides by what they say of themselves, never by their names.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING

from xgpu import ir
from xgpu.analysis.heroes import Form, is_hero
from xgpu.analysis.root_indices import Stored
from xgpu.device import Device
from xgpu.fusion.grouping.decisions import Decision
from xgpu.fusion.grouping.moves import Moves
from xgpu.indexing.access import Shape, shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.reasons import Reason
from xgpu.records import dataclass

if TYPE_CHECKING:
    from xgpu.fusion.grouping.groups import Grouping


_ITS_OWN = Reason("it is built around what this family computes")


class Results(Enum):
    """The fate of the results of a family's heroes."""

    FOLLOWED = "epilogues may follow them in their kernel, which stores what others read"
    UPDATED = "they are stored, in the memory of what the heroes update"
    STORED = "they are stored, by a kernel for each hero"


@dataclass(frozen=True)
class Heroes:
    """The operations that kernels of a family are built around; ``text`` says what those of one kernel are.

    ``key`` returns what heroes of one kernel have in common, None for an operation that can be no such hero. Operations
    named in ``operations`` for which that ``pays`` are heroes wherever the planner meets them; there are none where the
    family is recognised by `KernelFamily.match` or `KernelFamily.merge`.
    """

    text: str
    key: Callable[[ir.Operation], Hashable | None]
    operations: tuple[str, ...] = ()
    pays: Callable[[ir.Operation], bool] = is_hero
    results: Results = Results.FOLLOWED


@dataclass(frozen=True, eq=False)
class Candidate:
    """Values of one shape, computed element by element, that one kernel is to store as its ``roots``."""

    roots: tuple[ir.Value, ...]
    stored: Stored

    @cached_property
    def moves(self) -> Moves:
        """The transposes and concatenations among the operations that compute the roots."""
        return Moves(self.roots, self.stored)


@dataclass(frozen=True)
class Match:
    """The heroes of a kernel that a family is chosen for, and the reason to choose it."""

    heroes: tuple[ir.Operation, ...]
    why: Reason


type Merge = Callable[[KernelFamily, Device, Grouping], tuple[Grouping, Sequence[Decision]]]
"""Returns a grouping with some groups merged to groups of a family, for a device, and the decisions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFamily(ABC):
    """A family of kernels: its recognition, in one or several of three ways, and what its kernels can do.

    Operations that are ``heroes`` make groups of the family, for the reason ``why``, or ``why_joined`` where that is
    another for several. Groups of elementwise values are kernels of the first family whose ``match`` returns heroes.
    Groups of other families become its own by ``merge``.

    ``is_cooperative``: the threads of a kernel compute its heroes together. Otherwise each thread computes whole
    elements of the results, heroes and all, which are of one shape, and may overwrite what it alone reads.

    ``overwrites``: so may the threads of a cooperative kernel, each element that one of them alone reads.

    ``follows``: whether an operation whose result has a form may be in the epilogue of heroes, with all that kernels
    compute it from; any may be where that is None.

    ``reads_memory``: the operands of heroes are arrays in memory, as they are.

    ``walk`` returns the order in which blocks go over the elements of a hero's operands, and of its results, which are
    as many: a map to their indices, by the last dimensions of which a block takes elements at about one time. Families
    without it, other than of loops, read what is transposed as well as anything else.

    ``stores_beside``: a kernel can store other arrays of the shape of its heroes' operands, which its threads walk.

    ``parts``: the families whose kernels can be parts of one kernel of this family, which computes them side by side.
    """

    heroes: Heroes | None = None
    why: Reason = _ITS_OWN
    why_joined: Reason | None = None
    match: Callable[[Candidate], Match | None] | None = None
    merge: Merge | None = None
    is_cooperative: bool = True
    overwrites: bool = False
    walk: Callable[[ir.Operation], IndexingMap] | None = None
    stores_beside: bool = False
    reads_memory: bool = False
    follows: Callable[[ir.Operation, Form], bool] | None = None
    parts: "Sequence[KernelFamily]" = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the family's emitter, by which plans refer to it."""

    @property
    def must_alias(self) -> bool:
        """Whether results take over memory only where heroes say so."""
        return self.is_cooperative and not self.overwrites

    @property
    def updates_in_place(self) -> bool:
        """Whether heroes update arrays in their own memory, so that a kernel stores all of their results."""
        return self.heroes is not None and self.heroes.results is Results.UPDATED

    @property
    def has_single_hero(self) -> bool:
        """Whether a kernel is that of one hero, and stores what is read of its results."""
        return self.heroes is not None and self.heroes.results is Results.STORED


@dataclass(frozen=True)
class Kind:
    """Equivalence class of heroes, or of values, that can share a kernel: a family, and a key."""

    family: KernelFamily
    key: Hashable


class Families:
    """The families of kernels that there may be, in the order in which they are asked.

    The last is that of plain loops, whose kernels can compute whatever no other family is recognised for.
    """

    def __init__(self, families: Iterable[KernelFamily]):
        self._families = tuple(families)
        self._of_heroes: dict[str, list[tuple[KernelFamily, Heroes]]] = {}
        self._loops: dict[Shape, Kind] = {}
        for family in self._families:
            if family.heroes is not None:
                for name in family.heroes.operations:
                    self._of_heroes.setdefault(name, []).append((family, family.heroes))

    def kind_of(self, op: ir.Operation) -> Kind | None:
        """Return the kind of hero that ``op`` is; None for an operation that its consumers recompute."""
        for family, heroes in self._of_heroes.get(op.name, ()):
            if heroes.pays(op) and (key := heroes.key(op)) is not None:
                return Kind(family, key)
        return None

    def shared_kind_of(self, op: ir.Operation) -> Kind | None:
        """Return the kind of hero that ``op`` is, however short, of kernels that can store arrays of its operands."""
        for family, heroes in self._of_heroes.get(op.name, ()):
            if family.stores_beside and (key := heroes.key(op)) is not None:
                return Kind(family, key)
        return None

    def loop_over(self, value: ir.Value) -> Kind:
        """Return the kind of loops over the elements of ``value``."""
        return self.loop_of(shape_of(value))

    def loop_of(self, shape: Shape) -> Kind:
        """Return the kind of loops over the elements of arrays of ``shape``."""
        kind = self._loops.get(shape)
        if kind is None:
            kind = self._loops[shape] = Kind(self._families[-1], shape)
        return kind

    @property
    def of_parts(self) -> KernelFamily | None:
        """The family of kernels that have several parts, if there is one."""
        return next((family for family in self._families if family.parts), None)

    def matched(self, candidate: Candidate) -> tuple[KernelFamily, Match]:
        """Return the first family that is recognised for ``candidate``, and how."""
        for family in self._families:
            if family.match is not None and (match := family.match(candidate)) is not None:
                return family, match
        raise AssertionError("the last family takes every candidate")

    def merges(self, target: Device) -> list[Callable[["Grouping"], tuple["Grouping", Sequence[Decision]]]]:
        """Return the merges, for kernels of ``target``, of the families that have one."""
        return [partial(family.merge, family, target) for family in self._families if family.merge is not None]

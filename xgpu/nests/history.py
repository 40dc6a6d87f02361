"""The accesses of a block's threads to elements of buffers since their last barrier."""

from dataclasses import field

import numpy as np

from xgpu.nests.footprints import SEVERAL, Array, Footprint
from xgpu.records import dataclass

type Kind = str
"""The kind of an access: ``read``, ``write``, or the function by which it combines in a single step."""
READ, WRITE = "read", "write"
_NOBODY = -1


def meets(one: Kind, other: Kind) -> bool:
    """Whether accesses of two threads are not to run at once: two reads may, and two that combine by one function."""
    return one != other or one == WRITE


@dataclass
class _Marks:
    """The last thread that did one kind of thing to each element of a buffer, and the statement.

    ``marked`` are the positions that somebody did it to, ``unknown`` the last statement that may have done it to any.
    """

    owners: Array = field(default_factory=lambda: np.empty(0, np.int32))
    statements: Array = field(default_factory=lambda: np.empty(0, np.int32))
    marked: list[Array] = field(default_factory=list)
    latest: int = -1
    unknown: int | None = None

    def fit(self, positions: Array) -> None:
        """Have a place for each of these positions."""
        size = int(positions.max()) + 1 if positions.size else 0
        if size > self.owners.size:
            more = max(size - self.owners.size, self.owners.size)
            self.owners = np.concatenate([self.owners, np.full(more, _NOBODY, np.int32)])
            self.statements = np.concatenate([self.statements, np.full(more, -1, np.int32)])

    def note(self, positions: Array, owners: Array, statement: int) -> None:
        """Remember that each of these elements was accessed by its owner."""
        if not positions.size:
            return
        self.fit(positions)
        before = self.owners[positions]
        if (fresh := positions[before == _NOBODY]).size:
            self.marked.append(fresh)
        self.owners[positions] = np.where((before == _NOBODY) | (before == owners), owners, SEVERAL)
        self.statements[positions] = statement
        self.latest = statement

    def clear(self) -> None:
        """Forget all."""
        for positions in self.marked:
            self.owners[positions] = _NOBODY
        self.marked.clear()
        self.latest = -1
        self.unknown = None

    def copy(self) -> "_Marks":
        """Return marks that go on from these by themselves."""
        return _Marks(self.owners.copy(), self.statements.copy(), list(self.marked), self.latest, self.unknown)

    def add(self, other: "_Marks") -> None:
        """Take in what threads did if they went another way."""
        if other.marked:
            positions = np.unique(np.concatenate(other.marked))
            self.fit(positions)
            own = np.where(self.owners[positions] == _NOBODY, -1, self.statements[positions])
            latest = max(self.latest, other.latest)
            self.note(positions, other.owners[positions], latest)
            self.statements[positions] = np.maximum(own, other.statements[positions])
        if other.unknown is not None:
            self.unknown = other.unknown


class History:
    """The accesses of threads to elements since the last barrier."""

    def __init__(self) -> None:
        self._marks: dict[int, dict[Kind, _Marks]] = {}

    def kinds(self, buffer: int) -> list[Kind]:
        """Return what may have been done to a buffer, writes first."""
        marks = self._marks.get(buffer, {})
        found = [kind for kind, its in marks.items() if its.marked or its.unknown is not None]
        return sorted(found, key=lambda kind: (kind != WRITE, kind != READ, kind))

    def earlier(self, buffer: int, kind: Kind, footprint: Footprint) -> int | None:
        """Return the last statement whose accesses of a kind, by other threads, an access meets; None if none does."""
        marks = self._marks[buffer][kind]
        if footprint.positions is not None and not footprint.positions.size:
            return None
        if marks.unknown is not None:
            return marks.unknown
        if footprint.positions is None or footprint.threads is None:
            return marks.latest
        marks.fit(footprint.positions)
        owners = marks.owners[footprint.positions]
        meeting = (owners != _NOBODY) & (owners != footprint.threads)
        return int(marks.statements[footprint.positions][meeting].max()) if meeting.any() else None

    def note(self, buffer: int, kind: Kind, footprint: Footprint, statement: int) -> None:
        """Remember what threads did to elements by a statement."""
        marks = self._marks.setdefault(buffer, {}).setdefault(kind, _Marks())
        if footprint.positions is None or footprint.owners is None:
            marks.unknown = statement
        else:
            marks.note(footprint.positions, footprint.owners, statement)

    def copy(self) -> "History":
        """Return a history that goes on from this one by itself."""
        copy = History()
        copy._marks = {b: {kind: marks.copy() for kind, marks in kinds.items()} for b, kinds in self._marks.items()}
        return copy

    def add(self, other: "History") -> None:
        """Take in what threads did if they went another way."""
        for buffer, kinds in other._marks.items():
            for kind, marks in kinds.items():
                self._marks.setdefault(buffer, {}).setdefault(kind, _Marks()).add(marks)

    def clear(self) -> None:
        """Forget all: a barrier."""
        for kinds in self._marks.values():
            for marks in kinds.values():
                marks.clear()

"""The parts of a kernel between barriers: those of the block, and those of any kind."""

from xgpu.records import dataclass


@dataclass(frozen=True)
class Now:
    """Phases in which a place of a kernel may be: between barriers of the block, and between barriers of any kind."""

    phases: frozenset[int] = frozenset()
    turns: frozenset[int] = frozenset()

    def __or__(self, other: "Now") -> "Now":
        return Now(self.phases | other.phases, self.turns | other.turns)


class Phases:
    """Parts of a kernel between barriers; after a branch those are ``now`` in which it may have ended."""

    def __init__(self) -> None:
        self._phases, self._turns = _Numbers(), _Numbers()
        self.now = Now(self._phases.new(), self._turns.new())

    def barrier(self, is_of_block: bool) -> None:
        """Begin a part, for the whole block or for the threads of each warp."""
        self.now = Now(self._phases.new() if is_of_block else self.now.phases, self._turns.new())

    def found(self, phases: frozenset[int], turns: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
        """Return phases and turns of which some have become one."""
        return self._phases.found(phases), self._turns.found(turns)

    def join(self, now: Now) -> None:
        """Make one phase of several."""
        self._phases.join(now.phases)
        self._turns.join(now.turns)


class _Numbers:
    """Numbers, of which some are the same as others."""

    def __init__(self) -> None:
        self._same: list[int] = []

    def new(self) -> frozenset[int]:
        """Return a number, alone."""
        self._same.append(len(self._same))
        return frozenset(self._same[-1:])

    def found(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return numbers of which some have become one."""
        return frozenset(map(self._find, numbers))

    def _find(self, number: int) -> int:
        while self._same[number] != number:
            number = self._same[number]
        return number

    def join(self, numbers: frozenset[int]) -> None:
        """Make one number of several."""
        first, *others = numbers
        for each in others:
            self._same[self._find(each)] = self._find(first)

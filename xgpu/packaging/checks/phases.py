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
        """Return the phases and turns that these stand for."""
        return self._phases.found(phases), self._turns.found(turns)

    def enter_loop(self) -> Now:
        """Begin a loop's body: in a part that `leave_loop` tells of. Returns the parts in which the loop begins."""
        before = self.now
        self.now = Now(self._phases.new(), self._turns.new())
        return before

    def leave_loop(self, before: Now, begin: Now, repeats: bool, is_certain: bool) -> None:
        """End a loop whose body begins in ``begin``: where the loop began, or where the iteration before it ended.

        ``is_certain``: it has an iteration.
        """
        end = self.now
        begins = before | end if repeats else before
        self._phases.stands_for(begin.phases, begins.phases)
        self._turns.stands_for(begin.turns, begins.turns)
        self.now = end if is_certain else before | end


class _Numbers:
    """Numbers, of which some stand for others."""

    def __init__(self) -> None:
        self._others: dict[int, frozenset[int]] = {}
        self._count = 0

    def new(self) -> frozenset[int]:
        """Return a number, alone."""
        self._count += 1
        return frozenset((self._count,))

    def stands_for(self, number: frozenset[int], others: frozenset[int]) -> None:
        """Let a number, which is alone, stand for others."""
        (alone,) = number
        self._others[alone] = others

    def found(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return what numbers stand for."""
        pending, seen = list(numbers), set(numbers)
        while pending:
            new = self._others.get(pending.pop(), frozenset()) - seen
            seen |= new
            pending += new
        return frozenset(seen - self._others.keys())

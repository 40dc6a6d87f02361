"""Copies that run ahead of the steps that read them: buffers, waits and parities as functions of the step.

With ``stages`` buffers the copies of a step are started ``prefetch`` steps before it, at most ``stages - 1``: the
buffer that is filled is then one that the step before has read. By groups of asynchronous copies:

    for step in range(prefetch): copy(step); commit
    for step in range(count):
        wait until `groups_in_flight` groups are left; all threads meet
        copy(step + prefetch); commit
        read(buffer(step))
    wait until no groups are left

A copy of a step that there is not is left out and its group is empty, so that all waits have the same number, a
constant of the instruction. (nvFuser 2005 lets such copies write zeros into buffers that may be in use by then, and
CUTLASS waits for all groups in the end, as here.) By barriers that count arrivals, a buffer has one that says that it
is full and one that says that it is empty; each is in phase 0 first, and waits are for the parity of a phase to be
over.

Steps of block programs are lowered with a prefetch of ``stages - 1`` (`passes/tiles/blocks/stepping.py`): by groups,
and what TMA copies by barriers that say that a buffer is full. That it is empty follows from the meeting of all threads
in each step. Kernels of products and chains have roles, and barriers of both kinds (`passes/tiles/ring.py`).
"""

from xgpu.records import dataclass

_OTHER_REGISTERS = 40
"""Registers of a thread beside those of accumulators and operands: addresses, and what is computed at once. A guess."""
MOST_STAGES = 4
"""Buffers that are chosen at most; a person may ask for more. A guess, not measured."""


@dataclass(frozen=True)
class Pipeline:
    """The copies of ``count`` steps."""

    count: int
    stages: int
    prefetch: int

    def __post_init__(self) -> None:
        """Raise ValueError for copies that would overwrite what is still to be read."""
        if not 0 <= self.prefetch < self.stages:
            raise ValueError(f"expected to prefetch from 0 to {self.stages - 1} steps, got {self.prefetch}")

    @property
    def groups_in_flight(self) -> int:
        """The number of groups of copies that may be under way when a step reads its own."""
        return max(0, self.prefetch - 1)

    def buffer(self, step: int) -> int:
        """Return the buffer that a step reads."""
        return step % self.stages

    def prologue(self) -> range:
        """Return the steps whose copies are started before the first one, those that there are not among them."""
        return range(self.prefetch)

    def copied_in(self, step: int) -> int | None:
        """Return the step whose copies are started in a step, None if there is none."""
        return step + self.prefetch if step + self.prefetch < self.count else None

    def exists(self, step: int) -> bool:
        """Whether there is something to copy for a step."""
        return step < self.count

    def full_parity(self, step: int) -> int:
        """Return the parity that a step waits for on its buffer's barrier of arrived bytes."""
        return step // self.stages % 2

    def empty_parity(self, step: int) -> int:
        """Return the parity that a copy for a step waits for on its buffer's barrier of readers that are done.

        The first copy into a buffer does not wait: the phase before the first one counts as over.
        """
        return (step // self.stages + 1) % 2

    def released_after(self, step: int) -> int | None:
        """Return the step whose buffer may be filled again once ``step`` has been read, None if there is none.

        Where products run asynchronously, those of the last ``stages - prefetch - 1`` steps may still be reading.
        """
        done = step - (self.stages - self.prefetch - 1)
        return done if done >= 0 else None


def stages_of(count: int, sizes: dict[int, int], available: int, is_alone: bool = False) -> int:
    """Return how many buffers tiles have: the most that fit, of those that ``sizes`` gives bytes for.

    With as many as fit in half of what is ``available``, two blocks run at once on a multiprocessor; that is left for
    two buffers, not for more, unless a block ``is_alone`` there in any case.
    """
    half = available if is_alone else available // 2
    for stages, limit in ((4, half), (3, half), (2, half), (2, available)):
        if stages <= min(count, MOST_STAGES) and sizes[stages] <= limit:
            return stages
    return 1


def is_alone(threads: int, accumulators: int, registers: int) -> bool:
    """Whether accumulators leave a multiprocessor with so many registers no room for a second block of threads."""
    return 2 * threads * (accumulators + _OTHER_REGISTERS) > registers

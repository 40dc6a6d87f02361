"""The order of jobs in layers, between which all threads meet: the fewest layers, and of these the least memory.

Jobs of one layer do not meet over memory (see `xgpu.block_plan.order.events`). In a body of steps the last layer of a
step is followed by the first one of the next: by a meeting, or by none, and then both are one. The search goes over all
sets of jobs that may have been done, and is exact; where these are too many, each job is in the first layer that it can
be in (Mirage's depth labels), or in the last one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from xgpu.records import dataclass

MOST_GROUPS = 40_000
"""Layers that the search looks at, at most: a quarter of a second. Nine jobs in any order have 19,683."""


@dataclass(frozen=True)
class Job:
    """A job: the jobs that it must follow, and the memory that it reads, writes, and needs in any way.

    ``late`` jobs of a step come after a meeting in it. ``refills`` is memory that it writes and only the step before
    has read. ``tail`` is the job, if any, of the rest of some steps, which follows at once behind meetings of their
    own.
    """

    needs: frozenset[int] = frozenset()
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    uses: frozenset[int] = frozenset()
    refills: frozenset[int] = frozenset()
    late: bool = False
    tail: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether it needs no memory, and so meets nothing."""
        return not (self.reads or self.writes or self.uses or self.refills or self.late or self.tail is not None)

    def meets(self, other: "Job") -> bool:
        """Whether this job and a later one must not be in one layer."""
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass(frozen=True)
class Layers:
    """Jobs by layers. A step ``ends`` with a meeting, or its last layer and the next step's first are one."""

    layers: tuple[tuple[int, ...], ...]
    ends: bool
    meetings: int
    peak: int


def arrange(jobs: Mapping[int, Job], sizes: Mapping[int, int], is_step: bool) -> Layers:
    """Return the layers of jobs, which are numbered in an order that their needs allow, or those of each step."""
    kept = {name: job for name, job in jobs.items() if not job.is_free or _is_tail(name, jobs)}
    if not kept:
        return Layers((tuple(jobs),) if jobs else (), False, 0, 0)
    search = _Search({name: replace(job, needs=_kept_needs(job, jobs, kept)) for name, job in kept.items()}, sizes)
    try:
        found = [search.ending(), *(search.circles() if is_step else ())]
    except _TooMany:
        found = search.by_depth(is_step)
    best = min(found, key=lambda each: (each.meetings, each.peak))
    best = replace(best, layers=_with_free(best.layers, jobs))
    return best if is_step else replace(best, ends=False, meetings=best.meetings - best.ends)


def _is_tail(name: int, jobs: Mapping[int, Job]) -> bool:
    return any(job.tail == name for job in jobs.values())


def _kept_needs(job: Job, jobs: Mapping[int, Job], kept: Mapping[int, Job]) -> frozenset[int]:
    """Return the jobs of the search that a job must follow, by way of others, too."""
    found, pending = set[int](), list(job.needs)
    while pending:
        name = pending.pop()
        if name in kept:
            found.add(name)
        else:
            pending += jobs[name].needs
    return frozenset(found)


def _with_free(layers: Sequence[tuple[int, ...]], jobs: Mapping[int, Job]) -> tuple[tuple[int, ...], ...]:
    """Return layers with the jobs that meet nothing, each in the first one that it can be in."""
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    for name, job in jobs.items():
        if name not in depth:
            depth[name] = max((depth[each] for each in job.needs), default=0)
    return tuple(tuple(name for name in jobs if depth[name] == number) for number in range(len(layers)))


class _TooMany(Exception):
    """There are more layers to look at than `MOST_GROUPS`."""


@dataclass
class _Search:
    """A search for layers; sets of jobs, and of memory, are bits of numbers."""

    jobs: Mapping[int, Job]
    sizes: Mapping[int, int]
    looked: int = 0
    _known: dict[tuple[int, int, int], tuple[int, int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = list(self.jobs)
        place = {name: number for number, name in enumerate(self.names)}
        listed = [self.jobs[name] for name in self.names]
        self.all = (1 << len(listed)) - 1
        self.needs = [_bits(place[each] for each in job.needs) for job in listed]
        self.conflicts = [
            _bits(j for j, other in enumerate(listed) if i != j and (job.meets(other) or other.meets(job)))
            for i, job in enumerate(listed)
        ]
        self.before_next = [
            _bits(i for i, job in enumerate(listed) if (i != j and job.meets(other)) or job.reads & other.refills)
            for j, other in enumerate(listed)
        ]
        self.late = _bits(i for i, job in enumerate(listed) if job.late)
        self.tails = {i: place[job.tail] for i, job in enumerate(listed) if job.tail is not None}
        self.memory = sorted(self.sizes)
        self.writers = [_bits(i for i, job in enumerate(listed) if m in job.writes) for m in self.memory]
        self.users = [
            _bits(i for i, job in enumerate(listed) if m in job.uses | job.reads | job.writes) for m in self.memory
        ]

    def ending(self) -> Layers:
        """Return the layers if a meeting follows the last one."""
        if not self.late:
            return self._layers(None, True, self._rest(0, 0, 0))
        firsts = (0, *self._groups(0, self.late))
        ways = [self._layers(first, True, self._rest(first, 0, 0)) for first in firsts if first != self.all]
        return min(ways, key=lambda each: (each.meetings, each.peak))

    def circles(self) -> Iterator[Layers]:
        """Yield the layers for each first one, if the last and the next step's first are one."""
        for first in (0, *self._groups(0, self.late)):
            closed = _bits(i for i in range(len(self.names)) if any(self.before_next[j] >> i & 1 for j in _ones(first)))
            if first == self.all:
                if not closed & first:
                    yield self._layers(first, False, (0, self._bytes(self._live(0, first)), 0))
                continue
            live = self._live(0, first)
            rest = self._rest(first, closed, live)
            if rest is not None:
                yield self._layers(first, False, rest)

    def by_depth(self, is_step: bool) -> list[Layers]:
        """Return the layers if each job is as early as it can be, and as late."""
        early = self._depths(range(len(self.names)))
        count = max(early, default=0) + 1
        late = [count - 1 - depth for depth in self._depths(reversed(range(len(self.names))))]
        found = []
        for depths in (early, late):
            groups = [_bits(i for i, at in enumerate(depths) if at == depth) for depth in range(count)]
            if self.late & groups[0]:
                groups = [0, *groups]
            found.append(self._made(groups, True))
            first = _bits(i for j in _ones(groups[0]) for i in _ones(self.before_next[j]))
            if is_step and not first & groups[-1] and len(groups) > 1:
                found.append(self._made(groups, False))
        return found

    def _depths(self, order: Sequence[int] | Iterator[int]) -> list[int]:
        """Return how many layers lie before each job, or after each, if all are put as near as can be in an order."""
        depths = [0] * len(self.names)
        done: list[int] = []
        for i in order:
            for j in done:
                is_apart = self.conflicts[i] >> j & 1 or self.tails.get(i) == j or self.tails.get(j) == i
                if is_apart or self.needs[i] >> j & 1 or self.needs[j] >> i & 1:
                    depths[i] = max(depths[i], depths[j] + bool(is_apart))
            done.append(i)
        return depths

    def _made(self, groups: Sequence[int], ends: bool) -> Layers:
        done, lives = 0, []
        for group in groups:
            lives.append(self._live(done, group))
            done |= group
        if not ends:
            lives[-1] |= lives[0]
        layers = tuple(tuple(self.names[i] for i in _ones(group)) for group in groups)
        return Layers(layers, ends, len(groups) - (not ends), max(map(self._bytes, lives), default=0))

    def _groups(self, done: int, without: int = 0) -> Iterator[int]:
        """Yield all layers that may follow what is done."""
        pending = [(0, 0)]
        while pending:
            group, start = pending.pop()
            for i in range(start, len(self.names)):
                bit = 1 << i
                if (done | without) & bit or self.needs[i] & ~(done | group) or self.conflicts[i] & group:
                    continue
                if any(group >> head & 1 and i in (tail, *self.tails) for head, tail in self.tails.items()):
                    continue
                self.looked += 1
                if self.looked > MOST_GROUPS:
                    raise _TooMany
                pending.append((group | bit, i + 1))
                yield group | bit

    def _rest(self, done: int, closed: int, wrapped: int) -> tuple[int, int, int] | None:
        """Return how many more meetings there are, the most memory, and the next layer; None if there is no way.

        None of the ``closed`` jobs may be in the last layer, with which the memory ``wrapped`` is in use.
        """
        if done == self.all:
            return 0, 0, 0
        key = (done, closed, wrapped)
        if key in self._known:
            return self._known[key] if self._known[key][0] >= 0 else None
        best: tuple[int, int, int] | None = None
        pending = [tail for head, tail in self.tails.items() if done >> head & 1 and not done >> tail & 1]
        for group in self._groups(done):
            is_last = done | group == self.all
            if (is_last and group & closed) or any(not group >> tail & 1 for tail in pending):
                continue
            rest = self._rest(done | group, closed, wrapped)
            if rest is None:
                continue
            live = self._live(done, group) | (wrapped if is_last else 0)
            found = (rest[0] + (not pending), max(rest[1], self._bytes(live)), group)
            best = found if best is None else min(best, found)
        self._known[key] = best or (-1, 0, 0)
        return best

    def _layers(self, first: int | None, ends: bool, rest: tuple[int, int, int] | None) -> Layers:
        """Return the layers that a search has found, from the first one on, which it may have been given."""
        assert rest is not None, "jobs need each other"
        closed = 0 if ends or first is None else _bits(i for j in _ones(first) for i in _ones(self.before_next[j]))
        wrapped = self._live(0, first) if first is not None and not ends else 0
        groups = [] if first is None else [first]
        done = first or 0
        while done != self.all:
            step = self._rest(done, closed, wrapped)
            assert step is not None
            groups.append(step[2])
            done |= step[2]
        layers = tuple(tuple(self.names[i] for i in _ones(group)) for group in groups)
        peak = max(rest[1], 0 if first is None else self._bytes(self._live(0, first)))
        # A meeting lies before each layer but the first, and one at the end; without that one, and with a first layer
        # given, those of the rest are all.
        meetings = rest[0] if first is None else rest[0] + ends
        return Layers(layers, ends, meetings, peak)

    def _live(self, done: int, group: int) -> int:
        """Return the memory in use in a layer: what has been written, or is now, and is used now or later."""
        return _bits(
            m
            for m in range(len(self.memory))
            if self.writers[m] & (done | group) and self.users[m] & (self.all & ~done)
        )

    def _bytes(self, memory: int) -> int:
        return sum(self.sizes[self.memory[m]] for m in _ones(memory))


def _bits(numbers: Iterator[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _ones(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low

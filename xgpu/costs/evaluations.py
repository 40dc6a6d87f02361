"""Counts how often the kernels of a plan compute each value of a block.

Operations are placed as emission will place them (`xgpu.analysis.placement`): consumers that read a value at the same
indices share one computation, all others recompute it. Going backwards through the block, each read passes its count on
to what it reads.
"""

import functools
import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol

from xgpu import ir
from xgpu.analysis.concatenations import together
from xgpu.analysis.constants.counters import constant_integer
from xgpu.analysis.in_place import SCATTER, UPDATE_SLICE, updates_of
from xgpu.analysis.placement import Placement, Reads, Scope
from xgpu.costs.footprint import footprint
from xgpu.costs.recomputation import LOAD, MOST_VISITED
from xgpu.costs.repeats import Loops, Repeat, loops_inside, times_alike
from xgpu.costs.values import Weight, element_work, elements, instructions, is_immediate
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import Shape, ranges, shape_of
from xgpu.indexing.interval import Interval
from xgpu.numbered_block import Number, NumberedBlock
from xgpu.records import dataclass

_BRANCHES = 4
"""Instructions of a concatenation for its branches, which have indices of their own, and to come together again."""

_MOST_READS = 64
"""Reads of a value by kernels of one kind that are looked through."""

type Members = int
"""A set of kernels of one kind: a bit for each."""
ONLY: Members = 1
"""The kernel of a kind that has no other."""
_ALL: Members = -1
"""All kernels of a kind, however many it has."""
type Box = tuple[Interval, ...]
"""Ranges of indices."""
type _Placed = tuple[Scope, float, Members]
"""The scope at which members compute an operation, and how many times."""


class KernelKind(Protocol):
    """A kind of kernels as the planner knows it, whose members differ in nothing but what they compute."""

    def shares(self, op: ir.Operation) -> bool:
        """Whether their threads share what ``op`` reads, so that each kernel computes each element of that once."""
        ...


class Need[K: KernelKind](NamedTuple):
    """The need of ``kernels`` kernels of one kind, ``members``: each computes ``times`` elements of a value."""

    kernel: K
    members: Members
    kernels: int
    times: float


class Evaluations[K: KernelKind]:
    """Counts evaluations of a block's operations in reverse order, in which `want` and `compute` are called.

    Kernels of one kind that read a value at the same scopes are counted as one: a program in which many kernels compute
    a value takes no more steps than one in which few do. So members share a `Placement`, and tables have a set of
    members where they would have one kernel. Values and operations are given by their numbers in the block.
    """

    def __init__(self, block: NumberedBlock):
        self.block = block
        self._known: list[_Known | None] = [None] * len(block.operations)
        self._placements: dict[K, Placement] = {}
        self._roots: dict[tuple[K, Shape], Scope] = {}
        # By the number of a concatenation and of a set of its operands.
        self._walks: dict[tuple[K, int, int], Scope] = {}
        # The members for which each scope is computed so many times.
        self._counts: dict[Scope, dict[float, Members]] = {}
        self._loops: dict[Scope, Loops] = {}
        self.start()

    def start(self) -> None:
        """Forget all kernels; what is known of operations is kept."""
        for table in (self._placements, self._roots, self._walks, self._counts, self._loops):
            table.clear()
        # By the number of a value or operation. At which scopes members of a kernel want each value.
        self._wanted: list[dict[K, dict[Scope, Members]]] = [{} for _ in self.block.values]
        # How many elements of a value members of a kernel read, for each read.
        self._read_of: list[dict[K, list[tuple[Members, int]]]] = [{} for _ in self.block.values]
        self._placed: list[dict[K, list[_Placed]]] = [{} for _ in self.block.operations]

    def want(self, value: Number, kernel: K, members: Members) -> None:
        """Record that ``members`` of ``kernel`` compute all elements of a value."""
        shape, count = self.block.shape(value), self.block.elements(value)
        root = self._roots.get((kernel, shape))
        if root is None:
            if kernel not in self._placements:
                self._placements[kernel] = Placement()
            root = self._roots[kernel, shape] = self._placements[kernel].root(shape)
            self._counts[root] = {}
        _include(self._counts[root], count, members)
        _include(self._wanted[value].setdefault(kernel, {}), root, members)
        self._read_of[value].setdefault(kernel, []).append((members, count))

    def of(self, value: Number) -> list[Need[K]]:
        """Return how many elements of a value each kernel computes that reads it and does not find it in memory."""
        wanted = self._wanted[value]
        if not wanted:
            return []
        number = self.block.makers[value]
        assert number is not None
        is_only_result = len(self.block.results[number]) == 1
        needs: list[Need[K]] = []
        for kernel, scopes in wanted.items():
            reading = _ALL if is_only_result else _union(scopes)
            for _, times, placed in self._place(number, kernel, _ALL):
                if members := placed & reading:
                    needs.append(Need(kernel, members, members.bit_count(), times))
        return needs

    def known(self, value: Number, kernel: K, members: Members, alike: Members) -> int:
        """Return how many elements of a value all ``members`` of ``kernel`` are known so far to read or compute.

        By the last reads that were counted of members that are ``alike``: what very many operations read is not looked
        through for each of them.
        """
        reads = self._read_of[value].get(kernel)
        if reads is None:
            return 0
        if len(reads) > _MOST_READS:
            reads = list(islice((each for each in reversed(reads) if each[0] & alike), _MOST_READS))
        return sum([count for reading, count in reads if not members & ~reading])

    def compute(self, number: int, kernels: Mapping[K, Members]) -> None:
        """Pass the counts of an operation on to its operands, for ``kernels``, whose results it computes."""
        block = self.block
        has_maps, inside = block.names[number] in OPERATIONS, block.captured[number]
        for kernel, members in kernels.items():
            if not has_maps or kernel.shares(block.operations[number]):
                for operand in (*block.operands[number], *inside):
                    if block.makers[operand] is not None:
                        self.want(operand, kernel, members)
                    else:
                        reads = self._read_of[operand].setdefault(kernel, [])
                        reads.append((members, block.elements(operand)))
                continue
            known = self._known_of(number)
            for scope, times, placed in self._place(number, kernel, members):
                if both := placed & members:
                    if known.together and scope is self._roots.get((kernel, block.shape(block.results[number][0]))):
                        self._walk(known, kernel, times, both)
                        continue
                    self._read(known, kernel, scope, times, both)
                    for value in inside:
                        _include(self._wanted[value].setdefault(kernel, {}), scope, both)

    def _read(self, known: "_Known", kernel: K, scope: Scope, times: float, members: Members) -> None:
        """Let ``members`` of ``kernel`` read what an operation reads that they compute at ``scope`` so many times."""
        for position, is_own, operand, is_made, count in known.steps:
            child = scope
            if not is_own:
                child = self._placements[kernel].child(known.reads, position, scope)
                loops = self._loops.get(scope, {})
                counts = self._counts.get(child)
                if counts is None:
                    counts = self._counts[child] = {}
                    if inside := loops_inside(known.reads, position, loops):
                        self._loops[child] = inside
                # The first reads at a scope tell how often it is computed.
                if first := members & ~_union(counts):
                    is_called, alike = (
                        self._placements[kernel].is_called(scope),
                        times_alike(known.reads, position, loops),
                    )
                    _include(counts, known.repeats[position].times(times, is_called, alike), first)
            self._read_of[operand].setdefault(kernel, []).append((members, count))
            if is_made:
                scopes = self._wanted[operand].setdefault(kernel, {})
                scopes[child] = scopes.get(child, 0) | members

    def _walk(self, known: "_Known", kernel: K, times: float, members: Members) -> None:
        """Let ``members`` of ``kernel`` read the pieces of a concatenation, elements of those of one shape at once.

        Each element of the concatenation is computed so many times in all.
        """
        assert known.together is not None
        number = known.reads.number
        whole = self.block.elements(self.block.results[number][0])
        for first, positions in enumerate(known.together):
            key = (kernel, number, first)
            child = self._walks.get(key)
            if child is None:
                shape = self.block.shape(known.operands[positions[0]])
                child = self._walks[key] = self._placements[kernel].root(shape)
                self._counts[child] = {}
            for position in positions:
                operand = known.operands[position]
                count = self.block.elements(operand)
                if first_members := members & ~_union(self._counts[child]):
                    _include(self._counts[child], count * times / whole, first_members)
                self._read_of[operand].setdefault(kernel, []).append((members, count))
                if self.block.makers[operand] is not None:
                    scopes = self._wanted[operand].setdefault(kernel, {})
                    scopes[child] = scopes.get(child, 0) | members

    def _place(self, number: int, kernel: K, members: Members) -> list[_Placed]:
        """Place an operation in ``members``, after all its consumers; return at which scopes, and how often it is done.

        A kernel's place stays as it is if it wants more of the results afterwards.
        """
        kernels = self._placed[number]
        placed = kernels.get(kernel)
        if placed is None:
            placed = kernels[kernel] = []
        for _, _, before in placed:
            members &= ~before
        if members:
            wanted = self._wanted_of(number, kernel)
            for scopes, reading in _readers(wanted, members & _union(wanted)):
                scope = self._placements[kernel].place(self.block.operations[number], scopes)
                counts = self._counts.get(scope)
                if counts is None:
                    counts = self._counts[scope] = {}
                if first := reading & ~_union(counts):
                    for times, alike in self._summed(scopes, first).items():
                        _include(counts, times, alike)
                placed += [(scope, times, both) for times, each in counts.items() if (both := each & reading)]
        return placed

    def _wanted_of(self, number: int, kernel: K) -> dict[Scope, Members]:
        """Return the scopes at which members of ``kernel`` read results of an operation."""
        results = self.block.results[number]
        if len(results) == 1:
            return self._wanted[results[0]][kernel]
        wanted: dict[Scope, Members] = {}
        for value in results:
            for scope, members in self._wanted[value].get(kernel, {}).items():
                _include(wanted, scope, members)
        return wanted

    def _summed(self, scopes: Iterable[Scope], members: Members) -> dict[float, Members]:
        """Return for which of ``members`` the counts of ``scopes`` have which sum."""
        sums: dict[float, Members] = {0: members}
        for scope in scopes:
            longer: dict[float, Members] = {}
            for total, summed in sums.items():
                for times, counted in self._counts[scope].items():
                    if both := summed & counted:
                        _include(longer, total + times, both)
            sums = longer
        return sums

    def instructions_again(self, value: Number, is_stored: Callable[[Number], bool], most: float) -> float:
        """Return how many more instructions it takes to compute an element of a value than to load it.

        Stored inputs are loaded from caches. The count stops at ``most`` instructions; for very many operations it is
        infinite.
        """
        size, first = self.block.elements(value), self.block.makers[value]
        assert first is not None
        again = _Again(self.block.shape(value), size)
        wanted = {first: {again.root}}
        pending = [-first]
        read = set[tuple[Number, Scope]]()
        total = -float(LOAD * size)
        for _ in range(MOST_VISITED):
            if not pending or total > most * size:
                return total / size
            number = -heapq.heappop(pending)
            known = self._known_of(number)
            scope = again.place(known.reads.op, wanted[number])
            total += again.counts[scope] * known.instructions
            for position, operand in enumerate(known.operands):
                child = again.child(known, position, scope)
                if known.immediate[position]:
                    continue
                before = known.recomputed[position]
                if before is None or is_stored(operand):
                    total += LOAD * again.counts[child] * ((operand, child) not in read)
                    read.add((operand, child))
                    continue
                if before not in wanted:
                    heapq.heappush(pending, -before)
                wanted.setdefault(before, set()).add(child)
        return math.inf

    def _known_of(self, number: int) -> "_Known":
        known = self._known[number]
        if known is None:
            known = self._known[number] = _Known.of(self.block, number)
        return known


class Computed(NamedTuple):
    """An operation of a kernel, how many times it is computed for an element of its results, and at how many places.

    Each place is code of its own: consumers that read a value at the same indices share one.
    """

    op: ir.Operation
    times: float
    places: int


def computed[K: KernelKind](
    operations: Sequence[ir.Operation], roots: Iterable[ir.Value], kernel: K, heroes: Collection[ir.Operation]
) -> Iterator[Computed]:
    """Yield what a kernel of ``roots`` computes of ``operations``, in order, from the last one on.

    Each element of ``heroes`` is computed once; of arrays that they update in place, each element of the updates.
    """
    block = NumberedBlock(operations)
    evaluations = Evaluations[K](block)
    for value in roots:
        # A root that no operation makes or reads is an argument.
        if value in block.numbers:
            evaluations.want(block.numbers[value], kernel, ONLY)
    for number in reversed(range(len(operations))):
        op = operations[number]
        needs = [evaluations.of(value) for value in block.results[number]]
        times = max((need.times for each in needs for need in each), default=0.0)
        if times:
            evaluations.compute(number, {kernel: ONLY})
        if op in heroes:
            times = max(map(elements, updates_of(op) if op.name in (SCATTER, UPDATE_SLICE) else op.results))
        yield Computed(op, times, max(map(len, needs), default=0))


def executed[K: KernelKind](
    operations: Sequence[ir.Operation],
    roots: Iterable[ir.Value],
    kernel: K,
    heroes: Collection[ir.Operation],
    of: Weight,
) -> float:
    """Return the work of a kernel, see `computed`; ``of`` returns that of an operation for an element."""
    return sum(element_work(each.op, of) * each.times for each in computed(operations, roots, kernel, heroes))


def _include[T](table: dict[T, Members], key: T, members: Members) -> None:
    table[key] = table.get(key, 0) | members


def _union[T](table: Mapping[T, Members]) -> Members:
    union = 0
    for members in table.values():
        union |= members
    return union


def _readers(wanted: Mapping[Scope, Members], among: Members) -> list[tuple[tuple[Scope, ...], Members]]:
    """Return the sets of members, of those ``among``, that read at the same scopes, with these."""
    if len(wanted) == 1 or not any(among & ~members for members in wanted.values()):
        return [(tuple(wanted), among)]
    # By the number of the first scope and the members: the scopes at which all of these read.
    parts: list[tuple[int, Members, tuple[Scope, ...]]] = [(len(wanted), among, ())]
    for number, (scope, members) in enumerate(wanted.items()):
        for position in range(len(parts)):
            first, part, scopes = parts[position]
            if both := part & members:
                parts[position] = min(first, number), both, (*scopes, scope)
                if rest := part & ~members:
                    parts.append((first, rest, scopes))
    parts.sort(key=lambda each: (len(each[2]) > 1, each[0], each[1] & -each[1]))
    return [(scopes, part) for _, part, scopes in parts]


class _Again:
    """The scopes at which what one value is made of is computed again: how often, in which loops, at which indices."""

    def __init__(self, shape: Shape, size: int):
        self._placement = Placement()
        self.root = self._placement.root(shape)
        self.counts: dict[Scope, float] = {self.root: size}
        self._loops: dict[Scope, Loops] = {self.root: {}}
        # The indices of each scope as a box. Slices read parts of what pads and updates make of parts.
        self._boxes: dict[Scope, Box] = {self.root: ranges(shape)}

    def place(self, op: ir.Operation, wanted: Collection[Scope]) -> Scope:
        """Return the scope of an operation that is read at the scopes ``wanted``."""
        scope = self._placement.place(op, wanted)
        if scope not in self.counts:
            self.counts[scope] = sum([self.counts[each] for each in wanted])
            self._loops[scope] = {}
            together = zip(*[self._boxes[each] for each in wanted], strict=True)
            self._boxes[scope] = tuple([functools.reduce(Interval.union, each) for each in together])
        return scope

    def child(self, known: "_Known", position: int, scope: Scope) -> Scope:
        """Return the scope at which an operation at ``scope`` reads the operand of an access."""
        if known.reads.own[position]:
            return scope
        child = self._placement.child(known.reads, position, scope)
        if child not in self.counts:
            repeat, box = known.inside(position, self._boxes[scope])
            alike = times_alike(known.reads, position, self._loops[scope])
            self.counts[child] = repeat.times(self.counts[scope], self._placement.is_called(scope), alike)
            self._loops[child] = loops_inside(known.reads, position, self._loops[scope])
            self._boxes[child] = box
        return child


@dataclass(frozen=True)
class _Known:
    """The reads of an operation, however it is placed: for each access how often it happens, and the operand.

    ``makers`` has the number of the operation that makes each operand, None where the block does not.
    """

    block: NumberedBlock
    reads: Reads
    repeats: "tuple[Repeat, ...]"
    operands: tuple[Number, ...]
    makers: tuple[int | None, ...]

    @classmethod
    def of(cls, block: NumberedBlock, number: int) -> "_Known":
        """Look at an operation of a block."""
        reads = Reads.of(number, block.operations[number])
        repeats = tuple([Repeat.of(reads, position) for position in range(len(reads.accesses))])
        read = block.operands[number]
        operands = tuple([read[access.operand] for access in reads.accesses])
        return cls(block, reads, repeats, operands, tuple([block.makers[operand] for operand in operands]))

    def inside(self, position: int, box: Box) -> tuple[Repeat, Box]:
        """Return how often an access happens at the indices in ``box``, and a box of what it reads there."""
        if (position, box) not in self._inside:
            self._inside[position, box] = self._looked_at(position, box)
        return self._inside[position, box]

    @cached_property
    def _inside(self) -> dict[tuple[int, Box], tuple[Repeat, Box]]:
        return {}

    def _looked_at(self, position: int, box: Box) -> tuple[Repeat, Box]:
        map_, operands = self.reads.maps[position], self.reads.operands
        given = [constant_integer(operands[index.access]) for index in self.reads.accesses[position].runtime]
        later = [
            interval if number is None else Interval(number, number).intersect(interval)
            for number, interval in zip(given, map_.dims[len(box) :], strict=True)
        ]
        repeat = self.repeats[position]
        if (*box, *later) != map_.dims:
            map_ = replace(map_, dims=(*box, *later))
            repeat = Repeat.of(self.reads, position, map_)
        whole = ranges(shape_of(operands[position]))
        return repeat, tuple([each.intersect(all_) for each, all_ in zip(map_.result_ranges(), whole, strict=True)])

    @cached_property
    def steps(self) -> tuple[tuple[int, bool, Number, bool, int], ...]:
        """For each access its number, whether it is at the operation's own indices, and the operand, if the block's.

        And how many elements of the operand it reads at all indices together.
        """
        makers = [maker is not None for maker in self.makers]
        facts = zip(self.reads.own, self.operands, makers, map(footprint, self.reads.maps), strict=True)
        return tuple([(number, *each) for number, each in enumerate(facts)])

    @cached_property
    def instructions(self) -> int:
        """About how many instructions an element costs that a thread finds by itself, whichever the others look for."""
        op = self.reads.op
        return instructions(op) + _BRANCHES * (op.name == "stablehlo.concatenate")

    @cached_property
    def together(self) -> tuple[tuple[int, ...], ...] | None:
        """The operands of a concatenation whose elements a thread computes at once, if it is walked like that."""
        return together(self.reads.op) if self.reads.op.name == "stablehlo.concatenate" else None

    @cached_property
    def immediate(self) -> tuple[bool, ...]:
        """Whether each access reads what costs nothing."""
        return tuple([is_immediate(self.block.values[operand]) for operand in self.operands])

    @cached_property
    def recomputed(self) -> tuple[int | None, ...]:
        """For each access, the operation that can be computed again for it.

        What has no indexing maps is a hero, stored by a kernel whichever other values are.
        """
        names = self.block.names
        return tuple([None if maker is None or names[maker] not in OPERATIONS else maker for maker in self.makers])

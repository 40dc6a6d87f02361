"""The emitter of several slices of one value, of any shapes: each is written in whole vectors, by one loop each.

Results of one shape are a *part*: a loop whose threads take consecutive elements, as those of the loop emitter do, over
the same grid for all parts, that of the largest. If no two slices share elements, each element of the value is so
computed once. If some do, threads take consecutive elements of the value instead, within the box around all slices, and
every part takes what lies in its slice: what it has in common with others is then found in the thread's cache
line. Not so where elements of results share a byte, all of which one thread must write. (Source of that iteration
space: XLA's emitter of input slices.)
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Self

from xgpu import ir
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.root_indices import MOST_ROOTS, Stored, at_root_indices
from xgpu.device import Device
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import apply_map
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.families.loop import block_field, elements_per_thread, run_field, runs_over, whole_bytes
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import entry_function, loop
from xgpu.emit.schedule import Schedule, flag
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.errors import InvalidInput
from xgpu.fusion.grouping.decisions import Decision, apart, merged
from xgpu.fusion.grouping.families import KernelFamily, Kind
from xgpu.fusion.grouping.groups import TOO_MANY_ROOTS, Group, Grouping
from xgpu.indexing.access import Shape, integers, shape_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.records import dataclass

SLICE = "stablehlo.slice"
_SAME_VALUE = Reason("both are slices of one value")
_MOST_UNUSED = 2
"""The box around all slices is at most so many times larger than they are together, if threads are to walk it."""

Box = tuple[Interval, ...]
"""The indices that a slice lies between, along each dimension."""


@dataclass(frozen=True)
class SliceGroup:
    """Results of one shape, by their numbers, and the slices of that shape that they are computed from."""

    shape: Shape
    numbers: tuple[int, ...]
    slices: tuple[ir.Operation, ...]


class InputSlices:
    """A fusion whose results follow slices of one value, the ``source``, each part from slices of its shape."""

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.parts = _parts(fusion)
        slices = [op for part in self.parts for op in part.slices]
        if not all(part.slices for part in self.parts) or len({op.operands[0] for op in slices}) != 1:
            raise InvalidInput("expected its results to follow slices of one value")
        self.source = slices[0].operands[0]

    @cached_property
    def box(self) -> Box | None:
        """The box around all slices; None if threads cannot walk it."""
        return None if any(map(is_packed, self.fusion.results)) else _common_box(self.parts)

    def elements(self, around: bool) -> int:
        """Return how many elements the box has, or the largest part."""
        shapes = [_shape(self.box)] if around and self.box else [part.shape for part in self.parts]
        return max(map(math.prod, shapes))


@dataclass(frozen=True)
class InputSlicesSchedule(Schedule):
    """The division of slices among threads: each takes ``vector`` elements of every part, or of the box around all."""

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of a thread, which are one access where they are aligned.")
    around: bool = flag("Whether threads walk the box around all slices, not one slice after the other.")

    @classmethod
    def of(cls, facts: InputSlices) -> Self:
        """Around all slices if some have elements in common and they fill the box well."""
        around = facts.box is not None and _shares_elements(facts.parts, facts.box)
        vector = elements_per_thread(facts.fusion, facts.elements(around))
        return cls(facts.fusion.options.threads_per_block, vector, around)

    def problems(self, facts: InputSlices) -> Iterator[str]:
        """A thread writes whole bytes, and the box has one slice for each part."""
        yield from whole_bytes(self, facts.fusion)
        if self.around and facts.box is None:
            yield self.wrong("around", "false, unless parts are one slice each, without strides, and share no byte")


class InputSlicesEmitter:
    """Emits a fusion of slices of one value."""

    NAME = "input_slices"

    def __init__(self, facts: InputSlices, schedule: InputSlicesSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.parts, self.source = facts.parts, facts.source
        self.box = facts.box if schedule.around else None
        self.elements = facts.elements(schedule.around)

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the largest part, or the box around all slices, once."""
        return LaunchDimensions.covering(self.elements, self.schedule.threads, self.schedule.vector)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element of the run] -> indices of an output."""
        return self._indices(next(part for part in self.parts if output in part.numbers))

    def _indices(self, part: SliceGroup) -> IndexingMap:
        launch = self.launch_dimensions()
        if self.box is None:
            return runs_over(part.shape, launch, self.schedule.vector).simplify()
        (box,) = map(_box, part.slices)
        whole = runs_over(_shape(self.box), launch, self.schedule.vector)
        shifted = [
            index + (around.lower - own.lower) for index, around, own in zip(whole.results, self.box, box, strict=True)
        ]
        inside = tuple((index, Interval(0, size - 1)) for index, size in zip(shifted, part.shape, strict=True))
        return IndexingMap(whole.dims, whole.symbols, tuple(shifted), (*whole.constraints, *inside)).simplify()

    def emit(self) -> None:
        """Write the entry function, the function of the value that is sliced, and one for each part."""
        prologue = SubgraphFunctions.of(self.fusion, "input", [self.source])
        parts = [
            (part, Epilogues(self.fusion, [op.results[0] for op in part.slices], part.numbers, f"part_{number}"))
            for number, part in enumerate(self.parts)
        ]
        with entry_function(self.fusion, self, [prologue, *(epilogues for _, epilogues in parts)]) as kernel:
            for part, epilogues in parts:
                outputs = [kernel.outputs[number] for number in part.numbers]
                with loop(self._indices(part), kernel.position, outputs) as each:
                    indices, scalars = each.result_arguments, []
                    for op in part.slices:
                        (read,) = accesses(op)
                        scalars += prologue.emit_call([*kernel.inputs, *apply_map(read.map, indices)])
                    epilogues.emit_stores(kernel, indices, scalars)


def _parts(fusion: Fusion) -> list[SliceGroup]:
    by_shape: dict[Shape, list[int]] = {}
    for number, value in enumerate(fusion.results):
        by_shape.setdefault(shape_of(value), []).append(number)
    found = []
    for shape, numbers in by_shape.items():
        roots = [fusion.results[number] for number in numbers]
        slices = [op for op in at_root_indices(roots, lambda _: False) if op.name == SLICE]
        found.append(SliceGroup(shape, tuple(numbers), tuple(slices)))
    return found


def _box(op: ir.Operation) -> Box:
    starts, limits = integers(op, "start_indices"), integers(op, "limit_indices")
    return tuple(Interval(start, limit - 1) for start, limit in zip(starts, limits, strict=True))


def _shape(box: Box) -> Shape:
    return tuple(interval.size for interval in box)


def _common_box(parts: Sequence[SliceGroup]) -> Box | None:
    """Return the box around all slices; None if some skip elements or a part is computed from several."""
    if any(len(part.slices) > 1 or set(integers(part.slices[0], "strides")) - {1} for part in parts):
        return None
    around, *boxes = [_box(op) for part in parts for op in part.slices]
    for box in boxes:
        around = tuple(own.union(other) for own, other in zip(around, box, strict=True))
    return around


def _shares_elements(parts: Sequence[SliceGroup], around: Box) -> bool:
    """Whether some slices have elements in common, and all fill the box ``around`` them well."""
    boxes = [_box(op) for part in parts for op in part.slices]
    used = sum(math.prod(_shape(box)) for box in boxes)
    is_filled = math.prod(_shape(around)) <= _MOST_UNUSED * used
    return is_filled and any(_overlap(one, two) for one, two in itertools.combinations(boxes, 2))


def _overlap(one: Box, two: Box) -> bool:
    return not any(own.intersect(other).is_empty for own, other in zip(one, two, strict=True))


def _merge(family: KernelFamily, _: Device, grouping: Grouping) -> tuple[Grouping, Sequence[Decision]]:
    """Return ``grouping`` with the loops merged that store slices of one value at one level.

    Stored values may follow their slices element by element. A new group takes the place of the first that it replaces.
    """
    alike: dict[tuple[ir.Value, int], list[tuple[Group, list[ir.Operation]]]] = {}
    for group in grouping.groups:
        if slices := _slices_of(group, partial(grouping.stored_before, level=group.level)):
            alike.setdefault((slices[0].operands[0], group.level), []).append((group, slices))
    replaced: dict[Group, Group | None] = {}
    decisions = []
    for parts in alike.values():
        for some in _few_roots(parts):
            first = some[0][0].roots[0]
            decisions += [merged(group.roots[0], first, _SAME_VALUE) for group, _ in some[1:]]
            if some[0] is not parts[0]:
                decisions.append(apart(first, parts[0][0].roots[0], TOO_MANY_ROOTS))
            if len(some) > 1:
                replaced |= {group: None for group, _ in some}
                replaced[some[0][0]] = _merged(family, some)
    new = (replaced.get(group, group) for group in grouping.groups)
    return replace(grouping, begun=tuple(group for group in new if group is not None)), decisions


def _slices_of(group: Group, stored: Stored) -> list[ir.Operation]:
    """Return the slices of one value that a loop stores, with what follows them, if it stores nothing else."""
    if group.heroes:
        return []
    found: dict[ir.Operation, None] = {}
    for root in group.roots:
        slices = []
        for op in at_root_indices([root], stored):
            if op.name == SLICE:
                slices.append(op)
            elif access_kind(op) not in ("elementwise", "generator") and op.name != "stablehlo.broadcast_in_dim":
                return []
        if not slices:
            return []
        found |= dict.fromkeys(slices)
    return list(found) if len({op.operands[0] for op in found}) == 1 else []


def _few_roots(parts: Sequence[tuple[Group, list[ir.Operation]]]) -> Iterator[list[tuple[Group, list[ir.Operation]]]]:
    """Yield ``parts`` in sequences that one kernel can store."""
    some: list[tuple[Group, list[ir.Operation]]] = []
    for part in parts:
        if some and sum(len(group.roots) for group, _ in some) + len(part[0].roots) > MOST_ROOTS:
            yield some
            some = []
        some.append(part)
    yield some


def _merged(family: KernelFamily, parts: Sequence[tuple[Group, list[ir.Operation]]]) -> Group:
    heroes = tuple(op for _, slices in parts for op in slices)
    roots = tuple(root for group, _ in parts for root in group.roots)
    return Group(Kind(family, heroes[0].operands[0]), parts[0][0].level, heroes, roots)


INPUT_SLICES = Family(
    why=Reason("slices of one value, of several shapes"),
    merge=_merge,
    emitter=InputSlicesEmitter,
    facts=InputSlices,
    schedule=InputSlicesSchedule,
    results=requirements.any_results,
)

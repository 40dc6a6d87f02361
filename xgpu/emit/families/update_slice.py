"""The emitter of slices that are updated in place: each thread writes a few consecutive elements of them.

Heroes are ``dynamic_update_slice`` operations whose updates have one shape. The rest of the arrays is not touched.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

from xgpu import ir
from xgpu.analysis.in_place import UPDATE_SLICE, can_update_in_place
from xgpu.costs.registers import registers_for
from xgpu.costs.values import instructions
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import Values, apply_map, clamped_index
from xgpu.emit.families.loop import block_field, run_field
from xgpu.emit.families.update_runs import UpdatedElements, inputs_read, prologue, updates
from xgpu.emit.kernel_builder import Emits, KernelBuilder, KernelTile, Tensor, emit_alone, loop
from xgpu.emit.reduction_tiling import power_of_two_below
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import BlockSchedule
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.indexing.access import Shape, dims, ranges, shape_of
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_MOST_ELEMENTS = 16
"""Elements up to which a loop over them becomes an access to a vector."""


@dataclass(frozen=True)
class SliceUpdates:
    """A fusion of updates, of one ``shape``, of slices; the results are theirs, in order."""

    fusion: Fusion

    @property
    def heroes(self) -> list[ir.Operation]:
        """The updates."""
        return self.fusion.heroes

    @property
    def parameters(self) -> list[ir.Value]:
        """All parameters, those that are updated included."""
        return list(self.fusion.body.arguments)

    @property
    def shape(self) -> Shape:
        """The shape of the slices."""
        return shape_of(self.heroes[0].operands[1])

    @property
    def widths(self) -> list[int]:
        """The bits of an element of each array."""
        return [element_dtype(type_).storage_bits for type_ in self.fusion.result_types]

    @property
    def contiguous(self) -> int:
        """The number of elements that are neighbours in all slices and arrays, wherever slices begin."""
        return math.gcd(*(_contiguous(shape_of(hero.results[0]), self.shape) for hero in self.heroes))


@dataclass(frozen=True)
class UpdateSliceSchedule(BlockSchedule):
    """The division of a slice among threads: each takes ``vector`` elements."""

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of a thread, which are one access where they are aligned.")

    @classmethod
    def of(cls, facts: SliceUpdates) -> Self:
        """Elements of an access of the widest type, if they are neighbours wherever slices begin.

        One if there are fewer elements than threads, but as many as fill a byte where elements share bytes.
        """
        fusion = facts.fusion
        threads, device = fusion.options.threads_per_block, fusion.device
        whole_bytes = math.gcd(8 // min(8, *facts.widths), facts.contiguous)
        if math.prod(facts.shape) < device.resident_threads:
            return cls(threads, whole_bytes)
        longest = min(_MOST_ELEMENTS, 8 * device.max_vector_bytes // max(facts.widths))
        bound = fusion.options.max_elements_per_thread or longest
        return cls(threads, max(whole_bytes, math.gcd(longest, power_of_two_below(bound), facts.contiguous)))

    @property
    def block_threads(self) -> int:
        """As given."""
        return self.threads

    def in_block(self, threads: int, facts: SliceUpdates) -> Self:
        """Blocks of any size will do."""
        return replace(self, threads=threads)

    def registers(self, facts: SliceUpdates) -> int:
        """Those of all elements that it reads and writes, or of what it computes of them."""
        read = [element_dtype(value.type).storage_bits for value in inputs_read(facts.fusion, facts.parameters)]
        code = sum(instructions(view.operation) for view in facts.fusion.body.operations)
        return registers_for(self.vector, [*read, *facts.widths], code)

    def problems(self, facts: SliceUpdates) -> Iterator[str]:
        """A thread's elements are whole bytes wherever slices begin, or it updates bytes that others do as well."""
        for width in facts.widths:
            if self.vector * width % 8 == 0 and facts.contiguous % (8 // min(8, width)):
                yield self.wrong("vector", f"less than {8 // width}, as slices may begin inside a byte")


class UpdateSliceEmitter:
    """Emits a fusion of updates of slices."""

    NAME = "update_slice"

    def __init__(self, facts: SliceUpdates, schedule: UpdateSliceSchedule):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.heroes = facts.heroes
        self.shape = facts.shape
        self.elements = UpdatedElements(self.shape, schedule.vector, schedule.threads)

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the updates once."""
        return self.elements.launch_dimensions()

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element of the run] -> element of the slice, which begins where run time says."""
        return self.elements.map()

    @cached_property
    def _starts(self) -> SubgraphFunctions:
        starts = [value for hero in self.heroes for value in list(hero.operands)[2:]]
        return prologue(self.fusion, "starts", starts)

    @cached_property
    def _updates(self) -> SubgraphFunctions:
        return prologue(self.fusion, "updates", [hero.operands[1] for hero in self.heroes])

    @property
    def functions(self) -> Sequence[Emits]:
        """The functions of the slices' starts and of the updates."""
        return [self._starts, self._updates]

    @property
    def tiles(self) -> Sequence[KernelTile]:
        """None: threads share nothing."""
        return []

    def emit(self) -> None:
        """Write the entry function, then the functions that it calls."""
        emit_alone(self)

    def write(self, kernel: KernelBuilder) -> None:
        """Write the loop over a thread's elements of the slices."""
        inputs = inputs_read(self.fusion, kernel.inputs)
        begins = self._begins(self._starts.emit_call(inputs))
        with loop(self.thread_to_output(0), kernel.position, kernel.outputs) as each:
            at = each.result_arguments
            rows = zip(self.heroes, self._updates.emit_call([*inputs, *at]), kernel.outputs, begins, strict=True)
            for hero, value, tensor, begin in rows:
                self._update(hero, value, tensor, [*at, *begin])

    def _begins(self, starts: Sequence[ir.Value]) -> list[Values]:
        """Return where the slice of each hero begins, so that it lies inside its array; ``starts`` are all."""
        rank = len(self.shape)
        clamped = []
        for number, hero in enumerate(self.heroes):
            for i, (size, part) in enumerate(zip(shape_of(hero.results[0]), self.shape, strict=True)):
                dtype = dtype_of(hero.operands[2 + i])
                clamped.append(clamped_index(starts[number * rank + i], dtype, Interval(0, size - part)))
        return [clamped[i : i + rank] for i in range(0, len(self.heroes) * rank, rank)]

    def _update(self, hero: ir.Operation, value: ir.Value, tensor: Tensor, at: Values) -> None:
        """Store an element; ``at`` are its indices in the slice, then those where the slice begins."""
        rank = len(self.shape)
        spaces = [Interval(0, size - part) for size, part in zip(shape_of(hero.results[0]), self.shape, strict=True)]
        variables = dims(2 * rank)
        moved = tuple(variables[i] + variables[rank + i] for i in range(rank))
        place = apply_map(IndexingMap((*ranges(self.shape), *spaces), (), moved), at)
        if self.elements.run * dtype_of(hero.results[0]).storage_bits % 8 == 0:
            tensor.insert(value, place)
        else:
            # Another thread writes other elements of the same byte.
            tensor.update_atomically(place, lambda _: value)


def _contiguous(whole: Sequence[int], part: Sequence[int]) -> int:
    """Return how many elements lie side by side in array and slice, wherever the slice begins."""
    elements = 1
    for size, own in zip(reversed(whole), reversed(part), strict=True):
        if size != own:
            break
        elements *= size
    return elements


def _key(op: ir.Operation) -> Hashable | None:
    """Return the shape of the slice that is updated."""
    return shape_of(op.operands[1]) if op.name == UPDATE_SLICE and math.prod(shape_of(op.operands[1])) > 0 else None


SLICE_UPDATES = updates(
    "updates of slices of one shape",
    UPDATE_SLICE,
    _key,
    can_update_in_place,
    UpdateSliceEmitter,
    SliceUpdates,
    UpdateSliceSchedule,
)

"""The scatter emitter: each thread makes the updates of a few consecutive elements, in the memory of the operand.

The index vector is read once for a run of elements inside a window, and all of a window is dropped if it does not lie
inside the operand. Where several updates may have the same place each is an atomic operation, unless it only
overwrites: which of several such updates is the last is not defined. (Source: XLA's scatter emitter.)
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from xgpu import ir
from xgpu.analysis.combiners import Combiner, combiners
from xgpu.analysis.in_place import SCATTER, can_update_in_place, is_ordered, is_unique, scatter_key
from xgpu.dialects.attributes import OVERWRITES, int_array
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.families.loop import block_field, run_field
from xgpu.emit.families.update_runs import UpdatedElements, all_of, checked_index, inputs_read, prologue, updates
from xgpu.emit.kernel_builder import KernelBuilder, Tensor, entry_function, loop, put, when
from xgpu.emit.reduction_tiling import power_of_two_below
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import element_dtype
from xgpu.emit.schedule import Schedule
from xgpu.indexing.affine import symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.scatter_maps import ScatterMaps, scatter_maps
from xgpu.records import dataclass
from xgpu.structure import dtype_of
from xgpu.target_machine import ADDED_AS_VECTORS

_SINGLE_UPDATES = 2
"""Updates with an index each that a thread makes."""


class ScatterInputs:
    """The inputs of a kernel of scatters: the functions of the indices and of the updates."""

    def __init__(self, fusion: Fusion, indices: ir.Value, updates: Sequence[ir.Value]):
        self._fusion = fusion
        self._indices = prologue(fusion, "indices", [indices])
        self._updates = prologue(fusion, "updates", list(updates))

    def index_at(self, kernel: KernelBuilder, at: Values) -> ir.Value:
        """Return an element of the indices."""
        return self._indices.emit_call([*inputs_read(self._fusion, kernel.inputs), *at])[0]

    def updates_at(self, kernel: KernelBuilder, at: Values) -> Values:
        """Return the element of each operand's updates."""
        return self._updates.emit_call([*inputs_read(self._fusion, kernel.inputs), *at])

    def emit(self) -> None:
        """Write the functions at the current insertion point."""
        self._indices.emit()
        self._updates.emit()


@dataclass(frozen=True)
class Scatters:
    """A fusion of scatters that have the same indices; the results are theirs, in order."""

    fusion: Fusion

    @property
    def heroes(self) -> list[ir.Operation]:
        """The scatters."""
        return self.fusion.heroes

    @cached_property
    def maps(self) -> ScatterMaps:
        """The map from an element of the updates to its place, the same for all scatters."""
        return scatter_maps(self.heroes[0])

    @property
    def updates(self) -> list[ir.Value]:
        """The updates of each result."""
        return [value for hero in self.heroes for value in list(hero.operands)[len(hero.results) + 1 :]]


@dataclass(frozen=True)
class ScatterSchedule(Schedule):
    """The division of updates among threads: each makes ``vector`` of them, in any order."""

    threads: int = block_field()
    vector: int = run_field("Consecutive elements of the updates that a thread makes.")

    @classmethod
    def of(cls, facts: Scatters) -> Self:
        """See `run_of_updates`."""
        return cls(facts.fusion.options.threads_per_block, run_of_updates(facts.fusion, facts.maps, facts.heroes))


class ScatterEmitter:
    """Emits a fusion of scatters."""

    NAME = "scatter"

    def __init__(self, facts: Scatters, schedule: Any):
        self.fusion = facts.fusion
        self.schedule = schedule
        self.heroes, self.maps, self.updates = facts.heroes, facts.maps, facts.updates
        self.is_atomic = not is_unique(self.heroes[0])

    @cached_property
    def read(self) -> ScatterInputs:
        """The inputs of the kernel."""
        hero = self.heroes[0]
        return ScatterInputs(self.fusion, hero.operands[len(hero.results)], self.updates)

    @property
    def elements(self) -> UpdatedElements:
        """The elements of the updates of each thread."""
        return UpdatedElements(self.maps.update_shape, self.schedule.vector, self.schedule.threads)

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the updates once."""
        return self.elements.launch_dimensions()

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[element of the run] -> element of the updates; where it goes is known at run time."""
        return self.elements.map()

    def emit(self) -> None:
        """Write the entry function, then the functions of the indices and of the updates."""
        with entry_function(self.fusion, self, [self.read]) as kernel:
            if self.is_atomic and (overwritten := self._overwritten()):
                kernel.attributes[OVERWRITES] = int_array(overwritten)
            with loop(self.thread_to_output(0), kernel.position, kernel.outputs) as each:
                at = each.result_arguments
                starts, inside = self._starts(kernel, at)
                place = apply_map(self.maps.operand, [*at, *starts])
                # What is read for each element of a run, whether dropped or not, can be read as a vector.
                early = None if self.maps.window_dims else self.read.updates_at(kernel, at)
                with when(inside, kernel.outputs):
                    self._update(kernel.outputs, place, early or self.read.updates_at(kernel, at))

    def _overwritten(self) -> tuple[int, ...]:
        """Return the numbers of the outputs that several threads store to in any order."""
        pairs = [pair for hero in self.heroes for pair in zip(combiners(hero), hero.results, strict=True)]
        return tuple(number for number, pair in enumerate(pairs) if _is_stored(*pair))

    def _starts(self, kernel: KernelBuilder, at: Values) -> tuple[Values, ir.Value | None]:
        """Return where the window of the update ``at`` these indices begins, and whether it lies inside the operand.

        The latter is None if it always does.
        """
        dtype = dtype_of(self.heroes[0].operands[len(self.heroes[0].results)])
        components = [self.read.index_at(kernel, apply_map(component, at)) for component in self.maps.components]
        checked = [
            checked_index(value, dtype, bound) for value, bound in zip(components, self.maps.bounds, strict=True)
        ]
        return [start for start, _ in checked], all_of([inside for _, inside in checked])

    def _update(self, outputs: Sequence[Tensor], place: Values, updates: Values) -> None:
        """Combine the element at ``place`` of each output with its update."""
        first = 0
        for hero in self.heroes:
            part = slice(first, first + len(hero.results))
            make = self._update_atomically if self.is_atomic else _update_alone
            make(hero, outputs[part], place, updates[part])
            first = part.stop

    @staticmethod
    def _update_atomically(hero: ir.Operation, outputs: Sequence[Tensor], place: Values, updates: Values) -> None:
        """Combine each output with its update in one step that other threads cannot see a part of."""
        for number, (combiner, tensor) in enumerate(zip(combiners(hero), outputs, strict=True)):

            def combined(own: ir.Value, number: int = number) -> ir.Value:
                # No result depends on the elements of other operands, so anything may stand for those.
                old = [own if i == number else update for i, update in enumerate(updates)]
                return emit_combiner(hero.regions[0].blocks[0], [*old, *updates])[number]

            if _is_stored(combiner, hero.results[number]):
                tensor.insert(updates[number], place)
            else:
                tensor.update_atomically(place, combined)


def _is_stored(combiner: Combiner, result: ir.Value) -> bool:
    """Whether an update replaces an element that a thread can store without those beside it."""
    return combiner.function == "overwrite" and not dtype_of(result).is_packed


@dataclass(frozen=True)
class OrderedScatterSchedule(Schedule):
    """The division of updates that may be made at the same time: one element for each thread."""

    threads: int = block_field()

    @classmethod
    def of(cls, facts: Scatters) -> Self:
        """Choose what the options say."""
        return cls(facts.fusion.options.threads_per_block)


class OrderedScatterEmitter(ScatterEmitter):
    """Emits scatters whose updates with the same place are made one after the other, in row-major order of the indices.

    A thread makes all updates that may have the same place as another of its own: those of an element of the windows
    and of a batch, since nothing else of an update's place is known. So the time grows with the number of windows.
    """

    NAME = "scatter_ordered"

    def __init__(self, facts: Scatters, schedule: OrderedScatterSchedule):
        super().__init__(facts, schedule)
        self.is_atomic = False
        packed = any(element_dtype(type_).is_packed for type_ in self.fusion.result_types)
        # Threads cannot share a byte.
        self.parallel = () if packed else self.maps.separate_dims

    @property
    def elements(self) -> UpdatedElements:
        """The elements of the updates' separate dimensions of each thread."""
        return UpdatedElements(tuple(self.maps.update_shape[i] for i in self.parallel), 1, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[window, element of it] -> element of the updates; see `ScatterEmitter`."""
        own, _ = self.elements.map().remove_unused_symbols()
        shape = self.maps.update_shape
        # Windows in the outer loops, so that all of one comes before the next.
        rest = sorted(set(range(len(shape))) - set(self.parallel), key=lambda i: (i in self.maps.window_dims, i))
        place = dict(zip(self.parallel, own.results, strict=True))
        place |= {i: symbol(number) for number, i in enumerate(rest)}
        symbols = tuple(Interval(0, shape[i] - 1) for i in rest)
        return replace(own, symbols=symbols, results=tuple(place[i] for i in range(len(shape))))


def vector_length(fusion: Fusion, maps: ScatterMaps, heroes: Sequence[ir.Operation]) -> int:
    """Return how many neighbouring elements one atomic operation adds to, for all heroes: a power of two.

    Those are sums on devices that have such operations. For others it is one: neighbouring threads should update
    neighbouring elements then, which memory takes as one request.
    """
    return longest_vector(fusion, maps, heroes) if fusion.device.vector_atomics else 1


def longest_vector(fusion: Fusion, maps: ScatterMaps, heroes: Sequence[ir.Operation]) -> int:
    """Return how many neighbouring elements of f16, bf16 or f32 a thread can add to at once, 1 for other updates."""
    functions = {each.function for hero in heroes for each in combiners(hero)}
    dtypes = [dtype_of(value) for hero in heroes for value in hero.results]
    if functions != {"add"} or any(d.hlo not in ADDED_AS_VECTORS for d in dtypes):
        return 1
    return math.gcd(8 * fusion.device.max_vector_bytes // max(dtype.bits for dtype in dtypes), maps.contiguous)


def run_of_updates(
    fusion: Fusion, maps: ScatterMaps, heroes: Sequence[ir.Operation], single: int = _SINGLE_UPDATES
) -> int:
    """Return how many consecutive elements of the updates a thread makes: a power of two.

    As many as a vector access or atomic operation holds, if that many lie side by side in the operand as well, or
    ``single`` if each update has an index of its own. In device memory those are two: more leave fewer threads to wait
    for memory, but neighbours often update neighbours, which memory takes as one request from neighbouring threads. One
    where neither holds, and where the updates do not fill the device's threads.
    """
    widths = [dtype_of(value).storage_bits for hero in heroes for value in hero.results]
    threads = fusion.device.resident_threads
    if min(widths) < 8 or math.prod(maps.update_shape) < threads:
        return 1
    longest = 8 * fusion.device.max_vector_bytes // max(widths)
    is_plain = is_unique(heroes[0]) or all(each.function == "overwrite" for hero in heroes for each in combiners(hero))
    run = min(single, longest)
    if maps.window_dims:
        run = math.gcd(longest, maps.contiguous) if is_plain else vector_length(fusion, maps, heroes)
    return power_of_two_below(min(run, fusion.options.max_elements_per_thread or run))


def _update_alone(hero: ir.Operation, outputs: Sequence[Tensor], place: Values, updates: Values) -> None:
    """Combine the outputs with their updates, where no other thread does so."""
    old = [tensor.extract(place) for tensor in outputs]
    put(emit_combiner(hero.regions[0].blocks[0], [*old, *updates]), outputs, place)


def _unordered_key(op: ir.Operation) -> Hashable | None:
    key = scatter_key(op)
    return None if key is None or is_ordered(op) else key


_TEXT = "scatters with the same indices, whose updates may be made {}"

SCATTERS = updates(
    _TEXT.format("in any order"),
    SCATTER,
    _unordered_key,
    can_update_in_place,
    ScatterEmitter,
    Scatters,
    ScatterSchedule,
)
ORDERED_SCATTERS = updates(
    _TEXT.format("in order"),
    SCATTER,
    scatter_key,
    can_update_in_place,
    OrderedScatterEmitter,
    Scatters,
    OrderedScatterSchedule,
)

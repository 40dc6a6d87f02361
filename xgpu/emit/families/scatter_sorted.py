"""The emitter of scatters whose indices are sorted: each thread combines updates of one place before it writes them.

A thread walks down some consecutive windows, for the same few elements of each. While the place stays the same it
combines the updates in registers; when it changes, one atomic operation adds what there is. So there are as many atomic
operations as changes, and one for each thread. Indices that are not sorted after all only make more of them. Sums of
16-bit floats are kept in f32 until they are written. (Source: XLA's scatter emitter for sorted indices does the same
with warps; that threads walk several rows whose loads come first is ours.)
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import batched
from typing import Self

from xgpu import ir
from xgpu.analysis.combiners import combiners
from xgpu.analysis.in_place import SCATTER, can_be_in_runs, has_runs, is_ordered, scatter_key
from xgpu.costs.sectors import SECTOR_BYTES
from xgpu.dialects.xgpu import InDomainOp
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import Values, apply_map, scalar_type
from xgpu.emit.families.loop import block_field
from xgpu.emit.families.scatter import ScatterEmitter, Scatters, longest_vector, vector_length
from xgpu.emit.families.update_runs import all_of, updates
from xgpu.emit.kernel_builder import KernelBuilder, Tensor, Variable, assign, entry_function, loop, values_of, when
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import compare_integers, constant, constant_of
from xgpu.emit.schedule import Schedule, power_of_two, whole_number
from xgpu.indexing.affine import constant as affine
from xgpu.indexing.affine import delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of

_ROWS = 8
"""Windows whose indices and updates a thread reads at once: 128 bytes in flight for each, with 16 bytes of a window."""
_MOST_STEPS = 8
"""Such steps of a thread, if there are enough threads anyway: then fewer sums are cut in two."""


@dataclass(frozen=True)
class _Sum:
    """The sums of a thread: whether there are any, their place, and for each result each of its elements."""

    is_open: ir.Value
    place: Values
    values: list[Values]

    def flat(self) -> Values:
        """Return all of it as a loop carries it."""
        return [self.is_open, *self.place, *[value for each in self.values for value in each]]


@dataclass(frozen=True)
class SortedScatterSchedule(Schedule):
    """The division of windows: a thread reads ``rows`` of them ``steps`` times, ``vector`` elements of each."""

    threads: int = block_field()
    vector: int = power_of_two("Neighbouring elements of windows that a thread has.", most=8)
    rows: int = whole_number("Windows whose indices and updates a thread reads at once.", most=32)
    steps: int = whole_number("How often a thread does that.", most=1024)

    @classmethod
    def of(cls, facts: Scatters) -> Self:
        """Choose vectors of an atomic operation, and as many steps as leave enough threads, if windows are long."""
        device, maps = facts.fusion.device, facts.maps
        vector = vector_length(facts.fusion, maps, facts.heroes)
        window = math.prod(maps.update_shape) // maps.windows
        row_bytes = window * dtype_of(facts.updates[0]).storage_bits // 8
        # Of windows shorter than a sector, neighbouring threads must read neighbours.
        steps = _MOST_STEPS if row_bytes >= SECTOR_BYTES else 1
        least = 4 * device.resident_threads
        while steps > 1 and -(-maps.windows // (_ROWS * steps)) * window // vector < least:
            steps //= 2
        return cls(facts.fusion.options.threads_per_block, vector, _ROWS, steps)

    def problems(self, facts: Scatters) -> Iterator[str]:
        """Elements that a thread has are neighbours in memory, and sums that are made as vectors are of floats."""
        longest = longest_vector(facts.fusion, facts.maps, facts.heroes)
        if longest % self.vector:
            yield self.wrong("vector", f"a power of two up to {longest}")


class SortedScatterEmitter(ScatterEmitter):
    """Emits scatters with the same, sorted indices, each of one operand, whose windows are the minor dimensions."""

    NAME = "scatter_sorted"

    def __init__(self, facts: Scatters, schedule: SortedScatterSchedule):
        super().__init__(facts, schedule)
        shape = self.maps.update_shape
        rank = len(shape) - len(self.maps.window_dims)
        self.batches, self.window = shape[:rank], shape[rank:]
        self.length, self.rows, self.steps = schedule.vector, schedule.rows, schedule.steps
        self.groups = math.prod(self.window) // self.length
        self.walks = -(-self.maps.windows // (self.rows * self.steps))

    def launch_dimensions(self) -> LaunchDimensions:
        """A thread for each run of windows and each few elements of a window, the latter along neighbouring threads."""
        return LaunchDimensions.covering(self.walks * self.groups, self.schedule.threads)

    def _walk(self) -> IndexingMap:
        """Return (thread, block)[step] -> first window of the step, first element of windows."""
        launch, walks = self.launch_dimensions(), self.walks
        walk, group = delinearize(launch.thread, (walks, self.groups))
        return IndexingMap(
            launch.ranges,
            (Interval(0, self.steps - 1),),
            ((walk * self.steps + symbol(0)) * self.rows, group * self.length),
            ((launch.thread, Interval(0, walks * self.groups - 1)),),
        ).simplify()

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[step, window, element] -> element of the updates; see `ScatterEmitter`."""
        walk = self._walk()
        window, element = walk.results
        window, element = window + symbol(1), element + symbol(2)
        return IndexingMap(
            walk.dims,
            (*walk.symbols, Interval(0, self.rows - 1), Interval(0, self.length - 1)),
            (*delinearize(window, self.batches), *delinearize(element, self.window)),
            (*walk.constraints, (window, Interval(0, self.maps.windows - 1))),
        ).simplify()

    def emit(self) -> None:
        """Write the entry function, then the functions of the indices and of the updates."""
        with entry_function(self.fusion, self, [self.read]) as kernel:
            position = kernel.position
            carried = [Variable(value) for value in self._nothing()]
            with loop(self._walk(), position, [*carried, *kernel.outputs]) as walk:
                first, element = walk.result_arguments
                total = self._sum(values_of(carried))
                # All that a thread reads comes before the first of what it writes, so that nothing waits for that.
                rows = [self._read(kernel, first, element, row) for row in range(self.rows)]
                for row in rows:
                    total = self._take(row, total, kernel.outputs, element)
                assign(carried, total.flat())
            total = self._sum(values_of(carried))
            # Which element of windows a thread is at does not depend on the step.
            element = apply_map(replace(self._walk(), results=self._walk().results[1:]), [*position, _index(0)])[0]
            self._write_if(total.is_open, total, kernel.outputs, element)

    def _nothing(self) -> Values:
        """Return a sum of nothing, flat."""
        zeros = [_zero(self._sum_type(value)) for value in self.updates for _ in range(self.length)]
        return [constant(ir.IntegerType.get_signless(1), 0), *[_index(0) for _ in self._moving()], *zeros]

    def _sum(self, values: Values) -> _Sum:
        """Return the sum that is these values, flat."""
        split = 1 + len(self._moving())
        return _Sum(values[0], values[1:split], [list(each) for each in batched(values[split:], self.length)])

    def _is_wide(self, update: ir.Value) -> bool:
        """Whether sums of these updates are made in f32."""
        position = self.updates.index(update)
        is_sum = combiners(self.heroes[position])[0].function == "add"
        return is_sum and dtype_of(update).hlo in ("f16", "bf16")

    def _sum_type(self, update: ir.Value) -> ir.Type:
        return ir.F32Type.get() if self._is_wide(update) else scalar_type(dtype_of(update))

    def _moving(self) -> list[int]:
        """Return the dimensions of the operand in which windows differ in their place."""
        rank = len(self.batches)
        fixed = range(rank, rank + len(self.window))
        return [i for i, result in enumerate(self.maps.operand.results) if result.variables()[0] - set(fixed)]

    def _origin(self) -> IndexingMap:
        """Return (indices of a window, its start) -> place of its first element, in the dimensions that move."""
        rank, window = len(self.batches), len(self.window)
        operand = self.maps.operand
        starts = [dim(rank + i) for i in range(len(self.maps.components))]
        variables = [*[dim(i) for i in range(rank)], *[affine(0)] * window, *starts]
        results = tuple(operand.results[i].substitute(variables, None) for i in self._moving())
        return IndexingMap((*operand.dims[:rank], *operand.dims[rank + window :]), (), results)

    def _target(self) -> IndexingMap:
        """Return (place of a window, indices in it) -> element of the operand."""
        rank, moving = len(self.batches), self._moving()
        shape = self.maps.operand_shape
        results = []
        for i, result in enumerate(self.maps.operand.results):
            inside = [dim(len(moving) + j - rank) for j in result.variables()[0] if rank <= j < rank + len(self.window)]
            own = [dim(moving.index(i))] if i in moving else []
            results.append(sum([*own, *inside], affine(0)))
        ranges = [Interval(0, shape[i] - 1) for i in moving] + [Interval(0, size - 1) for size in self.window]
        return IndexingMap(tuple(ranges), (), tuple(results))

    def _read(self, kernel: KernelBuilder, first: ir.Value, element: ir.Value, row: int) -> _Sum:
        """Return the update of a window, ``row`` after the first: open if it is one, and inside the operand."""
        windows = self.maps.windows
        covered = self.walks * self.steps * self.rows
        (window,) = apply_map(IndexingMap((Interval(0, covered - self.rows),), (), (dim(0) + row,)), [first])
        exists = None
        if covered != windows:
            within = ((dim(0), Interval(0, windows - 1)),)
            exists = InDomainOp.build(IndexingMap((Interval(0, covered - 1),), (), (), within), [window])
            window = ir.arith.minui(window, _index(windows - 1))
        batch = apply_map(IndexingMap((Interval(0, windows - 1),), (), delinearize(dim(0), self.batches)), [window])
        starts, inside = self._starts(kernel, [*batch, *[_index(0)] * len(self.window)])
        is_open = all_of([inside, exists])
        values = self._read_updates(kernel, batch, element)
        place = apply_map(self._origin(), [*batch, *starts])
        return _Sum(_true() if is_open is None else is_open, place, values)

    def _read_updates(self, kernel: KernelBuilder, batch: Values, element: ir.Value) -> list[Values]:
        """Return the thread's elements of a window's updates, in the types that are summed."""
        if self.length == 1:
            at = [*batch, *apply_map(self._elements(), [element, _index(0)])]
            values = [[value] for value in self.read.updates_at(kernel, at)]
        else:
            vectors = [Variable(_zeros(scalar_type(dtype_of(value)), self.length)) for value in self.updates]
            with loop(self._elements(), [element], vectors) as each:
                (step,) = each.symbol_arguments
                scalars = self.read.updates_at(kernel, [*batch, *each.result_arguments])
                for scalar, vector in zip(scalars, vectors, strict=True):
                    vector.value = _insert_element(scalar, vector.value, step)
            steps = [_index(i) for i in range(self.length)]
            values = [[_extract_element(vector.value, step) for step in steps] for vector in vectors]
        wide = ir.F32Type.get()
        return [
            [ir.arith.extf(wide, value) if self._is_wide(update) else value for value in elements]
            for update, elements in zip(self.updates, values, strict=True)
        ]

    def _elements(self) -> IndexingMap:
        """Return (first element)[element] -> indices in a window."""
        last = Interval(0, math.prod(self.window) - self.length)
        return IndexingMap((last,), (Interval(0, self.length - 1),), delinearize(dim(0) + symbol(0), self.window))

    def _take(self, row: _Sum, total: _Sum, tensors: Sequence[Tensor], element: ir.Value) -> _Sum:
        """Add an update to the sum if it has the same place, else write the sum and go on with the update."""
        same = [compare_integers("eq", old, new) for old, new in zip(total.place, row.place, strict=True)]
        goes_on = all_of([row.is_open, *same])
        assert goes_on is not None
        ends = ir.arith.andi(total.is_open, ir.arith.xori(goes_on, _true()))
        self._write_if(ends, total, tensors, element)
        goes_on = ir.arith.andi(total.is_open, goes_on)
        values = [
            [ir.arith.select(goes_on, self._combine(update, old, new), new) for old, new in zip(*each, strict=True)]
            for update, each in zip(self.updates, zip(total.values, row.values, strict=True), strict=True)
        ]
        return _Sum(row.is_open, row.place, values)

    def _combine(self, update: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
        if self._is_wide(update):
            return ir.arith.addf(old, new)
        return emit_combiner(self.heroes[self.updates.index(update)].regions[0].blocks[0], [old, new])[0]

    def _write_if(self, condition: ir.Value, total: _Sum, tensors: Sequence[Tensor], element: ir.Value) -> None:
        """Combine the outputs with the sum where ``condition`` holds."""
        with when(condition, tensors):
            for hero, values, tensor in zip(self.heroes, total.values, tensors, strict=True):
                self._write(hero, values, tensor, total.place, element)

    def _write(self, hero: ir.Operation, values: Values, tensor: Tensor, place: Values, element: ir.Value) -> None:
        """Combine an output with the sums of neighbouring elements."""
        narrow = element_of(tensor.value)
        values = [value if value.type == narrow else ir.arith.truncf(narrow, value) for value in values]
        if self.length == 1:
            inside = apply_map(self._elements(), [element, _index(0)])
            self._write_element(hero, values[0], tensor, [*place, *inside])
            return
        vector = _zeros(narrow, self.length)
        for i, value in enumerate(values):
            vector = _insert_element(value, vector, _index(i))
        with loop(self._elements(), [element], [tensor]) as each:
            value = _extract_element(vector, each.symbol_arguments[0])
            self._write_element(hero, value, tensor, [*place, *each.result_arguments])

    def _write_element(self, hero: ir.Operation, value: ir.Value, tensor: Tensor, at: Values) -> None:
        region = hero.regions[0].blocks[0]
        tensor.update_atomically(apply_map(self._target(), at), lambda old: emit_combiner(region, [old, value])[0])


def _index(value: int) -> ir.Value:
    return constant(ir.IndexType.get(), value)


def _true() -> ir.Value:
    return constant(ir.IntegerType.get_signless(1), 1)


def _zero(type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.ComplexType):
        zero = _zero(type_.element_type)
        return ir.Operation.create("complex.create", results=[type_], operands=[zero, zero]).results[0]
    return constant(type_, 0)


def _zeros(element: ir.Type, length: int) -> ir.Value:
    type_ = ir.VectorType.get([length], element)
    return constant_of(type_, ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 0.0)))


def _insert_element(scalar: ir.Value, vector: ir.Value, position: ir.Value) -> ir.Value:
    return ir.Operation.create(
        "vector.insert", results=[vector.type], operands=[scalar, vector, position], attributes=_dynamic()
    ).results[0]


def _extract_element(vector: ir.Value, position: ir.Value) -> ir.Value:
    element = ir.VectorType(vector.type).element_type
    return ir.Operation.create(
        "vector.extract", results=[element], operands=[vector, position], attributes=_dynamic()
    ).results[0]


def _dynamic() -> dict[str, ir.Attribute]:
    """Say that the only position of an element is an operand."""
    return {"static_position": ir.DenseI64ArrayAttr.get([-(2**63)])}


def _key(op: ir.Operation) -> Hashable | None:
    key = scatter_key(op)
    return None if key is None or is_ordered(op) or not can_be_in_runs(op) else key


SORTED_SCATTERS = updates(
    "scatters with the same indices, whose updates may be made after those with one place were combined",
    SCATTER,
    _key,
    has_runs,
    SortedScatterEmitter,
    Scatters,
    SortedScatterSchedule,
)

"""What the emitters of scans share: the loop over tiles, what a thread reads of each, and what it stores."""

from collections.abc import Sequence
from typing import Any

from xgpu import ir
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.emit.base import LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.reduction import emit_nest
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.emit.scan_tiling import of_one_tile
from xgpu.emit.scans import Part, Scans
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval


def at_least(expr: AffineExpr, least: int, position: Values, dims: Sequence[Interval]) -> ir.Value:
    """Return whether an expression of ``position``, which has these ranges, is ``least`` or more."""
    (value,) = apply_map(IndexingMap(tuple(dims), (), (expr,)), position)
    return compare_integers("uge", value, constant(ir.IndexType.get(), least))


class ScanEmitter:
    """Base of the emitters of scans: the loop over tiles, what a thread reads of each, and what it stores."""

    NAME: str

    def __init__(self, facts: Scans, schedule: Any):
        self.fusion = facts.fusion
        self.scans = facts
        self.schedule = schedule
        self.tiling = schedule.tiling(facts)

    def launch_dimensions(self) -> LaunchDimensions:
        """A group of threads for each scan, or for each stretch of columns."""
        return self.tiling.threads.launch

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, step, element of a vector] -> indices."""
        form = next(each.form for each in self.scans.epilogues if output in each.numbers)
        return self.tiling.covering().compose(form.forward).simplify()

    def emit(self) -> None:
        """Write the entry function, then the functions that it calls."""
        block = entry_function(self.fusion, self)
        arguments: Values = list(block.arguments)
        inputs, outputs = arguments[: len(self.fusion.parameter_types)], arguments[len(self.fusion.parameter_types) :]
        with ir.InsertionPoint(block):
            position = thread_and_block(self.launch_dimensions())
            ir.func.return_(self._emit_tiles(inputs, position, outputs))
        self.scans.emit_functions()

    def emit_shared(self) -> Values:
        """Return the tiles in shared memory through which threads exchange what they have; none if they need none."""
        raise NotImplementedError

    def emit_scan(
        self, position: Values, elements: list[list[Values]], carry: Part | None, shared: Values
    ) -> tuple[list[list[Sequence[ir.Value]]], Values, Values]:
        """Scan a thread's elements, by step and then by element of a vector, in the order of memory.

        ``carry`` is what all tiles and chunks before are combined to, for each column. Returns the scans, the carry for
        the next tile if there are several, and the tiles in shared memory.
        """
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """Scans that a thread takes part in."""
        raise NotImplementedError

    def _emit_tiles(self, inputs: Values, position: Values, outputs: Values) -> Values:
        """Emit the loop over the tiles and return the outputs."""
        shared, tiles, start = self.emit_shared(), self.tiling.tiles, self._emit_start(inputs, position)
        if tiles == 1:
            first = [*position, constant(ir.IndexType.get(), 0)]
            return self._emit_tile(inputs, first, outputs, start, shared)[0]
        dims = self.tiling.places().dims
        numbers = self.scans.emit_nothing() * self.columns if start is None else start.values
        carried = [*outputs, *numbers, *shared]
        loop = LoopOp.build(IndexingMap(dims, (Interval(0, tiles - 1),), ()), position, carried)
        with ir.InsertionPoint(loop.body):
            (tile,) = loop.symbol_arguments
            values = loop.carried_arguments
            end = len(carried) - len(shared)
            there = compare_integers("uge", tile, constant(ir.IndexType.get(), 1))
            if start is not None and start.there is not None:
                there = ir.arith.ori(there, start.there)
            carry = Part(tuple(values[len(outputs) : end]), there)
            stored, numbers, shared = self._emit_tile(
                inputs, [*position, tile], values[: len(outputs)], carry, values[end:]
            )
            YieldOp.build([*stored, *numbers, *shared])
        results: Values = list(loop.operation.results)
        return results[: len(outputs)]

    def _emit_start(self, inputs: Values, position: Values) -> Part | None:
        """Return what a thread's chunk goes on from, for each column; the first chunk goes on from nothing."""
        if not self.tiling.shape.goes_on:
            return None
        places, elements = self.tiling.start_places(), self.tiling.start_elements()
        numbers = _clamped(apply_map(places, position), places, elements)
        loop = LoopOp.build(elements, numbers, self.scans.emit_nothing() * self.columns)
        with ir.InsertionPoint(loop.body):
            read = self.scans.emit_starts(inputs, loop.result_arguments)
            YieldOp.build([*loop.carried_arguments[len(read) :], *read])
        is_later = at_least(self.tiling.chunk, 1, position, places.dims)
        return Part(tuple(loop.operation.results), is_later)

    def _emit_tile(
        self, inputs: Values, position: Values, outputs: Values, carry: Part | None, shared: Values
    ) -> tuple[Values, Values, Values]:
        elements = self._emit_reads(inputs, position)
        scanned, carried, shared = self.emit_scan(position, elements, carry, shared)
        return self._emit_writes(inputs, position, scanned, outputs), carried, shared

    def _emit_reads(self, inputs: Values, position: Values) -> list[list[Values]]:
        """Return a thread's elements, by step and then by element of a vector.

        What is no element of the arrays is read from inside them instead: nothing that is stored comes after it.
        Elements come first among those that the loops carry, and go to the end: after all steps they are in order.
        """
        places, elements = of_one_tile(self.tiling.places()), self.tiling.elements()
        anywhere = IndexingMap(places.dims, places.symbols, places.results)
        count, vector, steps = len(self.scans.results), self.schedule.vector, self.schedule.steps
        outer = LoopOp.build(anywhere, position, self.scans.emit_nothing() * vector * steps)
        with ir.InsertionPoint(outer.body):
            numbers = _clamped(outer.result_arguments, places, elements)
            inner = LoopOp.build(elements, numbers, outer.carried_arguments)
            with ir.InsertionPoint(inner.body):
                read = self.scans.emit_elements(inputs, inner.result_arguments)
                YieldOp.build([*inner.carried_arguments[count:], *read])
            YieldOp.build(list(inner.operation.results))
        return _by_step(list(outer.operation.results), count, vector)

    def _emit_writes(
        self, inputs: Values, position: Values, scanned: list[list[Sequence[ir.Value]]], outputs: Values
    ) -> Values:
        """Store what the epilogues make of a thread's elements; those of a step come first, then go to the end."""
        count, heroes = len(outputs), len(self.scans.results)

        def body(indices: Values, carried: Values) -> Values:
            tensors, values = carried[:count], carried[count:]
            stored = self.scans.emit_stores(inputs, indices, values[:heroes], tensors)
            return [*stored, *values[heroes:], *values[:heroes]]

        carried = [*outputs, *(value for step in scanned for element in step for value in element)]
        covering = of_one_tile(self.tiling.places().compose(self.tiling.elements()))
        return emit_nest(covering, (1, 1), position, carried, body)[:count]


def _clamped(numbers: Values, places: IndexingMap, elements: IndexingMap) -> Values:
    """Return the results of ``places``, or the largest that ``elements`` takes where they are larger."""
    found = []
    for number, expr, allowed in zip(numbers, places.results, elements.dims, strict=True):
        is_inside = expr.interval(places.dims, places.symbols).upper <= allowed.upper
        largest = None if is_inside else constant(ir.IndexType.get(), allowed.upper)
        found.append(number if largest is None else ir.arith.minui(number, largest))
    return found


def _by_step(values: Values, count: int, vector: int) -> list[list[Values]]:
    elements = [values[i : i + count] for i in range(0, len(values), count)]
    return [elements[i : i + vector] for i in range(0, len(elements), vector)]

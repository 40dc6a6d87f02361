"""What a kernel of scans computes, whatever its threads do: its functions, and how parts of a scan are combined.

The heroes are scans of one shape along the same dimension. Their *accumulators* are the scalars of their results, hero
after hero. The prologue computes what they read, the epilogue makes of what they give the results.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.dialects.xgpu import LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import Fusion, LaunchDimensions, entry_function, thread_and_block
from xgpu.emit.builders import Values, apply_map, scalar_type
from xgpu.emit.epilogue import Epilogue, epilogues
from xgpu.emit.reduction import emit_nest
from xgpu.emit.reduction_tiling import MOST_ELEMENTS, power_of_two_below
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import compare_integers, constant, element_dtype
from xgpu.emit.scan_tiling import ScanTiling, of_one_tile
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.scan_shape import ScanShape
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.partition.subgraphs import partition


@dataclass(frozen=True)
class Part:
    """What some elements of a scan are combined to: accumulators, and the condition under which there are such.

    ``there`` is None where there always are. Where there are none, the accumulators are any numbers.
    """

    values: tuple[ir.Value, ...]
    there: ir.Value | None = None


class _Prologue:
    """The functions of ``values``, which may be the same more than once, at one index."""

    def __init__(self, fusion: Fusion, name: str, values: Sequence[ir.Value]):
        self._values = values
        self._read = list(dict.fromkeys(values))
        parts = partition(fusion.body, self._read)
        self.functions = SubgraphFunctions(f"{fusion.name}__{name}", parts, list(fusion.body.arguments))

    def emit_call(self, inputs: Values, indices: Values) -> Values:
        types = self.functions.result_types(self.functions.partition.subgraphs[0])
        scalars = PureCallOp.build(self.functions.names[0], [*inputs, *indices], types)
        found = dict(zip(self._read, scalars, strict=True))
        return [found[value] for value in self._values]


class Scans:
    """The heroes of a fusion, what they read and what is made of them."""

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.heroes = fusion.heroes
        self.shape = ScanShape.of(self.heroes[0])
        inputs = [value for hero in self.heroes for value in list(hero.operands)[: len(hero.results)]]
        starts = [value for hero in self.heroes for value in list(hero.operands)[len(hero.results) :]]
        self._prologue = _Prologue(fusion, "prologue", inputs)
        self._starts = _Prologue(fusion, "starts", starts) if self.shape.goes_on else None

    @property
    def results(self) -> list[ir.Value]:
        """The heroes' results, one for each accumulator."""
        return [value for hero in self.heroes for value in hero.results]

    @property
    def accumulator_types(self) -> list[ir.Type]:
        """The scalar types of the accumulators."""
        return [scalar_type(element_dtype(value.type)) for value in self.results]

    @property
    def accumulator_bytes(self) -> list[int]:
        """The bytes of each accumulator."""
        return [-(-element_dtype(value.type).storage_bits // 8) for value in self.results]

    @property
    def widths(self) -> list[int]:
        """The bits of an element of each array that has as many as the operands."""
        size = math.prod(self.shape.shape)
        types = [t for t in self.fusion.parameter_types if math.prod(ir.RankedTensorType(t).shape) >= size]
        return [element_dtype(type_).storage_bits for type_ in (*types, *self.fusion.result_types)]

    @property
    def longest_vector(self) -> int:
        """The bound of the options on neighbouring elements that a thread reads at once, a power of two."""
        return power_of_two_below(min(MOST_ELEMENTS, self.fusion.options.max_elements_per_thread or MOST_ELEMENTS))

    @cached_property
    def epilogues(self) -> list[Epilogue]:
        """The functions of the results."""
        return epilogues(self.fusion, self.results, range(len(self.fusion.results)))

    def emit_functions(self) -> None:
        """Write the functions that the entry function calls."""
        self._prologue.functions.emit()
        if self._starts is not None:
            self._starts.functions.emit()
        for number, hero in enumerate(self.heroes):
            types = [scalar_type(element_dtype(value.type)) for value in hero.results]
            type_ = ir.FunctionType.get([*types, *types], types)
            function = ir.func.FuncOp(self._combiner(number), type_, visibility="private")  # type: ignore[call-arg]
            with ir.InsertionPoint(function.add_entry_block()), hero.location:
                ir.func.return_(emit_combiner(hero.regions[0].blocks[0], list(function.entry_block.arguments)))
        for each in self.epilogues:
            each.functions.emit()

    def _combiner(self, number: int) -> str:
        return f"{self.fusion.name}__combiner{f'_{number}' if number else ''}"

    def emit_elements(self, inputs: Values, indices: Values) -> Values:
        """Return what the heroes read at ``indices``, in the order of the accumulators."""
        return self._prologue.emit_call(inputs, indices)

    def emit_starts(self, inputs: Values, indices: Values) -> Values:
        """Return the accumulators that a chunk goes on from, given where these are."""
        assert self._starts is not None
        return self._starts.emit_call(inputs, indices)

    def emit_stores(self, inputs: Values, indices: Values, accumulators: Values, outputs: Values) -> Values:
        """Store what the epilogues make of the heroes' results at ``indices``; return the outputs."""
        new = dict(enumerate(outputs))
        for each in self.epilogues:
            each.emit_stores(inputs, indices, accumulators, new)
        return [new[i] for i in range(len(outputs))]

    def emit_nothing(self) -> Values:
        """Return accumulators that stand for no element: zeros, as some number must be there."""
        return [_zero(type_) for type_ in self.accumulator_types]

    def emit_combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
        """Combine accumulators, those of the elements before on the left."""
        combined: Values = []
        for number, hero in enumerate(self.heroes):
            part = slice(len(combined), len(combined) + len(hero.results))
            types = [value.type for value in left[part]]
            combined += PureCallOp.build(self._combiner(number), [*left[part], *right[part]], types, hero.location)
        return tuple(combined)

    def emit_join(self, left: Part | None, right: Part | None) -> Part | None:
        """Combine two parts of a scan, the one before on the left; None is a part that is never there."""
        if left is None or right is None:
            return right if left is None else left
        values = self.emit_combine(left.values, right.values)
        if left.there is not None:
            values = _select(left.there, values, right.values)
        if right.there is not None:
            values = _select(right.there, values, left.values)
        if left.there is None or right.there is None:
            return Part(values)
        return Part(values, ir.arith.ori(left.there, right.there))


def _select(condition: ir.Value, then: Sequence[ir.Value], otherwise: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    return tuple(ir.arith.select(condition, *pair) for pair in zip(then, otherwise, strict=True))


def _zero(type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.ComplexType):
        part = constant(type_.element_type, 0)
        return ir.Operation.create("complex.create", results=[type_], operands=[part, part]).results[0]
    return constant(type_, 0)


def at_least(expr: AffineExpr, least: int, position: Values, dims: Sequence[Interval]) -> ir.Value:
    """Return whether an expression of ``position``, which has these ranges, is ``least`` or more."""
    (value,) = apply_map(IndexingMap(tuple(dims), (), (expr,)), position)
    return compare_integers("uge", value, constant(ir.IndexType.get(), least))


class ScanEmitter:
    """Base of the emitters of scans: the loop over tiles, what a thread reads of each, and what it stores."""

    NAME: str

    def __init__(self, fusion: Fusion, tiling: Callable[..., ScanTiling]):
        self.fusion = fusion
        self.scans = scans = Scans(fusion)
        self.tiling = tiling(scans.shape, scans.widths, scans.accumulator_bytes, fusion.device, scans.longest_vector)

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
        count, vector, steps = len(self.scans.results), self.tiling.vector, self.tiling.steps
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

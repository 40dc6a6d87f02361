"""The computation of a kernel of reductions, whatever its threads do: its functions, and how accumulators go on.

The heroes are reductions of one shape over the same dimensions. The prologue computes what they read, and results of
the operands' shape; the epilogue makes of what they end as the other results, and computes those of the heroes' shape
that need nothing of them. Where reductions need what others of the kernel end as, they are of a later *stage*, whose
prologue is given that.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.places import reducing_function
from xgpu.analysis.bitcasts import behind_bitcasts
from xgpu.analysis.heroes import is_packed
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.evaluations import computed
from xgpu.costs.values import elements, instructions
from xgpu.dialects.attributes import EARLY, FIRST_EXTREME, FUNCTION_OPERATIONS, HERO, MANY_RESTS, UNROLL
from xgpu.dialects.threads import ShuffleReduceOp
from xgpu.emit.accumulators import Accumulators
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.kernel_builder import KernelBuilder, Variable, loop, put, sync_threads, sync_warps
from xgpu.emit.reduction_tiling import Groups, alignment, stored_vector, vector_length
from xgpu.emit.runs import run_by_loads
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import compare_floats, compare_integers, constant, element_dtype
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.hlo.constants import splat_of
from xgpu.indexing.access import Shape, identity_map, ranges, shape_of
from xgpu.indexing.affine import AffineExpr, dim, linearize, symbol
from xgpu.indexing.hlo_maps import reshape_map
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import backward_slice, dtype_of, is_constant, longest_chains, producer
from xgpu.target_machine import WARP_SIZE


@dataclass(frozen=True, eq=False)
class _Shared:
    """Kernels whose threads share what heroes read; see `xgpu.costs.evaluations.Kernel`."""

    heroes: Set[ir.Operation]

    def shares(self, op: ir.Operation) -> bool:
        """Whether ``op`` is a hero."""
        return op in self.heroes


@dataclass(frozen=True)
class _Prologue:
    """Functions that compute, at an element, ``read``, which heroes read, and the side outputs ``numbers``.

    What is read may be of another shape there, of the same elements in memory. ``map`` leads from the indices of an
    operand's element to those of the functions' arrays, None if they are the same.
    """

    read: tuple[ir.Value, ...]
    numbers: tuple[int, ...]
    map: IndexingMap | None
    functions: SubgraphFunctions


class Reductions(Accumulators):
    """The heroes of a fusion, what they read and what is made of them."""

    def __init__(self, fusion: Fusion):
        super().__init__(fusion)
        self.shape = ReductionShape.of(self.heroes[0])
        self.given: list[ir.Value] = []
        numbers = range(len(fusion.results))
        self.side_outputs = [i for i in numbers if self._is_beside(fusion.results[i])]
        self.epilogue_outputs = [i for i in numbers if i not in self.side_outputs]
        self._suffix = ""

    def _is_beside(self, result: ir.Value) -> bool:
        """Whether a result is computed for each element of the operands: it has as many, and follows no hero."""
        return result not in self.fusion.facts.followers and elements(result) == self.shape.elements

    @classmethod
    def stages_of(cls, fusion: Fusion) -> "list[Reductions]":
        """Return the stages of a fusion, each of the heroes that need only what those before it end as.

        A stage stores the results of the operands' size that need no later one; after the last reductions there is one
        without heroes for all others. ``given`` are the results of the stages before, of an element's row.
        """
        whole = cls(fusion)
        operations = (view.operation for view in fusion.body.operations)
        numbers = longest_chains(operations, lambda op: HERO in op.attributes)
        found = []
        given: list[ir.Value] = []
        for number in range(max(numbers.values()) + 1):
            stage = copy(whole)
            stage.heroes = [hero for hero in whole.heroes if numbers[hero.results[0]] == number + 1]
            stage.side_outputs = [i for i in whole.side_outputs if numbers.get(fusion.results[i], 0) == number]
            stage.given = list(given)
            stage._suffix = f"_{number}" if number else ""
            given += stage.results
            found += [stage] if stage.heroes or stage.side_outputs else []
        return found

    @cached_property
    def epilogues(self) -> Epilogues:
        """The functions of the results that follow the heroes."""
        return Epilogues(self.fusion, self.results, self.epilogue_outputs)

    @property
    def is_commutative(self) -> bool:
        """Whether elements may be combined in any order."""
        return all(is_commutative(hero) for hero in self.heroes)

    @property
    def widths(self) -> list[int]:
        """The bits of an element of each array that has as many as the operands: parameters and side outputs."""
        return [*self.read_widths, *self.stored_widths]

    @property
    def stored_widths(self) -> list[int]:
        """Those of the side outputs alone."""
        return [element_dtype(self.fusion.result_types[i]).storage_bits for i in self.side_outputs]

    @property
    def read_widths(self) -> list[int]:
        """Those of the parameters alone."""
        parameters = [t for t in self.fusion.parameter_types if math.prod(_shape(t)) >= self.shape.elements]
        return [element_dtype(type_).storage_bits for type_ in parameters]

    @cached_property
    def code(self) -> int:
        """About how many instructions take in an element of the operands."""
        return round(sum(count * times for count, times, _ in self._taken_in))

    @cached_property
    def operations(self) -> int:
        """About how many operations these are when loops are unrolled: long functions are single ones by then."""
        return sum(
            (FUNCTION_OPERATIONS if count > FUNCTION_OPERATIONS else 1) * places for count, _, places in self._taken_in
        )

    @cached_property
    def _taken_in(self) -> list[tuple[int, float, int]]:
        """For each operation that takes in elements: its instructions, times for an element, and places in the code."""
        operations = [view.operation for view in self.fusion.body.operations]
        *operations, terminator = operations
        heroes = set(self.fusion.facts.heroes)
        found = computed(operations, terminator.operands, _Shared(heroes), heroes)
        each = [(instructions(op), times / self.shape.elements, places) for op, times, places in found if op.results]
        # What is computed once for a row is not taken in.
        return [(count, times, places) for count, times, places in each if times * WARP_SIZE >= 1]

    @property
    def held_bytes(self) -> int:
        """The bytes of an element of all parameters with one for each column, which are the same in every row."""
        columns, shape = self.shape.kept[-1] if self.shape.kept else 1, self.shape
        parameters = [t for t in self.fusion.parameter_types if columns <= math.prod(_shape(t)) < shape.elements]
        return sum(-(-element_dtype(type_).storage_bits // 8) for type_ in parameters)

    @cached_property
    def starts(self) -> list[AffineExpr]:
        """The starts of stretches along the minor-most extent in those arrays of the operands' size that are read.

        Given by dimensions that are the indices of the extents. At least one is given, the operands' own.
        """
        sizes = [extent.size for extent in self.shape.extents]
        places = [dim(i) for i in range(len(sizes))]
        pairs = list(zip(places, self.shape.extents, strict=True))
        kept, reduced = ([place for place, extent in pairs if extent.reduced == which] for which in (False, True))
        extents = IndexingMap(ranges(tuple(sizes)), (), self.shape.indices(kept, reduced))
        found = [_start(extents, array, map_) for array, map_ in self._arrays_read]
        starts = [start for start in found if start is not None]
        return list(dict.fromkeys([*starts, *([self._own_start] if self.side_outputs or not starts else [])]))

    @property
    def _own_start(self) -> AffineExpr:
        """The start of stretches of an array of the operands' size, in which their elements are one after the other."""
        sizes = [extent.size for extent in self.shape.extents]
        places = [dim(i) for i in range(len(sizes))]
        return linearize(places, sizes) - places[-1]

    @cached_property
    def longest_vector(self) -> int:
        """The longest vector that the options and the alignment of stored rows allow, or that loads take least for.

        Where read ones are aligned better, a cache makes up for loads that are a vector apart, but each such store
        writes a part of every sector.
        """
        stored = stored_vector(self.stored_widths, self.fusion.device)
        longest = min(super().longest_vector, vector_length(self.widths), stored)
        if self.side_outputs and self.starts != [self._own_start]:
            longest = min(longest, alignment([self._own_start]))
        accesses = [(self.fusion.results[number], self.element_map(number)) for number in self.side_outputs]
        accesses += self._arrays_read
        bytes_, blocks = self.fusion.facts.moved_bytes / max(1, self.shape.elements), self.shape.results
        if not self.shape.is_rows:
            blocks = -(-blocks // WARP_SIZE)
        busy = replace(self.fusion.device, sm_count=max(1, min(blocks, self.fusion.device.sm_count)))
        return run_by_loads(accesses, self.shape.shape, longest, bytes_, self.code, busy)

    @cached_property
    def _read(self) -> list[ir.Value]:
        """The values that the heroes read, each once."""
        return list(dict.fromkeys(value for hero in self.heroes for value in _inputs(hero)))

    @property
    def _arrays_read(self) -> list[tuple[ir.Value, IndexingMap]]:
        """The arrays in memory that these are computed from, with the maps to their elements."""
        return [access for value in self._read for access in self.fusion.facts.arrays_read(value)]

    def element_map(self, output: int) -> IndexingMap:
        """Return the map from the indices of an operand's element to those of the element of a side output."""
        shape = shape_of(self.fusion.results[output])
        return identity_map(shape) if shape == self.shape.shape else reshape_map(self.shape.shape, shape)

    @cached_property
    def _prologues(self) -> "list[_Prologue]":
        """The functions of the heroes' operands and of the side outputs, one for each shape.

        An operand that is computed from a side output of another shape, and then reshaped, is computed with it.
        """
        whole = self.shape.shape
        outputs: dict[Shape, list[int]] = {}
        for number in self.side_outputs:
            outputs.setdefault(shape_of(self.fusion.results[number]), []).append(number)
        made = {value: self._made_beside(value, outputs) for value in self._read}
        shapes = dict.fromkeys([*(shape_of(each) for each in made.values()), *outputs])
        found = []
        for count, shape in enumerate(sorted(shapes, key=lambda each: each != whole)):
            numbers = outputs.get(shape, [])
            read = [value for value, each in made.items() if shape_of(each) == shape]
            roots = [*(made[value] for value in read), *(self.fusion.results[i] for i in numbers)]
            name = "prologue" if shape == whole else f"reshaped_{count}"
            functions = self._functions(name, roots, dict.fromkeys(self.given, self.shape.row_map_of(shape)))
            map_ = None if shape == whole else reshape_map(whole, shape)
            found.append(_Prologue(tuple(read), tuple(numbers), map_, functions))
        return found

    def _made_beside(self, value: ir.Value, outputs: Mapping[Shape, Sequence[int]]) -> ir.Value:
        """Return what an operand is reshaped from, if that is computed from a side output of its shape; else itself."""
        made = behind_bitcasts(value)
        others = {self.fusion.results[number] for number in outputs.get(shape_of(made), ())}
        if made == value or not others:
            return value
        slice_ = backward_slice([made], lambda _: False)
        return made if any(result in others for op in slice_ for result in op.results) else value

    @cached_property
    def _initial(self) -> SubgraphFunctions:
        return self._functions("initial", [value for hero in self.heroes for value in _initial_values(hero)])

    def _functions(
        self, what: str, roots: Sequence[ir.Value], given: Mapping[ir.Value, IndexingMap] | None = None
    ) -> SubgraphFunctions:
        return SubgraphFunctions.of(self.fusion, f"{what}{self._suffix}", roots, given)

    def emit(self) -> None:
        """Write the functions that the entry function calls to reduce."""
        for functions in ([self._initial] if self.heroes else []) + [each.functions for each in self._prologues]:
            functions.emit()
        self.emit_combiners()

    def emit_start(self, inputs: Values) -> Values:
        """Return the accumulators' initial values."""
        return self._initial.emit_call(inputs) if self.heroes else []

    def emit_step(
        self, kernel: KernelBuilder, indices: Values, accumulators: Values, given: Sequence[ir.Value] = ()
    ) -> Values:
        """Take in the element at ``indices``: return the accumulators, and store to the side outputs.

        ``given`` are the scalars that earlier stages end as. Nothing is stored before all of it is computed.
        """
        read: dict[ir.Value, ir.Value] = {}
        inputs, stored = kernel.present_inputs(self.fusion.aliases), list[tuple[_Prologue, Values, Values]]()
        for each in self._prologues:
            where = indices if each.map is None else apply_map(each.map, indices)
            scalars = each.functions.emit_call([*inputs, *where, *given])
            read |= zip(each.read, scalars, strict=False)
            stored.append((each, where, scalars[len(each.read) :]))
        for each, where, scalars in stored:
            put(scalars, [kernel.outputs[number] for number in each.numbers], where)
        combined: Values = []
        for hero in self.heroes:
            left = accumulators[len(combined) : len(combined) + len(hero.results)]
            with hero.location:
                combined += _take_in(hero, left, [read[value] for value in _inputs(hero)])
        return combined

    def emit_wait(self, kernel: KernelBuilder, threads: Groups, has_heroes: bool) -> None:
        """Have the ``threads`` of a row wait before one of them overwrites numbers that all have read of it.

        If the last stage ``has_heroes``, warps have waited for each other since; lanes that shuffle have not.
        """
        aliases = self.fusion.aliases or (-1,) * len(self.fusion.results)
        outputs = [kernel.outputs[i] for i in self.epilogue_outputs if aliases[i] in self._parameters_read]
        if outputs and threads.size > 1 and not (has_heroes and threads.warps > 1):
            wait = sync_warps if threads.warps == 1 else sync_threads
            wait(outputs)

    @cached_property
    def _parameters_read(self) -> set[int]:
        """The numbers of the parameters that heroes and side outputs are computed from."""
        parameters: Sequence[ir.Value] = list(self.fusion.body.arguments)
        numbers = {value: number for number, value in enumerate(parameters)}
        starts = [*self._read, *(self.fusion.results[i] for i in self.side_outputs)]
        read = [array for value in starts for array, _ in self.fusion.facts.arrays_read(value, with_heroes=True)]
        return {numbers[array] for array in read if array in numbers}

    @cached_property
    def _sums_in_any_order(self) -> list[bool]:
        """For each accumulator, whether it is a sum of floats from 0.0 on, made by a thread that shares no work."""
        found = [self.fusion.device.in_turn and is_sum_from_zero(hero) for hero in self.heroes for _ in hero.results]
        return [each and dtype_of(value).is_float for each, value in zip(found, self.results, strict=True)]

    def let_reorder(self, taken: Values) -> None:
        """Let LLVM make sums in another order than that of the elements, and so of several of them at once."""
        for value, is_sum in zip(taken, self._sums_in_any_order, strict=True):
            if is_sum:
                producer(value).attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc,nsz>")

    def emit_signs(self, ended: Values) -> Values:
        """Add 0.0 to sums whose order LLVM has chosen: zeros may have the wrong sign there."""
        return [
            ir.arith.addf(value, constant(value.type, 0.0)) if is_sum else value
            for value, is_sum in zip(ended, self._sums_in_any_order, strict=True)
        ]

    def emit_combine(self, left: Values, right: Values) -> Values:
        """Combine accumulators, those of the elements before on the left."""
        combined: Values = []
        for hero in self.heroes:
            part = slice(len(combined), len(combined) + len(hero.results))
            with hero.location:
                combined += emit_combiner(_region(hero), [*left[part], *right[part]])
        return combined

    def emit_shuffles(self, accumulators: Values, distances: Iterable[int]) -> Values:
        """Combine accumulators over lanes; where distances are the powers of two in turn, in the order of lanes."""
        for distance in distances:
            combined: Values = []
            for number, hero in enumerate(self.heroes):
                values = accumulators[len(combined) : len(combined) + len(hero.results)]
                combined += ShuffleReduceOp.build(self.combiner(number), distance, values, hero.location)
            accumulators = combined
        return accumulators


@contextmanager
def nest(
    map_: IndexingMap,
    loop_ranks: Sequence[int],
    dims: Values,
    changed: Sequence[Variable],
    is_written_out: bool = False,
) -> Iterator[list[ir.Value]]:
    """Write loops over the range variables of ``map_``, one inside the other; the map's results are given to the body.

    ``loop_ranks`` is how many of the variables each loop has, ``changed`` what the body assigns to. A constraint is one
    of the outermost loop that knows all of its variables, so that each loop is peeled by its own. If
    ``is_written_out``, the innermost is unrolled whatever its size.
    """
    if len(loop_ranks) == 1:
        with loop(map_, dims, changed) as each:
            # Rows may end inside a vector, and each does: its elements are not to be waited for one by one.
            each.operation.attributes[MANY_RESTS] = ir.UnitAttr.get()
            if is_written_out:
                each.operation.attributes[UNROLL] = ir.StringAttr.get(EARLY)
            yield each.result_arguments
        return
    outer, inner = split_map(map_, loop_ranks[0])
    with (
        loop(outer, dims, changed) as around,
        nest(inner, loop_ranks[1:], [*dims, *around.symbol_arguments], changed, is_written_out) as indices,
    ):
        yield indices


def split_map(map_: IndexingMap, count: int) -> tuple[IndexingMap, IndexingMap]:
    """Split a map in one over its first ``count`` range variables, without results, and one that has them given."""
    rank = len(map_.dims)
    given = {i: dim(rank + i) if i < count else symbol(i - count) for i in range(len(map_.symbols))}
    early = [all(i < count for i in expr.variables()[1]) for expr, _ in map_.constraints]
    outer = IndexingMap(
        map_.dims,
        map_.symbols[:count],
        (),
        tuple(constraint for constraint, is_early in zip(map_.constraints, early, strict=True) if is_early),
    )
    inner = IndexingMap(
        map_.dims + map_.symbols[:count],
        map_.symbols[count:],
        tuple(expr.substitute(None, given) for expr in map_.results),
        tuple(
            (expr.substitute(None, given), interval)
            for (expr, interval), is_early in zip(map_.constraints, early, strict=True)
            if not is_early
        ),
    )
    return outer, inner


def _start(extents: IndexingMap, array: ir.Value, map_: IndexingMap) -> AffineExpr | None:
    """Return where a stretch along the last of ``extents`` starts in ``array``, which is read by ``map_``.

    None if the array has fewer elements than there are, or its neighbours are not those of the extent.
    """
    if math.prod(shape_of(array)) < extents.box_size() or map_.constraints:
        return None
    read = extents.compose(map_)
    (position,) = replace(read, results=(linearize(read.results, shape_of(array)),)).simplify().results
    start = position - dim(len(extents.dims) - 1)
    return None if len(extents.dims) - 1 in start.variables()[0] else start


def _shape(type_: ir.Type) -> list[int]:
    return list(ir.RankedTensorType(type_).shape)


def _inputs(hero: ir.Operation) -> list[ir.Value]:
    return list(hero.operands)[: len(hero.results)]


def _initial_values(hero: ir.Operation) -> list[ir.Value]:
    return list(hero.operands)[len(hero.results) :]


def _region(hero: ir.Operation) -> ir.Block:
    block: ir.Block = hero.regions[0].blocks[0]
    return block


def _take_in(hero: ir.Operation, accumulators: Values, elements: Values) -> Values:
    """Combine a thread's accumulators with the next element; a thread takes elements in their order."""
    if FIRST_EXTREME not in hero.attributes:
        return emit_combiner(_region(hero), [*accumulators, *elements])
    is_max = ir.StringAttr(hero.attributes[FIRST_EXTREME]).value == "GT"
    (kept, position), (element, its_position) = accumulators, elements
    dtype = dtype_of(hero.operands[0])
    if dtype.is_float:
        # True for a NaN, which is to be kept itself.
        replaces = compare_floats("ugt" if is_max else "ult", element, kept)
        replaces = ir.arith.andi(replaces, compare_floats("ord", kept, kept))
    else:
        sign = "u" if dtype.is_unsigned else "s"
        replaces = compare_integers(f"{sign}{'gt' if is_max else 'lt'}", element, kept)
    return [ir.arith.select(replaces, element, kept), ir.arith.select(replaces, its_position, position)]


def is_sum_from_zero(hero: ir.Operation) -> bool:
    """Whether a reduction adds up its elements from 0.0 on."""
    (initial,) = _initial_values(hero) if len(hero.results) == 1 else (None,)
    number = splat_of(producer(initial)) if initial is not None and is_constant(initial) else None
    is_zero = isinstance(number, ir.FloatAttr) and number.value == 0 and math.copysign(1, number.value) > 0
    return is_zero and reducing_function(hero) == "add"


def reduction_of(op: ir.Operation) -> ReductionShape | None:
    """Return the shape of a reduction that threads can share, else None."""
    if op.name != REDUCE or any(map(is_packed, op.results)):
        return None
    shape = ReductionShape.of(op)
    return shape if shape.elements else None

"""What a kernel of scans computes, whatever its threads do: its functions, and how parts of a scan are combined.

The heroes are scans of one shape along the same dimension. Their *accumulators* are the scalars of their results, hero
after hero. The prologue computes what they read, the epilogue makes of what they give the results.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xgpu import ir
from xgpu.dialects.xgpu import PureCallOp
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values, scalar_type
from xgpu.emit.epilogue import Epilogue, epilogues
from xgpu.emit.reduction_tiling import MOST_ELEMENTS, power_of_two_below
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.op import constant, element_dtype
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.scan_shape import ScanShape
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

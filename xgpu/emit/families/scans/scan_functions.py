"""The computation of a kernel of scans, whatever its threads do: its functions, and how parts of a scan are combined.

The heroes are scans of one shape along the same dimension. The prologue computes what they read, the epilogue makes of
what they give the results.
"""

import math
from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.scan_shape import ScanShape
from xgpu.dialects.xgpu import PureCallOp
from xgpu.emit.accumulators import Accumulators
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values
from xgpu.emit.epilogue import Epilogues
from xgpu.emit.reduction_tiling import stored_vector
from xgpu.emit.scalar.op import constant, element_dtype
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.records import dataclass


@dataclass(frozen=True)
class Fold:
    """The combination of some elements of a scan: accumulators, and the condition under which there are any.

    ``there`` is None where there always are. Where there are none, the accumulators are any numbers.
    """

    values: tuple[ir.Value, ...]
    there: ir.Value | None = None


class Scans(Accumulators):
    """The heroes of a fusion, what they read and what is made of them."""

    def __init__(self, fusion: Fusion):
        super().__init__(fusion)
        self.shape = ScanShape.of(self.heroes[0])
        self._inputs = [value for hero in self.heroes for value in hero.operands]
        # Heroes may read one value more than once.
        self._read = list(dict.fromkeys(self._inputs))
        self._prologue = SubgraphFunctions.of(fusion, "prologue", self._read)

    @property
    def widths(self) -> list[int]:
        """The bits of an element of each array that has as many as the operands."""
        size = math.prod(self.shape.shape)
        types = [t for t in self.fusion.parameter_types if math.prod(ir.RankedTensorType(t).shape) >= size]
        return [element_dtype(type_).storage_bits for type_ in (*types, *self.fusion.result_types)]

    @property
    def longest_vector(self) -> int:
        """The bound of the options, and of what a thread stores by one access of each result."""
        stored = [element_dtype(type_).storage_bits for type_ in self.fusion.result_types]
        return min(super().longest_vector, stored_vector(stored, self.fusion.device))

    @cached_property
    def epilogues(self) -> Epilogues:
        """The functions of the results."""
        return Epilogues(self.fusion, self.results)

    def emit(self) -> None:
        """Write the functions that the entry function calls."""
        self._prologue.emit()
        self.emit_combiners()
        self.epilogues.emit()

    def emit_elements(self, inputs: Values, indices: Values) -> Values:
        """Return what the heroes read at ``indices``, in the order of the accumulators."""
        found = dict(zip(self._read, self._prologue.emit_call([*inputs, *indices]), strict=True))
        return [found[value] for value in self._inputs]

    def emit_nothing(self) -> Values:
        """Return accumulators that stand for no element: zeros, as some number must be there."""
        return [_zero(type_) for type_ in self.accumulator_types]

    def emit_combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
        """Combine accumulators, those of the elements before on the left."""
        combined: Values = []
        for number, hero in enumerate(self.heroes):
            part = slice(len(combined), len(combined) + len(hero.results))
            types = [value.type for value in left[part]]
            combined += PureCallOp.build(self.combiner(number), [*left[part], *right[part]], types, hero.location)
        return tuple(combined)

    def emit_join(self, left: Fold | None, right: Fold | None) -> Fold | None:
        """Combine two parts of a scan, the one before on the left; None is a part that is never there."""
        if left is None or right is None:
            return right if left is None else left
        values = self.emit_combine(left.values, right.values)
        if left.there is not None:
            values = _select(left.there, values, right.values)
        if right.there is not None:
            values = _select(right.there, values, left.values)
        if left.there is None or right.there is None:
            return Fold(values)
        return Fold(values, ir.arith.ori(left.there, right.there))


def _select(condition: ir.Value, then: Sequence[ir.Value], otherwise: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    return tuple(ir.arith.select(condition, *pair) for pair in zip(then, otherwise, strict=True))


def _zero(type_: ir.Type) -> ir.Value:
    if isinstance(type_, ir.ComplexType):
        part = constant(type_.element_type, 0)
        return ir.Operation.create("complex.create", results=[type_], operands=[part, part]).results[0]
    return constant(type_, 0)

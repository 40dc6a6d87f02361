"""Sums of padded arrays, which gradients of what is read in parts are."""

from dataclasses import field
from functools import reduce

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, hlo
from xgpu.passes.normalize.scans.parts import spread_dimension, unreversed
from xgpu.records import dataclass
from xgpu.structure import defining_op, is_result_of, producer, users_of


@dataclass(eq=False)
class ScanSum:
    """An array that ``op`` adds up of padded arrays, spread along a dimension, and of ``others``, which are not padded.

    ``additions`` are those that do that, and nothing else. ``gradients`` are put in place of the padded ones that
    ``known`` has, each with whether its elements are in the order of arrays before they are reversed.
    """

    op: ir.Operation
    dimension: int
    padded: list[Value] = field(default_factory=list)
    others: list[Value] = field(default_factory=list)
    additions: list[Value] = field(default_factory=list)
    known: set[Value] = field(default_factory=set)
    gradients: list[tuple[Value, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, op: ir.Operation) -> "ScanSum | None":
        """Return what sum an addition is, if a term of it is spread along a dimension."""
        found = (spread_dimension(defining_op(value)) for value in op.operands)
        along = next((dimension for dimension in found if dimension is not None), None)
        return None if along is None else cls(op, along)._filled()

    def _filled(self) -> "ScanSum":
        """Take the sum apart, down to additions that have no padded term and those that something else uses."""
        order = [self.value]
        for value in order:
            order += filter(_is_term, _terms(value))
        has_padded = set[Value]()
        for value in reversed(order):
            if any(term in has_padded or is_result_of(term, "stablehlo.pad") for term in _terms(value)):
                has_padded.add(value)
        self.additions = [value for value in order if value in has_padded]
        terms = [term for value in self.additions for term in _terms(value) if term not in has_padded]
        for term in terms:
            (self.padded if is_result_of(term, "stablehlo.pad") else self.others).append(term)
        return self

    @property
    def value(self) -> Value:
        """The array."""
        return self.op.results[0]

    def replace(self) -> None:
        """Put the gradients in place of what they are the same as."""
        rest = [*self.others, *(value for value in self.padded if value not in self.known)]
        gradient, is_reversed = self.gradients[0]
        if is_reversed and len(self.gradients) == 1 and not rest:
            for user in users_of(self.value):
                if unreversed(user, self.dimension) is not None:
                    user.results[0].replace_all_uses_with(gradient)
        with self.op.location, ir.InsertionPoint(self.op):
            for gradient, is_reversed in self.gradients:
                rest.append(hlo.reverse(gradient, [self.dimension]) if is_reversed else gradient)
            self.value.replace_all_uses_with(reduce(hlo.add, rest))


def _terms(sum_: Value) -> list[Value]:
    return list(producer(sum_).operands)


def _is_term(value: Value) -> bool:
    """Whether a value is a sum that only one operation reads, once."""
    uses = iter(value.uses)
    next(uses, None)
    return is_result_of(value, "stablehlo.add") and next(uses, None) is None

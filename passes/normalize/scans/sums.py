"""Sums of padded arrays, which gradients of what is read in parts are."""

from dataclasses import dataclass, field
from functools import reduce

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, hlo
from xgpu.passes.normalize.scans.scan import unreversed
from xgpu.structure import defining_op


@dataclass(eq=False)
class Sum:
    """An array that ``op`` adds up of padded arrays, spread along a dimension, and of ``others``, which are not padded.

    ``additions`` are the operations that do that. ``gradients`` are put in place of the padded ones that ``known`` has,
    each with whether its elements are in the order of arrays before they are reversed.
    """

    op: ir.Operation
    dimension: int
    padded: list[ir.Operation] = field(default_factory=list)
    others: list[Value] = field(default_factory=list)
    additions: list[ir.Operation] = field(default_factory=list)
    known: list[ir.Operation] = field(default_factory=list)
    gradients: list[tuple[Value, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, op: ir.Operation) -> "Sum | None":
        """Return what sum an addition is, if a term of it is spread along a dimension."""
        along = next((found for value in op.operands if (found := _spread(value)) is not None), None)
        if along is None:
            return None
        made = cls(op, along)
        pending = [op]
        while pending:
            addition = pending.pop()
            made.additions.append(addition)
            for value in addition.operands:
                maker = defining_op(value)
                if maker is not None and maker.name == "stablehlo.pad":
                    made.padded.append(maker)
                elif maker is not None and maker.name == "stablehlo.add" and _has_padded(maker):
                    pending.append(maker)
                else:
                    made.others.append(value)
        return made

    @property
    def value(self) -> Value:
        """The array."""
        return self.op.results[0]

    def replace(self) -> None:
        """Put the gradients in place of what they are the same as."""
        rest = [*self.others, *(op.results[0] for op in self.padded if op not in self.known)]
        gradient, is_reversed = self.gradients[0]
        if is_reversed and len(self.gradients) == 1 and not rest:
            for use in list(self.value.uses):
                user = use.owner.operation
                if unreversed(user, self.dimension) is not None:
                    user.results[0].replace_all_uses_with(gradient)
        with self.op.location, ir.InsertionPoint(self.op):
            for gradient, is_reversed in self.gradients:
                rest.append(hlo.reverse(gradient, [self.dimension]) if is_reversed else gradient)
            self.value.replace_all_uses_with(reduce(hlo.add, rest))


def _has_padded(op: ir.Operation) -> bool:
    """Whether an addition has a padded term, maybe inside the additions that are its terms."""
    makers = [defining_op(value) for value in op.operands]
    while makers:
        maker = makers.pop()
        if maker is not None and maker.name == "stablehlo.pad":
            return True
        if maker is not None and maker.name == "stablehlo.add":
            makers += [defining_op(value) for value in maker.operands]
    return False


def _spread(value: Value) -> int | None:
    """Return the dimension along which a value is another with an element between each two, None if it is not."""
    maker = defining_op(value)
    if maker is None or maker.name != "stablehlo.pad":
        return None
    insides = list(ir.DenseI64ArrayAttr(maker.attributes["interior_padding"]))
    along = [i for i, inside in enumerate(insides) if inside]
    return along[0] if len(along) == 1 and insides[along[0]] == 1 else None

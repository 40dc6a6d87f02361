"""The scans of a program whose gradients are looked for."""

from collections.abc import Iterator
from dataclasses import field

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.indexing.access import integer
from xgpu.passes.normalize.scans.field import Points
from xgpu.passes.normalize.scans.parts import Slice, unreversed
from xgpu.passes.normalize.scans.polynomials import NoPolynomialError, is_pred, number_of
from xgpu.passes.normalize.scans.recurrence import ScanRecurrence
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of


@dataclass(eq=False)
class Scan:
    """The scan of ``elements`` along a dimension; ``op`` computes it, if anything does, or with them reversed."""

    recurrence: ScanRecurrence
    elements: tuple[Value, ...]
    dimension: int
    op: ir.Operation | None
    points: list[Points] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """The dimension and the shape."""
        return self.dimension, tuple(shape_of(self.elements[0]))

    @property
    def element(self) -> ir.Type:
        """The type of those arrays that have gradients."""
        return next(element_of(value) for value in self.elements if not is_pred(value))

    @property
    def is_reversed(self) -> bool:
        """Whether what computes the scan takes the arrays as they are before they are reversed."""
        return self.op is not None and bool(ir.BoolAttr(self.op.attributes["reverse"]).value)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the arrays that have gradients."""
        return [i for i, value in enumerate(self.elements) if not is_pred(value)]

    @classmethod
    def all_of(cls, op: ir.Operation) -> "Iterator[Scan]":
        """Yield the scans that an `xgpu.scan` is, and is the second level of, if all is of polynomials of one type."""
        dimension = integer(op, "dimension")
        if len({element_of(value) for value in op.operands if not is_pred(value)}) != 1:
            return
        try:
            recurrence = ScanRecurrence(op.regions[0].blocks[0])
        except NoPolynomialError:
            return
        if not ir.BoolAttr(op.attributes["reverse"]).value:
            yield cls(recurrence, tuple(op.operands), dimension, op)
            above = _above(op, dimension)
            if above is not None:
                yield cls(recurrence, above, dimension, None)
            return
        reversals = [_reversal(value, dimension) for value in op.operands]
        if all(value is not None for value in reversals):
            yield cls(recurrence, tuple(value for value in reversals if value is not None), dimension, op)


def _reversal(value: Value, dimension: int) -> Value | None:
    """Return a value that is another one reversed along the dimension, None if the program has none."""
    users = (use.owner.operation for use in value.uses)
    return next((op.results[0] for op in users if unreversed(op, dimension) is not None), None)


def _above(op: ir.Operation, dimension: int) -> tuple[Value, ...] | None:
    """Return the arrays whose elements a scan's region combines in pairs to the elements of the scan's arrays."""
    block = op.regions[0].blocks[0]
    results, count = list(list(block.operations)[-1].operation.operands), len(op.operands)
    pending, seen = list(zip(results, op.operands, strict=True)), set[tuple[Value, Value]]()
    found: dict[int, Value] = {}
    while pending:
        pair = pending.pop()
        if pair in seen:
            continue
        seen.add(pair)
        known, maker = pair[0], defining_op(pair[1])
        if maker is None:
            return None
        if isinstance(known.owner, ir.Block):
            number = list(block.arguments).index(known)
            part = Slice.of(pair[1], dimension)
            is_half = part is not None and (part.start, part.count) == (number // count, part.size // 2)
            if part is None or not is_half or (part.step != 2 and part.count > 1):
                return None
            if found.setdefault(number % count, part.array) != part.array:
                return None
            continue
        inside = known.owner.operation
        if number_of(inside) is not None:
            if number_of(inside) != number_of(maker):
                return None
        elif inside.name != maker.name:
            return None
        else:
            pending += zip(inside.operands, maker.operands, strict=True)
    values = tuple(found[i] for i in sorted(found))
    return values if len(values) == count and len({tuple(shape_of(value)) for value in values}) == 1 else None

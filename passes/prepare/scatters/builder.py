"""Builders of scatters and gathers that use the indices of a given scatter, at the current insertion point."""

from collections.abc import Callable, Sequence
from functools import partial

from xgpu import ir
from xgpu.analysis.combiners import promises
from xgpu.hlo.stablehlo_builder import Value, fill_region, hlo, shape_of, tensor
from xgpu.records import dataclass
from xgpu.structure import element_of

Body = Callable[[list[Value]], Sequence[Value]]
"""Makes of a region's arguments what it returns."""


@dataclass(frozen=True)
class Places:
    """The windows of a scatter: its indices, the attributes that interpret them, and the windows' shape."""

    indices: Value
    numbers: ir.stablehlo.ScatterDimensionNumbers
    window: tuple[int, ...]
    is_sorted: bool
    is_unique: bool

    @classmethod
    def of(cls, op: ir.Operation) -> "Places":
        """Return those of a ``stablehlo.scatter``."""
        count = len(op.results)
        numbers = ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        sizes = iter([shape_of(op.operands[count + 1])[i] for i in sorted(numbers.update_window_dims)])
        left_out = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
        window = tuple(1 if i in left_out else next(sizes) for i in range(len(shape_of(op.operands[0]))))
        flags = [promises(op, name) for name in ("indices_are_sorted", "unique_indices")]
        return cls(op.operands[count], numbers, window, *flags)

    def scatter(self, operands: Sequence[Value], updates: Sequence[Value], body: Body) -> ir.Operation:
        """Create a scatter whose region is what ``body`` makes of the elements of the operands, then of the updates."""
        op = ir.Operation.create(
            "stablehlo.scatter",
            results=[operand.type for operand in operands],
            operands=[*operands, self.indices, *updates],
            attributes={
                "scatter_dimension_numbers": self.numbers,
                "indices_are_sorted": ir.BoolAttr.get(self.is_sorted),
                "unique_indices": ir.BoolAttr.get(self.is_unique),
            },
            regions=1,
        )
        fill_region(op, [tensor([], element_of(value)) for value in (*operands, *updates)], body)
        return op

    def combine(self, operand: Value, updates: Value, function: Callable[[Value, Value], Value]) -> Value:
        """Return ``operand`` with each element combined with its updates by a function of two scalars."""
        return self.scatter([operand], [updates], lambda pair: [function(*pair)]).results[0]

    def gather(self, operand: Value) -> Value:
        """Return the elements of ``operand`` at the places of the updates; of a window outside it, others."""
        numbers = self.numbers
        dimensions = hlo.GatherDimensionNumbers.get(
            offset_dims=numbers.update_window_dims,
            collapsed_slice_dims=numbers.inserted_window_dims,
            operand_batching_dims=numbers.input_batching_dims,
            start_indices_batching_dims=numbers.scatter_indices_batching_dims,
            start_index_map=numbers.scattered_dims_to_operand_dims,
            index_vector_dim=numbers.index_vector_dim,
        )
        return hlo.gather(operand, self.indices, dimensions, ir.DenseI64ArrayAttr.get(list(self.window)))


def split_results(op: ir.Operation, parts: Sequence[Sequence[int]]) -> list[ir.Operation]:
    """Replace a scatter whose results do not depend on each other by one for each of ``parts``, numbers of results."""
    count, places = len(op.results), Places.of(op)
    block = op.regions[0].blocks[0]
    made = []
    for part in parts:
        operands, updates = ([op.operands[start + i] for i in part] for start in (0, count + 1))

        old = [*[block.arguments[i] for i in part], *[block.arguments[count + i] for i in part]]
        with ir.InsertionPoint(op), op.location:
            new = places.scatter(operands, updates, partial(_inline_results, block, old, part))
        for i, result in zip(part, new.results, strict=True):
            op.results[i].replace_all_uses_with(result)
        made.append(new)
    op.erase()
    return made


def split_complex(op: ir.Operation) -> list[ir.Operation]:
    """Replace a scatter that adds complex numbers to one operand by one for the real parts and one for the others."""
    with ir.InsertionPoint(op), op.location:
        places, (operand, _, updates) = Places.of(op), op.operands
        made = [
            places.scatter([part(operand)], [part(updates)], lambda pair: [hlo.add(*pair)])
            for part in (hlo.real, hlo.imag)
        ]
        op.results[0].replace_all_uses_with(hlo.complex(*[each.results[0] for each in made]))
    op.erase()
    return made


def _inline_results(block: ir.Block, old: Sequence[Value], numbers: Sequence[int], new: Sequence[Value]) -> list[Value]:
    """Emit a copy of what some results of a region's block need, with ``new`` for the arguments ``old``."""
    *operations, end = (view.operation for view in block.operations)
    returned = [end.operands[number] for number in numbers]
    needed = set(returned)
    for op in reversed(operations):
        if any(result in needed for result in op.results):
            needed.update(op.operands)
    values = dict(zip(old, new, strict=True))
    for op in operations:
        if any(result in needed for result in op.results):
            copy = op.clone()
            for position, operand in enumerate(op.operands):
                copy.operands[position] = values.get(operand, operand)
            values.update(zip(op.results, copy.results, strict=True))
    return [values.get(value, value) for value in returned]

"""Writes operations that keep some dimensions on operands, and for results, whose dimensions are in other orders."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from xgpu import ir
from xgpu.analysis.in_place import SCATTER
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.fusion.orders.carriers import BROADCAST
from xgpu.fusion.orders.kept_dimensions import GATHER, KeptDimensions
from xgpu.fusion.orders.permutations import given_order, permuted, steps
from xgpu.hlo.stablehlo_builder import broadcast, hlo, tensor, transpose
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.records import dataclass
from xgpu.structure import element_of

_NUMBERS = "dimension_numbers"
_SCATTER_NUMBERS = "scatter_dimension_numbers"


@dataclass(frozen=True)
class KeptWriter:
    """Writes such an operation anew: ``read`` gives a value in an order, ``order_of`` the order that it has."""

    read: Callable[[ir.Value, Order], ir.Value]
    order_of: Callable[[ir.Value], Order]

    def write(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> list[ir.Value]:
        """Write ``op`` at the insertion point; return its results, in their orders."""
        return _WRITTEN[op.name](self, op, kept)

    def _reduce(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> list[ir.Value]:
        (each,) = kept
        source, target, between = self._orders(each, op.operands[0])
        new = self._clone(op, {0: self.read(op.operands[0], source)})
        positions = sorted(source.index(dimension) for dimension in integers(op, "dimensions"))
        new.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(positions)
        return [_result(new.results[0], between, target)]

    def _broadcast(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> list[ir.Value]:
        (each,) = kept
        _, target, between = self._orders(each, op.operands[0])
        places = dict(each.pairs)
        shape = permuted(shape_of(each.made), target)
        return [broadcast(self.read(op.operands[0], between), shape, [target.index(places[i]) for i in between])]

    def _gather(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> list[ir.Value]:
        (each,) = kept
        source, target, between = self._orders(each, op.operands[0])
        old = ir.stablehlo.GatherDimensionNumbers(op.attributes[_NUMBERS])
        offsets = set(old.offset_dims)
        # The indices in the order of what is gathered by them.
        batches = sorted(set(between) - offsets)
        axes = [batches.index(dimension) for dimension in between if dimension not in offsets]
        vector = old.index_vector_dim
        axes = [axis + (axis >= vector) for axis in axes]
        if vector < len(shape_of(op.operands[1])):
            axes.insert(vector, vector)
        indices = self.read(op.operands[1], given_order(len(axes)))
        new = self._clone(op, {0: self.read(op.operands[0], source), 1: transpose(indices, axes)})
        own, other = _paired(old.operand_batching_dims, source, old.start_indices_batching_dims, axes)
        new.attributes[_NUMBERS] = hlo.GatherDimensionNumbers.get(
            offset_dims=_places(offsets, between),
            collapsed_slice_dims=_places(old.collapsed_slice_dims, source),
            operand_batching_dims=own,
            start_indices_batching_dims=other,
            start_index_map=[source.index(dimension) for dimension in old.start_index_map],
            index_vector_dim=vector,
        )
        new.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(permuted(integers(op, "slice_sizes"), source))
        if axes != sorted(axes):
            new.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
        return [_result(new.results[0], between, target)]

    def _scatter(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> list[ir.Value]:
        count = len(op.results)
        _, target, between = self._orders(kept[0], op.operands[count + 1])
        operands = {number: self.read(op.operands[number], target) for number in range(count)}
        updates = {number: self.read(op.operands[number], between) for number in range(count + 1, len(op.operands))}
        new = self._clone(op, operands | updates)
        old = ir.stablehlo.ScatterDimensionNumbers(op.attributes[_SCATTER_NUMBERS])
        axes = given_order(len(shape_of(op.operands[count])))
        own, other = _paired(old.input_batching_dims, target, old.scatter_indices_batching_dims, axes)
        new.attributes[_SCATTER_NUMBERS] = hlo.ScatterDimensionNumbers.get(
            update_window_dims=_places(old.update_window_dims, between),
            inserted_window_dims=_places(old.inserted_window_dims, target),
            input_batching_dims=own,
            scatter_indices_batching_dims=other,
            scattered_dims_to_operand_dims=[
                target.index(dimension) for dimension in old.scattered_dims_to_operand_dims
            ],
            index_vector_dim=old.index_vector_dim,
        )
        return [_result(result, target, target) for result in new.results]

    def _orders(self, kept: KeptDimensions, value: ir.Value) -> tuple[Order, Order, Order]:
        """Return the orders of operand and result, and that of what is moved between them.

        The operand is ``value`` by now: of what has the order of the program, another takes the place.
        """
        source, target = self.order_of(value), self.order_of(kept.made)
        return source, target, kept.between(source, target)

    def _clone(self, op: ir.Operation, written: Mapping[int, ir.Value]) -> ir.Operation:
        """Return a copy of ``op`` that reads what is ``written`` for operands of such numbers, and others as given."""
        others = {
            number: self.read(value, given_order(len(shape_of(value))))
            for number, value in enumerate(op.operands)
            if number not in written
        }
        new = op.clone()
        for number, value in (others | dict(written)).items():
            new.operands[number] = value
        return new


def _result(value: ir.Value, order: Order, target: Order) -> ir.Value:
    """Give a copied operation's result the type that it has in an order; return it in the order that it shall have."""
    value.set_type(tensor(permuted(shape_of(value), order), element_of(value)))
    return transpose(value, steps(order, target))


def _places(dimensions: Iterable[int], order: Order) -> list[int]:
    return sorted(order.index(dimension) for dimension in dimensions)


def _paired(own: Sequence[int], order: Order, other: Sequence[int], axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the places of dimensions that an array, in an order, and its indices have in common."""
    pairs = sorted((order.index(each), axes.index(index)) for each, index in zip(own, other, strict=True))
    return [each for each, _ in pairs], [index for _, index in pairs]


type _Write = Callable[[KeptWriter, ir.Operation, Sequence[KeptDimensions]], list[ir.Value]]
_WRITTEN: Mapping[str, _Write] = {
    REDUCE: KeptWriter._reduce,
    BROADCAST: KeptWriter._broadcast,
    GATHER: KeptWriter._gather,
    SCATTER: KeptWriter._scatter,
}

"""The pass `move-transposes`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

from xgpu import ir
from xgpu.fusion.orders.axis_orders import AxisOrders
from xgpu.fusion.orders.carriers import (
    BROADCAST,
    REDUCE_WINDOW,
    TRANSPOSE,
    broadcast_order,
    carried,
    elementwise,
    is_between,
    is_free,
)
from xgpu.fusion.orders.kept_dimensions import KeptDimensions
from xgpu.fusion.orders.kept_writer import KeptWriter
from xgpu.fusion.orders.permutations import given_order, inverse, orders_around, permuted, steps
from xgpu.fusion.orders.product_sides import read_in_order, takes_any_side
from xgpu.hlo.constants import splat_of
from xgpu.hlo.stablehlo_builder import broadcast, hlo, reshape, tensor, transpose
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.reshapes import Order
from xgpu.indexing.window_numbers import take_window_dimensions
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import element_of, is_result_of, is_used, producer, replace_op


@dataclass(frozen=True)
class MoveTransposes(BlockRewrite):
    """Computes values in the order of dimensions that leaves the fewest bytes to transpose.

    Code along another dimension than the last moves that one to the end and back; `jax.vmap` does so for its dimension.
    What is computed in between, element by element or by slices, can as well be computed in the order in which it is
    read: both transposes go. Values between which dimensions stay what they are have one order, the one that makes up
    for most of what is transposed around them. A transpose costs its bytes, and where it moves whole rows an eighth of
    them. Broadcasts that only transpose are transposes. Products of floats read rows and columns of an operand alike.
    Other broadcasts, reductions, gathers and scatters keep some dimensions, and where they have the same order on both
    sides nothing is transposed; gathers and scatters had better index rows than columns.
    Needs: choose-product-layouts, which knows what products read at no cost.

    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<512x64xf32>) -> tensor<64x512xf32>
    %1 = stablehlo.slice %0 [0:64, 0:256] : (tensor<64x512xf32>) -> tensor<64x256xf32>
    %2 = stablehlo.exponential %1 : tensor<64x256xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<64x256xf32>) -> tensor<256x64xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.slice %x [0:256, 0:64] : (tensor<512x64xf32>) -> tensor<256x64xf32>
    %1 = stablehlo.exponential %0 : tensor<256x64xf32>
    ```
    """

    NAME: ClassVar[str] = "move-transposes"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((TRANSPOSE, BROADCAST))
    least_bytes: int = 256 << 10
    """The bytes that a transpose must save for that to be measured: kernels read a small array in any order."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the values of ``block`` that are best computed in another order."""
        for op in operations_of(block, frozenset((BROADCAST,))):
            _turn(op)
        operations = [view.operation for view in block.operations]
        if any(op.name == TRANSPOSE for op in operations):
            found = AxisOrders(block)
            if orders := found.choose(self.least_bytes):
                _Rewrite(block, orders, found.kept_by).rewrite(operations)


def _turn(op: ir.Operation) -> None:
    """Write a broadcast that only transposes as a transpose."""
    dimensions, (operand,) = integers(op, "broadcast_dimensions"), op.operands
    order = inverse(tuple(dimensions))
    if dimensions != sorted(dimensions) and permuted(shape_of(operand), order) == list(shape_of(op.results[0])):
        with ir.InsertionPoint(op), op.location:
            replace_op(op, [transpose(operand, order)])


@dataclass
class _Rewrite:
    """Writes values of a block in other ``orders``; ``ordered`` has those that are, and what is read from outside.

    ``kept_by`` gives what an operation keeps of the dimensions of its operands.

    What reads a value in the program's order is given that before it is come to, so operations that are not written
    anew are right at any time. ``made_anew`` are values that may be left without users.
    """

    block: ir.Block
    orders: Mapping[ir.Value, Order]
    kept_by: Callable[[ir.Operation], Sequence[KeptDimensions]]
    ordered: dict[tuple[ir.Value, Order], ir.Value] = field(default_factory=dict)
    made_anew: dict[ir.Value, None] = field(default_factory=dict)

    def rewrite(self, operations: Sequence[ir.Operation]) -> None:
        """Write the operations of a block anew whose results have other orders, or whose operands are transposed."""
        replaced = []
        for op in operations:
            values = (*op.results, *op.operands) if is_between(op) else op.results
            kept = self.kept_by(op)
            if any(value in self.orders for value in (*values, *(each.value for each in kept))):
                with ir.InsertionPoint(op), op.location:
                    if op.name == TRANSPOSE:
                        self._transpose(op)
                    elif is_between(op):
                        self._reshape(op)
                    elif kept:
                        self._keep(op, kept)
                    else:
                        self._write(op)
                replaced.append(op)
            elif op.name == TRANSPOSE:
                self.ordered.setdefault((op.operands[0], tuple(integers(op, "permutation"))), op.results[0])
        for op in reversed(replaced):
            op.erase()
        for value in self.made_anew:
            if not is_used(value):
                producer(value).erase()

    def _transpose(self, op: ir.Operation) -> None:
        """Write a transpose between two orders."""
        (value,), (result,), permutation = op.operands, op.results, integers(op, "permutation")
        self._give(result, self._read(value, tuple(permutation[each] for each in self._order(result))))

    def _reshape(self, op: ir.Operation) -> None:
        """Write a reshape between two orders, with what is to be transposed before or after it."""
        (value,), (result,) = op.operands, op.results
        source, target = self._order(value), self._order(result)
        before, after = orders_around(source, shape_of(value), target, shape_of(result))
        made = reshape(self._read(value, before), permuted(shape_of(result), after))
        self._give(result, transpose(made, steps(after, target)))

    def _keep(self, op: ir.Operation, kept: Sequence[KeptDimensions]) -> None:
        """Write an operation that keeps some dimensions, with what is to be transposed before or after it."""
        results = KeptWriter(self._read, self._order).write(op, kept)
        for old, result in zip(op.results, results, strict=True):
            self._give(old, result)

    def _write(self, op: ir.Operation) -> None:
        """Write an operation on operands in the order of its results."""
        order = self.orders[op.results[0]]
        arrays = set(carried(op))
        operands = [self._read(each, order) if each in arrays else each for each in op.operands]
        new = op.clone()
        if op.name in _REORDERED:
            _REORDERED[op.name](new, operands, order)
        for number, operand in enumerate(operands):
            new.operands[number] = operand
        for old, result in zip(op.results, new.results, strict=True):
            result.set_type(tensor(permuted(shape_of(old), order), element_of(old)))
            self._give(old, result)

    def _give(self, old: ir.Value, new: ir.Value) -> None:
        """Let what reads ``old`` read ``new``, transposed back for operations that take the program's order."""
        order = self._order(old)
        self.ordered[old, order] = new
        for product in dict.fromkeys(use.owner.operation for use in old.uses):
            if product.block == self.block and takes_any_side(product, old, order):
                read_in_order(product, old, new, order)
        readers = [use for use in old.uses if not self._takes_order(use.owner.operation, old)]
        if readers:
            back = transpose(new, inverse(order))
            for use in readers:
                use.owner.operation.operands[use.operand_number] = back

    def _takes_order(self, op: ir.Operation, value: ir.Value) -> bool:
        """Whether an operation is written anew for ``value`` in another order."""
        if value not in self.orders or op.block != self.block:
            return False
        if is_between(op) or any(each.value == value for each in self.kept_by(op)):
            return True
        return value in carried(op) and op.results[0] in self.orders

    def _order(self, value: ir.Value) -> Order:
        return self.orders.get(value, given_order(len(shape_of(value))))

    def _read(self, value: ir.Value, order: Order) -> ir.Value:
        """Return ``value`` in an order, whatever its own is."""
        own = self._order(value)
        if own == order == given_order(len(order)):
            return value
        if (value, order) not in self.ordered:
            is_other = value in self.orders
            found = transpose(self.ordered[value, own], steps(own, order)) if is_other else self._in_order(value, order)
            self.ordered[value, order] = found
        return self.ordered[value, order]

    def _in_order(self, value: ir.Value, order: Order) -> ir.Value:
        """Write a value that has the program's order in another one."""
        type_ = tensor(permuted(shape_of(value), order), element_of(value))
        if is_result_of(value, TRANSPOSE) and producer(value).operands[0] not in self.orders:
            self.made_anew[value] = None
            permutation = integers(producer(value), "permutation")
            return self._read(producer(value).operands[0], tuple(permutation[each] for each in order))
        if is_result_of(value, BROADCAST):
            self.made_anew[value] = None
            operand_order, dimensions = broadcast_order(producer(value), order)
            return broadcast(self._read(producer(value).operands[0], operand_order), type_.shape, dimensions)
        if not is_free(value):
            return transpose(value, order)
        self.made_anew[value] = None
        if arrays := elementwise(producer(value)):
            operands = [self._read(each, order) if each in arrays else each for each in producer(value).operands]
            return _copy(producer(value), operands, type_)
        if is_result_of(value, "stablehlo.iota"):
            iota: ir.Value = hlo.iota(type_, order.index(integer(producer(value), "iota_dimension")))
            return iota
        constant = splat_of(producer(value))
        assert constant is not None
        return hlo.constant(ir.DenseElementsAttr.get_splat(type_, constant))


def _copy(op: ir.Operation, operands: Sequence[ir.Value], type_: ir.RankedTensorType) -> ir.Value:
    """Write an operation again on other operands, with a result of another type."""
    new = op.clone()
    for number, operand in enumerate(operands):
        new.operands[number] = operand
    result: ir.Value = new.results[0]
    result.set_type(type_)
    return result


type _Reorder = Callable[[ir.Operation, list[ir.Value], Order], None]


def _by_dimension(*names: str) -> _Reorder:
    """Return what reorders attributes that have a number for each dimension."""

    def reorder(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
        for name in names:
            op.attributes[name] = ir.DenseI64ArrayAttr.get(permuted(integers(op, name), order))

    return reorder


def _of_windows(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
    take_window_dimensions(op, order)


def _concatenated(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
    number = order.index(integer(op, "dimension"))
    op.attributes["dimension"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _reversed(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(sorted(order.index(i) for i in integers(op, "dimensions")))


def _sliced(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
    operands[1:] = permuted(operands[1:], order)
    _by_dimension("slice_sizes")(op, operands, order)


def _updated(op: ir.Operation, operands: list[ir.Value], order: Order) -> None:
    operands[2:] = permuted(operands[2:], order)


_REORDERED: Mapping[str, _Reorder] = {
    "stablehlo.concatenate": _concatenated,
    "stablehlo.dynamic_slice": _sliced,
    "stablehlo.dynamic_update_slice": _updated,
    "stablehlo.pad": _by_dimension("edge_padding_low", "edge_padding_high", "interior_padding"),
    REDUCE_WINDOW: _of_windows,
    "stablehlo.reverse": _reversed,
    "stablehlo.slice": _by_dimension("start_indices", "limit_indices", "strides"),
}
"""The other changes with the order of an operation's dimensions: attributes, and operands in place."""

"""The pass `separate-columns`."""

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.attention.places import REDUCE, reducing_function
from xgpu.analysis.attention.tiled_slices import is_of_product
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import hlo, reshape, tensor
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.indexing.hlo_maps import access_kind
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import attributes_of, defining_op, element_of, in_order, is_constant, users_of

_CONCATENATE, _PAD, _SLICE = "stablehlo.concatenate", "stablehlo.pad", "stablehlo.slice"
_BROADCAST = "stablehlo.broadcast_in_dim"
_COMBINED = {"add": hlo.add, "maximum": hlo.maximum, "minimum": hlo.minimum, "multiply": hlo.multiply}
"""Functions by which reductions of two parts are combined."""
_MADE, _REDUCED, _TAKEN, _ELEMENTWISE = "made", "reduced", "taken", "elementwise"
"""The roles of operations on parts: they make them, reduce or take them, or are computed element by element."""
_MOST_OPERATIONS = 256
"""Operations that are rewritten for one concatenation, at most."""


@dataclass(frozen=True)
class SeparateColumns(BlockRewrite):
    """Takes apart what is computed of a product's result and of one column beside it.

    Programs append a column to the logits of attention, such as a sink of each head, take a softmax of both, and drop
    what became of the column. Element by element that is the same of both parts; reductions along the rows are those of
    the product's part, combined with the column; and slices take one part or the other. So nothing is as wide as both,
    and attention is found. The same goes for gradients, which pad what has no column with zeros. All is left as it is
    where anything else reads both parts together. Needs: run it before find-chains.

    ```mlir
    %0 = stablehlo.concatenate %x, %s, dim = 1 : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x9xf32>
    %m = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] : ...
    // becomes
    %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : ...
    %1 = stablehlo.reshape %s : (tensor<8x1xf32>) -> tensor<8xf32>
    %m = stablehlo.maximum %0, %1 : tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "separate-columns"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CONCATENATE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Take apart the concatenations of a block that have a product's result and a column."""
        operations = operations_of(block, self.OPERATIONS)
        numbers = {op.results[0]: number for number, op in enumerate(operations)}
        erased, known = set[int](), dict[ir.Value, bool]()
        for number, op in enumerate(operations):
            cut = None if number in erased else _cut(op)
            group = _Group.of(op, cut) if cut is not None and _is_of_product(op, cut, known) else None
            if group is not None:
                made = [value for each in group.operations for value in each.results]
                erased.update(numbers[value] for value in made if value in numbers)
                known.clear()
                group.write()


@dataclass(frozen=True)
class _Cut:
    """Arrays of a ``shape`` are in two parts along a dimension: the first one has ``first`` elements along it."""

    shape: tuple[int, ...]
    dimension: int
    first: int

    def part(self, number: int) -> list[int]:
        """Return the shape of a part."""
        sizes = list(self.shape)
        sizes[self.dimension] = (self.first, sizes[self.dimension] - self.first)[number]
        return sizes


def _cut(op: ir.Operation) -> _Cut | None:
    """Return where an operation puts two arrays together, or an array and padding beside it; None for others."""
    if not len(op.results):
        return None
    shape = shape_of(op.results[0])
    if op.name == _CONCATENATE and len(op.operands) == 2:
        dimension = integer(op, "dimension")
        return _Cut(tuple(shape), dimension, shape_of(op.operands[0])[dimension])
    if op.name == _PAD:
        low, high = (integers(op, f"edge_padding_{end}") for end in ("low", "high"))
        padded = [number for number in range(len(shape)) if low[number] or high[number]]
        is_plain = len(padded) == 1 and not any(integers(op, "interior_padding"))
        if is_plain and sorted((low[padded[0]], high[padded[0]]))[0] == 0 and min(*low, *high) == 0:
            (dimension,) = padded
            return _Cut(tuple(shape), dimension, low[dimension] or shape_of(op.operands[0])[dimension])
    return None


def _is_of_product(op: ir.Operation, cut: _Cut, known: dict[ir.Value, bool]) -> bool:
    """Whether one part is one column, and the other one is computed from a product, element by element."""
    columns = [cut.part(number)[cut.dimension] for number in range(2)]
    if 1 not in columns or columns == [1, 1]:
        return False
    return is_of_product(op.operands[1 - columns.index(1)], known)


@dataclass(frozen=True)
class _Group:
    """All ``operations``, in order, that make or read arrays with one ``cut``."""

    cut: _Cut
    operations: tuple[ir.Operation, ...]
    _parts: dict[ir.Value, list[ir.Value]] = field(default_factory=dict)

    @classmethod
    def of(cls, op: ir.Operation, cut: _Cut) -> "_Group | None":
        """Return the group of a concatenation; None if something else reads one of its arrays."""
        found, pending = {op: _MADE}, [op]
        while pending:
            last = pending.pop()
            if tuple(shape_of(last.results[0])) != cut.shape:
                continue
            users = users_of(last.results[0])
            kinds = {each: _kind(each, cut) for each in (*users, *_makers(last, cut))}
            if len(found) > _MOST_OPERATIONS or any(kinds[each] is None or each.block != op.block for each in users):
                return None
            following = {each: kind for each, kind in kinds.items() if kind is not None and each not in found}
            found |= following
            pending += following
        return cls(cut, tuple(in_order(found))) if {_REDUCED, _TAKEN} <= set(found.values()) else None

    def write(self) -> None:
        """Write each operation on both parts instead; erase what it was."""
        for op in self.operations:
            with ir.InsertionPoint(op), op.location:
                made = self._written(op)
            if isinstance(made, list):
                self._parts[op.results[0]] = made
            else:
                op.results[0].replace_all_uses_with(made)
        for op in reversed(self.operations):
            op.erase()

    def _written(self, op: ir.Operation) -> list[ir.Value] | ir.Value:
        """Return both parts of an operation's result, or the result, if that has no parts."""
        if op.name == _CONCATENATE:
            return list(op.operands)
        if op.name == _PAD:
            own = int(integers(op, "edge_padding_low")[self.cut.dimension] > 0)
            type_ = tensor(self.cut.part(1 - own), element_of(op.results[0]))
            padding = hlo.broadcast_in_dim(type_, op.operands[1], [])
            return [op.operands[0], padding] if own == 0 else [padding, op.operands[0]]
        if op.name == _SLICE:
            return self._parts[op.operands[0]][_sliced(op, self.cut) or 0]
        if op.name == REDUCE:
            return self._reduced(op)
        return [self._elementwise(op, number) for number in range(2)]

    def _elementwise(self, op: ir.Operation, number: int) -> ir.Value:
        operands = [self._part(operand, number) for operand in op.operands]
        type_ = tensor(self.cut.part(number), element_of(op.results[0]))
        return ir.Operation.create(op.name, [type_], operands, attributes_of(op)).results[0]

    def _part(self, value: ir.Value, number: int) -> ir.Value:
        """Return a part of an operand: of what has no parts yet, what is repeated along the rows, or a slice."""
        if value in self._parts:
            return self._parts[value][number]
        sizes, op = self.cut.part(number), defining_op(value)
        if not shape_of(value):
            return value
        type_ = tensor(sizes, element_of(value))
        if op is not None and is_constant(value) and (known := splat_of(op)) is not None:
            constant = ir.DenseElementsAttr.get_splat(type_, known)
            return ir.Operation.create("stablehlo.constant", [type_], [], {"value": constant}).results[0]
        if op is not None and op.name == _BROADCAST and _is_repeated(op, self.cut.dimension):
            return hlo.broadcast_in_dim(type_, op.operands[0], integers(op, "broadcast_dimensions"))
        starts, ends = [0] * len(sizes), list(sizes)
        if number == 1:
            starts[self.cut.dimension], ends[self.cut.dimension] = self.cut.first, self.cut.shape[self.cut.dimension]
        return hlo.slice(value, starts, ends, [1] * len(sizes))

    def _reduced(self, op: ir.Operation) -> ir.Value:
        parts = []
        for part in self._parts[op.operands[0]]:
            if shape_of(part)[self.cut.dimension] == 1:
                parts.append(reshape(part, shape_of(op.results[0])))
            else:
                copy = op.clone()
                copy.operands[0] = part
                parts.append(copy.results[0])
        function = reducing_function(op)
        assert function is not None
        combined: ir.Value = _COMBINED[function](*parts)
        return combined


def _makers(op: ir.Operation, cut: _Cut) -> Iterator[ir.Operation]:
    """Yield the operations that make operands of an operation so that these have parts, too."""
    for operand in op.operands if op.name not in (_CONCATENATE, _PAD) else ():
        made = defining_op(operand)
        if made is not None and made.block == op.block and _kind(made, cut) in (_MADE, _ELEMENTWISE):
            yield made


def _kind(op: ir.Operation, cut: _Cut) -> str | None:
    """Return how an operation makes what has parts, or reads it; None if it does neither."""
    if _cut(op) == cut:
        return _MADE
    if op.name == REDUCE:
        is_along = len(op.results) == 1 and list(integers(op, "dimensions")) == [cut.dimension]
        return _REDUCED if is_along and reducing_function(op) in _COMBINED else None
    if op.name == _SLICE:
        return None if _sliced(op, cut) is None else _TAKEN
    is_known = op.name in OPERATIONS and not len(op.regions) and access_kind(op) == "elementwise"
    return _ELEMENTWISE if is_known and tuple(shape_of(op.results[0])) == cut.shape else None


def _is_repeated(op: ir.Operation, dimension: int) -> bool:
    """Whether a broadcast has equal elements along a dimension."""
    positions = integers(op, "broadcast_dimensions")
    return dimension not in positions or shape_of(op.operands[0])[positions.index(dimension)] == 1


def _sliced(op: ir.Operation, cut: _Cut) -> int | None:
    """Return which part a slice takes all of; None if it takes anything else."""
    starts, ends = (integers(op, f"{end}_indices") for end in ("start", "limit"))
    if tuple(shape_of(op.operands[0])) != cut.shape or any(each != 1 for each in integers(op, "strides")):
        return None
    for number in range(2):
        first = [0] * len(starts)
        first[cut.dimension] = cut.first * number
        sizes = zip(first, cut.part(number), strict=True)
        if list(starts) == first and list(ends) == [start + size for start, size in sizes]:
            return number
    return None

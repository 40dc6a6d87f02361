"""Operands of f32 in the order in which warp groups multiply them: neighbours in memory are of one sum."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from xgpu import ir
from xgpu.analysis.attention.attention import longest
from xgpu.analysis.attention.chained_sums import ChainedSums, chained_sums
from xgpu.analysis.attention.gradient import Gradient
from xgpu.analysis.attention.places import behind
from xgpu.emit.families.attention.writing import MOVES
from xgpu.hlo.stablehlo_builder import hlo, leading_part, splat, tensor
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.affine import Dim, dim, linearize
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.tiles.tensor_views import STRIDE_BYTES
from xgpu.passes.prepare.chains.parts import end_moved
from xgpu.records import dataclass
from xgpu.structure import copy_operation, defining_op, dtype_of, is_used, producer

_WIDE = "f32"


@dataclass(frozen=True)
class SummedOperand:
    """The operand of a ``product`` by its number, along whose ``dimension`` sums are."""

    product: ir.Operation
    number: int
    dimension: int

    @property
    def value(self) -> ir.Value:
        """The operand."""
        return self.product.operands[self.number]


@dataclass
class Arrangement:
    """The ``operands`` of attention's products, and of its gradient's, that have to be copied in another order.

    Tensor cores read f32 in no other. Elements of 16 bits they read in any.
    """

    operands: Sequence[SummedOperand]
    widened: set[ir.Value] = field(default_factory=set)
    """Arrays in order that are made of elements of 16 bits: boxes are copied of them, not of what they are made of."""
    copies: set[ir.Value] = field(default_factory=set)
    """The copies that were written: arrays, of which kernels copy boxes."""
    slices: set[ir.Operation] = field(default_factory=set)
    """The slices, in kernels, that leave the padding of rows out of copies."""
    _read: list[tuple[SummedOperand, ir.Value, ir.Value]] = field(default_factory=list)

    @classmethod
    def of(cls, gradient: Gradient) -> "Arrangement":
        """Return the operands of a gradient's products, and of attention's, that are not in order."""
        own = list(_operands(gradient))
        widened = {array for each in own if _is_widened(array := _array_behind(each)[0]) and _is_in_order(each)}
        return cls([each for each in own if not _is_in_order(each)], widened)

    @property
    def elements(self) -> int:
        """The elements of all arrays that are copied."""
        copied = {_array_behind(each)[:2] for each in self.operands}
        return sum(math.prod(shape_of(array)) for array in (*(array for array, _ in copied), *self.widened))

    def write(self) -> None:
        """Have the products read copies, each moved back to the order of the operand; of the same array the same.

        They are written where the arrays are: chains of a gradient may be before its products.
        """
        self.copies |= self.widened
        parts: dict[tuple[ir.Value, int], ir.Value] = {}
        points: dict[ir.Value, ir.InsertionPoint] = {}
        for each in self.operands:
            value = each.value
            array, dimension, moves = _array_behind(each)
            if array not in points:
                points[array] = _point_after(array, each.product.block)
            with points[array], each.product.location:
                if (array, dimension) not in parts:
                    parts[array, dimension] = self._copied(array, dimension)
                copies = {array: parts[array, dimension]}
                for op in moves:
                    copy_operation(op, copies)
            self._read.append((each, array, value))
            each.product.operands[each.number] = copies[value]

    def _copied(self, array: ir.Value, dimension: int) -> ir.Value:
        """Write the copy of an array in which a dimension is the last one; return what that is moved back to."""
        sizes = shape_of(array)
        order = [*(number for number in range(len(sizes)) if number != dimension), dimension]
        copy = _padded(hlo.transpose(array, order))
        part = leading_part(copy, [sizes[number] for number in order])
        self.copies.add(copy)
        self.slices.update([producer(part)] if part != copy else [])
        moved: ir.Value = hlo.transpose(part, list(map(order.index, range(len(sizes)))))
        return moved

    def undo(self) -> None:
        """Have the products read the operands themselves again."""
        for each, array, value in self._read:
            last = each.value
            each.product.operands[each.number] = value
            while last != array and not is_used(last):
                op = producer(last)
                last = op.operands[0]
                op.erase()
        self._read.clear()
        self.copies.clear()
        self.slices.clear()


def _is_widened(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "stablehlo.convert" and dtype_of(op.operands[0]) != dtype_of(value)


def _array_behind(operand: SummedOperand) -> tuple[ir.Value, int, list[ir.Operation]]:
    """Return the array that an operand is moved from, its dimension of which sums are, and the operations that move it.

    The operand itself where that is no dimension of the array. An array is smaller where it is repeated on the way.
    """
    value = operand.value
    array, map_ = behind((value, identity_map(shape_of(value))), MOVES)
    found = [number for number, each in enumerate(map_.results) if each == dim(operand.dimension)]
    if len(found) != 1:
        return value, operand.dimension, []
    moves = []
    while value != array:
        moves.append(producer(value))
        value = producer(value).operands[0]
    return array, found[0], moves[::-1]


def _point_after(array: ir.Value, block: ir.Block) -> ir.InsertionPoint:
    """Return the first point of a block where an array is known."""
    op = defining_op(array)
    return ir.InsertionPoint.at_block_begin(block) if op is None or op.block != block else ir.InsertionPoint.after(op)


def _padded(copy: ir.Value) -> ir.Value:
    """Return an array with zeros behind each row, so that rows begin where boxes may."""
    *others, size = shape_of(copy)
    missing = -size % (STRIDE_BYTES * 8 // dtype_of(copy).bits)
    if not missing:
        return copy
    none = [0] * len(others)
    zero = splat(0, tensor([], _WIDE))
    padded: ir.Value = hlo.pad(copy, zero, [*none, 0], [*none, missing], [*none, 0])
    return padded


def _operands(gradient: Gradient) -> Iterator[SummedOperand]:
    """Yield the operands that are arrays, of attention's products and of its gradient's, if they are of f32."""
    attention = gradient.attention
    if {dtype_of(value).hlo for value in attention.first.operands} != {_WIDE}:
        return
    for product in gradient.products:
        yield from (_operand(product, number) for number in range(2))
    yield _operand(attention.second, 1 - attention.weight)
    for end in gradient.ends:
        chain = chained_sums([end_moved(gradient, end)], gradient.products)
        if isinstance(chain, ChainedSums):
            (sums,) = chain.sums
            yield _operand(end, 1 - sums.sums.weight)


def _operand(product: ir.Operation, number: int) -> SummedOperand:
    map_ = accesses(product)[number].map
    contracted = [position for position, each in enumerate(map_.results) if each.variables()[1]]
    return SummedOperand(product, number, longest(contracted, shape_of(product.operands[number])))


def _is_in_order(operand: SummedOperand) -> bool:
    """Whether elements of one sum are neighbours in the array that an operand is moved from."""
    array, map_ = behind((operand.value, identity_map(shape_of(operand.value))), MOVES)
    place = linearize(map_.results, shape_of(array))
    return dict(place.terms).get(Dim(operand.dimension)) == 1

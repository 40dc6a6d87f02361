"""The pass `multiply-bytes`."""

from functools import cached_property, reduce
from math import prod
from typing import ClassVar, Literal, Self

from xgpu import ir
from xgpu.costs.products.plain_products import plain_product_seconds
from xgpu.costs.products.products import least_seconds
from xgpu.costs.time import seconds_to_move
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.emit.families.products.schedule import device_problem
from xgpu.fusion.fallback import PRODUCT, fallback_reason, has_library
from xgpu.hlo.stablehlo_builder import Value, convert, hlo, leading_part, reshape, shape_of, splat, tensor, transpose
from xgpu.indexing.dot_dimensions import DIMENSIONS, OperandDimensions, operand_dimensions
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, replace_op

_BITS = 8
_TYPES = (8, 16, 32, 64)
"""Bits of the integers that are multiplied."""
_UNIT = 16
"""Bytes of which rows that are copied as boxes are a multiple."""
_LARGEST = 255 * 255
_SUM_BYTES = 4
_WIDEST = 1 << 31
"""Sums of products of bytes below which they are exact in 32 bits."""
_GAIN = 1.5
"""Times as long as products of bytes that a plain loop is expected to take at least: both are estimates."""


@dataclass(frozen=True)
class MultiplyBytes(OperationRewrite):
    """Writes products of matrices of integers, for which XLA has only plain loops, as products of their bytes.

    Tensor cores multiply bytes, and add up products in 32 bits, which wrap as the program's sums do. Of numbers of more
    bits all pairs of bytes count that are not beyond the result; those of equal weight are one product, along a longer
    dimension. The highest byte is signed where the result has more bits than the number. Truth values are numbers, of
    whose product it is asked what is not zero. Rows end with zeros, so that each begins where copies of boxes may. Only
    where that is expected to be clearly faster. Needs: run it before layouts are chosen, and before mark-products,
    which leaves none of these products to a library.

    ```mlir
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<256x512xi16>, tensor<256x512xi16>) -> ...
    ```
    becomes, with ``x = x0 + 256 x1``
    ```mlir
    %1 = stablehlo.dot_general %x0, %y0, contracting_dims = [1] x [1] : ... -> tensor<256x256xui32>
    %xs = stablehlo.concatenate %x0, %x1, dim = 1 : (tensor<256x512xui8>, tensor<256x512xui8>) -> tensor<256x1024xui8>
    %ys = stablehlo.concatenate %y1, %y0, dim = 1 : (tensor<256x512xui8>, tensor<256x512xui8>) -> tensor<256x1024xui8>
    %2 = stablehlo.dot_general %xs, %ys, contracting_dims = [1] x [1] : ... -> tensor<256x256xui32>
    %3 = stablehlo.shift_left %2, %eight : tensor<256x256xui32>
    %4 = stablehlo.add %1, %3 : tensor<256x256xui32>
    %0 = stablehlo.convert %4 : (tensor<256x256xui32>) -> tensor<256x256xi16>
    ```
    """

    NAME: ClassVar[str] = "multiply-bytes"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PRODUCT,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""
    products: Literal["auto", "library", "kernels", "all"] = "auto"
    """The code that computes matrix products."""
    always: bool = False
    """Whether products are rewritten whatever that is expected to take."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a product of integers."""
        target = self.target.device
        if self.products == "library" or device_problem(target) is not None or has_library(op):
            return
        if fallback_reason(op) is None or (product := _Integers.of(op)) is None:
            return
        if self.always or _GAIN * product.seconds(target) < product.plain_seconds(target):
            replace_op(op, [product.build()])


@dataclass(frozen=True)
class _Pairs:
    """Pairs of bytes of equal weight and types, given by their places in the numbers."""

    places: tuple[tuple[int, int], ...]
    are_signed: tuple[bool, bool]

    @property
    def weight(self) -> int:
        """By how many bits their products are shifted."""
        return _BITS * sum(self.places[0])


@dataclass(frozen=True)
class _Integers:
    """A product of integers, whose sums have ``bits``; ``sizes`` are batch, rows, columns, and what is contracted."""

    op: ir.Operation
    dimensions: tuple[OperandDimensions, OperandDimensions]
    sizes: tuple[int, int, int, int]
    bits: int

    @classmethod
    def of(cls, op: ir.Operation) -> Self | None:
        """Return the product ``op``; None if it has other elements, or none, or sums that 32 bits do not hold."""
        types = [dtype_of(value) for value in (*op.operands, op.results[0])]
        if not all(each.hlo == "pred" or (each.is_integer and each.bits in _TYPES) for each in types):
            return None
        dimensions = operand_dimensions(op)
        (left, right), (of_left, of_right) = dimensions, map(shape_of, op.operands)
        sizes = tuple(
            prod(shape[number] for number in numbers)
            for shape, numbers in (
                (of_left, left.batching),
                (of_left, left.own),
                (of_right, right.own),
                (of_left, left.contracting),
            )
        )
        bits = 32 if types[-1].hlo == "pred" else types[-1].bits
        found = cls(op, dimensions, (sizes[0], sizes[1], sizes[2], sizes[3]), bits)
        return found if all(sizes) and (bits <= 32 or found._most_pairs) else None

    @property
    def _most_pairs(self) -> int:
        """The pairs of bytes that 32 bits can add up, at most; where these wrap as the result does, all."""
        return _WIDEST // (_LARGEST * self._row) if self.bits > 32 else max(_TYPES) // _BITS

    @property
    def _row(self) -> int:
        """The bytes of a row of one byte of each number."""
        return -(-self.sizes[3] // _UNIT) * _UNIT

    @property
    def _is_one_product(self) -> bool:
        """Whether one product of bytes has the result's elements."""
        return len(self.groups) == 1 and self.bits <= 32 and dtype_of(self.op.results[0]).is_integer

    @cached_property
    def groups(self) -> list[_Pairs]:
        """The pairs of bytes that are multiplied together, those of the lowest weight first."""
        left, right = (self._bytes(number) for number in range(2))
        found: dict[tuple[int, tuple[bool, bool]], list[tuple[int, int]]] = {}
        for i, one in enumerate(left):
            for j, other in enumerate(right):
                if _BITS * (i + j) < self.bits:
                    found.setdefault((i + j, (one, other)), []).append((i, j))
        most = self._most_pairs
        return [
            _Pairs(tuple(places[first : first + most]), signs)
            for (_, signs), places in sorted(found.items())
            for first in range(0, len(places), most)
        ]

    def _bytes(self, number: int) -> list[bool]:
        """Return of each byte of an operand's numbers that counts whether it is signed."""
        dtype = dtype_of(self.op.operands[number])
        width = dtype.bits if dtype.is_integer else _BITS
        # Bytes are multiplied as they are.
        is_signed = dtype.is_integer and dtype.is_signed and (width < self.bits or width == _BITS)
        return [False] * (min(width, self.bits) // _BITS - 1) + [is_signed]

    def seconds(self, target: Device) -> float:
        """Return how long kernels take: for the bytes of each operand, for the products, and for their sum."""
        batch, rows, columns, _ = self.sizes
        groups, total = self.groups, 0.0
        for group in groups:
            total += least_seconds((batch, rows, columns, self._row * len(group.places)), 1, _SUM_BYTES, target)
        pairs = sum(len(group.places) for group in groups)
        for value, count in zip(self.op.operands, (rows, columns), strict=True):
            moved = dtype_of(value).storage_bits // 8 + pairs
            total += seconds_to_move(batch * count * self._row * moved, target)
        if len(groups) > 1:
            moved = len(groups) * _SUM_BYTES + self.bits // 8
            total += seconds_to_move(batch * rows * columns * moved, target)
        return total

    def plain_seconds(self, target: Device) -> float:
        """Return how long XLA's loop takes."""
        right = self.dimensions[1]
        is_along = max(right.contracting, default=-1) > max(right.own, default=-1)
        return plain_product_seconds(self.sizes, is_along, target)

    def build(self) -> Value:
        """Create the products of bytes and their sum."""
        left, right = (self._matrix(number) for number in range(2))
        total = reduce(hlo.add, [self._part(group, left, right) for group in self.groups])
        batch, rows, columns, _ = self.sizes
        total = leading_part(total, [batch, rows, columns] if batch > 1 else [rows, columns])
        result = self.op.results[0]
        total = reshape(total, shape_of(result))
        if dtype_of(result).hlo == "pred":
            direction = hlo.ComparisonDirectionAttr.get("NE")
            compared: Value = hlo.compare(total, splat(0, ir.RankedTensorType(total.type)), direction)
            return compared
        return convert(total, element_of(result))

    def _matrix(self, number: int) -> Value:
        """Return an operand as rows of a batch, whose last dimension is contracted, in unsigned numbers or bytes."""
        value, each = self.op.operands[number], self.dimensions[number]
        value = transpose(value, [*each.batching, *each.own, *each.contracting])
        batch, own, contracted = self.sizes[0], self.sizes[1 + number], self.sizes[3]
        shape = [batch, own, contracted] if batch > 1 else [own, contracted]
        value = reshape(value, shape)
        if not dtype_of(value).is_integer:
            value = convert(value, "ui8")
        high = [0] * len(shape)
        high[-1] = self._row - contracted
        # Rows of results begin where boxes may, too.
        high[-2] = -own % _UNIT if number else 0
        if not any(high):
            return value
        zeros = [0] * len(shape)
        padded: Value = hlo.pad(value, splat(0, tensor([], element_of(value))), zeros, high, zeros)
        return padded

    def _part(self, group: _Pairs, left: Value, right: Value) -> Value:
        """Return what a product of bytes adds to the sum."""
        operands = []
        for number, matrix in enumerate((left, right)):
            is_signed = group.are_signed[number]
            pieces = [_byte(matrix, places[number], is_signed) for places in group.places]
            operands.append(pieces[0] if len(pieces) == 1 else hlo.concatenate(pieces, len(shape_of(matrix)) - 1))
        batch = [0] if self.sizes[0] > 1 else []
        numbers = hlo.DotDimensionNumbers.get(batch, batch, [len(batch) + 1], [len(batch) + 1])
        shape = [*shape_of(left)[:-1], shape_of(right)[-2]]
        element: ir.Type | str = "i32" if any(group.are_signed) else "ui32"
        if self._is_one_product:
            element = element_of(self.op.results[0])
        made = ir.Operation.create(PRODUCT, [tensor(shape, element)], operands, {DIMENSIONS: numbers}).results[0]
        if self._is_one_product:
            return made
        made = convert(convert(made, "i64") if self.bits > 32 else made, "ui64" if self.bits > 32 else "ui32")
        if not group.weight:
            return made
        shifted: Value = hlo.shift_left(made, splat(group.weight, ir.RankedTensorType(made.type)))
        return shifted


def _byte(matrix: Value, place: int, is_signed: bool) -> Value:
    """Return the bytes at a place of the numbers of a matrix."""
    if dtype_of(matrix).bits == _BITS:
        return matrix
    if place:
        shift = splat(_BITS * place, ir.RankedTensorType(matrix.type))
        matrix = hlo.shift_right_logical(matrix, shift)
    return convert(matrix, "i8" if is_signed else "ui8")

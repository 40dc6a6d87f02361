"""The pass `split-merged-dimensions`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.fusion.orders.carriers import BROADCAST, RESHAPE, TRANSPOSE, carried
from xgpu.hlo.constants import splat_of
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.stablehlo_builder import broadcast, hlo, reshape, tensor
from xgpu.indexing.access import integer, integers, shape_of
from xgpu.passes.framework.base import BlockRewrite
from xgpu.records import dataclass
from xgpu.structure import captured, dtype_of, element_of, is_used

type Dimension = tuple[ir.Value, int]
_CONSTANT = "stablehlo.constant"
_IOTA = "stablehlo.iota"


@dataclass(frozen=True)
class SplitMergedDimensions(BlockRewrite):
    """Computes along several dimensions what is computed along the one that a reshape merges of them.

    Norms and softmaxes are written for rows, to which images are reshaped, and back. If what is reshaped is transposed,
    as images are whose channels a convolution has last, such rows have no order in which all lies as it is read. With
    the dimensions apart, transposes can be moved. Dimensions that elementwise operations, broadcasts, transposes and
    reductions connect are split alike, if nothing else reads or makes them. Needs: transposes in the places that
    choose-product-layouts and choose-convolution-layouts give them; run it before move-transposes.

    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<8x4x16xf32>) -> tensor<4x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<4x8x16xf32>) -> tensor<4x128xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x128xf32>, tensor<f32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<8x4x16xf32>) -> tensor<4x8x16xf32>
    %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1, 2]
        : (tensor<4x8x16xf32>, tensor<f32>) -> tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "split-merged-dimensions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((TRANSPOSE,))
    least_bytes: int = 256 << 10
    """Bytes of a transposed array from which on it is worth while: kernels read a small array in any order."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the values of ``block`` with dimensions that are better split."""
        operations = [view.operation for view in block.operations]
        if parts := _Connections(operations).parts(self._moved(operations)):
            _Rewrite(parts).rewrite(operations)

    def _moved(self, operations: Sequence[ir.Operation]) -> set[ir.Value]:
        """Return what elementwise operations connect with large arrays that are transposed."""
        roots = _Roots[ir.Value]()
        for op in operations:
            for value in carried(op):
                roots.join(value, op.results[0])
        ends = [value for op in operations if op.name == TRANSPOSE for value in (op.operands[0], op.results[0])]
        moved = {roots[value] for value in ends if _bytes(value) >= self.least_bytes}
        read = [op.operands[0] for op in operations if op.name == RESHAPE]
        made = [op.results[0] for op in operations if op.name == RESHAPE]
        return {value for value in (*read, *made) if roots[value] in moved}


def _bytes(value: ir.Value) -> int:
    return math.prod(shape_of(value)) * dtype_of(value).bits // 8


class _Roots[T]:
    """Sets of what was joined, each known by one of its members."""

    def __init__(self) -> None:
        self._parents: dict[T, T] = {}

    def __getitem__(self, item: T) -> T:
        while (parent := self._parents.get(item, item)) != item:
            self._parents[item] = self._parents.get(parent, parent)
            item = parent
        return item

    def join(self, one: T, other: T) -> None:
        self._parents[self[one]] = self[other]


class _Connections:
    """The dimensions of a block's values that are the same, and those that nothing may split."""

    def __init__(self, operations: Sequence[ir.Operation]):
        self._operations = operations
        self._roots = _Roots[Dimension]()
        made = {result for op in operations for result in op.results}
        around = {operand: None for op in operations for operand in op.operands if operand not in made}
        whole = [dimension for value in around for dimension in _dimensions(value)]
        for op in operations:
            pairs = _same(op)
            for one, other in pairs or ():
                self._roots.join(one, other)
            whole += _kept_whole(op, pairs is not None)
        self._whole = {self._roots[each] for each in whole}

    def parts(self, moved: set[ir.Value]) -> dict[Dimension, tuple[int, ...]]:
        """Return the sizes of the parts of each dimension that is split for reshapes of ``moved`` values."""
        found: dict[Dimension, tuple[int, ...]] = {}
        for op in self._operations:
            if op.name != RESHAPE:
                continue
            (value,), (result,) = op.operands, op.results
            for own, other in ((value, result), (result, value)):
                for number, parts in _parts(shape_of(own), shape_of(other)) if other in moved else ():
                    root = self._roots[own, number]
                    found[root] = _finest(found.get(root, ()), parts)
        split = {root: parts for root, parts in found.items() if len(parts) > 1 and root not in self._whole}
        return {
            each: split[root]
            for op in self._operations
            for value in op.results
            for each in _dimensions(value)
            if (root := self._roots[each]) in split
        }


def _dimensions(value: ir.Value) -> list[Dimension]:
    is_array = isinstance(value.type, ir.RankedTensorType)
    return [(value, number) for number in range(len(shape_of(value)))] if is_array else []


def _same(op: ir.Operation) -> list[tuple[Dimension, Dimension]] | None:
    """Return which dimensions of operands and results are the same; None of an operation that is not known."""
    if op.name in (RESHAPE, _IOTA) or (op.name == _CONSTANT and splat_of(op) is not None):
        return []
    if op.name == REDUCE:
        return list(_reduced(op))
    if op.name == TRANSPOSE:
        permutation = integers(op, "permutation")
        return [((op.results[0], i), (op.operands[0], each)) for i, each in enumerate(permutation)]
    if op.name == BROADCAST:
        (value,), (result,) = op.operands, op.results
        pairs = enumerate(integers(op, "broadcast_dimensions"))
        return [((value, i), (result, each)) for i, each in pairs if shape_of(value)[i] == shape_of(result)[each]]
    is_known = len(op.results) == 1 and op.name in OPERATIONS and OPERATIONS[op.name].kind == "elementwise"
    if not is_known:
        return None
    own = _dimensions(op.results[0])
    if arrays := carried(op):
        return [pair for value in arrays for pair in zip(_dimensions(value), own, strict=True)]
    return None if any(shape_of(value) for value in (*op.operands, *op.results)) else []


def _reduced(op: ir.Operation) -> Iterator[tuple[Dimension, Dimension]]:
    arrays, dimensions = list(op.operands)[: len(op.results)], integers(op, "dimensions")
    for value in arrays[1:]:
        yield from zip(_dimensions(value), _dimensions(arrays[0]), strict=True)
    kept = [number for number in range(len(shape_of(arrays[0]))) if number not in dimensions]
    for result in op.results:
        yield from zip(_dimensions(result), [(arrays[0], number) for number in kept], strict=True)


def _kept_whole(op: ir.Operation, is_known: bool) -> list[Dimension]:
    """Return the dimensions that an operation needs as they are."""
    inside = [dimension for value in captured(op) for dimension in _dimensions(value)]
    if op.name == _IOTA:
        return [(op.results[0], integer(op, "iota_dimension"))]
    if is_known:
        return inside
    return inside + [dimension for value in (*op.operands, *op.results) for dimension in _dimensions(value)]


def _parts(shape: Sequence[int], other: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Return the dimensions of a shape that a reshape to the other one takes apart, with the sizes of their parts."""
    if 0 in (*shape, *other):
        return []
    own, ends = _ends(shape), sorted({*_ends(shape), *_ends(other)})
    if any(second % first for first, second in pairwise(ends)):
        return []
    found = []
    for number, (first, second) in enumerate(pairwise(own)):
        between = [each for each in ends if first <= each <= second]
        parts = tuple(after // before for before, after in pairwise(between))
        if len(parts) > 1:
            found.append((number, parts))
    return found


def _ends(shape: Sequence[int]) -> list[int]:
    """Return how many elements the dimensions from the first on have, up to each of them."""
    found = [1]
    for size in shape:
        found.append(found[-1] * size)
    return found


def _finest(parts: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parts by which a dimension is split in both ways; itself, as one part, if there are none."""
    if not parts:
        return others
    ends = sorted({*_ends(parts), *_ends(others)})
    if any(second % first for first, second in pairwise(ends)):
        return (ends[-1],)
    return tuple(after // before for before, after in pairwise(ends))


@dataclass
class _Rewrite:
    """Writes values with their dimensions split; ``made`` has those that are."""

    parts: Mapping[Dimension, tuple[int, ...]]
    made: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def rewrite(self, operations: Sequence[ir.Operation]) -> None:
        """Write operations anew that read or make values with split dimensions, and erase the old ones."""
        replaced = []
        for op in operations:
            values = (*op.operands, *op.results)
            if any(each in self.parts for value in values for each in _dimensions(value)):
                with ir.InsertionPoint(op), op.location:
                    _WRITE.get(op.name, _Rewrite._elementwise)(self, op)
                replaced.append(op)
        for op in reversed(replaced):
            if not any(is_used(result) for result in op.results):
                op.erase()

    def _shape(self, value: ir.Value) -> list[int]:
        return [size for places in self._places(value, shape_of(value)) for size in places]

    def _places(self, value: ir.Value, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        return [self.parts.get((value, number), (size,)) for number, size in enumerate(sizes)]

    def _numbers(self, value: ir.Value) -> list[list[int]]:
        """Return the numbers of the parts of each dimension among the split ones."""
        found, count = [], 0
        for parts in self._places(value, shape_of(value)):
            found.append(list(range(count, count + len(parts))))
            count += len(parts)
        return found

    def _type(self, value: ir.Value) -> ir.RankedTensorType:
        return tensor(self._shape(value), element_of(value))

    def _give(self, old: ir.Value, new: ir.Value) -> None:
        """Have what comes later read the new value; at once, if its shape is that of the old one."""
        self.made[old] = new
        if shape_of(new) == shape_of(old):
            old.replace_all_uses_with(new)

    def _read(self, value: ir.Value) -> ir.Value:
        return self.made.get(value, value)

    def _reshape(self, op: ir.Operation) -> None:
        self._give(op.results[0], reshape(self._read(op.operands[0]), self._shape(op.results[0])))

    def _constant(self, op: ir.Operation) -> None:
        number = splat_of(op)
        assert number is not None
        self._give(op.results[0], hlo.constant(ir.DenseElementsAttr.get_splat(self._type(op.results[0]), number)))

    def _iota(self, op: ir.Operation) -> None:
        (number,) = self._numbers(op.results[0])[integer(op, "iota_dimension")]
        self._give(op.results[0], hlo.iota(self._type(op.results[0]), number))

    def _broadcast(self, op: ir.Operation) -> None:
        (value,), (result,) = op.operands, op.results
        numbers, own = self._numbers(result), self._numbers(value)
        dimensions = [
            number
            for parts, each in zip(own, integers(op, "broadcast_dimensions"), strict=True)
            for number in numbers[each][: len(parts)]
        ]
        self._give(result, broadcast(self._read(value), self._shape(result), dimensions))

    def _transpose(self, op: ir.Operation) -> None:
        numbers = self._numbers(op.operands[0])
        order = [number for each in integers(op, "permutation") for number in numbers[each]]
        self._give(op.results[0], hlo.transpose(self._read(op.operands[0]), order))

    def _reduce(self, op: ir.Operation) -> None:
        numbers = self._numbers(op.operands[0])
        new = self._elementwise(op)
        dimensions = [number for each in integers(op, "dimensions") for number in numbers[each]]
        new.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(dimensions)

    def _elementwise(self, op: ir.Operation) -> ir.Operation:
        new = op.clone()
        for number, operand in enumerate(op.operands):
            new.operands[number] = self._read(operand)
        for old, result in zip(op.results, new.results, strict=True):
            result.set_type(self._type(old))
            self._give(old, result)
        return new


_WRITE: Mapping[str, Callable[[_Rewrite, ir.Operation], object]] = {
    RESHAPE: _Rewrite._reshape,
    _CONSTANT: _Rewrite._constant,
    _IOTA: _Rewrite._iota,
    BROADCAST: _Rewrite._broadcast,
    TRANSPOSE: _Rewrite._transpose,
    REDUCE: _Rewrite._reduce,
}

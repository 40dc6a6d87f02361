"""The pass `update-strided-windows`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import Combiner, combined, combiners, has_own_types, is_binary
from xgpu.analysis.constants.arrays import array_of, is_readable
from xgpu.analysis.constants.progressions import Progression, progression_of, progression_of_array
from xgpu.analysis.in_place import SCATTER, pays_in_place, updated_operands, updates_of
from xgpu.hlo.stablehlo_builder import hlo, reshape, splat, tensor, transpose
from xgpu.indexing.access import integer, shape_of
from xgpu.indexing.scatter_maps import ScatterMaps, scatter_maps
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, is_argument, is_constant, producer, replace_op


@dataclass(frozen=True)
class UpdateStridedWindows(OperationRewrite):
    """Rewrites scatters to places at equal distances, in most sectors of the array, as updates of a slice.

    ``x.at[::2].set(y)`` is such a scatter: rotary embeddings and tables of sines and cosines put together even and odd
    elements by it. With each dimension split by its stride, the places are a slice of the array: a column of two. Then
    kernels compute the update element by element, and array, updates and what reads the result are one kernel, where a
    scatter is a kernel that waits for the array and keeps readers waiting. Where the stride does not divide the
    dimension, it is padded, unless few sectors are updated. Needs: nothing. Run it before `update-single-windows`.

    ```mlir
    %places = ... // 2 * iota
    %new = "stablehlo.scatter"(%x, %places, %y) ({ ... }) : (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> ...
    ```
    becomes
    ```mlir
    %columns = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<4x2xf32>
    %column = stablehlo.reshape %y : (tensor<4xf32>) -> tensor<4x1xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %updated = stablehlo.dynamic_update_slice %columns, %column, %zero, %zero : ... -> tensor<4x2xf32>
    %new = stablehlo.reshape %updated : (tensor<4x2xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "update-strided-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a scatter if it is one of those."""
        found, maps = combiners(op), scatter_maps(op)
        is_known = all(each.alone and (is_binary(each.function) or each.function == "overwrite") for each in found)
        if not is_known or not has_own_types(op) or maps.windows == 1 or 0 in (*maps.update_shape, *maps.operand_shape):
            return
        places = _places(op, maps)
        if places is not None and _is_faster(places, op, found):
            replace_op(op, places.update(op, found))


@dataclass(frozen=True)
class _Place:
    """The places of updates along a dimension of the operand of ``size`` elements: ``count`` from ``start`` on.

    They are ``stride`` apart, and run along the dimension ``source`` of the updates, None if there is one.
    """

    size: int
    start: int
    count: int
    stride: int
    source: int | None

    @property
    def groups(self) -> int:
        """The number of groups of ``stride`` elements that cover the dimension."""
        return -(-self.size // self.stride)

    def split(self, of_groups: int, inside: int) -> list[int]:
        """Return numbers for the groups and what is inside one; one alone where the dimension is not split."""
        return [of_groups] if self.stride == 1 else [of_groups, inside]


@dataclass(frozen=True)
class _Places:
    """The places of all dimensions of a scatter's operand, and the dimensions of its updates, in their order there."""

    dimensions: tuple[_Place, ...]

    @property
    def whole(self) -> list[int]:
        """The shape of the operand with its dimensions split."""
        return [size for each in self.dimensions for size in each.split(each.groups, each.stride)]

    @property
    def starts(self) -> list[int]:
        """The first index of the slice that is updated."""
        parts = (each.split(each.start // each.stride, each.start % each.stride) for each in self.dimensions)
        return [start for part in parts for start in part]

    @property
    def sizes(self) -> list[int]:
        """The shape of that slice."""
        return [size for each in self.dimensions for size in each.split(each.count, 1)]

    @property
    def padding(self) -> list[int]:
        """The elements by which each dimension is padded, so that groups divide it."""
        return [each.groups * each.stride - each.size for each in self.dimensions]

    def update(self, op: ir.Operation, found: Sequence[Combiner]) -> list[ir.Value]:
        """Return what a scatter makes, by updates of slices."""
        starts, sizes, padding = self.starts, self.sizes, self.padding
        limits = [start + size for start, size in zip(starts, sizes, strict=True)]
        zeros = [0] * len(padding)
        order = [each.source for each in self.dimensions if each.source is not None]
        index = tensor([], element_of(op.operands[len(op.results)]))
        results = []
        for each, operand, update in zip(found, updated_operands(op), updates_of(op), strict=True):
            shape = shape_of(operand)
            padded = operand
            if any(padding):
                fill = splat(0, tensor([], element_of(operand)))
                padded = hlo.pad(operand, fill, *map(ir.DenseI64ArrayAttr.get, (zeros, padding, zeros)))
            array = reshape(padded, self.whole)
            kept = reshape(update, [shape_of(update)[i] for i in sorted(order)])
            new = reshape(transpose(kept, [sorted(order).index(i) for i in order]), sizes)
            if each.function != "overwrite":
                new = combined(each.function, hlo.slice(array, starts, limits, [1] * len(starts)), new)
            new = hlo.dynamic_update_slice(array, new, [splat(start, index) for start in starts])
            new = reshape(new, shape_of(padded))
            results.append(hlo.slice(new, zeros, shape, [1] * len(shape)) if any(padding) else new)
        return results


def _is_faster(places: _Places, op: ir.Operation, found: Sequence[Combiner]) -> bool:
    """Whether to update in place what a scatter does saves little, or costs no more as an update of a slice."""
    bits = min(dtype_of(operand).storage_bits for operand in updated_operands(op))
    is_plain = not any(places.padding) and all(each.function == "overwrite" for each in found)
    return is_plain or not pays_in_place(tuple(places.whole), tuple(places.sizes), bits, is_known=True)


def _places(op: ir.Operation, maps: ScatterMaps) -> _Places | None:
    """Return the places of a scatter's updates, None if they are not at equal distances, or if some may be equal."""
    rank = len(maps.update_shape)
    numbers = [_progression(op, maps, component) for component in range(len(maps.components))]
    places = []
    for size, result in zip(maps.operand_shape, maps.operand.results, strict=True):
        variables = sorted(result.variables()[0])
        own, components = [i for i in variables if i < rank], [i - rank for i in variables if i >= rank]
        number = numbers[components[0]] if components else Progression(0)
        if number is None or len(own) > 1 or (own and number.dim is not None):
            return None
        source = own[0] if own else number.dim
        count = 1 if source is None else maps.update_shape[source]
        stride = 1 if own or source is None else number.step
        if stride < 1 or number.start < 0 or number.start + (count - 1) * stride >= size:
            return None
        place = _Place(size, number.start, count, stride, source)
        if place.start // stride + count > place.groups:
            return None
        places.append(place)
    used = [each.source for each in places if each.source is not None]
    is_one_each = all(used.count(i) == 1 for i in range(rank) if maps.update_shape[i] > 1)
    return _Places(tuple(places)) if is_one_each and len(used) == len(set(used)) else None


def _progression(op: ir.Operation, maps: ScatterMaps, component: int) -> Progression | None:
    """Return a component of the index vectors, by the dimension of the updates along which it counts."""
    indices = op.operands[len(op.results)]
    vector_dim = ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"]).index_vector_dim
    number = _component(indices, component, vector_dim)
    if number is None or number.dim is None:
        return number
    if number.dim == vector_dim:
        return None
    batch_dims = [i for i in range(len(maps.update_shape)) if i not in maps.window_dims]
    return number.along(batch_dims[number.dim - (vector_dim < number.dim)])


def _component(indices: ir.Value, component: int, vector_dim: int) -> Progression | None:
    """Return what index vectors have as a component."""
    shape = shape_of(indices)
    if vector_dim == len(shape) or shape[vector_dim] == 1:
        return progression_of(indices)
    if is_argument(indices):
        return None
    op = producer(indices)
    if is_constant(indices):
        array = array_of(op) if is_readable(indices.type) else None
        return None if array is None else progression_of_array(array.take([component], vector_dim))
    if op.name != "stablehlo.concatenate" or integer(op, "dimension") != vector_dim:
        return None
    parts = list(op.operands)
    return progression_of(parts[component]) if len(parts) == shape[vector_dim] else None

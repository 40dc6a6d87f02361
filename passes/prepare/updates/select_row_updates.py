"""The pass `select-row-updates`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import combined, combiners, has_own_types, is_binary
from xgpu.analysis.in_place import SCATTER, updated_operands, updates_of
from xgpu.costs.values import is_immediate
from xgpu.hlo.constants import is_number
from xgpu.hlo.operations import direction_of
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, reshape, shape_of, splat_like
from xgpu.indexing.access import integer, integers
from xgpu.indexing.scatter_maps import ScatterMaps, scatter_maps
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import behind, dtype_of, is_argument, producer, replace_op

_EQUAL, _LESS = "EQ", "LT"
_SMALL_BYTES = 1 << 18
"""Bytes of an array that take less to move than a launch: a tenth of its time, read and stored, on any known GPU."""
_MOST_BEHIND = 16
"""Operations between an index and what counts the rows, at most."""


@dataclass(frozen=True)
class SelectRowUpdates(OperationRewrite):
    """Rewrites scatters of one update for each row, into equal numbers or small arrays, as selections.

    The gradient of a cross-entropy with labels is such a scatter: zeros but for one number in each row. As a scatter it
    is an array that one kernel fills, the next one updates and others read. Each element can tell by itself whether it
    is updated: by comparing its index with that of the row's update. So kernels compute it where they need it. The same
    is done for arrays that are moved in less time than a launch takes. Needs: nothing.

    ```mlir
    %new = "stablehlo.scatter"(%zeros, %labels, %u) ({ ... stablehlo.add ... })
        : (tensor<8x5xf32>, tensor<8x1x1xi32>, tensor<8x1xf32>) -> tensor<8x5xf32>
    ```
    becomes
    ```mlir
    %class = stablehlo.iota dim = 1 : tensor<8x5xi32>
    %label = stablehlo.broadcast_in_dim %labels... : tensor<8x5xi32>
    %here = stablehlo.compare EQ, %class, %label : tensor<8x5xi1>
    %sum = stablehlo.add %zeros, %update... : tensor<8x5xf32>
    %new = stablehlo.select %here, %sum, %zeros : tensor<8x5xi1>, tensor<8x5xf32>
    ```
    """

    NAME: ClassVar[str] = "select-row-updates"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a scatter if it is one of those."""
        if not has_own_types(op):
            return
        found, maps = combiners(op), scatter_maps(op)
        if not all(is_immediate(each) or (maps.windows > 1 and _is_small(each)) for each in updated_operands(op)):
            return
        if not all(each.alone and (is_binary(each.function) or each.function == "overwrite") for each in found):
            return
        if not math.prod(maps.operand_shape) or not math.prod(maps.update_shape):
            return
        rows = _rows(op, maps)
        if rows is None:
            return
        here = rows.here(op.operands[len(op.results)])
        results = []
        for each, old, update in zip(found, updated_operands(op), updates_of(op), strict=True):
            new = rows.spread(update, range(len(maps.update_shape)))
            if each.function != "overwrite":
                new = combined(each.function, old, new)
            results.append(new if here is None else hlo.select(here, new, old))
        replace_op(op, results)


@dataclass(frozen=True)
class _Rows:
    """The rows of a scatter with one update for each.

    ``places`` has the dimension of the operand that each dimension of the updates runs over; those left out have one
    element. ``batch_dims`` are the dimensions of the updates that the indices have as well, around ``vector_dim``.
    ``compared`` has, for each component of an index vector that places an update, the operand's dimension, or None
    where it must be 0.
    """

    shape: tuple[int, ...]
    places: dict[int, int]
    batch_dims: tuple[int, ...]
    vector_dim: int
    compared: dict[int, int | None]

    def spread(self, value: ir.Value, dims: Sequence[int]) -> ir.Value:
        """Return at each element what ``value``, with these dimensions of the updates, has for its row."""
        kept = [(i, size) for i, size in zip(dims, shape_of(value), strict=True) if i in self.places]
        return broadcast(reshape(value, [size for _, size in kept]), self.shape, [self.places[i] for i, _ in kept])

    def here(self, indices: ir.Value) -> ir.Value | None:
        """Return whether each element is the one of its row that is updated; None if all are."""
        here: ir.Value | None = None
        for component, target in self.compared.items():
            index = _component(indices, component, self.vector_dim)
            if dtype_of(index).bits < 32:
                index = convert(index, "i32")
            index = self.spread(index, self.batch_dims)
            own = splat_like(0, index) if target is None else hlo.iota(ir.RankedTensorType(index.type), target)
            equal = hlo.compare(own, index, hlo.ComparisonDirectionAttr.get(_EQUAL))
            here = equal if here is None else hlo.and_(here, equal)
        return here


def _is_small(value: ir.Value) -> bool:
    return math.prod(shape_of(value)) * dtype_of(value).storage_bits <= 8 * _SMALL_BYTES


def _rows(op: ir.Operation, maps: ScatterMaps) -> _Rows | None:
    """Return the rows of a scatter, None if some may have several updates, or if its windows move in a dimension."""
    indices, rank = op.operands[len(op.results)], len(maps.update_shape)
    vector_dim = ir.stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"]).index_vector_dim
    batch_dims = tuple(i for i in range(rank) if i not in maps.window_dims)
    places: dict[int, int] = {}
    compared: dict[int, int | None] = {}
    for target, result in enumerate(maps.operand.results):
        variables = sorted(result.variables()[0])
        own, components = [i for i in variables if i < rank], [i - rank for i in variables if i >= rank]
        is_whole = not own or maps.update_shape[own[0]] == maps.operand_shape[target]
        if not is_whole or (not variables and maps.operand_shape[target] > 1):
            return None
        places.update((i, target) for i in own)
        compared.update((component, None if own else target) for component in components)
    for component, place in list(compared.items()):
        counted = _counted_dim(_joined(indices, component, vector_dim))
        if place is not None and counted is not None and counted != vector_dim:
            counted = batch_dims[counted - (vector_dim < counted)]
            if counted not in places and maps.update_shape[counted] == maps.operand_shape[place]:
                places[counted] = place
                del compared[component]
    is_one_each = all(i in places or maps.update_shape[i] == 1 for i in range(rank))
    in_order = [places[i] for i in sorted(places)]
    if not is_one_each or in_order != sorted(in_order):
        return None
    return _Rows(maps.operand_shape, places, batch_dims, vector_dim, compared)


def _joined(indices: ir.Value, component: int, vector_dim: int) -> ir.Value | None:
    """Return the array that ``indices`` has as a component, if they are joined of one for each."""
    count = 1 if vector_dim == len(shape_of(indices)) else shape_of(indices)[vector_dim]
    if count == 1:
        return indices
    if is_argument(indices) or producer(indices).name != "stablehlo.concatenate":
        return None
    join = producer(indices)
    parts = list(join.operands)
    is_one_each = integer(join, "dimension") == vector_dim and len(parts) == count
    return parts[component] if is_one_each else None


def _component(indices: ir.Value, component: int, vector_dim: int) -> ir.Value:
    """Return a component of all index vectors, without their dimension."""
    shape, taken = shape_of(indices), _joined(indices, component, vector_dim)
    if taken is None:
        starts, limits = [0] * len(shape), list(shape)
        starts[vector_dim], limits[vector_dim] = component, component + 1
        taken = hlo.slice(indices, starts, limits, [1] * len(shape))
    return reshape(taken, [size for i, size in enumerate(shape) if i != vector_dim])


def _counted_dim(value: ir.Value | None, most: int = _MOST_BEHIND) -> int | None:
    """Return the dimension whose index each element of ``value`` is, None if that is not known.

    JAX adds the length to negative indices; a count has none. At most so many operations are looked at in a row.
    """
    if value is None or is_argument(value) or not most:
        return None
    op = producer(value)
    if op.name == "stablehlo.iota":
        counted: int = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        return counted if shape_of(value)[counted] <= 1 << (dtype_of(value).bits - 1) else None
    if op.name == "stablehlo.select":
        return _counted_dim(op.operands[2], most - 1) if _is_never(op.operands[0], most - 1) else None
    if op.name not in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        return None
    before = _counted_dim(op.operands[0], most - 1)
    if before is None:
        return None
    old, new = shape_of(op.operands[0]), shape_of(value)
    if op.name == "stablehlo.broadcast_in_dim":
        after = integers(op, "broadcast_dimensions")[before]
        return after if old[before] == new[after] else None
    outside = math.prod(old[:before])
    same = [i for i, size in enumerate(new) if size == old[before] and math.prod(new[:i]) == outside]
    return same[0] if same else None


def _is_never(condition: ir.Value, most: int) -> bool:
    """Whether ``condition`` is that a count is negative."""
    if is_argument(condition) or producer(condition).name != "stablehlo.compare":
        return False
    op = producer(condition)
    direction = direction_of(op)
    zero = behind(op.operands[1], "stablehlo.broadcast_in_dim")
    return direction == _LESS and is_number(zero, 0) and _counted_dim(op.operands[0], most) is not None

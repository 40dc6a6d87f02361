"""The pass `update-single-windows`."""

import math
from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.combiners import combined, combiners, has_own_types, is_binary
from xgpu.analysis.constants.integers import known_integers
from xgpu.analysis.in_place import SCATTER, chained_updates, pays_in_place
from xgpu.hlo.stablehlo_builder import hlo, reshape, splat, tensor
from xgpu.indexing.access import integer, shape_of
from xgpu.indexing.scatter_maps import scatter_maps
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import defining_op, dtype_of, element_of, producer, replace_op

_CONCATENATE = "stablehlo.concatenate"


@dataclass(frozen=True)
class UpdateSingleWindows(BlockRewrite):
    """Rewrites scatters of a single window at a known place, in most sectors of the array, as updates of a slice.

    ``x.at[1:-1].add(y)`` is such a scatter, and ``x.at[:, 2].set(y)`` for an array of four columns. Where memory has to
    move most of the array, as one access of a warp moves a short one, updating it in place saves nothing, and what
    reads the array or the result need not wait for a kernel of its own: kernels compute an update of a slice element by
    element. So they do with several updates of a small array, one after the other. An operand of a concatenation, such
    as ``jnp.stack([x, y]).at[1].add(z)`` updates, is another operand. Needs: nothing.

    ```mlir
    %1 = stablehlo.constant dense<1> : tensor<1xi32>
    %new = "stablehlo.scatter"(%x, %1, %y) ({ ... stablehlo.add ... }) : (tensor<8xf32>, ..., tensor<6xf32>) -> ...
    ```
    becomes
    ```mlir
    %old = stablehlo.slice %x [1:7] : (tensor<8xf32>) -> tensor<6xf32>
    %sum = stablehlo.add %old, %y : tensor<6xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %new = stablehlo.dynamic_update_slice %x, %sum, %one : (tensor<8xf32>, tensor<6xf32>, tensor<i32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "update-single-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCATTER,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Replace the scatters that are such."""
        chained = chained_updates(block)
        scatters = [(op, op in chained) for op in operations_of(block, self.OPERATIONS) if has_own_types(op)]
        for op, is_chained in scatters:
            with ir.InsertionPoint(op), op.location:
                if (results := _as_updates(op, is_chained)) is not None:
                    replace_op(op, results)


def _as_updates(op: ir.Operation, is_chained: bool) -> list[ir.Value] | None:
    """Return what a scatter makes, computed by updates of slices; None if it stays as it is.

    It does if an update in place pays, unless it ``is_chained``: one of several, one after the other.
    """
    count, found = len(op.results), combiners(op)
    maps = scatter_maps(op)
    if maps.windows != 1 or not math.prod(maps.update_shape):
        return None
    if not all(each.alone and (is_binary(each.function) or each.function == "overwrite") for each in found):
        return None
    known = known_integers(op.operands[count])
    if known is None:
        return None
    operands = list(op.operands)[:count]
    if not all(0 <= index <= bound for index, bound in zip(known, maps.bounds, strict=True)):
        # A window that is not inside as a whole is dropped.
        return operands
    first, last = [0] * len(maps.update_shape), [size - 1 for size in maps.update_shape]
    places = [result.evaluate(first + known, []) for result in maps.operand.results]
    limits = [result.evaluate(last + known, []) + 1 for result in maps.operand.results]
    sizes = tuple(limit - place for place, limit in zip(places, limits, strict=True))
    parts = [_part_at(operand, places, sizes) for operand in operands]
    bits = min(dtype_of(operand).storage_bits for operand in operands)
    if (
        None in parts
        and pays_in_place(maps.operand_shape, sizes, bits, is_known=True)
        and any(each.function != "overwrite" for each in found)
        and not is_chained
    ):
        return None
    results: list[ir.Value] = []
    for each, operand, update, part in zip(found, operands, list(op.operands)[count + 1 :], parts, strict=True):
        new = reshape(update, sizes)
        values = list(producer(operand).operands) if part is not None else []
        if each.function != "overwrite":
            old = values[part] if part is not None else hlo.slice(operand, places, limits, [1] * len(sizes))
            new = combined(each.function, old, new)
        if part is not None:
            values[part] = new
            results.append(hlo.concatenate(values, integer(producer(operand), "dimension")))
            continue
        starts = [splat(place, tensor([], element_of(op.operands[count]))) for place in places]
        results.append(hlo.dynamic_update_slice(operand, new, starts))
    return results


def _part_at(array: ir.Value, places: Sequence[int], sizes: Sequence[int]) -> int | None:
    """Return the number of the operand of a concatenation that a window takes the place of; None if it is not one."""
    op = defining_op(array)
    if op is None or op.name != _CONCATENATE:
        return None
    axis, start = integer(op, "dimension"), 0
    for number, operand in enumerate(op.operands):
        if start == places[axis] and shape_of(operand) == tuple(sizes):
            return number
        start += shape_of(operand)[axis]
    return None

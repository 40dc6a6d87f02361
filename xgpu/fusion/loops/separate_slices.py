"""Rewrites slices of slices in a loop's body as slices of the whole array, so that each element is read where it is.

``lhs[i][k]`` of an array that a loop goes through is an element of a slice. A thread that needs several of them would
compute the slice several times, which recurrences do not; each alone is one load.
"""

import math

from xgpu import ir
from xgpu.fusion.fallback import DYNAMIC_SLICE
from xgpu.hlo.stablehlo_builder import hlo, reshape, splat_like
from xgpu.indexing.access import integers, shape_of
from xgpu.structure import is_result_of, producer, replace_op

_SLICE = "stablehlo.slice"


def with_separate_slices(loop: ir.Operation) -> ir.Operation | None:
    """Return a copy of ``loop`` before it, in which no slice is taken of a slice; None if it has none."""
    (body,) = loop.regions[1].blocks
    if not any(_slice_behind(view.operation) is not None for view in body.operations):
        return None
    copy = loop.clone(ip=ir.InsertionPoint(loop))
    for op in [view.operation for view in copy.regions[1].blocks[0].operations]:
        if (inner := _slice_behind(op)) is not None:
            with ir.InsertionPoint(op), op.location:
                replace_op(op, [_slice_of_whole(op, inner)])
    return copy


def _slice_behind(op: ir.Operation) -> ir.Operation | None:
    """Return the slice at a place of run time of which ``op`` takes a slice, without dimensions of one element."""
    if op.name != _SLICE or any(stride != 1 for stride in integers(op, "strides")):
        return None
    value = op.operands[0]
    if is_result_of(value, "stablehlo.reshape"):
        value = producer(value).operands[0]
    if not is_result_of(value, DYNAMIC_SLICE) or not math.prod(shape_of(op.results[0])):
        return None
    left = [size for size in shape_of(value) if size > 1]
    return producer(value) if left == [size for size in shape_of(op.operands[0]) if size > 1] else None


def _slice_of_whole(op: ir.Operation, inner: ir.Operation) -> ir.Value:
    """Return what ``op`` takes of the slice ``inner``, as a slice of the array."""
    array, *starts = inner.operands
    whole, part = shape_of(array), shape_of(inner.results[0])
    bounds = zip(integers(op, "start_indices"), integers(op, "limit_indices"), shape_of(op.operands[0]), strict=True)
    cuts = iter([(first, last) for first, last, size in bounds if size > 1])
    places, sizes = [], []
    for start, all_, size in zip(starts, whole, part, strict=True):
        first, last = next(cuts) if size > 1 else (0, 1)
        # The slice begins where all of it still lies inside.
        inside = hlo.clamp(splat_like(0, start), start, splat_like(all_ - size, start))
        places.append(hlo.add(inside, splat_like(first, start)))
        sizes.append(last - first)
    return reshape(hlo.dynamic_slice(array, places, sizes), shape_of(op.results[0]))

"""Takes the dimensions of what is reduced in the order in which they lie in memory."""

import math
from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.device import Device
from xgpu.errors import Unsupported
from xgpu.frontend.stablehlo_builder import element_of, hlo, tensor
from xgpu.fusion.heroes import hero_kind, is_reduction
from xgpu.fusion.left import reason_to_leave
from xgpu.fusion.reduction_regions import is_commutative
from xgpu.fusion.reduction_rewrites import reductions
from xgpu.fusion.reduction_shape import ReductionShape
from xgpu.indexing.access import Shape, identity_map, shape_of
from xgpu.indexing.affine import Dim, linearize
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.options import Options

type _Reads = tuple[tuple[int, IndexingMap | None], ...]
type _Known = dict[ir.Operation, _Reads | None]

_MOST_READS = 256
"""Reads that are followed back to arrays in memory; what is read by more keeps its order."""


def order_reductions(main: ir.func.FuncOp, target: Device, options: Options) -> None:
    """Transpose what reductions read where that makes neighbours in memory neighbours, and transpose the results back.

    A sum over the columns of a transposed array is one over rows: two transposes in turn are no computation.
    """
    known: _Known = {}
    for op in reductions(main):
        if is_reduction(op):
            order = _order_in_memory(op, known)
            if order is not None and _may_be_ordered(op, order):
                with op.location:
                    _transpose(op, order)


def arrays_read(
    value: ir.Value, fewest: int = 0, known: _Known | None = None
) -> Iterator[tuple[ir.Value, IndexingMap]]:
    """Yield the arrays in memory that ``value`` is computed from, and which element of each an element depends on.

    Those are arguments, and results of operations that need kernels of their own. Reads at positions that are known
    only at run time are left out, and so are those beyond the first `_MOST_READS`, and values of less than ``fewest``
    elements with all that they are computed from. ``known`` keeps what was found out about operations.
    """
    known = {} if known is None else known
    pending = [(value, identity_map(shape_of(value)))]
    seen = set(pending)
    while pending:
        value, map_ = pending.pop()
        if isinstance(value.owner, ir.Block):
            yield value, map_
            continue
        op = value.owner.operation
        if op not in known:
            known[op] = _reads(op)
        reads = known[op]
        if reads is None:
            yield value, map_
            continue
        for number, step in reads:
            operand = op.operands[number]
            if len(seen) < _MOST_READS and math.prod(shape_of(operand)) >= fewest:
                found = (operand, map_ if step is None else map_.compose(step).simplify())
                pending += [] if found in seen else [found]
                seen.add(found)


def _reads(op: ir.Operation) -> _Reads | None:
    """Return the operands that ``op`` reads at positions known before it runs, by number, and at which.

    The map is None where that is the result's own position. None if the results of ``op`` are in memory whoever reads
    them: those of heroes, and of what is left to XLA.
    """
    if hero_kind(op) is not None or reason_to_leave(op) is not None:
        return None
    try:
        reads = accesses(op)
    except Unsupported:
        return None
    same = identity_map(shape_of(op.results[0]))
    return tuple((read.operand, None if read.map == same else read.map) for read in reads if not read.runtime)


def _order_in_memory(op: ir.Operation, known: _Known) -> tuple[int, ...] | None:
    """Return the dimensions of what a reduction reads from the farthest apart in memory to the nearest.

    None if arrays of its size lie in different orders, or in no order of dimensions.
    """
    shape = shape_of(op.operands[0])
    orders: set[tuple[int, ...]] = set()
    # What has fewer elements than the reduction cannot tell one dimension from another.
    for operand in list(op.operands)[: len(op.results)]:
        for array, map_ in arrays_read(operand, math.prod(shape), known):
            strides = _strides(array, map_, shape)
            if strides is not None:
                # Dimensions of one element do not matter: they stay where they are.
                orders.add(tuple(sorted(range(len(shape)), key=lambda i: (-strides[i], i))))
    return orders.pop() if len(orders) == 1 else None


def _strides(array: ir.Value, map_: IndexingMap, shape: Shape) -> list[int] | None:
    """Return how far apart in ``array`` neighbours along each dimension of ``shape`` are.

    None if the array is smaller than ``shape``, or if its positions are no sum of multiples of indices.
    """
    of_array = shape_of(array)
    strides = [0] * len(shape)
    if map_.constraints or map_.is_empty():
        return None
    for atom, factor in linearize(map_.results, of_array).terms:
        if isinstance(atom, Dim):
            strides[atom.index] = factor
        else:
            return None
    if any(size > 1 and stride <= 0 for size, stride in zip(shape, strides, strict=True)):
        return None
    # A dimension of one element goes with the next one, so that arrays in row-major order are in that order.
    for i in reversed(range(len(shape))):
        if shape[i] == 1:
            strides[i] = strides[i + 1] * shape[i + 1] if i + 1 < len(shape) else 1
    return strides


def _may_be_ordered(op: ir.Operation, order: Sequence[int]) -> bool:
    """Whether an order is another than that of the dimensions, and elements may be combined in it."""
    shape = ReductionShape.of(op)
    reduced = [i for i in order if i in shape.dimensions]
    return list(order) != sorted(order) and (is_commutative(op) or reduced == sorted(reduced))


def _transpose(op: ir.Operation, order: Sequence[int]) -> None:
    """Have a reduction take its dimensions in ``order``; its results are transposed back."""
    shape = ReductionShape.of(op)
    kept = [i for i in order if i not in shape.dimensions]
    with ir.InsertionPoint(op):
        for number in range(len(op.results)):
            op.operands[number] = hlo.transpose(op.operands[number], list(order))
    positions = [position for position, i in enumerate(order) if i in shape.dimensions]
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(positions)
    if kept == sorted(kept):
        return
    with ir.InsertionPoint.after(op):
        for result in op.results:
            result.set_type(tensor([shape.shape[i] for i in kept], element_of(result)))
            back = hlo.TransposeOp(result, [kept.index(i) for i in sorted(kept)]).operation
            result.replace_all_uses_except(back.results[0], back)

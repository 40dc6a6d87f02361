"""The pass `concatenate-pads`."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from xgpu import ir
from xgpu.analysis.constants.integers import known_integers
from xgpu.analysis.in_place import UPDATE_SLICE
from xgpu.hlo.constants import splat_of
from xgpu.hlo.stablehlo_builder import hlo, reshape, splat, splat_like, tensor
from xgpu.indexing.access import Shape, integer, integers, shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.passes.support.index_ops import erase_unused
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, is_shared, users_of

_ADD, _PAD = "stablehlo.add", "stablehlo.pad"
_MOST_CUTS = 2
"""The number of times that each dimension is cut: once, and once more within the parts of a cut of another."""
Term = ir.Value | tuple["Term", ...]
"""A value, or several to be added from the first to the last."""


@dataclass(frozen=True)
class ConcatenatePads(BlockRewrite):
    """Replaces sums of arrays that zeros surround, each at another place, by concatenations.

    The gradient of a program that names columns, ``x[:, 0]``, halves, ``jnp.split(x, 2)``, or every second element,
    ``x[::2]``, pads the gradient of each with zeros and adds them all. Every element of the sum is one of a single
    array, and a kernel would ask each array for it. Arrays at the same place are added before. An array of zeros that
    is updated at a known place is a pad too. A zero is added to each array of floats, as the sum of a negative zero and
    a positive one is positive, but for what zeros were added to before. All else is added in the order of the program.
    Arrays that overlap stay as they are, and so do those that no cuts through the whole array separate. Needs:
    sink-constants.

    ```mlir
    %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<8x1xf32>, ...) -> ...
    %1 = stablehlo.pad %y, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<8x1xf32>, ...) -> ...
    %2 = stablehlo.add %0, %1 : tensor<8x2xf32>
    ```
    becomes
    ```mlir
    %zeros = stablehlo.constant dense<0.0> : tensor<8x1xf32>
    %0 = stablehlo.add %x, %zeros : tensor<8x1xf32>
    %1 = stablehlo.add %y, %zeros : tensor<8x1xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
    ```
    """

    NAME: ClassVar[str] = "concatenate-pads"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_PAD, UPDATE_SLICE))

    def rewrite_block(self, block: ir.Block) -> None:
        """Rewrite the sums of ``block``, each with all that is added up for it alone."""
        sums = dict[ir.Value, _Sum]()
        replaced = list[ir.Operation]()
        operations = operations_of(block, (_PAD, UPDATE_SLICE, _ADD))
        for op in operations:
            if not _is_plain_add(op):
                continue
            left, right = (sums.pop(value) if value in sums else _Sum.of(value) for value in op.operands)
            with ir.InsertionPoint(op), op.location:
                total = _added(op.results[0], left, right)
                if _is_added(op):
                    sums[op.results[0]] = total
                elif total.is_joined and (value := total.value()) != op.results[0]:
                    op.results[0].replace_all_uses_with(value)
                    replaced.append(op)
        if replaced:
            erase_unused(operations)


def _is_plain_add(op: ir.Operation) -> bool:
    """Whether ``op`` is an addition of which nothing else is known: others are marked for XLA, say."""
    return op.name == _ADD and not len(op.attributes)


def _is_added(op: ir.Operation) -> bool:
    """Whether the result of ``op`` is used once, by an addition in its block."""
    result = op.results[0]
    return not is_shared(result) and any(_is_plain_add(user) and user.block == op.block for user in users_of(result))


@dataclass(frozen=True)
class _Pieces:
    """Arrays in boxes that do not overlap: for each box a row of starts, one of sizes and one of strides."""

    boxes: NDArray[np.int64]
    terms: tuple[Term, ...]

    @classmethod
    def none(cls, rank: int) -> Self:
        """Return no arrays."""
        return cls(np.empty((0, 3, rank), np.int64), ())

    def __bool__(self) -> bool:
        return bool(self.terms)

    def with_all(self, others: "_Pieces", are_alone: bool) -> "_Pieces | None":
        """Return these and others; None if some overlap.

        In the same box they are added, if they ``are_alone``: if there is nothing that these are to be added to first.
        """
        boxes, terms = self.boxes, list(self.terms)
        added = list[NDArray[np.int64]]()
        for box, term in zip(others.boxes, others.terms, strict=True):
            same = np.flatnonzero((boxes == box).all((1, 2)))
            if len(same) and are_alone:
                terms[same[0]] = _plus(terms[same[0]], term)
            elif _are_apart(boxes, box):
                added.append(box)
                terms.append(term)
            else:
                return None
        return _Pieces(np.concatenate([boxes, np.array(added, np.int64).reshape(-1, *boxes.shape[1:])]), tuple(terms))


def _plus(left: Term, right: Term) -> Term:
    """Return the sum of two terms, in which as few are inside others as can be: an addition's operands may change."""
    is_turned = isinstance(right, tuple) and not isinstance(left, tuple)
    first, second = (right, left) if is_turned else (left, right)
    return (*first, second) if isinstance(first, tuple) else (first, second)


def _are_apart(boxes: NDArray[np.int64], box: NDArray[np.int64]) -> bool:
    """Whether no box overlaps another one: along a dimension they are in other places, or between its elements."""
    starts, sizes, strides = boxes[:, 0], boxes[:, 1], boxes[:, 2]
    dense = (strides == 1) & (box[2] == 1)
    beside = dense & ((starts >= box[0] + box[1]) | (starts + sizes <= box[0]))
    between = (strides > 1) & (strides == box[2]) & (starts != box[0])
    return bool((beside | between).any(1).all())


@dataclass(frozen=True)
class _Sum:
    """An array: ``dense``, if there is one, and what is added to it in boxes."""

    original: ir.Value
    dense: ir.Value | None
    pieces: _Pieces
    is_joined: bool = False
    """Whether it is made in another way than the program makes it."""
    has_zeros: bool = False
    """Whether an array of zeros alone is one of those that are added in boxes."""

    @classmethod
    def of(cls, value: ir.Value) -> "_Sum":
        """Return a value as a piece if it is an array that zeros surround, and as none if all of it is zeros."""
        padded = _padded(value)
        has_zeros = padded is None and _is_zero(value)
        dense = value if padded is None and not has_zeros else None
        return cls(value, dense, padded or _Pieces.none(len(shape_of(value))), has_zeros=has_zeros)

    @property
    def is_whole(self) -> bool:
        """Whether it has elements everywhere, be they zeros."""
        return self.dense is not None or not self.pieces

    def value(self) -> ir.Value:
        """Create the array; if that cannot be, return the one of the program."""
        if not self.is_joined:
            return self.original
        if not self.pieces:
            return self.dense or self.original
        # One array has no zeros of another beside it, unless the program adds some: to know their sign, they stay.
        is_alone = len(self.pieces.terms) == 1
        made = None if is_alone and self.has_zeros else _put_together(self.pieces, self.original)
        if made is None:
            return self.original
        return made if self.dense is None else hlo.add(self.dense, made)


def _added(result: ir.Value, left: _Sum, right: _Sum) -> _Sum:
    """Return the sum ``result`` of two sums."""
    is_joined = left.is_joined or right.is_joined
    if left.is_whole and right.is_whole:
        dense = hlo.add(left.value(), right.value()) if is_joined else result
        return _Sum(result, dense, _Pieces.none(len(shape_of(result))), is_joined)
    # Those with fewer pieces are added to those with more, each of which is compared with all others at once.
    is_turned = right.is_whole or (not left.is_whole and len(left.pieces.terms) < len(right.pieces.terms))
    first, second = (right, left) if is_turned else (left, right)
    pieces = first.pieces.with_all(second.pieces, are_alone=first.dense is None)
    if pieces is None:
        return _Sum(result, first.value(), second.pieces, is_joined, second.has_zeros)
    has_zeros = first.has_zeros or second.has_zeros
    return _Sum(result, first.dense, pieces, is_joined or bool(first.pieces), has_zeros)


def _padded(value: ir.Value) -> _Pieces | None:
    """Return what zeros surround in ``value``, if that is how it is made and it is a part that cuts can separate."""
    op = defining_op(value)
    found = _PADDED[op.name](op) if op is not None and op.name in _PADDED else None
    if found is None:
        return None
    array, starts, strides = found
    shape, sizes = shape_of(value), shape_of(array)
    if 0 in sizes or sizes == shape:
        return None
    for size, start, part, stride in zip(shape, starts, sizes, strides, strict=True):
        if stride > 1 and (size % stride or part != size // stride or start >= stride):
            return None
    return _Pieces(np.array([[starts, sizes, strides]], np.int64), (array,))


Padded = tuple[ir.Value, Sequence[int], Sequence[int]]
"""An array, where its first element is, and how far apart its elements are."""


def _pad(op: ir.Operation) -> Padded | None:
    array, number = op.operands
    low, high = integers(op, "edge_padding_low"), integers(op, "edge_padding_high")
    if min((*low, *high), default=0) < 0 or not _is_zero(number):
        return None
    apart = zip(integers(op, "interior_padding"), shape_of(array), strict=True)
    return array, low, [interior + 1 if size > 1 else 1 for interior, size in apart]


def _update(op: ir.Operation) -> Padded | None:
    array, update, *indices = op.operands
    if not _is_zero(array):
        return None
    starts = list[int]()
    for index, size, part in zip(indices, shape_of(array), shape_of(update), strict=True):
        known = known_integers(index)
        if known is None:
            return None
        starts.append(min(max(known[0], 0), size - part))
    return update, starts, [1] * len(starts)


_PADDED = {_PAD: _pad, UPDATE_SLICE: _update}


def _is_zero(value: ir.Value) -> bool:
    """Whether all elements of an array are known to be zero, and none a negative zero."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name in ("stablehlo.broadcast_in_dim", "stablehlo.complex"):
        return all(map(_is_zero, op.operands))
    splat: Any = splat_of(op) if op.name == "stablehlo.constant" else None
    return splat is not None and splat.value == 0 and math.copysign(1, splat.value) > 0


@dataclass(frozen=True)
class _Part:
    """A term in a box of an array whose strided dimensions are two: how often the stride fits, and the stride."""

    starts: Shape
    sizes: Shape
    term: Term


def _put_together(pieces: _Pieces, like: ir.Value) -> ir.Value | None:
    """Create the array of which these are the pieces, of the type of ``like``; None if no cuts separate them."""
    shape = shape_of(like)
    if len(pieces.terms) == 1:
        return _surrounded(pieces, shape)
    strides = [int(stride) for stride in pieces.boxes[:, 2].max(0)]
    parts = list[_Part]()
    for box, term in zip(pieces.boxes.tolist(), pieces.terms, strict=True):
        part = _in_view(box, strides, term)
        if part is None:
            return None
        parts.append(part)
    all_ = _in_view(([0] * len(shape), shape, [1] * len(shape)), strides, ())
    assert all_ is not None
    made = _concatenated(parts, all_, element_of(like), _MOST_CUTS * len(all_.sizes))
    return None if made is None else reshape(made, shape)


def _in_view(box: Sequence[Sequence[int]], strides: Sequence[int], term: Term) -> _Part | None:
    """Return a box in an array whose dimensions are two where they are strided; None if it is none there."""
    starts, sizes = list[int](), list[int]()
    for start, size, stride, most in zip(*box, strides, strict=True):
        if most == 1:
            starts.append(start)
            sizes.append(size)
        elif stride == most:
            starts += (0, start)
            sizes += (size, 1)
        elif start % most or size % most:
            return None
        else:
            starts += (start // most, 0)
            sizes += (size // most, most)
    return _Part(tuple(starts), tuple(sizes), term)


def _concatenated(
    parts: Sequence[_Part], all_: _Part, element: ir.Type, cuts: int, around: int | None = None
) -> ir.Value | None:
    """Create the elements in the box of ``all_``, in at most so many cuts inside one another; None if that is none.

    They become an operand of a concatenation along the dimension ``around``, if it is one.
    """
    if not parts:
        return splat(0, tensor(all_.sizes, element))
    for axis in range(len(all_.sizes)):
        segments = _segments(parts, axis, all_)
        if len(segments) > 1:
            values = [_concatenated(inside, box, element, cuts - 1, axis) for box, inside in segments if cuts]
            return hlo.concatenate(values, axis) if values and not any(each is None for each in values) else None
    if len(parts) > 1:
        return None
    return reshape(_total(parts[0].term, around), parts[0].sizes)


def _segments(parts: Sequence[_Part], axis: int, all_: _Part) -> list[tuple[_Part, list[_Part]]]:
    """Cut the box of ``all_`` along a dimension where no part is cut: return boxes, each with the parts in it."""
    limit = all_.starts[axis]
    segments = list[tuple[int, list[_Part]]]()
    for part in sorted(parts, key=lambda each: each.starts[axis]):
        start = part.starts[axis]
        if start > limit:
            segments.append((limit, []))
        if start >= limit:
            segments.append((start, []))
        segments[-1][1].append(part)
        limit = max(limit, start + part.sizes[axis])
    end = all_.starts[axis] + all_.sizes[axis]
    if limit < end:
        segments.append((limit, []))
    limits = [start for start, _ in segments[1:]] + [end]
    return [
        (_Part(_with(all_.starts, axis, start), _with(all_.sizes, axis, stop - start), ()), inside)
        for (start, inside), stop in zip(segments, limits, strict=True)
    ]


def _with(numbers: Shape, axis: int, number: int) -> Shape:
    return (*numbers[:axis], number, *numbers[axis + 1 :])


def _total(term: Term, around: int | None) -> ir.Value:
    """Create the sum of a term and the zeros beside it.

    Zeros were added to all that another concatenation along ``around`` is put together from: the two will be one.
    """
    total = _sum_of(term)
    has_zeros = isinstance(element_of(total), ir.IntegerType) or _is_joined_beside_zeros(total, around)
    return total if has_zeros else hlo.add(total, splat_like(0, total))


def _is_joined_beside_zeros(value: ir.Value, axis: int | None) -> bool:
    """Whether an array is put together along a dimension of what zeros were added to: it has no negative zero."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.concatenate" or integer(op, "dimension") != axis:
        return False
    return all(_has_added_zeros(operand) or _is_joined_beside_zeros(operand, axis) for operand in op.operands)


def _has_added_zeros(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == _ADD and any(map(_is_zero, op.operands))


def _sum_of(term: Term) -> ir.Value:
    if not isinstance(term, tuple):
        return term
    total, *rest = map(_sum_of, term)
    for each in rest:
        total = hlo.add(total, each)
    return total


def _surrounded(pieces: _Pieces, shape: Sequence[int]) -> ir.Value:
    """Create an array of zeros around the only piece."""
    array = _sum_of(pieces.terms[0])
    starts, sizes, strides = pieces.boxes[0].tolist()
    limits = [start + (size - 1) * stride + 1 for start, size, stride in zip(starts, sizes, strides, strict=True)]
    high = [whole - limit for whole, limit in zip(shape, limits, strict=True)]
    zero = splat(0, tensor([], element_of(array)))
    return hlo.pad(array, zero, starts, high, [stride - 1 for stride in strides])

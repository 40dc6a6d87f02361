"""The pass `slice-parts`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.constants.integers import known_integers
from xgpu.analysis.in_place import UPDATE_SLICE, can_update_in_place
from xgpu.hlo.stablehlo_builder import reshape, tensor
from xgpu.indexing.access import Shape, integer, integers, shape_of
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import element_of, is_argument, producer, replace_op, users_of

_CONCATENATE, _SLICE, _RESHAPE, _PAD = (f"stablehlo.{name}" for name in ("concatenate", "slice", "reshape", "pad"))


@dataclass(frozen=True)
class SliceParts(BlockRewrite):
    """Replaces slices of what is put together, through reshapes and other slices, by slices of the parts.

    Programs put values together and take them apart again, as JAX does with the words of a random key. A kernel that
    reads one word would otherwise ask of every element which part it lies in, and a chain of keys, each derived from
    the words of the one before, would be computed twice as often with every step. A slice that lies in a single part is
    a slice of that part. Parts are those of a concatenation, what a pad is put around, and, where the place of an
    update is known, the update and the array around it. Slices of most of a part that is put together as well stay, if
    the whole is read otherwise, too: all read one array then. Needs: nothing.

    ```mlir
    %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
    %1 = stablehlo.slice %0 [3:5] : (tensor<8xf32>) -> tensor<2xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
    %1 = stablehlo.slice %b [1:3] : (tensor<6xf32>) -> tensor<2xf32>
    ```
    """

    NAME: ClassVar[str] = "slice-parts"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_SLICE,))

    def rewrite_block(self, block: ir.Block) -> None:
        """Replace the slices of ``block`` all of which lie in one part."""
        waiting: dict[ir.Value, list[tuple[ir.Operation, _Box]]] = {}
        for op in operations_of(block, self.OPERATIONS):
            part = _part(_Box.of(op))
            if part is not None and _is_joined(part):
                waiting.setdefault(op.operands[0], []).append((op, part))
            elif part is not None:
                _replace(op, part)
        # The last first: an array may be a slice that waits for its own array, which replacing it erases.
        for array, slices in reversed(waiting.items()):
            # Each of several parts would be an array of its own to compute, or to store.
            if len(users_of(array)) == len(slices) and len({part.array for _, part in slices}) == 1:
                for op, part in slices:
                    _replace(op, part)


def _replace(op: ir.Operation, part: "_Box") -> None:
    """Replace a slice by the elements of a part."""
    with ir.InsertionPoint(op), op.location:
        replace_op(op, [reshape(_cut(part), shape_of(op.results[0]))])


def _is_joined(part: "_Box") -> bool:
    """Whether a box is most of an array that is put together of several."""
    if is_argument(part.array) or producer(part.array).name not in (_CONCATENATE, _PAD):
        return False
    return 2 * math.prod(part.sizes) > math.prod(shape_of(part.array))


@dataclass(frozen=True)
class _Box:
    """Elements of an array: from ``starts`` on, as many as ``sizes`` along each dimension, ``strides`` apart."""

    array: ir.Value
    starts: tuple[int, ...]
    sizes: Shape
    strides: tuple[int, ...]

    @classmethod
    def of(cls, op: ir.Operation) -> "_Box | None":
        """Return what a slice takes; None if that is nothing."""
        sizes, strides = shape_of(op.results[0]), integers(op, "strides")
        if not all(sizes):
            return None
        apart = tuple(stride if size > 1 else 1 for size, stride in zip(sizes, strides, strict=True))
        return cls(op.operands[0], tuple(integers(op, "start_indices")), sizes, apart)

    @property
    def limits(self) -> tuple[int, ...]:
        """The indices after the last ones."""
        taken = zip(self.starts, self.sizes, self.strides, strict=True)
        return tuple(start + (size - 1) * stride + 1 for start, size, stride in taken)


def _part(box: _Box | None) -> _Box | None:
    """Follow a box to where its elements come from; return it in the last part that was found to hold all of it."""
    found = None
    while box is not None and not is_argument(box.array):
        op = producer(box.array)
        if op.name in _PARTS:
            box = _PARTS[op.name](op, box)
            # What is read of an array that is updated in place would have to be read before.
            if box is not None and not (box.array == op.operands[0] and can_update_in_place(op)):
                found = box
        elif op.name == _SLICE:
            box = _in_sliced(op, box)
        elif op.name == _RESHAPE:
            box = _in_shape(op.operands[0], box)
        else:
            return found
    return found


def _in_operand(op: ir.Operation, box: _Box) -> _Box | None:
    """Return the box in the operand of a concatenation that holds all of it."""
    axis, offset = integer(op, "dimension"), 0
    start = box.starts[axis]
    for operand in op.operands:
        size = shape_of(operand)[axis]
        if offset <= start and box.limits[axis] <= offset + size:
            return replace(box, array=operand, starts=(*box.starts[:axis], start - offset, *box.starts[axis + 1 :]))
        offset += size
    return None


def _in_updated(op: ir.Operation, box: _Box) -> _Box | None:
    """Return the box in the update or in the array, if the place of the update is known.

    Most of an array is read as well where it is, so that readers of the whole and of its inside share one array.
    """
    array, update, *indices = op.operands
    whole, part = shape_of(array), shape_of(update)
    if 2 * math.prod(box.sizes) > math.prod(whole):
        return None
    starts = list[int]()
    for index, size, all_ in zip(indices, part, whole, strict=True):
        known = known_integers(index)
        if known is None:
            return None
        starts.append(min(max(known[0], 0), all_ - size))
    return _where(box, starts, part, update, array)


def _in_padded(op: ir.Operation, box: _Box) -> _Box | None:
    """Return the box in what ``op`` pads, if it takes nothing of the padding."""
    if any(integers(op, "interior_padding")):
        return None
    return _where(box, integers(op, "edge_padding_low"), shape_of(op.operands[0]), op.operands[0], None)


def _where(
    box: _Box, starts: Sequence[int], sizes: Sequence[int], inner: ir.Value, outer: ir.Value | None
) -> _Box | None:
    """Return the box in the array that lies in another one at ``starts``, or in that other one beside it."""
    taken = list(zip(box.starts, box.limits, starts, sizes, strict=True))
    if all(start <= first and limit <= start + size for first, limit, start, size in taken):
        moved = tuple(first - start for first, start in zip(box.starts, starts, strict=True))
        return replace(box, array=inner, starts=moved)
    is_beside = any(limit <= start or start + size <= first for first, limit, start, size in taken)
    return None if outer is None or not is_beside else replace(box, array=outer)


_PARTS: Mapping[str, Callable[[ir.Operation, _Box], _Box | None]] = {
    _CONCATENATE: _in_operand,
    UPDATE_SLICE: _in_updated,
    _PAD: _in_padded,
}


def _in_sliced(op: ir.Operation, box: _Box) -> _Box | None:
    """Return the box in the array that ``op`` slices."""
    first, apart = integers(op, "start_indices"), integers(op, "strides")
    starts = tuple(f + start * a for f, start, a in zip(first, box.starts, apart, strict=True))
    strides = tuple(
        stride * a if size > 1 else 1 for stride, a, size in zip(box.strides, apart, box.sizes, strict=True)
    )
    return replace(box, array=op.operands[0], starts=starts, strides=strides)


def _in_shape(array: ir.Value, box: _Box) -> _Box | None:
    """Return the box in an array of another shape, if it is a run of elements in memory and a box there too."""
    count = math.prod(box.sizes)
    if max(box.strides, default=1) > 1 or _run(count, shape_of(box.array)) != box.sizes:
        return None
    position = 0
    for start, size in zip(box.starts, shape_of(box.array), strict=True):
        position = position * size + start
    shape, starts = shape_of(array), list[int]()
    for size in reversed(shape):
        position, start = divmod(position, size)
        starts.insert(0, start)
    sizes = _run(count, shape)
    if sizes is None or any(s + n > size for s, n, size in zip(starts, sizes, shape, strict=True)):
        return None
    return _Box(array, tuple(starts), sizes, (1,) * len(sizes))


def _run(count: int, shape: Sequence[int]) -> Shape | None:
    """Return the sizes of a box of so many elements that lie one after the other in an array, if there is one."""
    sizes: list[int] = []
    for size in reversed(shape):
        taken = min(count, size)
        if count % taken:
            return None
        sizes.insert(0, taken)
        count //= taken
        if taken < size and count > 1:
            return None
    return tuple(sizes) if count == 1 else None


def _cut(box: _Box) -> ir.Value:
    """Return the elements of a box: the array itself if these are all."""
    if shape_of(box.array) == box.sizes:
        return box.array
    numbers = {"start_indices": box.starts, "limit_indices": box.limits, "strides": box.strides}
    attributes: dict[str, ir.Attribute] = {
        name: ir.DenseI64ArrayAttr.get(list(values)) for name, values in numbers.items()
    }
    type_ = tensor(box.sizes, element_of(box.array))
    return ir.Operation.create(_SLICE, results=[type_], operands=[box.array], attributes=attributes).results[0]

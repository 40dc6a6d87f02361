"""The pass `split-reductions`."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.analysis.heroes import SMALL_REDUCTION, is_reduction
from xgpu.analysis.reduction_regions import is_commutative
from xgpu.analysis.reduction_shape import REDUCE, ReductionShape
from xgpu.costs.occupancy import blocks_that_fill, elements_of_a_launch
from xgpu.costs.recomputation import MOST_VISITED
from xgpu.costs.registers import FEWEST_COLUMNS, longest_column
from xgpu.costs.traffic import Slices, bytes_touched
from xgpu.costs.values import elements
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName
from xgpu.dialects.attributes import FIRST_EXTREME
from xgpu.hlo.operations import OPERATIONS, AccessKind
from xgpu.hlo.stablehlo_builder import Value, hlo, reshape, shape_of, tensor
from xgpu.indexing.hlo_maps import access_kind, unchanged
from xgpu.passes.framework.base import BlockRewrite, operations_of
from xgpu.records import dataclass
from xgpu.structure import element_of, users_of

SMALLEST_PART = 1 << 13
"""Fewest elements of a part: more parts are not faster to reduce, and take longer to combine."""
LINE = 64
"""Columns that a block usually reads, 256 bytes of f32 or 128 of bf16."""
FOLDED = 128
"""Columns that a row should have for every lane of a warp to read 16 bytes of it."""
ALIGNMENT = 16
"""Alignment of a part's start in elements: no wider access is made."""
LEAST = 2 * SMALL_REDUCTION
"""Fewest elements of a part that are combined: fewer are computed again by whatever reads their result."""
_FEW = 8
"""Elements that parts keep for each one that is left over beside them, so that it counts for little."""
LARGE = 1 << 20
"""Elements that take longer to read in small pieces than another kernel takes to start."""
READ = 16
"""Instructions for an element that a block executes while it is read."""
_COMPUTED: tuple[AccessKind, ...] = ("elementwise", "indexing", "piecewise")
NARROW_ROW = 32
"""Elements up to which a row, reduced together with dimensions further out, is too short for coalesced accesses."""


@dataclass(frozen=True)
class SplitReductions(BlockRewrite):
    """Splits reductions in two where one kernel would leave most of a device idle, or would read in small pieces.

    The first reduces parts of the elements of each result, the second combines the parts. So results do not depend on
    timing, as they would if blocks updated them in the order in which they end. Needs: start-from-identity, as each
    part starts from the initial value, and order-reductions.

    ```mlir
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<1048576xf32>, tensor<f32>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.reshape %x : (tensor<1048576xf32>) -> tensor<128x8192x1xf32>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<128x8192x1xf32>, tensor<f32>) -> tensor<128x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<128x1xf32>) -> tensor<128xf32>
    %sum = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<128xf32>, tensor<f32>) -> tensor<f32>
    ```
    """

    NAME: ClassVar[str] = "split-reductions"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((REDUCE,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU that kernels are for."""

    def rewrite_block(self, block: ir.Block) -> None:
        """Split the reductions of ``block`` that need it, and again what that leaves."""
        pending, views, gpu = operations_of(block, self.OPERATIONS), _Views(), self.target.device
        while pending := [op for op in pending if is_reduction(op)]:
            with unchanged(view.operation for view in block.operations):
                weights = _weights(pending, gpu)
            made = list[ir.Operation]()
            for op in pending:
                parts = None if _is_held(op) else _parts_of(op, weights[_key(op)], gpu)
                if parts is not None:
                    with op.location, ir.InsertionPoint(op):
                        made += _split(op, parts, views)
            pending = made


type _Key = tuple[tuple[int, ...], tuple[int, ...]]
"""The shape that is reduced, and its reduced dimensions."""


def _key(op: ir.Operation) -> _Key:
    shape = ReductionShape.of(op)
    return shape.shape, shape.dimensions


@dataclass(frozen=True)
class _Weight:
    """The times that a thread takes to read an element, and to compute it, relative to reading 4 bytes."""

    read: float = 1.0
    computed: float = 0.0

    def longest(self, other: "_Weight") -> "_Weight":
        """Return the longer times of both."""
        return _Weight(max(self.read, other.read), max(self.computed, other.computed))

    @property
    def larger(self) -> float:
        """The longer of the two times; the other work is done in the meantime."""
        return max(self.read, self.computed)


def _weights(reductions: Sequence[ir.Operation], target: Device) -> Mapping[_Key, _Weight]:
    """Return how long an element takes, at least as long as to read 4 bytes.

    Reductions of the same dimensions count as the longest of them: split alike, they can be one kernel. Of those that
    have blocks enough nothing is asked.
    """
    weights: dict[_Key, _Weight] = {}
    slices = Slices()
    for op in reductions:
        weight = _Weight()
        if _blocks(ReductionShape.of(op)) < target.sm_count:
            operands = list(op.operands)[: len(op.results)]
            weight = _Weight(max(1.0, bytes_touched(operands, slices) / 4), _instructions(operands, slices) / READ)
        weights[_key(op)] = weight.longest(weights.get(_key(op), weight))
    return weights


def _is_held(op: ir.Operation) -> bool:
    """Whether a column program, which reads its operands once, may hold the columns that ``op`` reduces.

    What is made of each element needs its column's result then.
    """
    shape = ReductionShape.of(op)
    if shape.is_rows or len(shape.reduced) > 1 or shape.kept[-1] < FEWEST_COLUMNS:
        return False
    if shape.per_result > longest_column([]) or not is_commutative(op):
        return False
    bits = round(8 * bytes_touched(list(op.operands)[: len(op.results)]))
    # What is computed of smaller arrays is not read again, and split so that more blocks compute it.
    return bits >= 8 and shape.per_result <= longest_column([bits]) and _comes_back(op, shape.elements)


def _comes_back(op: ir.Operation, count: int) -> bool:
    """Whether arrays of ``count`` elements are computed from the results of ``op``, element by element."""
    pending = list(op.results)
    seen = set(pending)
    while pending and len(seen) < MOST_VISITED:
        for user in users_of(pending.pop()):
            if user.name in OPERATIONS and access_kind(user) in _COMPUTED:
                if elements(user.results[0]) >= count:
                    return True
                new = set(user.results) - seen
                seen |= new
                pending += new
    return False


@dataclass(frozen=True)
class DimensionSplit:
    """The split of ``size`` elements along a reduced dimension by the first of two reductions.

    As ``outer`` parts of ``middle`` times ``inner`` elements: it reduces the middle ones, and keeps the others. What is
    left over at the end joins its results.
    """

    size: int
    outer: int
    middle: int
    inner: int = 1

    @property
    def rest(self) -> int:
        """Elements after the last part."""
        return self.size - self.outer * self.middle * self.inner

    @property
    def kept(self) -> int:
        """Elements that there are after the first reduction, for those of the parts."""
        return self.outer * self.inner


def _parts_of(op: ir.Operation, weight: _Weight, target: Device) -> Mapping[int, DimensionSplit] | None:
    """Return how to split a reduction, by dimension, or None if it is to stay as it is; see `_weights`."""
    shape = ReductionShape.of(op)
    commutes = is_commutative(op)
    if shape.is_rows and len(shape.reduced) > 1:
        if not commutes:
            return _minor_first(shape)
        is_narrow = shape.reduced[-1] <= NARROW_ROW and shape.per_result > NARROW_ROW * shape.reduced[-1]
        if is_narrow and shape.elements > LARGE:
            return _minor_last(shape)
    return _for_all_multiprocessors(shape, commutes, target, weight)


def _minor_first(shape: ReductionShape) -> Mapping[int, DimensionSplit]:
    """Reduce the minor-most extent, then the others, which keeps the order of elements that are not neighbours."""
    last = shape.extents[-1].dimensions
    return {i: _whole(shape.shape[i], i in last) for i in shape.dimensions}


def _minor_last(shape: ReductionShape) -> Mapping[int, DimensionSplit]:
    """Reduce all but the minor-most extent, whose elements are then columns."""
    last = shape.extents[-1].dimensions
    return {i: _whole(shape.shape[i], i not in last) for i in shape.dimensions}


def _whole(size: int, is_reduced: bool) -> DimensionSplit:
    """A dimension that the first reduction reduces or keeps as a whole."""
    return DimensionSplit(size, 1, size) if is_reduced else DimensionSplit(size, size, 1)


def _instructions(values: Sequence[Value], slices: Slices) -> float:
    """Return the instructions of a thread for an element of ``values``.

    It computes one element of each array that the element depends on, or as many as are combined; of an array with
    fewer elements that many fewer, as each is computed for several, or stored.
    """
    pending = [(slices.made(value), 1) for value in values]
    seen, taken, whole = {made for made, _ in pending}, 0.0, pending[0][0].elements
    while pending and len(seen) < MOST_VISITED:
        made, times = pending.pop()
        if made.is_followed:
            taken += made.instructions * min(times, made.elements / whole)
            operands = [each for each in made.operands if each not in seen]
            seen.update(operands)
            pending += [(each, times * made.combined) for each in operands]
    return taken


def _for_all_multiprocessors(
    shape: ReductionShape, commutes: bool, target: Device, weight: _Weight
) -> Mapping[int, DimensionSplit] | None:
    """Split so that there are enough blocks, if there are too few; ``weight`` is how long an element takes."""
    if _done_alone(shape, target, weight) <= elements_of_a_launch(target):
        return None
    columns, blocks = _columns(shape), _blocks(shape)
    folded = 1
    if commutes and not shape.is_rows and columns < LINE:
        folded = 1 << (FOLDED // columns - 1).bit_length()
        blocks = shape.results // columns * -(-columns * folded // LINE)
    wanted = -(-blocks_that_fill(target) // blocks)
    count = min(wanted, int(shape.elements * weight.larger) // (blocks * SMALLEST_PART))
    parts = cut(shape, count, folded) if count * folded > 1 else {}
    # A part that is the whole would be split again.
    return parts if any(each.kept > 1 for each in parts.values()) else None


def _columns(shape: ReductionShape) -> int:
    """Return how many results are neighbours of each other, whose elements are."""
    return 1 if shape.is_rows else shape.kept[-1]


def _blocks(shape: ReductionShape) -> int:
    """Return how many blocks one kernel has."""
    columns = _columns(shape)
    return shape.results // columns * -(-columns // LINE)


def _done_alone(shape: ReductionShape, target: Device, weight: _Weight) -> float:
    """Return what a block of one kernel does that more blocks would do for it, in elements read; at most 0 for none."""
    share = _blocks(shape) / target.sm_count
    # As many blocks as half of the multiprocessors read all that memory gives.
    alone = max(weight.read * (1 - 2 * share), weight.computed * (1 - share))
    return shape.per_result * min(_columns(shape), LINE) * alone


def cut(shape: ReductionShape, count: int, folded: int) -> Mapping[int, DimensionSplit]:
    """Choose about ``count`` parts along the first reduced dimensions, and fold the last one into the columns."""
    sizes = {i: shape.shape[i] for i in shape.dimensions}
    several = [i for i, size in sizes.items() if size > 1]
    inner = dict.fromkeys(sizes, 1)
    if len(several) > 1:
        # Two dimensions with something left over would make too many pieces.
        folded = math.gcd(folded, sizes[several[-1]])
    inner[several[-1]] = min(folded, 1 << (sizes[several[-1]].bit_length() - 1))
    parts, left = {}, float(max(1, count))
    for i, size in sizes.items():
        length = size // inner[i]
        if left < 1.5 or length < 2:
            parts[i] = DimensionSplit(size, 1, length, inner[i])
        elif length <= 2 * left and i != several[-1]:
            parts[i], left = DimensionSplit(size, size, 1), left / size
        else:
            is_minor = i == len(shape.shape) - 1
            later = math.prod(sizes[j] // inner[j] for j in sizes if j > i)
            most = max(1, min(length, length * later // LEAST))
            parts[i] = _factor(size, min(round(left), most), inner[i], ALIGNMENT if is_minor else 1)
            left = 1.0
    return parts


def _factor(size: int, count: int, inner: int, alignment: int) -> DimensionSplit:
    """Divide ``size`` elements in about ``count`` parts of a multiple of ``inner`` elements, if possible all of them.

    Otherwise few are to be left over beside those that parts keep, if possible. Parts begin at multiples of
    ``alignment``, unless they would be no longer than that.
    """
    unit = inner * alignment if size >= count * inner * alignment else inner
    counts = sorted(range(-(-count // 2), 2 * count + 1), key=lambda n: abs(math.log(n / count)))
    rests = {n: size % (n * unit) for n in counts if n * unit <= size}
    exact = next((n for n, rest in rests.items() if not rest), None)
    short = next((n for n, rest in rests.items() if _FEW * rest <= n * inner), None)
    best = exact or short or min(rests, key=lambda n: rests[n])
    return DimensionSplit(size, best, (size - rests[best]) // (best * inner), inner)


class _Views:
    """Reshapes and slices of values, each made once: reductions of the same value then read the same one."""

    def __init__(self) -> None:
        self._made: dict[tuple[Value, tuple[int, ...]], Value] = {}

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements of ``value`` under another shape."""
        key = (value, tuple(shape))
        if key not in self._made:
            self._made[key] = reshape(value, shape)
        return self._made[key]

    def slice(self, value: Value, dimension: int, start: int, end: int) -> Value:
        """Return a stretch of ``value`` along a dimension."""
        key = (value, (dimension, start, end))
        if key not in self._made:
            shape = shape_of(value)
            starts, ends = [0] * len(shape), list(shape)
            starts[dimension], ends[dimension] = start, end
            self._made[key] = hlo.slice(value, starts, ends, [1] * len(shape))
        return self._made[key]


def _split(op: ir.Operation, parts: Mapping[int, DimensionSplit], views: _Views) -> list[ir.Operation]:
    """Rewrite a reduction to combine the results of reductions of the parts; return all of them, in program order."""
    operands = list(op.operands)[: len(op.results)]
    made, reduced = _reduce_parts(op, [_without_rest(value, parts, views) for value in operands], parts, views)
    for dimension, part in parts.items():
        if part.rest:
            rests = [views.slice(value, dimension, part.size - part.rest, part.size) for value in operands]
            others, rests = _reduce_parts(
                op, rests, {**parts, dimension: DimensionSplit(part.rest, part.rest, 1)}, views
            )
            made += others
            reduced = [hlo.concatenate(pair, dimension) for pair in zip(reduced, rests, strict=True)]
    for number, value in enumerate(reduced):
        op.operands[number] = value
    if FIRST_EXTREME in op.attributes and any(part.inner > 1 for part in parts.values()):
        # Of the neighbours that were kept apart, a later one may have found an earlier position.
        del op.attributes[FIRST_EXTREME]
    return [*made, op]


def _reduce_parts(
    op: ir.Operation, operands: Sequence[Value], parts: Mapping[int, DimensionSplit], views: _Views
) -> tuple[list[ir.Operation], list[Value]]:
    """Reduce the middle of the parts, which leave no rest; return the reductions, and what there is of each operand.

    A reduced dimension is there with as many elements as the parts keep.
    """
    split: list[int] = []
    kept: list[int] = []
    dimensions: list[int] = []
    # Sums of whole dimensions are those of others, with which they can be one kernel.
    are_whole = all(1 in (part.middle, part.kept) for part in parts.values())
    for i, size in enumerate(shape_of(operands[0])):
        part = parts.get(i)
        kept.append(size if part is None else part.kept)
        if part is None or are_whole:
            dimensions += [i] if part is not None and part.middle > 1 else []
            split.append(size)
            continue
        split += [part.outer, part.middle, part.inner]
        dimensions.append(len(split) - 2)
    if all(split[i] == 1 for i in dimensions):
        return [], list(operands)
    reshaped = [views.reshape(value, split) for value in operands]
    first = op.clone()
    for number, value in enumerate(reshaped):
        first.operands[number] = value
    first.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(dimensions)
    shape = [size for i, size in enumerate(split) if i not in dimensions]
    for result in first.results:
        result.set_type(tensor(shape, element_of(result)))
    return [first], [reshape(result, kept) for result in first.results]


def _without_rest(value: Value, parts: Mapping[int, DimensionSplit], views: _Views) -> Value:
    for dimension, part in parts.items():
        if part.rest:
            value = views.slice(value, dimension, 0, part.size - part.rest)
    return value

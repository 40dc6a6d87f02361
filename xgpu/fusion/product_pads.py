"""Chooses which dimensions of a matrix product are padded with zeros, so that rows begin where libraries read fast.

Dimensions are labels, as in `xgpu.fusion.product_orders`. The *row* of an array are the last of its dimensions in
memory that are of one kind, such as contracted: those that a library has for the rows of a matrix.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from xgpu.costs.products.alignment import ALIGNED_BYTES, Matrices, library_seconds
from xgpu.costs.time import seconds_to_move
from xgpu.device import Device
from xgpu.fusion.product_orders import LabelledProduct, Labels
from xgpu.records import dataclass

type Padded = Mapping[int, int]
"""The new sizes of dimensions that are padded, by label."""


_LEAST_GAIN = 1.1
"""The factor by which a product must take longer if it is not padded, as both times are estimates."""


@dataclass(frozen=True)
class MovedForPads:
    """The bytes that kernels read and write only because each operand is padded, or a padded result is sliced."""

    operands: tuple[float, float]
    result: float


@dataclass(frozen=True)
class _Array:
    """An array of a product: its labels in memory order, and the bytes of an element."""

    memory: Labels
    element_bytes: int

    def row(self, product: LabelledProduct) -> Labels:
        """Return the labels of a row; none if there is but one row."""
        long = [label for label in self.memory if product.sizes[label] > 1]
        first = len(long)
        while first and product.kind(long[first - 1]) == product.kind(long[-1]):
            first -= 1
        return tuple(long[first:]) if first else ()

    def is_aligned(self, product: LabelledProduct, sizes: Sequence[int]) -> bool:
        """Whether rows of dimensions of these ``sizes`` begin where libraries read fast."""
        return not _size(self.row(product), sizes) * self.element_bytes % ALIGNED_BYTES or not self.row(product)


def best_pads(product: LabelledProduct, moved: MovedForPads, target: Device) -> Padded:
    """Return the sizes to which dimensions of ``product`` are padded where that takes less time; none where not.

    Either rows of all arrays are aligned or those of the operands alone.
    """
    *operands, _ = arrays = _arrays(product)
    now = _seconds(product, moved, {}, target)
    choices = (_pads(product, operands), _pads(product, arrays))
    best = min(choices, key=lambda padded: _seconds(product, moved, padded, target))
    return best if _LEAST_GAIN * _seconds(product, moved, best, target) <= now else {}


def _arrays(product: LabelledProduct) -> tuple[_Array, ...]:
    """Return the operands, and the result."""
    operands = [_Array(each.stored, round(each.bytes / _size(each.stored, product.sizes))) for each in product.operands]
    return *operands, _Array(tuple(range(len(product.wanted))), product.element_bits // 8)


def _size(labels: Labels, sizes: Sequence[int]) -> int:
    return math.prod(sizes[label] for label in labels)


def _pads(product: LabelledProduct, arrays: Iterable[_Array]) -> Padded:
    """Return the sizes with which the rows of ``arrays`` are aligned; those of small elements need more."""
    sizes, padded = list(product.sizes), dict[int, int]()
    for array in sorted(arrays, key=lambda each: each.element_bytes):
        if not array.is_aligned(product, sizes):
            label, size = _fewest(array.row(product), sizes, ALIGNED_BYTES // array.element_bytes)
            sizes[label] = padded[label] = size
    return padded


def _fewest(row: Labels, sizes: Sequence[int], unit: int) -> tuple[int, int]:
    """Return the dimension of a row that takes the fewest zeros to make it a multiple of ``unit``, and its new size."""
    found = []
    for label in reversed(row):
        others = _size(row, sizes) // sizes[label]
        step = unit // math.gcd(unit, others)
        size = -(-sizes[label] // step) * step
        found.append((others * size, label, size))
    _, label, size = min(found, key=lambda each: each[0])
    return label, size


def _seconds(product: LabelledProduct, moved: MovedForPads, padded: Padded, target: Device) -> float:
    """Return how long a product takes with padded dimensions, and what kernels move for that."""
    sizes = [padded.get(label, size) for label, size in enumerate(product.sizes)]
    *operands, result = arrays = _arrays(product)
    are_aligned = [each.is_aligned(product, sizes) for each in arrays]
    rows, columns = (_size(product.free(each.memory), sizes) for each in operands)
    matrices = Matrices(
        math.prod(sizes[: product.batch]),
        rows,
        columns,
        math.prod(sizes[len(product.wanted) :]),
        operands[0].element_bytes,
        result.element_bytes,
    )
    seconds = library_seconds(matrices, all(are_aligned[:2]), are_aligned[2], target)
    for array, bytes_ in zip(arrays, (*moved.operands, moved.result), strict=True):
        if bytes_ and not padded.keys().isdisjoint(array.memory):
            seconds += seconds_to_move(round(bytes_), target)
    return seconds

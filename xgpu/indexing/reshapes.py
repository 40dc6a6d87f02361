"""In which order of its dimensions the result of a reshape is, for an order of its operand's, and the other way."""

from collections.abc import Sequence
from itertools import pairwise

type Order = tuple[int, ...]
"""The dimensions of a value in the order in which it is computed: ``(1, 0)`` for the columns of a matrix as rows."""


def reshaped_order(order: Order, shape: Sequence[int], result: Sequence[int]) -> Order | None:
    """Return the order of an array of shape ``result`` that has the same elements one after the other.

    It is the reshape of an array of ``shape`` that is computed in ``order``. None if no order has: dimensions that the
    reshape merges, or splits in other places, lie apart.
    """
    parts = _parts(shape, result)
    if parts is None:
        return None
    found: list[int] = []
    rest = [dimension for dimension in order if shape[dimension] > 1]
    starts = {source[0]: (source, target) for source, target in parts}
    while rest:
        source, target = starts.get(rest[0], ((), ()))
        if not source or tuple(rest[: len(source)]) != source:
            return None
        found += target
        rest = rest[len(source) :]
    # Dimensions of one element stay beside the one that they follow.
    for dimension, size in enumerate(result):
        if size == 1:
            found.insert(found.index(dimension - 1) + 1 if dimension else 0, dimension)
    return tuple(found)


def _parts(shape: Sequence[int], result: Sequence[int]) -> list[tuple[Order, Order]] | None:
    """Return which dimensions of both, without those of one element, are of the same elements; None without any."""
    left = [number for number, size in enumerate(shape) if size > 1]
    right = [number for number, size in enumerate(result) if size > 1]
    if 0 in (*shape, *result) or not left:
        return None
    ends = sorted(_products(shape, left).keys() & _products(result, right).keys())
    first, second = _products(shape, left), _products(result, right)
    return [
        (tuple(left[first[begin] : first[end]]), tuple(right[second[begin] : second[end]]))
        for begin, end in pairwise(ends)
    ]


def _products(shape: Sequence[int], dimensions: Sequence[int]) -> dict[int, int]:
    """Return how many dimensions have each number of elements, from the first on."""
    found, product = {1: 0}, 1
    for count, dimension in enumerate(dimensions):
        product *= shape[dimension]
        found[product] = count + 1
    return found

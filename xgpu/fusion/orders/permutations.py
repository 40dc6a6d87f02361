"""Orders of dimensions: a permutation has, for each place, the dimension there."""

from collections.abc import Sequence

from xgpu.indexing.reshapes import Order, reshaped_order


def given_order(rank: int) -> Order:
    """Return the order of the program."""
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """Return the order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def permuted[T](items: Sequence[T], order: Order) -> list[T]:
    """Return one item for each dimension, in an order of dimensions."""
    return [items[dimension] for dimension in order]


def relative(source: Order, permutation: Sequence[int], target: Order) -> Order:
    """Return the transpose of a value in order ``source`` that gives its transpose in order ``target``."""
    return tuple(source.index(permutation[each]) for each in target)


def steps(source: Order, target: Order) -> Order:
    """Return the transpose that makes an array in one order one in another."""
    return relative(source, given_order(len(source)), target)


def orders_around(source: Order, shape: Sequence[int], target: Order, result: Sequence[int]) -> tuple[Order, Order]:
    """Return the orders of operand and result between which a reshape moves nothing, for arrays in such orders.

    What is transposed is the operand, if that alone is enough, then the result, and otherwise both.
    """
    if (before := reshaped_order(target, result, shape)) is not None:
        return before, target
    if (after := reshaped_order(source, shape, result)) is not None:
        return source, after
    return given_order(len(source)), given_order(len(target))

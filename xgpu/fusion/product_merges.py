"""Matrix products of one array with several: which XLA makes one of, and of which that saves time."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence, Set

from xgpu import ir
from xgpu.analysis.bitcasts import readers
from xgpu.analysis.control_flow import before_loops
from xgpu.costs.products.library_products import library_product_seconds
from xgpu.costs.products.products import SHARE_OF_MEMORY
from xgpu.costs.values import byte_size
from xgpu.device import Device
from xgpu.fusion.fallback import VIEWS, fallback_reason
from xgpu.fusion.product_operands import behind_transposes, is_made
from xgpu.indexing.access import shape_of
from xgpu.indexing.dot_dimensions import operand_dimensions
from xgpu.indexing.tiles.product_maps import Product
from xgpu.structure import behind, dtype_of, element_of, is_argument, is_result_of

_MOST_BYTES = 64 << 20
"""Bytes of a result and the operand that is not shared above which XLA merges a product with smaller ones alone."""
_COPIED = 2
"""Times that an operand in memory is moved to be part of a larger one: it is read and written."""


def is_left_to_xla(op: ir.Operation) -> bool:
    """Whether XLA computes a product of real numbers, of arrays with elements."""
    arrays = (*op.operands, op.results[0])
    dtypes = [dtype_of(value) for value in arrays]
    is_real = all(dtype.is_float or dtype.is_integer for dtype in dtypes)
    is_empty = not all(math.prod(shape_of(each)) for each in arrays)
    return is_real and not is_empty and fallback_reason(op) is not None


def sharing(
    products: Iterable[ir.Operation], shared: int, kind: Callable[[ir.Operation], Hashable] = lambda _: None
) -> list[list[ir.Operation]]:
    """Return the products that could be one, their operand number ``shared`` being one array, and of the same kind."""
    groups: dict[Hashable, list[ir.Operation]] = {}
    for op in products:
        if (key := _key(op, shared)) is not None:
            groups.setdefault((kind(op), key), []).append(op)
    return [group for group in groups.values() if len(group) > 1]


def sharing_turned(products: Iterable[ir.Operation], shared: int) -> list[list[ir.Operation]]:
    """Return the products that share their operand number ``shared`` in the same way, whose others lie differently.

    XLA turns these when it merges products. Of each group, the first stands for all whose others lie as its own does.
    """
    groups: dict[Hashable, dict[Hashable, list[ir.Operation]]] = {}
    for op in products:
        if (key := _key(op, shared)) is not None:
            own, other = operand_dimensions(op)[shared], op.operands[1 - shared]
            alike = op.operands[shared], own.batching, own.contracting, element_of(other), element_of(op.results[0])
            groups.setdefault(alike, {}).setdefault(key, []).append(op)
    return [
        [first[0], *(op for each in rest for op in each)]
        for first, *rest in (g.values() for g in groups.values())
        if rest
    ]


def merged_by_xla(group: Sequence[ir.Operation], shared: int) -> list[ir.Operation]:
    """Return the products of ``group`` that XLA makes one of.

    Two are merged if one of them is small. So the small ones all are, and of the large ones one: the first.
    """
    part: list[ir.Operation] = []
    size = 0
    for op in group:
        more = byte_size(op.operands[1 - shared]) + byte_size(op.results[0])
        if not part or min(size, more) <= _MOST_BYTES:
            part.append(op)
            size += more
    return part if len(part) > 1 else []


def worth_merging(
    group: Sequence[ir.Operation], shared: int, target: Device, are_hoisted: bool = True
) -> list[ir.Operation]:
    """Return the products of ``group`` of which one product takes less time, with the copies of operands for it.

    The longest to copy are left out until that is so. What loops do not change is copied before them if copies
    ``are_hoisted``, at no cost.
    """
    if len(group) < 2:
        return []
    merged = set(group)
    copied = [_copied_bytes(op, merged, shared, are_hoisted) for op in group]
    # Left out in this order from the end, of equal ones the first: sums are those of the products before each.
    order = sorted(range(len(group) - 1, -1, -1), key=copied.__getitem__)
    moved = list(itertools.accumulate(copied[number] for number in order))
    saved = _saved_seconds([group[number] for number in order], shared, target)
    for last in range(len(group) - 1, 0, -1):
        copying = max(target.launch_seconds, moved[last] / _bandwidth(target)) if moved[last] else 0.0
        if saved[last] > copying:
            return [group[number] for number in sorted(order[: last + 1])]
    return []


def free_dimension(op: ir.Operation, number: int) -> int | None:
    """Return the first dimension of an operand that the result has and the other operand has not.

    None if there is none, or others lie between such dimensions: XLA takes neighbours for one.
    """
    own = operand_dimensions(op)[number].own
    return own[0] if own and list(own) == list(range(own[0], own[0] + len(own))) else None


def free_result_dimension(op: ir.Operation, number: int) -> int:
    """Return the dimension of the result that is the first one that operand ``number`` does not share."""
    sides = operand_dimensions(op)
    return len(sides[0].batching) + (len(sides[0].own) if number else 0)


def _key(op: ir.Operation, shared: int) -> Hashable | None:
    """Return what products to merge agree in, if the operand number ``shared`` is one for all; None if it cannot be."""
    other = op.operands[1 - shared]
    free = free_dimension(op, 1 - shared)
    if free is None or _is_constant(other):
        return None
    shape = list(shape_of(other))
    shape[free] = 0
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes) if not name.startswith("xgpu."))
    return op.operands[shared], tuple(shape), element_of(other), element_of(op.results[0]), attributes


def _is_constant(value: ir.Value) -> bool:
    """Whether ``value`` only moves or converts a constant: a kernel would have it in its text, XLA folds it."""
    return is_result_of(behind(value, *VIEWS, "stablehlo.convert"), "stablehlo.constant", "stablehlo.iota")


def _copied_bytes(op: ir.Operation, group: Set[ir.Operation], shared: int, are_hoisted: bool) -> int:
    """Return the bytes that kernels move only because the operand that is not shared is part of a larger one.

    None for one that a kernel computes, which stores it there, unless XLA reads it elsewhere as well; nor for one that
    a loop does not change, if its copy is hoisted.
    """
    value = behind_transposes(op.operands[1 - shared])
    if are_hoisted and before_loops([value], op.block)[1] is not None:
        return 0
    if not is_made(value, op.block):
        return _COPIED * byte_size(value)
    is_stored = not is_argument(value) and any(
        each not in group and fallback_reason(each) is not None for each in readers(value)
    )
    return byte_size(value) if is_stored else 0


def _saved_seconds(products: Sequence[ir.Operation], shared: int, target: Device) -> list[float]:
    """Return how much longer libraries take for products one after the other than for one of them all.

    That is for the first of them, for the first two, and so on to all.
    """
    each = [Product(op) for op in products]
    batch, k = each[0].batch, each[0].k
    widths = (_bytes(products[0].operands[0]), _bytes(products[0].results[0]))

    def seconds(m: int, n: int) -> float:
        return library_product_seconds((batch, m, n, k), *widths, target)

    apart = itertools.accumulate(seconds(product.m, product.n) for product in each)
    sizes = itertools.accumulate(product.n if shared == 0 else product.m for product in each)
    together = (seconds(each[0].m, size) if shared == 0 else seconds(size, each[0].n) for size in sizes)
    return [separate - joined for separate, joined in zip(apart, together, strict=True)]


def _bytes(value: ir.Value) -> int:
    return max(1, dtype_of(value).storage_bits // 8)


def _bandwidth(target: Device) -> float:
    return target.memory_bandwidth * SHARE_OF_MEMORY

"""The size of values, and about how many instructions their elements cost."""

import math
from collections.abc import Callable

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import integers, shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import behind, dtype_of, is_constant

_VIEWS = frozenset(name for name, operation in OPERATIONS.items() if operation.is_view)
_FREE = _VIEWS | CONTROL_FLOW.keys() | {"stablehlo.constant", "stablehlo.iota", "stablehlo.slice", "stablehlo.reverse"}
"""Operations that compute nothing."""
_QUOTIENTS = frozenset(("stablehlo.divide", "stablehlo.remainder"))
_OF_KNOWN_DIVISOR = 4
"""Instructions for a quotient of integers by a constant, or its remainder: a product, its upper half, and shifts."""
_SPREADS = ("stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")

type Weight = Callable[[ir.Operation], int]
"""Returns what an operation counts for an element of its result."""


def elements(value: ir.Value) -> int:
    """Return the number of elements of an array."""
    return math.prod(shape_of(value))


def byte_size(value: ir.Value, count: int | None = None) -> int:
    """Return the bytes of ``count`` elements of an array, by default of all."""
    return bytes_of(elements(value) if count is None else count, dtype_of(value).storage_bits)


def bytes_of(count: int, bits: int) -> int:
    """Return the bytes of ``count`` elements of so many ``bits``."""
    return -(-count * bits // 8)


def instructions(op: ir.Operation) -> int:
    """Return about how many instructions an element of the result of ``op`` costs."""
    operation = OPERATIONS.get(op.name)
    if operation is None:
        return 1
    if operation.kind == "contract":
        return max(1, math.prod(interval.size for interval in accesses(op)[0].map.symbols))
    if op.name in _QUOTIENTS and dtype_of(op.results[0]).is_integer and is_constant(behind(op.operands[1], *_SPREADS)):
        return _OF_KNOWN_DIVISOR
    return operation.instructions


def has_branches(op: ir.Operation) -> bool:
    """Return whether the code of an element of the result of ``op`` has branches."""
    operation = OPERATIONS.get(op.name)
    return operation is not None and operation.branches


def element_work(op: ir.Operation, weight: Weight) -> float:
    """Return the work of an operation for each element of its first result."""
    if op.name in _FREE or not len(op.results):
        return 0
    if op.name == "stablehlo.reduce":
        return weight(op) * elements(op.operands[0]) / max(1, elements(op.results[0]))
    return weight(op) * (math.prod(integers(op, "window_dimensions")) if op.name == "stablehlo.reduce_window" else 1)


def is_immediate(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, or one number in every element: it costs no instruction and no memory."""
    return is_constant(behind(value, "stablehlo.broadcast_in_dim"))

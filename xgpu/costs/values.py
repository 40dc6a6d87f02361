"""The size of values, and about how many instructions their elements cost."""

import math

from xgpu import ir
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.indexing.hlo_maps import accesses
from xgpu.structure import behind, dtype_of, is_constant


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
    return operation.instructions


def is_immediate(value: ir.Value) -> bool:
    """Whether ``value`` is a constant, or one number in every element: it costs no instruction and no memory."""
    return is_constant(behind(value, "stablehlo.broadcast_in_dim"))

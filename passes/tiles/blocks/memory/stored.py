"""Elements as they are stored in memory, where each takes whole bytes."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.passes.llvm.memory import load, store
from xgpu.passes.support import arith_builder as b
from xgpu.passes.tiles.vectors import elements, from_elements

MOST_BYTES = 16
"""Bytes of the widest access of a thread."""
_BYTE = 8


def has_place(dtype: DType) -> bool:
    """Whether elements of a type can be tiles: numbers of whole bytes, and booleans."""
    return dtype.kind != "complex" and not dtype.is_packed


def element_bytes(dtype: DType) -> int:
    """Return the bytes of an element."""
    return max(1, dtype.storage_bits // _BYTE)


def stored_type(dtype: DType) -> ir.Type:
    """Return the type that memory has of elements: bytes for booleans and narrow floats."""
    is_byte = dtype.kind == "bool" or (dtype.is_float and element_bytes(dtype) == 1)
    return b.integer_type(_BYTE) if is_byte else scalar_type(dtype)


def scalar_type(dtype: DType) -> ir.Type:
    """Return the type of an element that is computed with."""
    return ir.Type.parse(dtype.signless)


def load_elements(pointer: ir.Value, dtype: DType, count: int, invariant: bool = False) -> list[ir.Value]:
    """Load neighbours, the first of which is at a multiple of the bytes of all."""
    return unpacked(load(pointer, packed_type(dtype, count), count * element_bytes(dtype), invariant), dtype, count)


def store_elements(scalars: Sequence[ir.Value], pointer: ir.Value, dtype: DType) -> None:
    """Store neighbours, the first of which goes to a multiple of the bytes of all."""
    values = [_as_stored(each, dtype) for each in scalars]
    whole = values[0] if len(values) == 1 else from_elements(values)
    store(whole, pointer, len(values) * element_bytes(dtype))


def packed_type(dtype: DType, count: int) -> ir.Type:
    """Return the type of so many neighbours in memory."""
    element = stored_type(dtype)
    return element if count == 1 else ir.VectorType.get([count], element)


def unpacked(value: ir.Value, dtype: DType, count: int) -> list[ir.Value]:
    """Return the elements of neighbours as they are stored in memory."""
    values = [value] if count == 1 else elements(value)
    return [_as_scalar(each, dtype) for each in values]


def _as_scalar(value: ir.Value, dtype: DType) -> ir.Value:
    if dtype.kind == "bool":
        return b.truncate(value, 1)
    return b.bitcast(value, scalar_type(dtype))


def _as_stored(value: ir.Value, dtype: DType) -> ir.Value:
    if dtype.kind == "bool":
        return b.extend(value, _BYTE)
    return b.bitcast(value, stored_type(dtype))

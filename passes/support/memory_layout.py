"""The layout of a tensor's elements in memory.

An element takes its own width, but an i1, which takes a byte. Elements of 2 and 4 bits are packed as XLA packs them:
the first of a byte's elements is in its lowest bits, rows are not padded, and the last byte's unused bits mean nothing.
"""

import re
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.passes.floats.storage import Codes, float_codes, is_narrow_float
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.refusals import refuse_type

_WHOLE_BYTES = frozenset(("i8", "i16", "i32", "i64", "i128", "f16", "bf16", "f32", "f64"))
_PACKED_INTEGERS = frozenset(("i2", "i4"))


def element_bits(element: ir.Type, op: ir.Operation) -> int:
    """Return the bits that an element takes in memory; raises `Unsupported`, naming ``op``, for an unknown type."""
    name = str(element)
    if not (name in ("i1", *_PACKED_INTEGERS, *_WHOLE_BYTES) or is_narrow_float(element)):
        refuse_type(op, "elements", element)
    return 8 if name == "i1" else int(element.width)  # type: ignore[attr-defined]


def is_packed(element: ir.Type) -> bool:
    """Tell whether several elements share a byte."""
    return str(element) in _PACKED_INTEGERS or (is_narrow_float(element) and element.width < 8)  # type: ignore[attr-defined]


def memory_bytes(element: ir.Type, count: int, op: ir.Operation) -> int:
    """Return the bytes that ``count`` elements take."""
    return -(-count * element_bits(element, op) // 8)


def memory_type(element: ir.Type, op: ir.Operation) -> ir.Type:
    """Return the type to read and write memory with: a byte for elements of at most 8 bits, else the type itself."""
    return ir.IntegerType.get_signless(8) if element_bits(element, op) <= 8 else element


def from_memory(value: ir.Value, element: ir.Type) -> ir.Value:
    """Return what an integer that was read, at least as wide as ``element``, or a vector of them, is as an element."""
    if isinstance(element, ir.FloatType):
        return b.bitcast(b.truncate(value, element.width), element)
    if element.width == 1:  # type: ignore[attr-defined]
        return b.compare("ne", value, 0)
    return b.truncate(value, element.width)  # type: ignore[attr-defined]


def to_memory(value: ir.Value, bits: int) -> ir.Value:
    """Return an element, or a vector of elements, as integers of ``bits``, at least its own, that go to memory."""
    if isinstance(b.element_type(value.type), ir.FloatType):
        value = b.bitcast(value, b.integer_type(b.element_type(value.type).width))  # type: ignore[attr-defined]
    return b.extend(value, bits)


def constant_in_memory(value: ir.DenseElementsAttr, op: ir.Operation) -> ir.DenseElementsAttr:
    """Return a constant tensor as the tensor of `memory_type` that has its bytes."""
    type_ = ir.RankedTensorType(value.type)
    element, count = type_.element_type, int(np.prod(type_.shape))
    bits = element_bits(element, op)
    if bits > 8 or str(element) == "i8":
        return value
    codes = float_codes(value) if is_narrow_float(element) else integer_codes(value)
    codes = np.broadcast_to(codes, count) if codes.size == 1 else codes
    data = _packed(codes, bits)
    return ir.DenseElementsAttr.get(data, type=ir.RankedTensorType.get(data.shape, ir.IntegerType.get_signless(8)))


def _packed(codes: Codes, bits: int) -> Codes:
    """Return bytes that each hold ``8 / bits`` codes, the first in the lowest bits."""
    per_byte = 8 // bits
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    packed: Codes = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)
    return packed


def integer_codes(value: ir.DenseElementsAttr) -> Codes:
    """Return the bit patterns of an integer constant of 1, 2 or 4 bits, row major; of a splat at least the first."""
    element = ir.IntegerType(ir.ShapedType(value.type).element_type)
    if element.width == 1:
        source: Any = value
        return np.array(source).astype(np.uint8).reshape(-1)
    body = str(value).rsplit(" : ", 1)[0].removeprefix("dense<").removesuffix(">")
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body.strip('"')[2:]), np.uint8)
    numbers = np.array([int(number) for number in re.findall(r"-?\d+", body)])
    return (numbers & ((1 << element.width) - 1)).astype(np.uint8)

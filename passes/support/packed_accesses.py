"""Reads and writes elements of 2 and 4 bits, several of which share a byte.

A vector starts at a multiple of its length, so one of at least a byte is one integer of 8 to 64 bits; what is narrower
is part of one byte. Writing a part of a byte reads the byte first: only one thread may write to each byte, which is
what emitters must see to.
"""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.passes.support import arith_builder as b

Address = Callable[[ir.Value], ir.Value]
"""Returns a pointer to the byte of a number, an integer."""
Load = Callable[[ir.Value, ir.Type, int], ir.Value]
"""Loads a value of a type from a pointer; the number is the alignment in bytes."""
Store = Callable[[ir.Value, ir.Value, int], None]
"""Stores a value to a pointer; the number is the alignment in bytes."""


def read_packed(type_: ir.Type, index: ir.Value, address: Address, load: Load) -> ir.Value:
    """Read a scalar or vector of packed elements, the first at ``index``, an integer."""
    bits, count = _shape(type_)
    pointer = address(_byte_of(index, bits))
    if bits * count < 8:
        word = ir.arith.shrui(load(pointer, b.integer_type(8), 1), _shift_in_byte(index, bits))
    else:
        word = load(pointer, b.integer_type(bits * count), bits * count // 8)
    codes = [b.truncate(b.shift_right(word, at), bits) for at in range(0, bits * count, bits)]
    value = codes[0] if not isinstance(type_, ir.VectorType) else _vector(codes)
    return b.bitcast(value, b.element_type(type_))


def write_packed(value: ir.Value, index: ir.Value, address: Address, load: Load, store: Store) -> None:
    """Write a scalar or vector of packed elements, the first to ``index``, an integer."""
    bits, count = _shape(value.type)
    codes = _elements(b.bitcast(value, b.integer_type(bits)))
    pointer = address(_byte_of(index, bits))
    if bits * count >= 8:
        store(_join(codes, bits, bits * count), pointer, bits * count // 8)
        return
    shift = _shift_in_byte(index, bits)
    mask = ir.arith.shli(b.constant((1 << bits * count) - 1, shift.type), shift)
    kept = b.and_(load(pointer, shift.type, 1), b.xor(mask, 0xFF))
    store(b.or_(kept, ir.arith.shli(_join(codes, bits, 8), shift)), pointer, 1)


def place_in_byte(element: ir.Type, index: ir.Value, address: Address) -> tuple[ir.Value, ir.Value]:
    """Return the address of the byte that holds the element at ``index``, and where in it the element begins, an i8."""
    bits, _ = _shape(element)
    return address(_byte_of(index, bits)), _shift_in_byte(index, bits)


def _shape(type_: ir.Type) -> tuple[int, int]:
    """Return the bits of an element and the number of elements."""
    count = type_.shape[0] if isinstance(type_, ir.VectorType) else 1
    return b.element_type(type_).width, count  # type: ignore[attr-defined]


def _byte_of(index: ir.Value, bits: int) -> ir.Value:
    """Return the number of the byte that holds the element at ``index``."""
    return b.shift_right(index, (8 // bits).bit_length() - 1)


def _shift_in_byte(index: ir.Value, bits: int) -> ir.Value:
    """Return the position of an element in its byte, in bits, as an i8."""
    return b.shift_left(b.truncate(b.and_(index, 8 // bits - 1), 8), bits.bit_length() - 1)


def _join(codes: Sequence[ir.Value], bits: int, width: int) -> ir.Value:
    """Return an integer of ``width`` bits with the codes side by side, the first in the lowest bits."""
    word = b.extend(codes[0], width)
    for position, code in enumerate(codes[1:], 1):
        word = b.or_(word, b.shift_left(b.extend(code, width), position * bits))
    return word


def _elements(value: ir.Value) -> list[ir.Value]:
    """Return the elements of a vector, or the scalar itself."""
    if not isinstance(value.type, ir.VectorType):
        return [value]
    types = [value.type.element_type] * value.type.shape[0]
    return list(ir.Operation.create("vector.to_elements", results=types, operands=[value]).results)


def _vector(elements: Sequence[ir.Value]) -> ir.Value:
    type_ = ir.VectorType.get([len(elements)], elements[0].type)
    return ir.Operation.create("vector.from_elements", results=[type_], operands=list(elements)).results[0]

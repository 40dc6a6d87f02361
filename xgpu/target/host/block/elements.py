"""Elements of matrices as numbers of 32 bits, which hold each of them as it is."""

from ctypes import c_int8, c_uint8, c_uint16, c_uint32

from xgpu.passes.llvm.host_block import ELEMENTS
from xgpu.target.host.language.words import Bytes, as_float, cast, compiled, to_number

F16, BF16, TF32, E4M3, E5M2, SI8 = map(ELEMENTS.index, ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2", "si8"))
"""The numbers of element types, as functions take them."""


@compiled
def element_bytes(element: int) -> int:
    """The bytes of an element."""
    if element == TF32:
        return 4
    if element < TF32:
        return 2
    return 1


@compiled
def is_integer(element: int) -> bool:
    """Whether elements are integers, whose products are added as such."""
    return element >= SI8


@compiled
def half(bits: int) -> float:
    """An f16."""
    sign = (bits & 0x8000) << 16
    # The exponent is that of an f32 that is 2^112 times too small; subnormal ones become normal.
    number = as_float((bits & 0x7FFF) << 13) * as_float(0x77800000)
    if bits & 0x7C00 == 0x7C00:
        return as_float(sign | 0x7F800000 | (bits & 0x3FF) << 13)
    if sign != 0:
        return -number
    return number


@compiled
def e4m3(bits: int) -> float:
    """An f8E4M3FN."""
    sign = (bits & 0x80) << 24
    if bits & 0x7F == 0x7F:
        return as_float(sign | 0x7FC00000)
    number = as_float((bits & 0x7F) << 20) * as_float(0x7B800000)
    if sign != 0:
        return -number
    return number


@compiled
def decoded(element: int, place: Bytes, index: int) -> float:
    """The element of an index after an address."""
    if element == BF16:
        return as_float(cast(c_uint16, place)[index] << 16)
    if element == F16:
        return half(cast(c_uint16, place)[index])
    if element == TF32:
        # The hardware takes no notice of the lowest bits.
        return as_float(cast(c_uint32, place)[index] & 0xFFFFE000)
    if element == E4M3:
        return e4m3(place[index])
    if element == E5M2:
        return half(place[index] << 8)
    if element == SI8:
        return to_number(cast(c_int8, place)[index])
    return to_number(cast(c_uint8, place)[index])

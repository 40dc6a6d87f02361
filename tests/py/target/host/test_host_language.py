"""The language of the functions that kernels call on the host: what its forms mean, and what is no form of it."""

import ctypes
from ctypes import POINTER, Structure, c_float, c_int8, c_int32, c_uint8, c_uint16
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu.errors import CompilerError
from xgpu.passes.llvm.host_block import ELEMENTS
from xgpu.target.host.block.elements import decoded
from xgpu.target.host.language.compiler import compile_functions
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, as_bits, cast, compiled, fill, size_of
from xgpu.target.host.linker import link


class Pair(Structure):
    _fields_ = [("small", c_int8), ("next", POINTER(c_int32)), ("numbers", c_uint16 * 3)]


@compiled
def doubled(value: int) -> int:
    return 2 * value


@compiled
def sum_up(count: int) -> int:
    total = 0
    for i in range(count):
        if i % 3 == 0:
            continue
        if i > 10 and (i < 20 or total == 0):
            break
        total += doubled(i)
    while total > 100:
        total -= 7
    return total


@compiled
def fields(pair: Pointer[Pair]) -> int:
    pair.small = pair.small - 200
    pair.numbers[2] += 5
    pair.next[1] = -7
    fill(pair.next, 255, 4)
    return pair.small + pair.numbers[2] + size_of(Pair)


@compiled
def is_checked(value: int) -> int:
    if CHECKED:
        return value + 1
    return value


@compiled
def decode(element: int, place: Bytes, to: Pointer[c_float]) -> int:
    to[0] = decoded(element, place, 0)
    return 0


@compiled
def conditions(pointer: Bytes, number: float) -> int:
    if not pointer or number != number:
        return -1
    return max(as_bits(number), 5) if address(pointer) > 0 else 3


def call(function: Any, *arguments: Any, checked: int = 0) -> int:
    """Compile a function, and call it on integers, addresses and floats."""
    name = f"xgpu_test_{function.__name__}"
    addresses, library = link(compile_functions({name: function}, {"CHECKED": checked}), [name])
    types = [ctypes.c_float if isinstance(each, float) else ctypes.c_int64 for each in arguments]
    result: int = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(addresses[name])(*arguments)
    assert library
    return result


@pytest.mark.parametrize("count", [0, 5, 12, 40])
def test_statements(count: int) -> None:
    assert call(sum_up, count) == sum_up(count)


def test_fields_and_elements() -> None:
    following = (c_int32 * 2)(3, 4)
    pair = Pair(100, following, (1, 2, 65533))
    # Integers have as many bits as their fields when they are stored, and 64 when they are computed with.
    assert call(fields, ctypes.addressof(pair)) == -100 + 2 + ctypes.sizeof(Pair)
    assert (pair.small, list(pair.numbers), list(following)) == (-100, [1, 2, 2], [-1, -7])


def test_values_that_a_compilation_gives() -> None:
    assert (call(is_checked, 4), call(is_checked, 4, checked=1)) == (4, 5)


def test_conditions() -> None:
    assert call(conditions, 0, 1.0) == -1
    assert call(conditions, 8, float("nan")) == -1
    assert call(conditions, 8, 1.0) == 0x3F800000


@pytest.mark.parametrize(
    ("element", "dtype"),
    [("f16", np.float16), ("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)],
)
def test_every_number_of_a_narrow_float(element: str, dtype: type) -> None:
    name = "xgpu_test_decode"
    addresses, library = link(compile_functions({name: decode}, {"CHECKED": 0}), [name])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(addresses[name])
    bits = 8 * np.dtype(dtype).itemsize
    values = np.arange(1 << bits, dtype=f"u{bits // 8}").view(dtype)
    result = np.zeros(values.size, np.float32)
    for index in range(values.size):
        place = values.ctypes.data + index * values.itemsize
        function(ELEMENTS.index(element), place, result.ctypes.data + 4 * index)
    expected = values.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(result[is_number].view(np.int32), expected[is_number].view(np.int32))
    assert library


@compiled
def two_types(value: int) -> int:
    other = value
    if value > 1:
        other = 1.5  # type: ignore[assignment]
    return other


@compiled
def unknown_form(value: int) -> int:
    return [value][0]


@compiled
def unknown_function(value: int) -> int:
    return abs(value)


@compiled
def mixed(value: int, number: float) -> int:
    return value + number  # type: ignore[return-value]


@compiled
def no_field(pair: Pointer[Pair]) -> int:
    return cast(c_uint8, pair).small


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (two_types, "'other' has two types"),
        (unknown_form, "List is not of the language"),
        (unknown_function, "'abs' is no function of the language"),
        (mixed, "operands of types i64 and float"),
        (no_field, "'small' of what is no structure"),
    ],
)
def test_what_is_not_of_the_language(function: Any, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        compile_functions({"f": function}, {})

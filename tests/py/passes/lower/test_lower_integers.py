"""Every integer operation on every width, with edge values, on the host against NumPy and Python's integers."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

type Array = np.ndarray[Any, Any]
type Evaluate = Callable[..., list[Array]]

WIDTHS = (8, 16, 32, 64)


def edge_values(bits: int) -> list[int]:
    """Signed values at which carries, signs and shifts change something."""
    top = 1 << (bits - 1)
    return sorted({-top, -top + 1, -100, -7, -3, -2, -1, 0, 1, 2, 3, 7, 10, 64, 100, top // 2, top - 2, top - 1})


def pairs(bits: int) -> tuple[list[int], list[int]]:
    values = edge_values(bits)
    left, right = zip(*itertools.product(values, values), strict=True)
    return list(left), list(right)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def truncated_division(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


type Binary = Callable[[int, int], int]

SIGNED: dict[str, Binary] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "andi": lambda x, y: x & y,
    "ori": lambda x, y: x | y,
    "xori": lambda x, y: x ^ y,
    "maxsi": max,
    "minsi": min,
}
UNSIGNED: dict[str, Binary] = {"maxui": max, "minui": min}
SIGNED_DIVISIONS: dict[str, Binary] = {
    "divsi": truncated_division,
    "remsi": lambda x, y: x - y * truncated_division(x, y),
    "floordivsi": lambda x, y: x // y,
    "ceildivsi": lambda x, y: -(-x // y),
}
UNSIGNED_DIVISIONS: dict[str, Binary] = {
    "divui": lambda x, y: x // y,
    "remui": lambda x, y: x % y,
    "ceildivui": lambda x, y: -(-x // y),
}
PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


def check(names: list[str], results: list[Array], expected: Sequence[Sequence[int]]) -> None:
    for name, result, wanted in zip(names, results, expected, strict=True):
        np.testing.assert_array_equal(result, np.array(wanted, result.dtype), err_msg=name)


def run_binary(evaluate: Evaluate, bits: int, names: list[str], left: list[int], right: list[int]) -> list[Array]:
    dtype = np.dtype(f"int{bits}")
    body = "\n".join(f"%{name} = arith.{name} %x0, %x1 : i{bits}" for name in names)
    return evaluate(body, [np.array(left, dtype), np.array(right, dtype)], [(f"%{name}", dtype) for name in names])


@pytest.mark.parametrize("bits", WIDTHS)
def test_arithmetic(evaluate: Evaluate, bits: int) -> None:
    left, right = pairs(bits)
    names = [*SIGNED, *UNSIGNED]
    expected = [[signed(f(x, y), bits) for x, y in zip(left, right, strict=True)] for f in SIGNED.values()]
    for f in UNSIGNED.values():
        expected.append(
            [signed(f(unsigned(x, bits), unsigned(y, bits)), bits) for x, y in zip(left, right, strict=True)]
        )
    check(names, run_binary(evaluate, bits, names, left, right), expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_division(evaluate: Evaluate, bits: int) -> None:
    lowest = -(1 << (bits - 1))
    # Division by zero and the one overflow have no defined result.
    operands = [(x, y) for x, y in zip(*pairs(bits), strict=True) if y != 0 and (x, y) != (lowest, -1)]
    left, right = ([pair[side] for pair in operands] for side in (0, 1))
    names = [*SIGNED_DIVISIONS, *UNSIGNED_DIVISIONS]
    expected = [[signed(f(x, y), bits) for x, y in operands] for f in SIGNED_DIVISIONS.values()]
    for f in UNSIGNED_DIVISIONS.values():
        expected.append([signed(f(unsigned(x, bits), unsigned(y, bits)), bits) for x, y in operands])
    check(names, run_binary(evaluate, bits, names, left, right), expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts(evaluate: Evaluate, bits: int) -> None:
    operands = list(itertools.product(edge_values(bits), range(bits)))
    left, right = ([pair[side] for pair in operands] for side in (0, 1))
    names = ["shli", "shrsi", "shrui"]
    expected = [
        [signed(x << n, bits) for x, n in operands],
        [x >> n for x, n in operands],
        [signed(unsigned(x, bits) >> n, bits) for x, n in operands],
    ]
    check(names, run_binary(evaluate, bits, names, left, right), expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_comparisons_and_select(evaluate: Evaluate, bits: int) -> None:
    left, right = pairs(bits)
    dtype = np.dtype(f"int{bits}")
    lines: list[str] = []
    outputs: list[tuple[str, Any]] = []
    expected: list[list[int]] = []
    for name, f in PREDICATES.items():
        for prefix in ("",) if name in ("eq", "ne") else ("s", "u"):
            view = unsigned if prefix == "u" else signed
            lines.append(f"%{prefix}{name} = arith.cmpi {prefix}{name}, %x0, %x1 : i{bits}")
            outputs.append((f"%{prefix}{name}", np.bool_))
            expected.append([f(view(x, bits), view(y, bits)) for x, y in zip(left, right, strict=True)])
    lines.append(f"%chosen = arith.select %slt, %x0, %x1 : i{bits}")
    outputs.append(("%chosen", dtype))
    expected.append([min(x, y) for x, y in zip(left, right, strict=True)])
    results = evaluate("\n".join(lines), [np.array(left, dtype), np.array(right, dtype)], outputs)
    check([name for name, _ in outputs], results, expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_bit_counts_and_absolute_value(evaluate: Evaluate, bits: int) -> None:
    values = edge_values(bits)
    dtype = np.dtype(f"int{bits}")
    names = ["absi", "ctpop", "ctlz", "cttz"]
    body = "\n".join(f"%{name} = math.{name} %x0 : i{bits}" for name in names)
    results = evaluate(body, [np.array(values, dtype)], [(f"%{name}", dtype) for name in names])
    codes = [unsigned(value, bits) for value in values]
    expected = [
        [signed(abs(value), bits) for value in values],
        [code.bit_count() for code in codes],
        [bits - code.bit_length() for code in codes],
        [(code & -code).bit_length() - 1 if code else bits for code in codes],
    ]
    check(names, results, expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_extended_arithmetic(evaluate: Evaluate, bits: int) -> None:
    left, right = pairs(bits)
    dtype = np.dtype(f"int{bits}")
    body = f"""
      %sum, %carry = arith.addui_extended %x0, %x1 : i{bits}, i1
      %low, %high = arith.mulsi_extended %x0, %x1 : i{bits}
      %ulow, %uhigh = arith.mului_extended %x0, %x1 : i{bits}"""
    outputs: list[tuple[str, Any]] = [("%sum", dtype), ("%carry", np.bool_)] + [
        (name, dtype) for name in ("%low", "%high", "%ulow", "%uhigh")
    ]
    results = evaluate(body, [np.array(left, dtype), np.array(right, dtype)], outputs)
    operands = list(zip(left, right, strict=True))
    codes = [(unsigned(x, bits), unsigned(y, bits)) for x, y in operands]
    expected = [
        [signed(x + y, bits) for x, y in codes],
        [(x + y) >> bits for x, y in codes],
        [signed(x * y, bits) for x, y in operands],
        [signed((x * y) >> bits, bits) for x, y in operands],
        [signed(x * y, bits) for x, y in codes],
        [signed((x * y) >> bits, bits) for x, y in codes],
    ]
    check([name for name, _ in outputs], results, expected)


@pytest.mark.parametrize("bits", WIDTHS)
def test_resizing(evaluate: Evaluate, bits: int) -> None:
    values = edge_values(bits)
    lines: list[str] = []
    outputs: list[tuple[str, Any]] = []
    expected: list[list[int]] = []
    for other in WIDTHS:
        wider = other > bits
        for name in ("extsi", "extui") if wider else ("trunci",) if other < bits else ():
            lines.append(f"%{name}{other} = arith.{name} %x0 : i{bits} to i{other}")
            outputs.append((f"%{name}{other}", np.dtype(f"int{other}")))
            view = unsigned if name == "extui" else signed
            expected.append([signed(view(value, bits), other) for value in values])
    lines.append(f"%bit = arith.trunci %x0 : i{bits} to i1")
    lines.append(f"%all = arith.extsi %bit : i1 to i{bits}")
    lines.append(f"%one = arith.extui %bit : i1 to i{bits}")
    outputs += [("%bit", np.bool_), ("%all", np.dtype(f"int{bits}")), ("%one", np.dtype(f"int{bits}"))]
    expected += [[value & 1 for value in values], [-(value & 1) for value in values], [value & 1 for value in values]]
    results = evaluate("\n".join(lines), [np.array(values, np.dtype(f"int{bits}"))], outputs)
    check([name for name, _ in outputs], results, expected)


@pytest.mark.parametrize("index_bits", [32, 64])
def test_index_casts(evaluate: Evaluate, index_bits: int) -> None:
    values = edge_values(8)
    body = """
      %s = arith.index_cast %x0 : i8 to index
      %u = arith.index_castui %x0 : i8 to index
      %s64 = arith.index_cast %s : index to i64
      %u64 = arith.index_cast %u : index to i64
      %s16 = arith.index_cast %s : index to i16"""
    outputs = [("%s64", np.int64), ("%u64", np.int64), ("%s16", np.int16)]
    results = evaluate(body, [np.array(values, np.int8)], outputs, index_bits)
    check([name for name, _ in outputs], results, [values, [unsigned(value, 8) for value in values], values])


def test_pred(evaluate: Evaluate) -> None:
    left, right = [False, False, True, True], [False, True, False, True]
    body = """
      %and = arith.andi %x0, %x1 : i1
      %or = arith.ori %x0, %x1 : i1
      %xor = arith.xori %x0, %x1 : i1
      %lt = arith.cmpi ult, %x0, %x1 : i1
      %true = arith.constant true
      %not = arith.xori %x0, %true : i1
      %chosen = arith.select %x0, %x1, %true : i1"""
    names = ["%and", "%or", "%xor", "%lt", "%not", "%chosen"]
    results = evaluate(body, [np.array(left), np.array(right)], [(name, np.bool_) for name in names])
    expected = [[0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 1]]
    check(names, results, expected)


def test_any_nonzero_byte_is_true(evaluate: Evaluate) -> None:
    bytes_ = np.array([0, 1, 2, 128, 255], np.uint8).view(np.bool_)
    (result,) = evaluate("%y = arith.extui %x0 : i1 to i32", [bytes_], [("%y", np.int32)])
    np.testing.assert_array_equal(result, [0, 1, 1, 1, 1])

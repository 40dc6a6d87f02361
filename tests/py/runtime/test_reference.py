"""Programs that XLA cannot compile end in an error, also those that would end the process."""

from typing import Any

import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.errors import ToolError


@pytest.mark.parametrize("dtype", ["s4", "u2", "f4e2m1fn"])
def test_packed_arrays_are_concatenated_as_wider_ones(dtype: str) -> None:
    program = xgpu.compile(lambda x: lax.concatenate([x, x], 0), f"{dtype}[3]")
    array = np.array([1, 0, 1]).astype(program.arguments[0].dtype.numpy)
    for (result,) in (program.run(array, on="host"), program.reference(array)):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result.astype(np.float32), [1, 0, 1, 1, 0, 1])


@pytest.mark.parametrize("element", ["f32", "u32", "s8", "c64"])
@pytest.mark.parametrize("combine", [lax.add, lax.mul])
def test_an_initial_value_counts_once(combine: Any, element: str) -> None:
    """XLA's compiler for the CPU sums long arrays in parts, and would start each part from it."""
    program = xgpu.compile(lambda x, start: lax.reduce(x, start, combine, (0,)), f"{element}[5000]", f"{element}[]")
    dtype = program.arguments[0].dtype.numpy
    array, start = np.ones(5000, dtype), np.array(3, dtype)
    expected = start if combine is lax.mul else np.int64(5000 + 3).astype(dtype)
    for (result,) in (program.run(array, start, on="host"), program.reference(array, start)):
        assert result == expected


_REDUCTIONS: dict[str, tuple[Any, Any, str, int]] = {
    "add": (lax.add, np.add, "s32", 5),
    "multiply": (lax.mul, np.multiply, "f32", 5),
    "minimum": (lax.min, np.minimum, "s32", -5),
    "maximum": (lax.max, np.maximum, "bf16", 99),
    "and": (lax.bitwise_and, np.bitwise_and, "u8", 5),
    "or": (lax.bitwise_or, np.bitwise_or, "s32", 5),
    "xor": (lax.bitwise_xor, np.bitwise_xor, "s32", 5),
    "and of pred": (lax.bitwise_and, np.bitwise_and, "pred", 0),
    "or of pred": (lax.bitwise_or, np.bitwise_or, "pred", 1),
    "xor of pred": (lax.bitwise_xor, np.bitwise_xor, "pred", 1),
}


@pytest.mark.parametrize("rows", [(1,), (1, 1), (1, 2), (2, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("case", _REDUCTIONS.values(), ids=_REDUCTIONS.keys())
@pytest.mark.parametrize("is_constant", [False, True])
def test_an_initial_value_counts_once_whatever_is_reduced(
    rows: tuple[int, ...], case: tuple[Any, Any, str, int], is_constant: bool
) -> None:
    """XLA leaves reductions of one element out, and reduces each operand of a concatenation, from the start, alone."""
    combine, expected, element, number = case
    specs = [f"{element}[{count},3]" for count in rows]
    dtype = xgpu.compile(lambda x: x, specs[0]).arguments[0].dtype.numpy
    start = np.array(number).astype(dtype)

    def function(*arrays: Any) -> Any:
        *parts, first = arrays if not is_constant else (*arrays, start)
        return lax.reduce(lax.concatenate(parts, 0) if len(parts) > 1 else parts[0], first, combine, (0,))

    program = xgpu.compile(function, *specs, *([] if is_constant else [f"{element}[]"]))
    arrays = [np.full((count, 3), 7).astype(dtype) for count in rows]
    inputs = [*arrays, *([] if is_constant else [start])]
    wanted = expected.reduce(np.concatenate(arrays), axis=0, initial=start)
    for (result,) in (program.run(*inputs, on="host"), program.reference(*inputs)):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("padding", [(0, -1), (-2, 0), (-1, -1)])
def test_windows_that_only_cut_off_edges_end_xla(padding: tuple[int, int]) -> None:
    program = xgpu.compile(lambda x: lax.reduce_window(x, 0, lax.add, (1,), (1,), [padding]), "s32[5]")
    array = np.arange(5, dtype=np.int32)
    (result,) = program.run(array, on="host")
    np.testing.assert_array_equal(result, array[-padding[0] : 5 + padding[1]])
    with pytest.raises(ToolError, match="no reduce_window that only cuts off edges"):
        program.reference(array)


@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [((2,), (1,), (0, -1)), ((1,), (2,), (0, -1)), ((1,), (1,), (1, -1)), ((1,), (1,), (0, 0))],
)
def test_other_windows_are_compared(window: tuple[int], strides: tuple[int], padding: tuple[int, int]) -> None:
    program = xgpu.compile(lambda x: lax.reduce_window(x, 0, lax.add, window, strides, [padding]), "s32[5]")
    array = np.arange(5, dtype=np.int32)
    np.testing.assert_array_equal(program.run(array, on="host")[0], program.reference(array)[0])


@pytest.mark.parametrize("element", ["s8", "u8"])
def test_sums_of_bytes_wrap_around_before_they_are_reduced(element: str) -> None:
    """A library that XLA's compiler for the CPU would hand this to does not let them."""
    program = xgpu.compile(lambda x, y: lax.reduce_min(x + y, (0, 3)), *[f"{element}[2,5,82,5]"] * 2)
    inputs = program.random_inputs(0)
    expected = np.min(np.add(*inputs), (0, 3))
    for (result,) in (program.run(*inputs, on="host"), program.reference(*inputs)):
        np.testing.assert_array_equal(result, expected)


def test_an_exception_of_the_bindings_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA's compiler for the CPU fails so at a slice of nothing at the end of a concatenation, for example."""

    def fail(*_: Any) -> None:
        raise ValueError("SmallVector unable to grow")

    monkeypatch.setattr("xgpu.runtime.reference.compiler.backend_compile_and_load", fail)
    program = xgpu.compile(lambda x: x + 1, "f32[4]")
    with pytest.raises(ToolError, match="XLA cannot compile the reference: SmallVector unable to grow"):
        program.reference(*program.random_inputs(0))


def test_an_update_that_overlaps_what_it_is_taken_from() -> None:
    """XLA's compiler for the CPU would read what it has just written: the first element again and again."""
    program = xgpu.compile(
        lambda x, at: lax.dynamic_update_slice(x.reshape(39, 1), x.reshape(39, 1)[:38], (at, np.int16(0))),
        "s16[39]",
        "s16[]",
    )
    array = np.arange(39, dtype=np.int16)
    for (result,) in (program.run(array, np.int16(1), on="host"), program.reference(array, np.int16(1))):
        np.testing.assert_array_equal(result[:, 0], [0, *range(38)])

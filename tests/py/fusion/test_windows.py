"""Windows and what is moved before and after them: read beside each other, and each element of an array once."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.runtime.compare import compare


def _average(x: Any, size: int, mode: str) -> Any:
    """Average over windows along all dimensions but the first and the last."""
    half, inner = size // 2, x.ndim - 2
    padded = jnp.pad(x, ((0, 0), *[(half, half)] * inner, (0, 0)), mode)
    window = (1, *[size] * inner, 1)
    return lax.reduce_window(padded, 0.0, lax.add, window, (1,) * x.ndim, "VALID") / size**inner


def _trend(x: Any) -> Any:
    """What time series are split into, in the order that products read (Zeng et al., 2022)."""
    trend = _average(x, 25, "edge")
    return trend.transpose(2, 1, 0), (x - trend).transpose(2, 1, 0)


def _similarity(mode: str) -> Any:
    """SSIM of two images (Wang et al., 2004), beside whose edges ``mode`` says what there is."""

    def function(a: Any, b: Any) -> Any:
        mean, other = _average(a, 3, mode), _average(b, 3, mode)
        own = _average(a * a, 3, mode) - mean**2
        others, both = _average(b * b, 3, mode) - other**2, _average(a * b, 3, mode) - mean * other
        return (2 * mean * other + 1e-4) * (2 * both + 9e-4) / ((mean**2 + other**2 + 1e-4) * (own + others + 9e-4))

    return function


def _check(program: Any) -> None:
    inputs = [np.abs(each) % 1 for each in program.random_inputs()]
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def test_windows_are_not_read_transposed() -> None:
    """A thread would read each of 25 elements from a sector of its own: 2.3 ms on an H200 instead of 0.2."""
    program = xgpu.compile(_trend, "f32[512,336,64]", target="sm_90a")
    assert [kernel.emitter for kernel in program.kernels] == ["loop", "loop", "transpose"]
    _check(xgpu.compile(_trend, "f32[8,40,16]"))


def test_few_elements_are_read_in_any_order() -> None:
    emitters = [kernel.emitter for kernel in xgpu.compile(_trend, "f32[4,30,8]", target="sm_90a").kernels]
    assert "transpose" not in emitters


@pytest.mark.parametrize(("mode", "arrays"), [("constant", 2), ("wrap", 4), ("edge", 5), ("reflect", 5)])
def test_windows_of_the_same_elements_read_them_once(mode: str, arrays: int) -> None:
    """Five windows of nine elements, over two images and their products; a thread makes four results.

    What wraps around has code for either end. What repeats the edge, or reflects it, is stored before it is read.
    Threads inside the images have a version without conditions, in which the four results share what they read.
    """
    program = xgpu.compile(_similarity(mode), "f32[8,192,640,3]", "f32[8,192,640,3]", target="sm_90a")
    loads = len(re.findall(r"ld\.global", program.kernels[-1].ptx))
    assert 0 < loads <= (4 + 2) * 9 * arrays
    _check(xgpu.compile(_similarity(mode), "f32[2,6,8,3]", "f32[2,6,8,3]"))


def test_what_is_padded_by_reflection_is_stored() -> None:
    """To find an element's origin in four conditionals, nine times, takes longer than to read it."""
    program = xgpu.compile(_similarity("reflect"), "f32[8,192,640,3]", "f32[8,192,640,3]", target="sm_90a")
    assert len(program.kernels) == 2
    assert program.kernels[1].ptx.count("call.uni") == 0


def _gradient_of_averages(size: int, stride: int, before: int, after: int, rank: int) -> Any:
    """What a pool by averages gives back to what it was computed from, for windows that do not fit everywhere, too."""

    def averages(x: Any) -> Any:
        padding = ((0, 0), *[(before, after)] * rank)
        windows = (1, *[size] * rank), (1, *[stride] * rank)
        return lax.reduce_window(x, np.array(0, x.dtype), lax.add, *windows, padding) / size**rank

    return lambda x, change: jax.vjp(averages, x)[1](change)[0]


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("rank", [1, 2])
def test_gradients_of_averages(size: int, stride: int, rank: int) -> None:
    """Windows that overlap, lie side by side or leave elements out, and reach beyond either end."""
    for before, after, dtype in ((0, 0, "f32"), (1, 2, "f32"), (size - 1, 0, "bf16")):
        count = (11 + before + after - size) // stride + 1
        shapes = (",".join(map(str, (3, *[length] * rank))) for length in (11, count))
        program = xgpu.compile(
            _gradient_of_averages(size, stride, before, after, rank), *(f"{dtype}[{shape}]" for shape in shapes)
        )
        _check(program)
        assert stride == 1 or not re.search(r"interior = \[[0, ]*[1-9]", program.ir("prepared"))


def test_windows_over_gaps_read_only_elements() -> None:
    """A window of 11 x 11 at a stride of 11 is one element, which took two kernels and sums of four of eleven rows."""
    program = xgpu.compile(_gradient_of_averages(11, 11, 0, 0, 2), "f32[64,128,128]", "f32[64,11,11]", target="sm_90a")
    assert len(program.kernels) == 1
    assert len(re.findall(r"ld\.global", program.kernels[0].ptx)) <= 4


@pytest.mark.parametrize("dilation", [1, 3])
def test_padded_windows_are_written_out(dilation: int) -> None:
    """Few lanes need a check, but each warp has one: it would run through the loop that keeps the check as well."""

    def pool(x: Any) -> Any:
        padding = ((0, 0), *[(1, 1)] * 3)
        return lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 3), (1, 2, 2, 2), padding, None, (1, *[dilation] * 3))

    program = xgpu.compile(pool, "f32[32,64,64,128]", target="sm_90a")
    assert "nounroll" not in program.kernels[0].ptx
    _check(xgpu.compile(pool, "f32[3,8,9,10]"))

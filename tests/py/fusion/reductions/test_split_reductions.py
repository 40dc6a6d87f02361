"""Split reductions: the parts make up the whole, and the number of kernels."""

import math
from typing import Any

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xgpu
from xgpu.analysis.reduction_shape import ReductionShape
from xgpu.device import device
from xgpu.passes.prepare.reductions.split_reductions import ALIGNMENT, LEAST, cut


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 7, 16, 100, 331, 4096, 100003, 1 << 24]), min_size=1, max_size=4),
    st.integers(0, 15),
    st.integers(1, 2000),
    st.sampled_from([1, 16, 128]),
)
def test_parts_make_up_the_whole(sizes: list[int], mask: int, count: int, folded: int) -> None:
    dimensions = tuple(i for i in range(len(sizes)) if mask >> i & 1)
    shape = ReductionShape(tuple(sizes), dimensions)
    if shape.per_result == 1:
        return
    parts = cut(shape, count, 1 if shape.is_rows else folded)
    assert set(parts) == set(dimensions)
    for i, part in parts.items():
        assert part.size == sizes[i]
        assert part.outer * part.middle * part.inner + part.rest == sizes[i]
        assert min(part.outer, part.middle, part.inner) >= 1
        assert part.rest < max(2, part.outer * part.inner * ALIGNMENT)
    assert sum(part.rest > 0 for part in parts.values()) <= 1
    assert math.prod(part.outer for part in parts.values()) <= 4 * count


@pytest.mark.parametrize("size", [18_400, 300_000, 99_991, 1 << 20])
@pytest.mark.parametrize("count", [1, 7, 47, 176])
def test_parts_are_long_and_leave_little(size: int, count: int) -> None:
    (part,) = cut(ReductionShape((size, 3), (0,)), count, 64).values()
    assert part.outer == 1 or part.middle >= LEAST // 2
    assert part.outer >= min(count, size // 64 // LEAST) / 2
    assert part.rest < part.outer * part.inner


@pytest.mark.parametrize(
    ("shape", "axes", "kernels"),
    [
        ((16384, 16384), (1,), 1),
        ((16384, 16384), (0,), 1),
        ((16384, 16384), (0, 1), 2),
        ((4096, 4096), (0,), 1),
        ((1 << 20, 256), (0,), 2),
        ((1 << 24, 16), (0,), 2),
        ((60000,), (0,), 1),
        ((16, 1 << 22), (1,), 2),
        ((128, 1 << 22), (1,), 1),
        ((64, 56, 56, 256), (0, 1, 2), 2),
        ((64, 256, 56, 56), (0, 2, 3), 1),
    ],
    ids=str,
)
def test_a_second_kernel_only_where_it_pays(shape: tuple[int, ...], axes: tuple[int, ...], kernels: int) -> None:
    assert device("sm_90a").sm_count == 132
    text = _sum_over(shape, axes)
    assert len(xgpu.compile(text, target="sm_90a").kernels) == kernels


def _sum_over(shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    operand = f"tensor<{'x'.join(map(str, shape))}xf32>"
    kept = "".join(f"{size}x" for i, size in enumerate(shape) if i not in axes)
    return f"""
    func.func @main(%x: {operand}) -> tensor<{kept}f32> {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = {list(axes)}
        : ({operand}, tensor<f32>) -> tensor<{kept}f32>
      return %0 : tensor<{kept}f32>
    }}
    """


def test_moved_elements_cost_what_they_are_computed_from() -> None:
    """64,000 elements are few to read, and many to compute by one block."""

    def norm(x: Any, function: Any) -> Any:
        return jnp.sum(jnp.square(jnp.expand_dims(function(x)[::-1], 0)), axis=(1, 2))

    for function, kernels in ((lambda x: x, 1), (lambda x: jnp.sin(x) * jnp.tanh(x), 2)):
        program = xgpu.compile(lambda x, function=function: norm(x, function), "f32[1000,64]")
        assert [kernel.emitter for kernel in program.kernels] == ["reduce_row"] * kernels


def test_elements_that_lie_apart_cost_the_sectors_they_are_in() -> None:
    """One block takes eight times as long for 65,536 elements of which each is in a sector of its own."""
    for columns, kernels in ((1, 1), (8, 2)):
        program = xgpu.compile(lambda x: x[:, 0].sum(), f"f32[65536,{columns}]")
        assert [kernel.emitter for kernel in program.kernels] == ["reduce_row"] * kernels


def test_elements_read_apart_cost_sectors() -> None:
    """16,384 elements of two rows' places are a megabyte that one block would read."""

    def picked(x: Any, y: Any, labels: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(x - y, labels[:, None], 1))

    def first(x: Any, y: Any, labels: Any) -> Any:
        return -jnp.mean((x - y)[0] + labels)

    specs = "f32[16384,64]", "f32[16384,64]", "s32[16384]"
    assert [kernel.emitter for kernel in xgpu.compile(picked, *specs, target="sm_90a").kernels] == ["reduce_row"] * 2
    specs = "f32[64,16384]", "f32[64,16384]", "s32[16384]"
    assert [kernel.emitter for kernel in xgpu.compile(first, *specs, target="sm_90a").kernels] == ["reduce_row"]


def test_reductions_of_the_same_dimensions_are_split_alike() -> None:
    """The second alone would be long enough for two kernels, and the first for one."""

    def moments(x: Any, y: Any, z: Any) -> Any:
        return jnp.sum(x), jnp.sum(x * y * z)

    kernels = xgpu.compile(moments, *["f32[40000]"] * 3, target="sm_90a").kernels
    assert [len(kernel.aliases) for kernel in kernels] == [2, 2]
    assert len(xgpu.compile(lambda x: jnp.sum(x), "f32[40000]", target="sm_90a").kernels) == 1


def test_parts_that_are_the_whole_are_none() -> None:
    """Rows are few, but a thread computes each element of so many arrays that more blocks seem to pay."""
    specs = ["f32[24,384]"] * 60
    kernels = xgpu.compile(lambda *arrays: sum(arrays).sum(0), *specs, target="sm_90a").kernels
    assert [kernel.emitter for kernel in kernels] == ["reduce_column"]

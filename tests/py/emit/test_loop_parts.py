"""Loops over arrays of several shapes in one kernel, under the checks of the host executor, against XLA."""

import jax.numpy as jnp
import pytest

import xgpu
from xgpu.fusion.grouping import small_loops
from xgpu.runtime.compare import compare


def run(function, *specs):
    """Run on the host executor, compare with XLA, and return the compiled program."""
    compiled = xgpu.compile(function, *specs)
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs, sanitize=True), compiled.reference(*inputs), strict=True):
        assert compare(result, expected).agrees
    return compiled


def emitters(compiled):
    return [kernel.emitter for kernel in compiled.kernels]


def _doubled(*arrays):
    return [x + x for x in arrays]


@pytest.mark.parametrize(
    "specs",
    [
        ("f32[64]", "f32[65]"),
        ("f32[]", "f32[1]", "f32[1,1]", "f32[129]", "f32[128,3]"),
        ("f64[3,5]", "bf16[700]", "s8[31,33]", "f16[2,3,1,2,5]", "c64[9]", "c128[257]", "s64[40]"),
        ("s4[33]", "f32[300]", "u2[67,3]", "s8[5]", "f64[130]"),
        ("f32[600,513]", "bf16[1023,7]", "s4[999]", "f32[3]", "f64[257,2]"),
    ],
)
def test_shapes_and_types(specs):
    compiled = run(_doubled, *specs)
    assert emitters(compiled) == ["loop"]


def test_pred_and_what_differs_in_type():
    compiled = run(lambda x, y: (x > 0, x.astype(jnp.bfloat16), y == 3, -y), "f32[33,3]", "s32[129]")
    assert emitters(compiled) == ["loop"]


def test_each_part_computes_what_is_shared():
    def function(x, y, z):
        scale = jnp.sqrt(z * z + 1)
        return x * scale, y / scale, jnp.flip(x)[:20] + y[0]

    assert emitters(run(function, "f32[100]", "f32[30]", "f32[]")) == ["loop"]


def test_more_values_of_one_shape_than_a_thread_stores():
    compiled = run(_doubled, *["s32[70]"] * 35, "s32[71]")
    assert emitters(compiled) == ["loop"]
    assert compiled.kernels[0].grid == (4, 1, 1)


def test_a_kernel_computes_no_more_loops_than_compile_beside_others():
    compiled = run(_doubled, *(f"s32[{size}]" for size in range(1, 41)))
    assert [kernel.grid for kernel in compiled.kernels] == [(32, 1, 1), (8, 1, 1)]


def test_a_kernel_has_no_more_arrays_than_every_driver_takes(monkeypatch):
    monkeypatch.setattr(small_loops, "_MOST_ARRAYS", 10)
    compiled = run(_doubled, *(f"s32[{size}]" for size in range(5, 16)))
    assert [kernel.grid for kernel in compiled.kernels] == [(5, 1, 1), (5, 1, 1), (1, 1, 1)]


def test_a_kernel_has_a_bounded_text(monkeypatch):
    def function(*arrays):
        for _ in range(30):
            arrays = [x ^ (x * 3) for x in arrays]
        return arrays

    specs = [f"s32[{size}]" for size in range(5, 9)]
    assert emitters(run(function, *specs)) == ["loop"]
    monkeypatch.setattr(small_loops, "_MOST_INSTRUCTIONS", 128)
    assert emitters(run(function, *specs)) == ["loop", "loop"]


@pytest.mark.parametrize(
    ("specs", "count"),
    [
        # A launch takes as long as 12 MB on an H200.
        (("f32[1500,999]", "f32[64]"), 1),
        (("f32[1500,1001]", "f32[64]"), 2),
        (("f32[1500,1001]", "f32[64]", "f32[33]"), 2),
    ],
)
def test_what_takes_longer_than_a_launch_has_one_of_its_own(specs, count):
    assert emitters(xgpu.compile(_doubled, *specs)) == ["loop"] * count


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: (x.T, y + y), ["transpose", "loop"]),
        (lambda x, y: (x.sum(1), y + y), ["reduce_row", "loop"]),
        (lambda x, y: (jnp.cumsum(x, 1) * 2, y + y, x[:3] * 2), ["scan_row", "loop"]),
    ],
    ids=["transpose", "reduction", "scan"],
)
def test_kernels_of_other_families_stay_apart(function, expected):
    assert sorted(emitters(run(function, "s32[70,48]", "s32[33]"))) == sorted(expected)


def test_a_loop_that_reads_another_ones_result_comes_after_it():
    """Products read both, and XLA computes them."""

    def function(x, y, w):
        first = jnp.sin(x)
        return jnp.cos(first @ w)[:3] * y, jnp.exp(y), first

    compiled = xgpu.compile(function, "f32[64,64]", "f32[3,64]", "f32[64,64]")
    assert emitters(compiled) == ["loop", "loop"]

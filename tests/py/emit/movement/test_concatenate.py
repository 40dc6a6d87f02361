"""Concatenations walked operand by operand, under the checks of the host executor, against NumPy."""

import itertools
import re

import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import parse_spec
from xgpu.options import Options


def numbers(spec: str, seed: int) -> np.ndarray:
    """Return numbers that a program which only moves them must return to the bit."""
    dtype, shape = parse_spec(spec)
    generator = np.random.default_rng(seed)
    return generator.integers(0, 2 if dtype.kind == "bool" else 8, shape).astype(dtype.numpy)


def join_all(axis, specs):
    """Concatenate arrays on the host executor; return the kernel and the result, which is as expected."""
    compiled = xgpu.compile(lambda *arrays: lax.concatenate(arrays, axis), *specs)
    arrays = [numbers(spec, seed) for seed, spec in enumerate(specs)]
    (result,) = compiled.run(*arrays, sanitize=True)
    np.testing.assert_array_equal(result, np.concatenate(arrays, axis))
    (kernel,) = compiled.kernels
    return kernel


@pytest.mark.parametrize(
    ("axis", "specs"),
    [
        (1, ("f32[33,8]", "f32[33,8]")),
        (1, ("bf16[31,16]", "bf16[31,48]")),
        (1, ("s8[32,32]", "s8[32,64]", "s8[32,96]")),
        (1, ("f64[7,4]",) * 5),
        (0, ("f32[1]", "f32[31]", "f32[33]", "f32[331]")),
        (0, ("f32[103,1]", "f32[0,1]", "f32[105,1]")),
        (5, ("s16[1,2,1,3,1,4,2,4]", "s16[1,2,1,3,1,4,2,4]")),
        (1, ("pred[37,32]", "pred[37,32]")),
        (1, ("c64[13,4]", "c64[13,8]")),
        (1, ("c128[13,2]", "c128[13,4]")),
    ],
    ids=str,
)
def test_direct(axis, specs):
    assert join_all(axis, specs).emitter == "concatenate"


@pytest.mark.parametrize(
    ("axis", "specs"),
    [
        (1, ("f32[33,1]", "f32[33,102]")),
        (1, ("s8[3,1023]", "s8[3,1025]")),
        (1, ("f32[1025,3]", "f32[1025,31]", "f32[1025,2]")),
        (1, ("bf16[331,33]", "bf16[331,31]")),
        (1, ("s8[331,5]", "s8[331,1]", "s8[331,3]")),
        (1, ("u16[2,7]", "u16[2,6]")),
        (1, ("f64[7,1]",) * 5),
        (1, ("pred[31,5]", "pred[31,6]")),
        (7, ("s64[2,1,2,1,3,1,2,1]", "s64[2,1,2,1,3,1,2,2]")),
        (1, ("c64[13,3]", "c64[13,2]")),
        (1, ("f8e5m2[77,3]", "f8e5m2[77,10]")),
    ],
    ids=str,
)
def test_tiled(axis, specs):
    assert join_all(axis, specs).emitter == "concatenate_tiled"


@pytest.mark.parametrize(
    ("axis", "specs"),
    [
        (0, ("f32[2048]", "f32[4096]")),
        (1, ("f32[1000,1]", "f32[1000,1]")),
        (1, ("s4[9,3]", "s4[9,8]")),
        (1, ("u2[9,4]", "u2[9,2]")),
        (1, ("bf16[2,16381]", "bf16[2,16384]")),
        (1, ("f32[33,511]", "f32[33,513]")),
        (0, ("s8[1023]", "s8[1025]")),
    ],
    ids=str,
)
def test_left_to_the_loop(axis, specs):
    assert join_all(axis, specs).emitter == "loop"


def test_empty_arrays_are_left_out():
    compiled = xgpu.compile(lambda x, y: lax.concatenate((x, y), 0) * 2, "f32[0,5]", "f32[7,5]")
    x, y = compiled.random_inputs()
    assert [len(kernel.aliases) for kernel in compiled.kernels] == [1]
    assert "concatenate" not in compiled.ir("fusions")
    np.testing.assert_array_equal(compiled.run(x, y)[0], y * 2)


@pytest.mark.parametrize("width", [32, 33])
def test_prologues_and_epilogue(width):
    def function(x, y):
        joined = lax.concatenate((x * y, x - y), 1)
        other = lax.concatenate((y, x), 1)
        return joined + other, -lax.reshape(joined, (2 * 17 * width,)), other * 2

    spec = f"s32[17,{width}]"
    compiled = xgpu.compile(function, spec, spec)
    x, y = numbers(spec, 0), numbers(spec, 1)
    joined, other = np.concatenate((x * y, x - y), 1), np.concatenate((y, x), 1)
    results = compiled.run(x, y, sanitize=True)
    for result, expected in zip(results, (joined + other, -joined.reshape(-1), other * 2), strict=True):
        np.testing.assert_array_equal(result, expected)
    name = "concatenate" if width == 32 else "concatenate_tiled"
    assert compiled.kernels[0].emitter == name


@pytest.mark.parametrize(("count", "emitter", "most"), [(2, "concatenate_tiled", 100), (80, "loop", 100)])
def test_what_operands_share_is_not_written_for_each(count, emitter, most):
    def function(x):
        for _ in range(100):
            x = lax.sin(x)
        return lax.concatenate([lax.slice(x, (0, i), (16, i + 3)) for i in range(count)], 1)

    (kernel,) = xgpu.compile(function, "f32[16,128]").kernels
    assert kernel.emitter == emitter
    assert kernel.text("emitted").count("math.sin") == most


@pytest.mark.parametrize(
    ("count", "width", "emitter", "functions"),
    [(3, 1, "concatenate_tiled", 1), (2, 32, "concatenate", 1), (20, 3, "concatenate_tiled", 2)],
)
def test_what_pieces_share_is_computed_once(count, width, emitter, functions):
    """Elements of up to sixteen pieces at once, those of other shapes and without anything in common by themselves."""

    def function(x, y, z, longer):
        shared = lax.population_count(x * y)
        pieces = [shared * number if number % 2 else z - shared + number for number in range(count)]
        return lax.concatenate([*pieces, longer * 2, x[:, :0], lax.neg(z)], 1) + 1

    compiled = xgpu.compile(function, *[f"s32[67,{width}]"] * 3, f"s32[67,{2 * width}]")
    (kernel,) = compiled.kernels
    assert kernel.emitter == emitter
    assert kernel.text("emitted").count("math.ctpop") == functions
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs, sanitize=True)[0], compiled.reference(*inputs)[0])


@pytest.mark.parametrize(
    ("first", "second", "pieces"),
    [
        ("s4[20000,32]", "s4[20000,36]", "xyxy"),
        ("bf16[2000,216]", "bf16[2000,220]", "xy" * 40),
        ("f32[2300,120]", "f32[2300,122]", "xy" + "x" * 67 + "y"),
    ],
)
def test_pieces_of_other_alignment_are_walked_apart(first, second, pieces):
    """They begin where other vectors fit, so their threads have other elements."""

    def function(x, y):
        return lax.concatenate([{"x": x, "y": y}[name] * (number + 1) for number, name in enumerate(pieces)], 1)

    compiled = xgpu.compile(function, first, second)
    assert [kernel.emitter for kernel in compiled.kernels] == ["concatenate"]
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs, sanitize=True)[0], compiled.reference(*inputs)[0])


def test_a_schedule_of_longer_vectors_than_pieces():
    def function(x, y):
        return lax.concatenate([x * y, y + x, x - y], 0)

    options = Options(schedules={"function_fusion_0": {"vector": 4}})
    compiled = xgpu.compile(function, "s32[35]", "s32[35]", options=options)
    inputs = compiled.random_inputs(1)
    np.testing.assert_array_equal(compiled.run(*inputs, sanitize=True)[0], compiled.reference(*inputs)[0])


def test_what_is_walked_together_is_stored_by_vectors():
    def function(x, y):
        shared = lax.tanh(x * y)
        return lax.concatenate([x * shared, y * shared], 1)

    (kernel,) = xgpu.compile(function, "bf16[65536,64]", "bf16[65536,64]").kernels
    assert re.findall(r"[ls][td]\.global\S*", kernel.ptx) == ["ld.global.nc.v4.b32"] * 2 + ["st.global.v4.b32"] * 2


def test_nested_concatenations_are_one():
    def function(*arrays):
        return lax.concatenate((lax.concatenate(arrays[:3], 1), *arrays[3:5], lax.concatenate(arrays[5:], 1)), 1)

    specs = [f"f32[11,{n}]" for n in range(1, 8)]
    compiled = xgpu.compile(function, *specs)
    assert compiled.ir("fusions").count("stablehlo.concatenate") == 1
    arrays = [numbers(spec, seed) for seed, spec in enumerate(specs)]
    np.testing.assert_array_equal(compiled.run(*arrays)[0], np.concatenate(arrays, 1))


def test_a_nested_concatenation_that_is_used_twice_stays():
    def function(x, y):
        inner = lax.concatenate((x, y), 0)
        return lax.concatenate((inner, inner), 0)

    compiled = xgpu.compile(function, "f32[11]", "f32[7]")
    assert compiled.ir("fusions").count("stablehlo.concatenate") == 2
    arrays = [numbers(f"f32[{n}]", n) for n in (11, 7)]
    np.testing.assert_array_equal(compiled.run(*arrays)[0], np.concatenate([*arrays, *arrays]))


@pytest.mark.parametrize("sizes", list(itertools.product((0, 2), repeat=6)), ids=str)
def test_reads_of_pieces_of_any_size(sizes):
    """Which piece an element is from is found by halves, of which the first and the last may be of nothing."""
    total = sum(sizes)
    arrays = [np.arange(size, dtype=np.uint32) + 10 * number for number, size in enumerate(sizes)]
    compiled = xgpu.compile(
        lambda *pieces: lax.rev(lax.concatenate(pieces, 0), [0]) + 1, *(f"u32[{size}]" for size in sizes)
    )
    assert not total or [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    np.testing.assert_array_equal(compiled.run(*arrays)[0], np.concatenate(arrays)[::-1] + 1)


def test_rows_that_are_read_at_other_indices_too_are_left_to_the_loop():
    def function(*arrays):
        joined = lax.concatenate(arrays, 2).reshape(16, 8, 1, 34, 8)
        return lax.max(joined, joined.transpose(0, 4, 2, 3, 1))

    specs = ("f32[8,128,8]", "f32[8,128,8]", "f32[8,128,2]", "f32[8,128,8]", "f32[8,128,8]")
    compiled = xgpu.compile(function, *specs)
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    arrays = [numbers(spec, seed) for seed, spec in enumerate(specs)]
    (result,) = compiled.run(*arrays)
    joined = np.concatenate(arrays, 2).reshape(16, 8, 1, 34, 8)
    np.testing.assert_array_equal(result, np.maximum(joined, joined.transpose(0, 4, 2, 3, 1)))

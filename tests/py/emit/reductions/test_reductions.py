"""Reductions under the checks of the host executor, against NumPy and JAX on the CPU; sums are of small integers."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import parse_spec


def numbers(spec: str, seed: int = 0) -> np.ndarray:
    """Return small integers of a type, negative ones too if it has them."""
    dtype, shape = parse_spec(spec)
    generator = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return generator.random(shape) < 0.1
    lowest = 0 if dtype.is_unsigned else -2
    values = generator.integers(lowest, 2 if dtype.is_packed else 4, shape)
    if dtype.kind == "complex":
        values = values + 1j * generator.integers(-2, 4, shape)
    return values.astype(dtype.numpy)


def run(function, *arrays, emitters: set[str]):
    """Run on the host executor with all its checks; the emitters of kernels, or of their parts, are as expected."""
    with jax.enable_x64(True):
        specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        compiled = xgpu.compile(function, *specs)
    assert set(re.findall(r'xgpu.emitter = "(\w+)"', compiled.ir("fusions"))) - {"parts"} == emitters
    return compiled.run(*arrays, sanitize=True)


ROW, COLUMN, LOOP = "reduce_row", "reduce_column", "loop"


@pytest.mark.parametrize(
    ("shape", "axes", "emitters"),
    [
        ((9,), 0, {ROW}),
        ((1023,), 0, {ROW}),
        ((1025,), 0, {ROW}),
        ((31, 33), 1, {ROW}),
        ((33, 32), 1, {ROW}),
        ((5, 1023), 1, {ROW}),
        ((3, 8192), 1, {ROW}),
        ((3, 8191), 1, {ROW}),
        ((3, 2, 1027), (0, 2), {ROW}),
        ((331, 16), 1, {ROW}),
        ((7, 331, 1), (0, 1), {ROW}),
        ((11, 3, 20), (0, 2), {ROW}),
        ((3, 2, 3, 2, 3, 2, 3, 2), (1, 3, 5, 7), {ROW}),
        ((100003,), 0, {ROW}),
        ((300, 331), (0, 1), {ROW}),
        ((331, 1), 0, {ROW}),
        ((31, 3), 0, {COLUMN}),
        ((32, 33), 0, {COLUMN}),
        ((1025, 4), 0, {COLUMN}),
        ((13, 1024), 0, {COLUMN}),
        ((300, 128), 0, {COLUMN}),
        ((3, 100, 64), 1, {COLUMN}),
        ((11, 3, 4, 5), (0, 2), {COLUMN}),
        ((2, 1, 3, 1, 11, 3, 1, 2), (2, 4), {COLUMN}),
        ((40001, 3), 0, {COLUMN}),
        ((3301, 64), 0, {COLUMN}),
        ((70000, 5, 4), (0, 2), (COLUMN, LOOP)),
        ((5, 0), 1, {LOOP}),
        ((7, 8), 1, {ROW}),
        ((8, 7), 1, {LOOP}),
    ],
    ids=str,
)
def test_shapes(shape, axes, emitters):
    x = numbers(f"f32[{','.join(map(str, shape))}]")
    total, largest = run(lambda x: (jnp.sum(x, axes), jnp.max(x, axes, initial=-5)), x, emitters=set(emitters))
    np.testing.assert_array_equal(total, x.sum(axes))
    np.testing.assert_array_equal(largest, x.max(axes, initial=-5))


@pytest.mark.parametrize(
    "dtype",
    "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f8e5m2 f8e4m3fn f16 bf16 f32 f64 c64 c128".split(),
)
def test_types(dtype):
    x = numbers(f"{dtype}[65,33]")
    operation = lax.bitwise_or if dtype == "pred" else lax.add
    zero = np.zeros((), x.dtype)
    rows, columns = run(
        lambda x: [lax.reduce(x, zero, operation, (axis,)) for axis in (1, 0)],
        x,
        emitters={ROW, COLUMN} | ({LOOP} if dtype[1:] in ("2", "4") else set()),
    )
    wide = x.any if dtype == "pred" else x.astype(np.complex128 if dtype[0] == "c" else np.float64).sum
    for result, axis in ((rows, 1), (columns, 0)):
        expected = wide(axis)
        if dtype[1:] in ("2", "4"):
            expected = expected.astype(np.int64)
        np.testing.assert_array_equal(result, expected.astype(x.dtype))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_halves_are_summed_in_f32(dtype, axis):
    x = np.ones((3000, 9) if axis == 0 else (9, 3000), parse_spec(f"{dtype}[]")[0].numpy)
    (total,) = run(
        lambda x: lax.reduce(x, np.zeros((), x.dtype), lax.add, (axis,)),
        x,
        emitters={COLUMN if axis == 0 else ROW},
    )
    assert (total == np.full(9, 3000).astype(x.dtype)).all()


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *(("f32", shape) for shape in ((9, 300), (5000,), (70000,), (300, 9), (3, 200, 4), (40000, 2))),
        ("bf16", (9, 300)),
        ("f16", (300, 9)),
        ("u8", (300, 9)),
        ("s32", (70000,)),
    ],
    ids=str,
)
def test_positions_of_extremes(dtype, shape):
    """Of equal elements the first is found, of NaNs too, which count as largest and smallest."""
    axis = shape.index(max(shape))
    generator = np.random.default_rng(0)
    x = generator.integers(0, 5, shape).astype(parse_spec(f"{dtype}[]")[0].numpy)
    if x.dtype.kind not in "iu":
        nans = generator.random(shape) < 2 / shape[axis]
        x[nans] = np.nan

    def function(x):
        return jnp.argmax(x, axis), jnp.argmin(x, axis)

    emitter = ROW if axis == len(shape) - 1 else COLUMN
    results = run(function, x, emitters={emitter, LOOP} if shape == (70000,) else {emitter})
    for result, expected in zip(
        results, (x.astype(np.float32).argmax(axis), x.astype(np.float32).argmin(axis)), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


def product(left, right):
    """The product of two matrices of 2 x 2, given by their elements: it matters which comes first."""
    (a, b, c, d), (e, f, g, h) = left, right
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


@pytest.mark.parametrize(
    ("shape", "axes", "emitters"),
    [
        ((5, 100), (1,), (ROW,)),
        ((2, 3001), (1,), (ROW,)),
        ((100, 7), (0,), (COLUMN,)),
        ((3001, 40), (0,), (COLUMN,)),
        ((6, 5, 70), (0, 2), (ROW, LOOP)),
        ((6, 50, 7), (0, 1), (COLUMN,)),
    ],
    ids=str,
)
def test_what_does_not_commute_is_combined_in_order(shape, axes, emitters):
    arrays = [numbers(f"s32[{','.join(map(str, shape))}]", seed) for seed in range(4)]
    identity = tuple(np.int32(i) for i in (1, 0, 0, 1))

    def function(*arrays):
        return lax.reduce(arrays, identity, product, axes)

    results = run(function, *arrays, emitters=set(emitters))
    for result, expected in zip(results, jax.jit(function)(*arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(3, 3000), (3000, 3), (90001,)], ids=str)
def test_an_initial_value_counts_once(shape):
    x = numbers(f"f32[{','.join(map(str, shape))}]")
    axis = int(np.argmax(shape))

    def function(x, start):
        bits = x.astype(jnp.int32)
        return (
            lax.reduce(x, np.float32(10), lax.add, (axis,)),
            lax.reduce(x, start, lax.add, (axis,)),
            lax.reduce(x, np.float32(2.5), lax.max, (axis,)),
            lax.reduce(bits, np.int32(21), lax.bitwise_xor, (axis,)),
            lax.reduce(bits, np.int32(3), lax.bitwise_or, (axis,)),
        )

    results = run(function, x, np.float32(-7), emitters={COLUMN if axis == 0 and len(shape) > 1 else ROW})
    expected = [
        x.sum(axis) + 10,
        x.sum(axis) - 7,
        np.maximum(x.max(axis), 2.5),
        np.bitwise_xor.reduce(x.astype(np.int32), axis) ^ 21,
        np.bitwise_or.reduce(x.astype(np.int32), axis) | 3,
    ]
    for result, each in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, each)


def test_a_complex_initial_value() -> None:
    x = numbers("c64[40,5]")
    (total,) = run(lambda x: lax.reduce(x, np.complex64(1 + 2j), lax.add, (0,)), x, emitters={COLUMN})
    np.testing.assert_array_equal(total, x.sum(0) + (1 + 2j))


@pytest.mark.parametrize(("axes", "emitter"), [((1,), ROW), ((0,), COLUMN)])
def test_several_operands(axes, emitter):
    x, y = numbers("f32[65,33]"), numbers("s8[65,33]", 1)

    def function(x, y):
        return lax.reduce(
            (x, y), (np.float32(0), np.int8(1)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), axes
        )

    total, largest = run(function, x, y, emitters={emitter})
    np.testing.assert_array_equal(total, x.sum(axes))
    np.testing.assert_array_equal(largest, np.maximum(y.max(axes), 1))


@pytest.mark.parametrize(("axis", "emitter"), [(1, ROW), (0, COLUMN)])
def test_several_reductions_and_what_follows_in_one_kernel(axis, emitter):
    x, bias = numbers("f32[30,36]"), numbers("f32[36]" if axis == 0 else "f32[30]", 1)

    def function(x, bias):
        total, largest = jnp.sum(x, axis), jnp.max(x * 2, axis)
        return total * bias + largest, largest.reshape(6, -1).T, total, jnp.min(x, axis)

    compiled = xgpu.compile(function, x, bias)
    assert [kernel.emitter for kernel in compiled.kernels] == [emitter]
    results = compiled.run(x, bias, sanitize=True)
    total, largest = x.sum(axis), 2 * x.max(axis)
    expected = (total * bias + largest, largest.reshape(6, -1).T, total, x.min(axis))
    for result, each in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, each)


@pytest.mark.parametrize(
    ("shape", "axes", "emitter"),
    [
        ((33, 132), (1,), ROW),
        ((33, 131), (1,), ROW),
        ((5, 1027), (1,), ROW),
        ((9, 3, 40), (0, 2), ROW),
        ((50, 304), (0,), COLUMN),
        ((511, 3), (0,), COLUMN),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "c64"])
def test_arrays_are_stored_while_they_are_reduced(shape, axes, emitter, dtype):
    x = numbers(f"{dtype}[{','.join(map(str, shape))}]")
    compiled = xgpu.compile(lambda x: (x * 2, jnp.sum(x.astype(jnp.complex64), axes), -x), x)
    assert [kernel.emitter for kernel in compiled.kernels] == [emitter]
    twice, total, negative = compiled.run(x, sanitize=True)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(negative, -x)
    np.testing.assert_array_equal(total, x.astype(np.complex64).sum(axes))


def test_packed_arrays_are_stored_by_kernels_of_their_own() -> None:
    x = numbers("s8[33,132]")
    compiled = xgpu.compile(lambda x: (x.astype(jnp.int4), jnp.max(x, 1)), x)
    assert re.findall(r'xgpu.emitter = "(\w+)"', compiled.ir("fusions")) == [ROW, LOOP, "parts"]
    narrow, largest = compiled.run(x, sanitize=True)
    np.testing.assert_array_equal(narrow.astype(np.int8), x)
    np.testing.assert_array_equal(largest, x.max(1))


def test_reductions_inside_a_loop_are_split_too() -> None:
    def function(x):
        return lax.fori_loop(0, 3, lambda _, y: y + jnp.sum(y).astype(jnp.int32), x)

    x = numbers("s32[90001]")
    compiled = xgpu.compile(function, x)
    assert [kernel.emitter for kernel in compiled.kernels].count(ROW) == 2
    (result,) = compiled.run(x)
    np.testing.assert_array_equal(result, jax.jit(function)(x))


HLO = """
HloModule fused, entry_computation_layout={(f32[64,1000]{1,0}, f32[64]{0})->f32[64]{0}}

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT sum = f32[] add(a, b) }

fused_computation {
  x = f32[64,1000]{1,0} parameter(0)
  scale = f32[64]{0} parameter(1)
  zero = f32[] constant(0)
  squares = f32[64,1000]{1,0} multiply(x, x)
  total = f32[64]{0} reduce(squares, zero), dimensions={1}, to_apply=add
  ROOT scaled = f32[64]{0} multiply(total, scale)
}

ENTRY main {
  x = f32[64,1000]{1,0} parameter(0)
  scale = f32[64]{0} parameter(1)
  ROOT input_reduce_fusion = f32[64]{0} fusion(x, scale), kind=kInput, calls=fused_computation
}
"""


def test_a_fusion_of_hlo() -> None:
    compiled = xgpu.compile(HLO)
    assert [kernel.emitter for kernel in compiled.kernels] == [ROW]
    x, scale = numbers("f32[64,1000]"), numbers("f32[64]", 1)
    (result,) = compiled.run(x, scale, sanitize=True)
    np.testing.assert_array_equal(result, (x * x).sum(1) * scale)


def test_rounding_is_close_to_exact() -> None:
    x = np.random.default_rng(0).standard_normal(70001).astype(np.float32)
    # Seven parts and one element are few enough for a loop.
    (total,) = run(jnp.sum, x, emitters={ROW, "loop"})
    exact = math.fsum(x.tolist())
    assert abs(float(total) - exact) <= 1e-6 * math.fsum(map(abs, x.tolist()))


def test_vectors_are_no_longer_than_what_is_stored_is_aligned() -> None:
    """Rows of 136 elements begin at multiples of 16 bytes, but not the 129 of each that are stored."""

    def softmax(x, count):
        return jax.nn.softmax(x[:, :count].astype(jnp.float32), -1).astype(x.dtype)

    for count, vector in ((129, 1), (130, 2), (136, 8)):
        compiled = xgpu.compile(lambda x, count=count: softmax(x, count), "bf16[64,136]")
        assert f"#xgpu.schedule<vector = {vector}," in compiled.ir("fusions")


@pytest.mark.parametrize(("count", "emitter"), [(8, "loop"), (300, "reduce_column")])
def test_stacked_arrays_are_no_text_for_each_of_many(count: int, emitter: str) -> None:
    """What is done to a stack is written once for each of a few arrays: the text is not the product of both."""
    program = xgpu.compile(lambda *xs: jnp.sum(jnp.tanh(jnp.stack(xs)) * 2, 0), *["f32[4]"] * count)
    assert [kernel.emitter for kernel in program.kernels] == [emitter]


def test_sines_are_computed_before_the_branches_of_the_next_ones() -> None:
    """Else the operands of all sines of a thread need registers at once, across the calls for large arguments."""

    def sums(x: jax.Array) -> list[jax.Array]:
        return [jnp.sin(x * number).sum(0) for number in range(1, 4)]

    ptx = xgpu.compile(sums, "f32[32768,64]").kernels[0].text("ptx")
    before, *others = ptx.split("call.uni")
    reduced = before.count("fma.rn.f32")
    assert len(others) > 3
    assert all(other.count("fma.rn.f32") > reduced > 2 for other in others)


def test_uneven_steps_of_many_rows_keep_their_vectors() -> None:
    """LLVM would merge the ends of both versions of an unrolled loop, with an address in registers for each element."""
    compiled = xgpu.compile(lambda x: x.sum((0, 2, 3)), "f32[64,128,56,56]")
    (kernel,) = compiled.kernels
    assert kernel.emitter == ROW
    loads = re.findall(r"ld\.global\.nc\.(\S+)", kernel.text("ptx"))
    assert set(loads) == {"v4.b32"} and len(loads) < 14

"""Products by tiles, on the host executor against XLA."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from xgpu.dtypes import dtype_named
from xgpu.target.nvptx.cubin import find_ptxas
from xgpu.tools.programs import products

from .products import KERNELS, ORDERS, compiled, is_exact, whole_numbers

_TYPES = {
    ("bf16", "bf16"): ("bf16", "f32"),
    ("f16", "f16"): ("f16", "f32"),
    ("f32", "f32"): ("f32", "bf16"),
    ("f8e4m3fn", "f8e4m3fn"): ("f32", "f8e4m3fn"),
    ("f8e4m3fn", "f8e5m2"): ("bf16", "f32"),
    ("f8e5m2", "f8e4m3fn"): ("f16", "f32", "f8e5m2"),
    ("s8", "s8"): ("s32", "s8"),
    ("u8", "u8"): ("u32", "u8", "s32"),
}
"""The types of results by those of operands."""
_ELEMENTS = {name: dtype_named(name) for pair in _TYPES for name in (*pair, *_TYPES[pair])}


def _drawn(count: int) -> list[tuple[str, tuple[str, str], str, int, int, int, int]]:
    """Return products of several rows: order in memory, types of operands and result, sizes with rows of 16 bytes."""
    generator = random.Random(effort.seed_of_commit())
    orders = list(ORDERS) * count
    found = []
    for number, order in enumerate(orders[:count]):
        operands = list(_TYPES)[number % 2] if number % 4 < 2 else generator.choice(list(_TYPES))
        bits = _ELEMENTS[operands[0]].bits
        order = order if bits == 16 else "mk,nk"
        batch = generator.choice((1, 1, 2, 3))
        m, n, k = (generator.randint(least, 300) for least in (2, 2, 1))
        left, right = order.split(",")
        m, n, k = (
            -(-size // (128 // bits)) * (128 // bits) if name in (left[1], right[1]) else size
            for name, size in zip("mnk", (m, n, k), strict=True)
        )
        found.append((order, operands, generator.choice(_TYPES[operands]), batch, m, n, k))
    return found


_EACH_TYPE = [
    ("mk,nk", operands, result, 1 + number % 2, 70 + number, 40 + 3 * number, 16 * (1 + number))
    for number, (operands, result) in enumerate(
        (operands, result) for operands, results in list(_TYPES.items())[2:] for result in results
    )
]

_VECTORS = [("mk,nk", ("bf16", "bf16"), "bf16", 1, 17, 1, 32), ("mk,nk", ("f16", "f16"), "f16", 2, 1, 24, 32)]
"""Products with one column, whose result is contiguous along the rows, or one row."""


@pytest.mark.parametrize(
    ("order", "operands", "result", "batch", "m", "n", "k"),
    [*_EACH_TYPE, *_VECTORS, *_drawn(effort.by_level(2, 8, 400))],
    ids=str,
)
def test_sizes(order: str, operands: tuple[str, str], result: str, batch: int, m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k}
    left, right = ([sizes[name] for name in names] for names in order.split(","))
    contracted = ORDERS[order]
    if batch > 1:
        numbers = (((contracted[0] + 1,), (contracted[1] + 1,)), ((0,), (0,)))
        left, right = [batch, *left], [batch, *right]
    else:
        numbers = (((contracted[0],), (contracted[1],)), ((), ()))
    specs = [f"{name}[{','.join(map(str, shape))}]" for name, shape in zip(operands, (left, right), strict=True)]
    type_ = _ELEMENTS[result].numpy
    is_exact(compiled(lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=type_), *specs))


@pytest.mark.parametrize(
    ("numbers", "specs"),
    [
        ((((3,), (1,)), ((0,), (0,))), ("bf16[2,5,20,64]", "bf16[2,64,24]")),
        ((((1, 2), (0, 1)), ((), ())), ("f16[70,8,16]", "f16[8,16,40]")),
        ((((1,), (0,)), ((), ())), ("bf16[2,8]", "bf16[8,8]")),
        ((((1,), (1,)), ((), ())), ("bf16[2,8]", "bf16[3,8]")),
        ((((3,), (3,)), ((0, 1), (0, 1))), ("bf16[2,3,70,64]", "bf16[2,3,40,64]")),
        ((((2,), (2,)), ((1,), (1,))), ("f16[70,3,64]", "f16[40,3,64]")),
    ],
    ids=str,
)
def test_dimensions(numbers: Any, specs: tuple[str, str]) -> None:
    """Several dimensions of a kind, batches that are not outermost in memory, and the smallest products."""
    is_exact(compiled(lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32), *specs))


X, W = "bf16[130,72]", "bf16[72,136]"
_ROWS: Any = (((1,), (1,)), ((), ()))
"""The contracted dimensions of operands that lie in memory along them."""


def _scaled(x: Any, w: Any, scale: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=jnp.float32) * scale


def _masked(x: Any, w: Any, mask: Any) -> Any:
    return jnp.where(mask, jnp.dot(x, w), jnp.bfloat16(-1e9))


def _two(x: Any, w: Any, bias: Any) -> Any:
    y = jnp.dot(x, w, preferred_element_type=jnp.float32) + bias
    return y.astype(jnp.bfloat16), y > 0


def _residual(x: Any, w: Any, rest: Any, flags: Any) -> Any:
    return jnp.dot(x, w) + rest * flags.astype(jnp.bfloat16)


def _dequantized(x: Any, y: Any, rows: Any, columns: Any) -> Any:
    sums = lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.int32)
    return (sums.astype(jnp.float32) * rows * columns).astype(jnp.bfloat16)


def _quantized(x: Any, y: Any, scale: Any, zero: Any) -> Any:
    sums = lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.float32) * scale
    return sums.astype(jnp.float8_e4m3fn), (sums + zero.astype(jnp.float32)).astype(jnp.int8)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (_scaled, (X, W, "f32[]")),
        (_dequantized, ("s8[130,80]", "s8[136,80]", "f32[130,1]", "f32[136]")),
        (_quantized, ("f8e4m3fn[130,80]", "f8e5m2[136,80]", "f32[]", "u8[136]")),
        (_masked, (X, W, "pred[130,136]")),
        (_two, (X, W, "f32[136]")),
        (_residual, (X, W, "bf16[130,136]", "s8[130,1]")),
        (
            lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32).astype(jnp.int8),
            ("f16[64,72]", "f16[72,128]"),
        ),
        (lambda x, w: jnp.dot(x, w) > 0, ("bf16[64,72]", "bf16[72,128]")),
    ],
    ids=["scale", "dequantized", "quantized", "mask", "two", "residual", "integers", "booleans"],
)
def test_epilogues(function: Any, specs: tuple[str, ...]) -> None:
    """What follows a product is in its kernel, in the same precision and order as XLA has it."""
    is_exact(compiled(function, *specs))


def _many(x: Any, w: Any) -> Any:
    y = jnp.dot(x, w)
    return tuple(y + jnp.bfloat16(number) for number in range(7))


def _of_widths(x: Any, w: Any) -> Any:
    y = jnp.dot(x, w, preferred_element_type=jnp.float32)
    return y.astype(jnp.bfloat16), y.astype(jnp.float8_e5m2), (2 * y).astype(jnp.float16), y.astype(jnp.uint8)


@pytest.mark.parametrize(
    ("function", "schedule"),
    [(_many, {"tile_m": 64, "groups": 1, "tile_n": 64}), (_of_widths, {"tile_m": 128, "groups": 2, "tile_n": 128})],
    ids=["many", "widths"],
)
def test_results_that_are_copied_as_boxes(function: Any, schedule: dict[str, int]) -> None:
    """More than a block has warps for; and of elements of several widths, with two warp groups at any of them."""
    fixed = {"stages": 2, "blocks": 2, "band": 1, "cluster": 1, "staged": True}
    program = compiled(function, "bf16[200,72]", "bf16[72,128]", **schedule, **fixed)
    is_exact(program, [np.sign(array) for array in whole_numbers(program)])


def test_an_epilogue_that_is_longer_than_python_recurses() -> None:
    def function(x: Any, w: Any) -> Any:
        y = jnp.dot(x, w, preferred_element_type=jnp.float32)
        for number in range(1100):
            y = y + jnp.float32(number)
        return y

    assert compiled(function, "bf16[8,8]", "bf16[8,8]").ir("emitted").count("arith.addf") == 1100


def test_an_epilogue_of_any_numbers() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        return jax.nn.gelu(jnp.dot(x, w, preferred_element_type=jnp.float32) + b)

    program = compiled(function, X, W, "f32[136]")
    arguments = program.random_inputs(1)
    (found,), (expected,) = program.run(*arguments), program.reference(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


_SCHEDULES = [
    {"tile_m": 64, "groups": 1, "tile_n": 128, "stages": 2, "blocks": 1, "band": 5, "staged": False},
    {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 3, "blocks": 2, "band": 1, "staged": True},
    {"tile_m": 128, "groups": 2, "tile_n": 64, "stages": 2, "blocks": 2, "band": 3, "staged": True},
    {"tile_m": 128, "groups": 1, "tile_n": 64, "stages": 5, "blocks": 8, "band": 1, "staged": True},
    {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 2, "blocks": 4, "band": 1, "staged": True, "cluster": 2},
    {"tile_m": 128, "groups": 2, "tile_n": 256, "stages": 2, "blocks": 2, "band": 1, "staged": False, "cluster": 2},
    {"tile_m": 256, "groups": 2, "tile_n": 64, "stages": 3, "blocks": 1, "band": 1, "staged": True},
    {"tile_m": 64, "groups": 1, "tile_n": 128, "stages": 2, "blocks": 4, "band": 1, "staged": False, "cluster": 4},
]


@pytest.mark.parametrize("schedule", effort.drawn(_SCHEDULES, effort.by_level(2, 6, len(_SCHEDULES))), ids=str)
def test_schedules(schedule: dict[str, int]) -> None:
    """No number of the schedule changes the result: blocks have several tiles or none, and part of them is outside."""
    rows = 300 if schedule["band"] > 1 or "cluster" not in schedule else 512
    schedule = {**schedule, "band": schedule["band"] if rows == 300 else 1}
    is_exact(compiled(_scaled, f"bf16[{rows},200]", "bf16[200,192]", "f32[]", **{"cluster": 1, **schedule}))


def test_a_row_of_a_cluster_is_no_group_of_rows() -> None:
    """Each of two blocks copies 12 rows of the right operand: half a group of those that swizzling permutes."""
    schedule = {"tile_m": 64, "groups": 1, "tile_n": 24, "stages": 2, "blocks": 2, "band": 1, "cluster": 2}
    function = lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ())))  # noqa: E731
    is_exact(compiled(function, "bf16[128,72]", "bf16[40,72]", staged=False, **schedule))


def test_special_values() -> None:
    """NaN and infinities reach the elements that they should, and no others; subnormals count."""
    program = compiled(lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32), "bf16[70,72]", "bf16[72,40]")
    x, w = whole_numbers(program)
    x[3, 5], x[7, 71], x[69, 0] = np.nan, np.inf, -np.inf
    w[5, 39], w[8, 2] = np.inf, np.nan
    tiny = np.array(2.0**-133).astype(ml_dtypes.bfloat16)
    x[11], w[:, 4] = 0, 0
    x[11, 9], w[9, 4] = tiny, 8
    (found,) = program.run(x, w)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert found[11, 4] == np.float32(2.0**-130)


def test_special_values_of_f8() -> None:
    """Infinities and NaN, which one of the types has in one form, and the smallest and largest numbers."""

    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.float32)

    program = compiled(function, "f8e5m2[70,144]", "f8e4m3fn[40,144]")
    x, y = whole_numbers(program)
    x[3, 5], x[7, 143], x[69, 0], y[39, 2] = np.nan, np.inf, -np.inf, np.nan
    x[11], y[4], x[12], y[5] = 0, 0, 0, 0
    x[11, 9], y[4, 9] = 2.0**-16, 2.0**-9
    x[12, 9], y[5, 9] = -57344, 448
    (found,) = program.run(x, y)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ y.astype(np.float64).T
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert found[11, 4] == np.float32(2.0**-25)
    assert found[12, 5] == np.float32(-57344 * 448)


def test_special_values_of_f32() -> None:
    """What is beyond the range of narrower types, or not a number; elements are rounded to tf32, to even."""
    program = compiled(lambda x, y: lax.dot_general(x, y, _ROWS), "f32[70,36]", "f32[40,36]")
    x, y = whole_numbers(program)
    x[3, 5], x[7, 35], x[69, 0], y[39, 2] = np.nan, np.inf, -np.inf, np.nan
    x[11], x[12], y[4] = 0, 0, 0
    x[11, 9], y[4, 9] = 2.0**120, 8
    x[12:17, 9] = 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11 - 2.0**-20, np.finfo("f4").max, 2.0**-126 + 2.0**-137
    x[12:17, :9], x[12:17, 10:], y[39, 9] = 0, 0, 1
    (found,) = program.run(x, y)
    x[12:17, 9] = 1, 1 + 2.0**-9, -1 - 2.0**-10, np.inf, 2.0**-126
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ y.astype(np.float64).T
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert found[11, 4] == np.float32(2.0**123)


@pytest.mark.parametrize(("operands", "values"), [("s8", (-128, 127)), ("u8", (255, 0))])
def test_integers_of_any_size(operands: str, values: tuple[int, int]) -> None:
    """Sums are exact, and results of 8 bits are what is left of them."""

    def function(x: Any, y: Any) -> Any:
        sums = lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.int32)
        return sums, lax.dot_general(x, y, _ROWS)

    for part in range(2):
        program = compiled(lambda x, y, part=part: function(x, y)[part], f"{operands}[66,400]", f"{operands}[40,400]")
        generator = np.random.default_rng(1)
        arguments = [generator.choice(values, spec.shape).astype(spec.dtype.numpy) for spec in program.arguments]
        arguments[0][0], arguments[1][0] = values[0], values[0]
        is_exact(program, arguments)


def test_what_follows_unsigned_integers() -> None:
    """Comparisons, quotients and conversions are those of unsigned numbers."""

    def function(x: Any, y: Any, limit: Any) -> Any:
        sums = lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.uint32) - jnp.uint32(1 << 20)
        return (jnp.maximum(sums, limit) // 3).astype(jnp.float32)

    is_exact(compiled(function, "u8[66,64]", "u8[40,64]", "u32[40]"))


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    "schedule",
    [{"tile_m": 128, "groups": 1, "tile_n": 192}, {"tile_m": 128, "groups": 2, "tile_n": 256}],
    ids=str,
)
@pytest.mark.parametrize("operands", [("bf16", "bf16"), ("f8e4m3fn", "f8e5m2"), ("u8", "u8"), ("f32", "f32")], ids=str)
def test_sums_stay_in_registers(schedule: dict[str, int], operands: tuple[str, str]) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    fixed = {"blocks": 4, "cluster": 1, "band": 1, "staged": False, "stages": 2}
    total = jnp.int32 if operands[0] == "u8" else jnp.float32
    specs = [f"{name}[512,512]" for name in operands]
    function = lambda x, y: lax.dot_general(x, y, _ROWS, preferred_element_type=total)  # noqa: E731
    program = compiled(function, *specs, **fixed, **schedule)
    assembled = program.kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


def test_products_that_no_kernel_computes_are_left() -> None:
    for specs in (
        ("f32[64,64]", "f32[64,64]"),
        ("s8[64,64]", "s8[64,64]"),
        ("f8e5m2[64,64]", "f8e5m2[64,64]"),
        ("s16[64,64]", "s16[64,64]"),
        ("bf16[64,65]", "bf16[65,64]"),
        ("bf16[64,0]", "bf16[0,64]"),
        ("bf16[1,64]", "bf16[64,64]"),
    ):
        assert not [
            each for each in xgpu.compile(jnp.dot, *specs, options=KERNELS).kernels if each.emitter == "product"
        ]


def test_every_program_of_products_is_one_kernel() -> None:
    for program in products.programs():
        compiled = program.compile()
        assert [kernel.emitter for kernel in compiled.kernels] == [products.EMITTERS[program.name]], program
        assert compiled.main is None

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
from xgpu.target.nvptx.cubin import find_ptxas

from .products import KERNELS, ORDERS, compiled, is_exact, whole_numbers


def _drawn(count: int) -> list[tuple[str, str, str, int, int, int, int]]:
    """Return products of several rows: order in memory, types of operands and result, sizes with rows of 16 bytes."""
    generator = random.Random(effort.seed_of_commit())
    orders = list(ORDERS) * count
    found = []
    for order in orders[:count]:
        batch = generator.choice((1, 1, 2, 3))
        m, n, k = (generator.randint(least, 300) for least in (2, 2, 1))
        left, right = order.split(",")
        m, n, k = (
            -(-size // 8) * 8 if name in (left[1], right[1]) else size
            for name, size in zip("mnk", (m, n, k), strict=True)
        )
        operands = generator.choice(("bf16", "f16"))
        found.append((order, operands, generator.choice((operands, "f32")), batch, m, n, k))
    return found


@pytest.mark.parametrize(
    ("order", "operands", "result", "batch", "m", "n", "k"), _drawn(effort.by_level(2, 8, 400)), ids=str
)
def test_sizes(order: str, operands: str, result: str, batch: int, m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k}
    left, right = ([sizes[name] for name in names] for names in order.split(","))
    contracted = ORDERS[order]
    if batch > 1:
        numbers = (((contracted[0] + 1,), (contracted[1] + 1,)), ((0,), (0,)))
        left, right = [batch, *left], [batch, *right]
    else:
        numbers = (((contracted[0],), (contracted[1],)), ((), ()))
    specs = [f"{operands}[{','.join(map(str, shape))}]" for shape in (left, right)]
    type_ = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}[result]
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


def _scaled(x: Any, w: Any, scale: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=jnp.float32) * scale


def _masked(x: Any, w: Any, mask: Any) -> Any:
    return jnp.where(mask, jnp.dot(x, w), jnp.bfloat16(-1e9))


def _two(x: Any, w: Any, bias: Any) -> Any:
    y = jnp.dot(x, w, preferred_element_type=jnp.float32) + bias
    return y.astype(jnp.bfloat16), y > 0


def _residual(x: Any, w: Any, rest: Any, flags: Any) -> Any:
    return jnp.dot(x, w) + rest * flags.astype(jnp.bfloat16)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (_scaled, (X, W, "f32[]")),
        (_masked, (X, W, "pred[130,136]")),
        (_two, (X, W, "f32[136]")),
        (_residual, (X, W, "bf16[130,136]", "s8[130,1]")),
        (
            lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32).astype(jnp.int8),
            ("f16[64,72]", "f16[72,128]"),
        ),
        (lambda x, w: jnp.dot(x, w) > 0, ("bf16[64,72]", "bf16[72,128]")),
    ],
    ids=["scale", "mask", "two", "residual", "integers", "booleans"],
)
def test_epilogues(function: Any, specs: tuple[str, ...]) -> None:
    """What follows a product is in its kernel, in the same precision and order as XLA has it."""
    is_exact(compiled(function, *specs))


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


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    "schedule",
    [{"tile_m": 128, "groups": 1, "tile_n": 192}, {"tile_m": 128, "groups": 2, "tile_n": 256}],
    ids=str,
)
def test_sums_stay_in_registers(schedule: dict[str, int]) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    fixed = {"blocks": 4, "cluster": 1, "band": 1, "staged": False, "stages": 2}
    program = compiled(jnp.matmul, "bf16[512,512]", "bf16[512,512]", **fixed, **schedule)
    assembled = program.kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


def test_products_that_no_kernel_computes_are_left() -> None:
    for specs in (
        ("f32[64,64]", "f32[64,64]"),
        ("bf16[64,65]", "bf16[65,64]"),
        ("bf16[64,0]", "bf16[0,64]"),
        ("bf16[1,64]", "bf16[64,64]"),
    ):
        assert not [
            each for each in xgpu.compile(jnp.dot, *specs, options=KERNELS).kernels if each.emitter == "product"
        ]

"""Products by tiles that single warps multiply, on the host executor against XLA."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from tests.py.planned import planned
from xgpu.costs.products import warp_products
from xgpu.device import device
from xgpu.target.nvptx.cubin import find_ptxas

from .products import KERNELS, ORDERS, is_exact, whole_numbers

_TARGETS = ("sm_80", "sm_90", "sm_90a", "sm_120")


@pytest.fixture(autouse=True)
def _every_product_is_ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small ones too, which a library computes faster."""
    monkeypatch.setattr(warp_products, "is_fast", lambda *_: True)
    yield


def _compiled(function: Any, *specs: str, target: str = "sm_80", **schedule: int) -> xgpu.Compiled:
    """Return a program of one kernel, a product of warps, with some numbers of its schedule fixed."""
    options = KERNELS
    if schedule:
        name = planned(function, specs, device(target), KERNELS).kernels[0].name
        options = replace(KERNELS, schedules={name: schedule})
    program = xgpu.compile(function, *specs, target=target, options=options)
    assert [kernel.emitter for kernel in program.kernels] == ["warp_product"]
    assert program.main is None
    return program


def _schedule(program: xgpu.Compiled) -> str:
    text: str = program.ir("fusions")
    return text.split("#xgpu.schedule<")[1].split(">")[0]


def _drawn(count: int) -> list[tuple[str, str, str, str, int, int, int, int]]:
    """Return products: target, order in memory, types of operands and result, sizes of which one at least is odd."""
    generator = random.Random(effort.seed_of_commit() + 1)
    found = []
    for number in range(count):
        order = list(ORDERS)[number % len(ORDERS)]
        sizes = [generator.choice((generator.randint(2, 300), 4 * generator.randint(1, 75))) for _ in "mnk"]
        # On sm_90a, products that boxes can be copied for are those of warp groups: rows of one operand are odd.
        left = order.split(",")[0]
        odd = "mnk".index(left[1])
        target = generator.choice(_TARGETS)
        if target == "sm_90a":
            sizes[odd] |= 1
        operands = generator.choice(("bf16", "f16"))
        result = generator.choice((operands, "f32"))
        found.append((target, order, operands, result, generator.choice((1, 1, 3)), *sizes))
    return found


_RAGGED = [
    (target, order, "bf16", result, 1, *sizes)
    for target, order, result, sizes in (
        ("sm_90a", "mk,kn", "f32", (5, 5, 5)),
        ("sm_80", "km,nk", "bf16", (5, 5, 5)),
        ("sm_90a", "mk,kn", "bf16", (96, 96, 57)),
        ("sm_80", "mk,nk", "f32", (96, 96, 57)),
        ("sm_90a", "mk,kn", "bf16", (405, 435, 63)),
        ("sm_120", "km,kn", "f32", (405, 435, 63)),
        ("sm_90a", "mk,kn", "bf16", (381, 504, 62)),
        ("sm_90a", "mk,nk", "f32", (381, 504, 62)),
    )
]
"""Sizes of which hardly any is a multiple of a tile, of a row of 16 bytes, or of an instruction's."""


@pytest.mark.parametrize(
    ("target", "order", "operands", "result", "batch", "m", "n", "k"),
    [*_RAGGED, *_drawn(effort.by_level(4, 12, 400))],
    ids=str,
)
def test_sizes(target: str, order: str, operands: str, result: str, batch: int, m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k}
    left, right = ([sizes[name] for name in names] for names in order.split(","))
    contracted = ORDERS[order]
    numbers: Any = (((contracted[0],), (contracted[1],)), ((), ()))
    if batch > 1:
        numbers = (((contracted[0] + 1,), (contracted[1] + 1,)), ((0,), (0,)))
        left, right = [batch, *left], [batch, *right]
    specs = [f"{operands}[{','.join(map(str, shape))}]" for shape in (left, right)]
    type_ = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}[result]

    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, numbers, preferred_element_type=type_)

    is_exact(_compiled(function, *specs, target=target))


@pytest.mark.parametrize(
    ("numbers", "specs", "units"),
    [
        ((((3,), (1,)), ((0,), (0,))), ("bf16[2,5,20,64]", "bf16[2,64,24]"), (16, 16)),
        ((((1, 2), (0, 1)), ((), ())), ("f16[70,8,17]", "f16[8,17,40]"), (16, 16)),
        ((((1, 2), (0, 1)), ((), ())), ("f16[70,7,3]", "f16[7,3,44]"), (2, 8)),
        ((((1,), (1,)), ((), ())), ("bf16[2,8]", "bf16[3,8]"), (16, 16)),
        ((((1,), (0,)), ((), ())), ("bf16[2,63]", "bf16[63,10]"), (2, 4)),
        ((((1,), (0,)), ((), ())), ("bf16[9,3]", "bf16[3,16]"), (2, 16)),
        ((((3,), (3,)), ((0, 1), (0, 1))), ("bf16[2,3,70,66]", "bf16[2,3,40,66]"), (4, 4)),
        ((((2,), (2,)), ((1,), (1,))), ("f16[70,3,20]", "f16[40,3,20]"), (8, 8)),
        ((((0,), (0,)), ((), ())), ("f16[31,40]", "f16[31,35]"), (16, 2)),
    ],
    ids=str,
)
def test_dimensions(numbers: Any, specs: tuple[str, str], units: tuple[int, int]) -> None:
    """Several dimensions of a kind, batches that are not outermost, few rows; units are as wide as rows allow."""
    program = _compiled(lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32), *specs)
    left, right = units
    assert f"left_bytes = {left}, right_bytes = {right}" in _schedule(program)
    is_exact(program)


X, W = "bf16[130,71]", "bf16[71,137]"


def _scaled(x: Any, w: Any, scale: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=jnp.float32) * scale


def _masked(x: Any, w: Any, mask: Any) -> Any:
    return jnp.where(mask, jnp.dot(x, w), jnp.bfloat16(-1e9))


def _two(x: Any, w: Any, bias: Any) -> Any:
    y = jnp.dot(x, w, preferred_element_type=jnp.float32) + bias
    return y.astype(jnp.bfloat16), y > 0


def _residual(x: Any, w: Any, rest: Any, flags: Any) -> Any:
    return jnp.dot(x, w) + rest * flags.astype(jnp.bfloat16)


def _integers(x: Any, w: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=jnp.float32).astype(jnp.int8)


@pytest.mark.parametrize(
    ("function", "specs", "neighbours"),
    [
        (_scaled, (X, W, "f32[]"), 1),
        (_masked, (X, W, "pred[130,137]"), 1),
        (_two, (X, W, "f32[137]"), 1),
        (_two, ("bf16[130,72]", "bf16[72,136]", "f32[136]"), 8),
        (_residual, ("bf16[130,72]", "bf16[72,138]", "bf16[130,138]", "s8[130,1]"), 2),
        (_integers, ("f16[63,72]", "f16[72,132]"), 4),
    ],
    ids=["scale", "mask", "two", "aligned", "residual", "integers"],
)
def test_epilogues(function: Any, specs: tuple[str, ...], neighbours: int) -> None:
    """What follows a product is in its kernel; threads compute as many neighbours as they write at once."""
    program = _compiled(function, *specs)
    assert f"neighbours = {neighbours}," in _schedule(program)
    is_exact(program)


_SCHEDULES = [
    {"tile_m": 16, "tile_n": 16, "tile_k": 16, "down": 1, "across": 1, "stages": 2, "blocks": 1, "band": 1},
    {"tile_m": 16, "tile_n": 48, "tile_k": 32, "down": 1, "across": 3, "stages": 3, "blocks": 7, "band": 1},
    {"tile_m": 64, "tile_n": 96, "tile_k": 64, "down": 2, "across": 2, "stages": 5, "blocks": 2, "band": 5},
    {"tile_m": 128, "tile_n": 32, "tile_k": 16, "down": 8, "across": 1, "stages": 8, "blocks": 9, "band": 3},
    {"tile_m": 64, "tile_n": 80, "tile_k": 128, "down": 1, "across": 5, "stages": 2, "blocks": 400, "band": 1},
]


@pytest.mark.parametrize("units", [(16, 16), (4, 8), (2, 16), (8, 2), (2, 2)], ids=str)
@pytest.mark.parametrize("schedule", effort.drawn(_SCHEDULES, effort.by_level(1, 3, len(_SCHEDULES))), ids=str)
def test_schedules(schedule: dict[str, int], units: tuple[int, int]) -> None:
    """No number of the schedule changes the result; units may be narrower than they need be, and tiles outside."""
    fixed = {
        **schedule,
        "left_bytes": units[0],
        "right_bytes": units[1],
        "resident": 1,
        "neighbours": 2,
        "ahead": min(units) > 2,
    }
    is_exact(_compiled(_scaled, "bf16[300,88]", "bf16[88,200]", "f32[]", **fixed))


@pytest.mark.parametrize(("m", "n", "k"), [(70, 72, 200), (37, 41, 93), (20, 44, 5)], ids=str)
@pytest.mark.parametrize("order", ORDERS)
def test_checks_find_nothing(order: str, m: int, n: int, k: int) -> None:
    """No access is out of bounds or races with another, with copies of each kind: more steps than stages, and fewer."""
    sizes = {"m": m, "n": n, "k": k}
    left, right = (",".join(str(sizes[name]) for name in names) for names in order.split(","))
    numbers = (((ORDERS[order][0],), (ORDERS[order][1],)), ((), ()))
    program = _compiled(lambda x, y: lax.dot_general(x, y, numbers), f"f16[{left}]", f"f16[{right}]", tile_k=32)
    arguments = whole_numbers(program)
    (found,), (expected,) = program.run(*arguments, sanitize=True), program.reference(*arguments)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("k", [71, 72], ids=str)
def test_special_values(k: int) -> None:
    """NaN and infinities reach the elements that they should, and no others; subnormals count."""
    program = _compiled(
        lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32), f"bf16[70,{k}]", f"bf16[{k},40]"
    )
    x, w = whole_numbers(program)
    x[3, 5], x[7, k - 1], x[69, 0] = np.nan, np.inf, -np.inf
    w[5, 39], w[8, 2] = np.inf, np.nan
    tiny = np.array(2.0**-133).astype(ml_dtypes.bfloat16)
    x[11], w[:, 4] = 0, 0
    x[11, 9], w[9, 4] = tiny, 8
    (found,) = program.run(x, w)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    assert found[11, 4] == np.float32(2.0**-130)


def test_an_epilogue_of_any_numbers() -> None:
    def function(x: Any, w: Any, b: Any) -> Any:
        return jax.nn.gelu(jnp.dot(x, w, preferred_element_type=jnp.float32) + b)

    program = _compiled(function, X, W, "f32[137]")
    arguments = program.random_inputs(1)
    (found,), (expected,) = program.run(*arguments), program.reference(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(("target", "size"), [("sm_80", 4096), ("sm_80", 4095), ("sm_90a", 4095), ("sm_120", 4096)])
def test_sums_stay_in_registers(target: str, size: int) -> None:
    program = _compiled(jnp.matmul, f"bf16[{size},{size}]", f"bf16[{size},{size}]", target=target)
    assert program.kernels[0].assembled.spill_bytes == 0


def test_products_that_warp_groups_multiply_are_theirs() -> None:
    """Where boxes can be copied and the GPU has the instructions; warps multiply the others."""
    for target, columns, emitter in (
        ("sm_90a", 64, "product"),
        ("sm_90a", 65, "warp_product"),
        ("sm_90", 64, "warp_product"),
    ):
        program = xgpu.compile(jnp.dot, f"bf16[64,{columns}]", f"bf16[{columns},64]", target=target, options=KERNELS)
        assert [kernel.emitter for kernel in program.kernels] == [emitter]

"""Products of one left operand that meet: one kernel, on the host executor against XLA; and what is no such kernel."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from tests.py.emit.emitters import emitter_of
from xgpu.target.nvptx.cubin import find_ptxas

from .products import KERNELS, compiled, is_exact, whole_numbers

X, W = "bf16[130,72]", "bf16[72,136]"
_ROWS: Any = (((1,), (1,)), ((), ()))


def _gated(x: Any, w: Any, v: Any) -> Any:
    return jax.nn.relu(x @ w) * (x @ v)


def _wide(x: Any, w: Any, v: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=jnp.float32) - jnp.dot(x, v, preferred_element_type=jnp.float32)


def _biased(x: Any, w: Any, v: Any, b: Any, c: Any, scale: Any) -> Any:
    return jax.nn.relu(x @ w + b) * (x @ v + c) * scale[:, None]


def _stored(x: Any, w: Any, v: Any) -> Any:
    gate, up = x @ w, x @ v
    return gate, up > gate, jax.nn.relu(gate) * up


def _two(x: Any, w: Any, v: Any) -> Any:
    gate, up = x @ w, x @ v
    return up, jax.nn.relu(gate) * up


def _by_rows(x: Any, w: Any, v: Any, result: Any = None) -> Any:
    return lax.dot_general(x, w, _ROWS, preferred_element_type=result) * lax.dot_general(
        x, v, _ROWS, preferred_element_type=result
    )


def _four(x: Any, *w: Any) -> Any:
    a, b, c, d = (x @ each for each in w)
    return jnp.maximum(a, b) - c * d


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (_gated, (X, W, W)),
        (_biased, (X, W, W, "bf16[136]", "bf16[136]", "bf16[130]")),
        (_stored, (X, W, W)),
        (_wide, ("f16[67,200]", "f16[200,104]", "f16[200,104]")),
        (_gated, ("bf16[3,70,64]", "bf16[3,64,40]", "bf16[3,64,40]")),
        (_gated, ("bf16[2,35,64]", "bf16[64,40]", "bf16[64,40]")),
        (_by_rows, ("bf16[70,72]", "bf16[90,72]", "bf16[90,72]")),
        (lambda x, w, v: _by_rows(x.T, w, v), ("f16[72,136]", "f16[99,72]", "f16[99,72]")),
        (lambda x, w, v: _by_rows(x, w, v, jnp.int32), ("s8[130,160]", "s8[72,160]", "s8[72,160]")),
        (lambda x, w, v: _by_rows(x, w, v, jnp.float32), ("f8e4m3fn[70,128]", "f8e5m2[72,128]", "f8e5m2[72,128]")),
        (_by_rows, ("f32[130,72]", "f32[72,72]", "f32[72,72]")),
        (lambda x, w, v, u: _gated(x, w, v) + x @ u, (X, W, W, W)),
        (_four, (X, W, W, W, W)),
    ],
    ids=["gated", "biased", "stored", "f16", "batch", "three", "mk-nk", "km-nk", "s8", "f8", "tf32", "three", "four"],
)
def test_one_kernel_computes_them(function: Callable[..., Any], specs: tuple[str, ...]) -> None:
    program = compiled(function, *specs)
    is_exact(program, [np.sign(array) for array in whole_numbers(program)])


@pytest.mark.parametrize("activation", [jax.nn.silu, jax.nn.gelu, jax.nn.sigmoid, jnp.tanh])
def test_gated_units_of_any_numbers(activation: Callable[[Any], Any]) -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        gate, up = (jnp.dot(x, each, preferred_element_type=jnp.float32) for each in (w, v))
        return activation(gate) * up

    program = compiled(function, X, W, W)
    arguments = program.random_inputs(1)
    (found,), (expected,) = program.run(*arguments), program.reference(*arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


_SCHEDULES = [
    {"tile_m": 64, "groups": 1, "tile_n": 128, "stages": 2, "blocks": 1, "band": 5, "staged": False},
    {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 3, "blocks": 2, "band": 1, "staged": True},
    {"tile_m": 128, "groups": 2, "tile_n": 128, "stages": 2, "blocks": 2, "band": 3, "staged": True},
    {"tile_m": 128, "groups": 1, "tile_n": 64, "stages": 3, "blocks": 8, "band": 1, "staged": False},
    {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 2, "blocks": 4, "band": 1, "staged": True, "cluster": 2},
    {"tile_m": 256, "groups": 2, "tile_n": 64, "stages": 2, "blocks": 2, "band": 1, "staged": False, "cluster": 2},
]


@pytest.mark.parametrize("schedule", effort.drawn(_SCHEDULES, effort.by_level(2, 4, len(_SCHEDULES))), ids=str)
def test_schedules(schedule: dict[str, int]) -> None:
    rows = 512 if "cluster" in schedule else 300
    schedule = {"cluster": 1, **schedule, "band": 1 if "cluster" in schedule else schedule["band"]}
    program = compiled(_two, f"bf16[{rows},200]", "bf16[200,192]", "bf16[200,192]", **schedule)
    assert emitter_of(program).thread_to_output(1).coverage((rows, 192)).is_exact
    is_exact(program, [np.sign(array) for array in whole_numbers(program)])


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("tiles", [{"tile_n": 128, "staged": True, "stages": 4}, {"tile_n": 128, "stages": 3}, {}])
def test_sums_stay_in_registers(tiles: dict[str, int]) -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        return jax.nn.silu(x @ w) * (x @ v)

    fixed = (
        {"blocks": 4, "cluster": 1, "band": 1, "tile_m": 128, "groups": 2, "staged": False, **tiles} if tiles else {}
    )
    assembled = compiled(function, *["bf16[512,512]"] * 3, **fixed).kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


def test_several_layers_have_one_kernel() -> None:
    def function(x: Any, *w: Any) -> Any:
        for first in range(0, len(w), 3):
            x = _gated(x, w[first], w[first + 1]) @ w[first + 2]
        return x

    # Layers of few columns are chains otherwise.
    options = dataclasses.replace(KERNELS, fuse_attention=False)
    program = xgpu.compile(function, *["bf16[128,128]"] * 10, options=options)
    # The first layer reads an argument of the program.
    calls = {kernel.name: program.ir("fusions").count(f"call @{kernel.name}(") for kernel in program.kernels}
    assert list(calls.values()) == [1, 3, 2]


def test_what_depends_on_another_product_has_a_kernel_of_its_own() -> None:
    program = xgpu.compile(lambda x, w: (x @ w) * (x @ (x @ w)), *["bf16[128,128]"] * 2, options=KERNELS)
    assert [kernel.emitter for kernel in program.kernels] == ["product", "product"]
    is_exact(program, [np.sign(array) for array in whole_numbers(program)])


@pytest.mark.parametrize(
    "apart",
    [
        jnp.sort,
        lambda x: lax.while_loop(lambda x: jnp.sum(x) < 0, lambda x: x + 1, x),
        lambda x: jax.nn.softmax(x @ x.T) @ x,
    ],
    ids=["sort", "loop", "attention"],
)
def test_what_kernels_of_products_do_not_compute_may_read_one(apart: Callable[[Any], Any]) -> None:
    """It makes no epilogue; the products still meet elsewhere."""
    program = xgpu.compile(
        lambda x, w, v: (_gated(x, w, v), apart(x @ w)), "bf16[128,64]", *["bf16[64,64]"] * 2, options=KERNELS
    )
    assert [kernel.emitter for kernel in program.kernels].count("product") == 1
    arguments = [np.sign(array) for array in whole_numbers(program)]
    for found, expected in zip(program.run(*arguments), program.reference(*arguments), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=1e-2)


def _plan() -> str:
    return compiled(_gated, X, W, W).ir("fusions")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"xgpu.joined = 0 : i64, ", ""),
        (r"(?s)xgpu.joined = 0(.*xgpu.joined = )0", r"xgpu.joined = 0\g<1>1"),
        (r"dot_general %arg0, %arg2", "dot_general %arg3, %arg2"),
    ],
    ids=["not joined", "other numbers", "other operands"],
)
def test_heroes_that_are_not_joined_are_refused(old: str, new: str) -> None:
    text, count = re.subn(old, new, _plan())
    assert count
    text = text.replace("%arg2: tensor<72x136xbf16>)", "%arg2: tensor<72x136xbf16>, %arg3: tensor<130x72xbf16>)")
    text = re.sub(r"call (@\w+)\(%arg0, %arg1, %arg2\) : \(", r"call \1(%arg0, %arg1, %arg2, %arg3) : (", text)
    text = re.sub(r"(call [^>]*>, [^>]*>, [^>]*>)\)", r"\1, tensor<130x72xbf16>)", text)
    with pytest.raises(xgpu.InvalidInput, match=r"expected its heroes.* or several with one xgpu\.joined"):
        xgpu.compile(text)


def test_schedules_of_plans_count_all_right_operands() -> None:
    for numbers, message in (
        ("tile_m = 128, groups = 2, tile_n = 192", "expected a number of columns that the instruction has, with those"),
        ("tile_m = 256, groups = 2, tile_n = 128", "expected so many that a thread has at most 192 sums, not 256"),
        ("tile_m = 128, groups = 2, tile_n = 128, stages = 5", "expected so few that 232448 bytes of shared memory"),
    ):
        text = re.sub(r"#xgpu\.schedule<[^>]*>", f"#xgpu.schedule<{numbers}>", _plan())
        with pytest.raises(xgpu.InvalidInput) as caught:
            xgpu.compile(text)
        assert message in caught.value.message


def _refusal(text: str) -> str:
    with pytest.raises(xgpu.XgpuError) as caught:
        xgpu.compile(text).ir("emitted")
    return caught.value.message


_WARPS = (
    "tile_m = 64, tile_n = 64, tile_k = 64, stages = 2, down = 2, across = 2, resident = 1, blocks = 1,"
    " left_bytes = 16, right_bytes = 16, ahead = false, neighbours = 8, band = 1"
)


def test_kernels_of_tiles_that_are_not_joined_are_refused() -> None:
    """Two left tiles; right ones of which one lies otherwise, or is of another type; warps."""
    text = compiled(_gated, *["bf16[64,64]"] * 3).ir("tiles")
    (second,) = re.findall(r'(%\d+) = "xgpu.tile"\(%arg2', text)
    left = re.sub(rf"dot_general %\d+, {second}", f"dot_general {second}, {second}", text)
    assert "expected products of one left tile" in _refusal(left)
    lying = re.sub(r'(xgpu.tile"\(%arg2.*\[s0, s1\] -> )\(s0, s1\)', r"\1(s1, s0)", text)
    assert "expected a tile that lies in memory as that of the first product" in _refusal(lying)
    warps = re.sub(r"#xgpu\.schedule<[^>]*>", f"#xgpu.schedule<{_WARPS}>", text)
    warps = warps.replace('"product"', '"warp_product"').replace("block = array<i64: 256", "block = array<i64: 128")
    assert "expected one product, of a kernel of warps" in _refusal(warps)
    bytes_ = compiled(_by_rows, *["f8e4m3fn[64,128]"] * 3).ir("tiles")
    (second,) = re.findall(r'(%\d+) = "xgpu.tile"\(%arg2', bytes_)
    lines = bytes_.replace("%arg2: tensor<64x128xf8E4M3FN>", "%arg2: tensor<64x128xf8E5M2>").split("\n")
    lines = [line.replace("f8E4M3FN", "f8E5M2") if "(%arg2" in line else line for line in lines]
    lines = [re.sub(r"f8E4M3FN(>\) ->)", r"f8E5M2\1", line) if f", {second}," in line else line for line in lines]
    assert re.search(r"expected a tile of tensor<128x\d+xf8E4M3FN>, as the first product's", _refusal("\n".join(lines)))


def test_a_kernel_goes_on_from_its_tiles() -> None:
    """And XLA runs them: what the level says is what the program computes."""
    program = compiled(_stored, X, W, W)
    again = xgpu.compile(program.ir("tiles"))
    assert again.ir("ptx") == program.ir("ptx")
    arguments = [np.sign(array) for array in whole_numbers(program)]
    for found, expected in zip(again.reference(*arguments), program.reference(*arguments), strict=True):
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))

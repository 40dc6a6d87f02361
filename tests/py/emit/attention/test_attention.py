"""Attention as one kernel, on the host executor against float64."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xgpu
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import LOW, causal, compiled, einsum_attention, is_right


def _spec(*shape: int, dtype: str = "bf16") -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


@pytest.mark.parametrize(
    ("dtype", "rows", "keys", "heads", "shared", "width"),
    [
        ("bf16", 70, 40, 2, 1, 40),
        ("f16", 150, 33, 1, 1, 128),
        ("bf16", 16, 130, 1, 1, 256),
    ],
)
def test_sizes(dtype: str, rows: int, keys: int, heads: int, shared: int, width: int) -> None:
    """Odd lengths, heads that share keys, rows that are no multiple of a panel."""

    def function(q: Any, k: Any, v: Any) -> Any:
        k, v = (jnp.repeat(each, heads // shared, 2) for each in (k, v))
        return einsum_attention(q, k, v)

    specs = [_spec(1, rows, heads, width, dtype=dtype), *[_spec(1, keys, shared, width, dtype=dtype)] * 2]
    program = compiled(function, *specs)
    is_right(program, program.random_inputs(1))


_LEAST = float(np.finfo(np.float32).min)
_FORMS = ("folded", "branched", "overlap", "turns", "steady")
"""Ways in which threads work, which are chosen unless somebody asks for others."""


@pytest.mark.parametrize(
    "schedule",
    [
        {"stages": 1},
        {"stages": 1, "folded": False, "turns": False},
        dict.fromkeys(_FORMS, False),
        {"tile_m": 64, "groups": 1},
        {"tile_m": 192, "groups": 3, "tile_n": 64, "blocks": 1},
        {"tile_n": 80, "stages": 3, "reuse": True, "blocks": 1},
        {"tile_n": 48, "reuse": True, "overlap": False, "turns": False, "computed": 3},
        {"tile_m": 192, "groups": 3, "reuse": True, "blocks": 2, "steady": False, "computed": 8},
    ],
    ids=str,
)
def test_schedules(schedule: dict[str, int]) -> None:
    program = compiled(causal, *[_spec(1, 260, 1, 64)] * 3, **schedule)
    mask = np.tril(np.ones((260, 260), bool))
    is_right(program, program.random_inputs(2), mask)


def test_forms_are_chosen_and_turns_where_several_groups_overlap() -> None:
    specs = [_spec(1, 260, 1, 64)] * 3
    text = compiled(causal, *specs).ir("fusions")
    assert all(f"{name} = true" in text for name in _FORMS)
    for schedule in ({"tile_m": 64, "groups": 1}, {"overlap": False}):
        assert "turns = false" in compiled(causal, *specs, **schedule).ir("fusions")


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ({"tile_m": 192}, "tile_m = 192: expected 64 rows for each of 2 warp groups"),
        ({"tile_n": 72}, "tile_n = 72: expected a multiple of 16"),
        ({"stages": 8}, "stages = 8: expected so few that"),
        ({"computed": 9}, "computed = 9: expected a number from 0 to 8"),
        ({"turns": True, "overlap": False}, "turns = true: expected several warp groups, whose products overlap"),
    ],
)
def test_refused_schedules(schedule: dict[str, int], reason: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=reason):
        compiled(causal, *[_spec(1, 260, 1, 64)] * 3, **schedule)


def test_rows_see_no_keys_after_them() -> None:
    """Steps beyond are left out: rows differ from those of all steps only if there is what is no number in these."""
    program = compiled(causal, *[_spec(1, 150, 1, 64)] * 3, tile_m=64, groups=1, tile_n=64)
    assert "xgpu.visible" in program.ir("tiles")
    assert "xgpu.hidden" not in program.ir("tiles")
    q, k, v = program.random_inputs(3)
    is_right(program, [q, k, v], np.tril(np.ones((150, 150), bool)))
    v[0, 128:] = ml_dtypes.bfloat16("nan")
    (found,) = program.run(q, k, v)
    assert not np.isnan(found[0, :64].astype(np.float32)).any()


def test_rows_without_keys_average_all() -> None:
    """Hidden logits are numbers: a row that sees no keys weights all of them, those of steps left out at first, too."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=True)

    specs = [*[_spec(1, 150, 1, 64)] * 3, "pred[1,1,150,150]"]
    for form in ({}, {"folded": False}, dict.fromkeys(_FORMS, False)):
        program = compiled(function, *specs, tile_m=64, groups=1, tile_n=64, **form)
        assert "xgpu.hidden" in program.ir("tiles")
        _average(program)


def _average(program: xgpu.Compiled) -> None:
    q, k, v, mask = program.random_inputs(4)
    for first in (0, 140):
        mask[...] = np.arange(150) >= first
        found = is_right(program, [q, k, v, mask], mask & np.tril(np.ones((150, 150), bool)), LOW)
        if first:
            np.testing.assert_allclose(found[0, 0, 0], np.asarray(v, np.float64)[0, :, 0].mean(0), atol=0.02)


@pytest.mark.parametrize(
    ("fill", "is_before"),
    [(-1e9, True), (-1e30, True), (_LEAST, True), (-1e4, False), (-1e30, False), (LOW, False), (-np.inf, False)],
)
def test_hidden_logits_may_be_multiplied(fill: float, is_before: bool) -> None:
    """Keys are hidden by a number before the factor or after it, all of some rows; parts of the keys are right, too."""

    def function(q: Any, k: Any, v: Any, seen: Any) -> Any:
        logits = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        visible = seen[:, None, None]
        logits = jnp.where(visible, logits, fill) * 0.125 if is_before else jnp.where(visible, logits * 0.125, fill)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(logits, axis=-1).astype(q.dtype), v)

    specs = [_spec(2, 20, 1, 64), *[_spec(2, 600, 1, 64)] * 2, "pred[2,600]"]
    for parts in (1, 3):
        program = xgpu.compile(function, *specs, options=xgpu.Options(attention_parts=parts))
        assert "attention" in {kernel.emitter for kernel in program.kernels}
        q, k, v, seen = program.random_inputs(8)
        seen[0], seen[1] = np.arange(600) >= 400, False
        is_right(program, [q, k, v, seen], seen[:, None, None], 0.125 * fill if is_before else fill)


@pytest.mark.parametrize("factor", [50.0, 100.0])
def test_hidden_logits_are_finite_before_a_factor_and_after_it(factor: float) -> None:
    """The least number divided by a cap, and then multiplied by it, may be rounded beyond itself."""

    def function(q: Any, k: Any, v: Any, seen: Any) -> Any:
        logits = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        logits = jnp.where(seen[:, None, None], factor * jnp.tanh(logits / factor), _LEAST)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(logits, axis=-1).astype(q.dtype), v)

    program = compiled(function, _spec(2, 20, 1, 64), *[_spec(2, 200, 1, 64)] * 2, "pred[2,200]")
    q, k, v, seen = program.random_inputs(8)
    seen[0], seen[1] = np.arange(200) >= 150, False
    found, v = (np.asarray(each, np.float64) for each in (program.run(q, k, v, seen, sanitize=True)[0], v))
    np.testing.assert_allclose(found[1], np.broadcast_to(v[1].mean(0), found[1].shape), atol=2**-9)
    assert np.all(np.abs(found[0]) <= np.abs(v[0, 150:]).max())


@pytest.mark.parametrize(
    ("dtype", "form"), [("bf16", {}), ("f16", {}), ("bf16", {"folded": False}), ("bf16", {"overlap": False})], ids=str
)
def test_large_logits_have_exact_differences(dtype: str, form: dict[str, int]) -> None:
    """Rows share a number of any size, all keys or the last ones; logits are sums that f32 has exactly."""
    program = compiled(
        einsum_attention, _spec(1, 64, 1, 64, dtype=dtype), *[_spec(1, 300, 1, 64, dtype=dtype)] * 2, **form
    )
    generator = np.random.default_rng(9)
    *_, v = program.random_inputs(9)
    for shared, first in ((2.0**6, 0), (2.0**8, 0), (2.0**9, 200), (2.0**7.5, 140)):
        q, k = (generator.integers(-8, 9, (1, size, 1, 64)) / 4 for size in (64, 300))
        # Rows have the product of both numbers, its negative, or none of it.
        q[0, :, 0, 0], k[0, :, 0, 0] = shared * (np.arange(64) % 3 - 1), shared * (np.arange(300) >= first)
        is_right(program, [np.asarray(q, v.dtype), np.asarray(k, v.dtype), v])


def test_rows_of_all_sizes() -> None:
    """Logits up to 10^34 of a row beside another's of 1; of two that differ by a bit the smaller one has no weight."""
    program = compiled(einsum_attention, _spec(1, 128, 1, 64), *[_spec(1, 300, 1, 64)] * 2)
    generator = np.random.default_rng(10)
    *_, v = program.random_inputs(10)
    q, k = (generator.integers(-8, 9, (1, size, 1, 64)) / 4 for size in (128, 300))
    q[0] *= 2.0 ** np.arange(-20, 108)[:, None, None]
    is_right(program, [np.asarray(q, v.dtype), np.asarray(k, v.dtype), v])
    # All logits of a row are equal: it is an average, however large they are.
    k[0] = k[0, :1]
    found = is_right(program, [np.asarray(q, v.dtype), np.asarray(k, v.dtype), v])
    np.testing.assert_allclose(
        found[0, :, 0], np.broadcast_to(np.asarray(v, np.float64)[0, :, 0].mean(0), (128, 64)), atol=0.01
    )


def test_steps_leave_nothing_of_their_roundings() -> None:
    """Equal logits of many steps are averaged, however their products with the factor are rounded."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32) * np.float32(0.0883883)
        weights = jax.nn.softmax(s, axis=-1).astype(q.dtype)
        return jnp.einsum("qk,kd->qd", weights, v, preferred_element_type=jnp.float32)

    specs = [_spec(64, 64), *[_spec(4096, 64)] * 2]
    program = xgpu.compile(function, *specs, options=xgpu.Options(attention_parts=1))
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    q, k, v = (np.zeros(each, ml_dtypes.bfloat16) for each in ((64, 64), (4096, 64), (4096, 64)))
    q[:, 0], k[:, 0], v[2048:] = 128 + np.arange(64), 160, 1
    (found,) = program.run(q, k, v)
    # The largest weight is 2^(2^-13) at most, which is rounded to 1. That of each of 32 steps would be 2^-11.
    np.testing.assert_allclose(found, 0.5, atol=2**-14)


def test_infinite_logits_are_not_numbers() -> None:
    """One of plus infinity makes its row none, as it does in the program; products beyond f32 are infinite."""
    program = compiled(einsum_attention, _spec(1, 70, 1, 64), *[_spec(1, 300, 1, 64)] * 2)
    q, k, v = program.random_inputs(11)
    q[0, 3, 0, 0], k[0, 7, 0, 0] = 2.0**100, 2.0**100
    q[0, 3, 0, 1:] = 0
    found = np.asarray(program.run(q, k, v)[0], np.float32)
    assert np.isnan(found[0, 3]).all()
    assert not np.isnan(np.delete(found, 3, 1)).any()


@pytest.mark.parametrize("divisor", [8.0, 11.313708])
def test_logits_may_be_divided(divisor: float) -> None:
    """No logit is divided: that is left to the exponential, whether a mask comes after it or not."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / np.float32(divisor)
        s = jnp.where(mask, s, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)

    program = compiled(function, *[_spec(1, 150, 1, 64)] * 3, "pred[1,1,150,150]")
    assert "div.rn" not in program.ir("ptx")
    q, k, v, mask = program.random_inputs(12)
    mask[0, 0, 5] = False
    # What is compared with divides by 8.
    scaled = np.asarray(np.asarray(q, np.float64) * 8 / divisor)
    for size in (1, 2.0**12):
        (found,) = program.run(np.asarray(q * size, q.dtype), k, v, mask, sanitize=True)
        s = np.where(mask, np.einsum("bqhd,bkhd->bhqk", scaled * size, np.asarray(k, np.float64)) / 8, -1e9)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        expected = np.einsum("bhqk,bkhd->bqhd", p, np.asarray(v, np.float64))
        np.testing.assert_allclose(np.asarray(found, np.float64), expected, atol=0.04)


def test_masks_and_biases_are_read() -> None:
    def function(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, bias=bias, mask=mask)

    specs = [_spec(2, 70, 4, 64), *[_spec(2, 90, 2, 64)] * 2, "pred[2,1,70,90]", "f32[1,4,70,90]"]
    program = compiled(function, *specs)
    q, k, v, mask, bias = program.random_inputs(5)
    mask[0, 0, 3] = False
    is_right(program, [q, k, v, mask, bias], mask, LOW, np.asarray(bias, np.float64))


def test_rows_of_nothing_but_minus_infinity_are_not_numbers() -> None:
    program = compiled(lambda q, k, v, mask: einsum_attention(q, k, v, mask), *[_spec(1, 70, 1, 64)] * 3, "pred[70,70]")
    q, k, v, mask = program.random_inputs(6)
    mask[5] = False
    q[0, 9, 0, 3] = ml_dtypes.bfloat16("nan")
    found = is_right(program, [q, k, v, mask], mask)
    assert np.isnan(found[0, 5]).all()
    assert np.isnan(found[0, 9]).all()
    assert np.isnan(found).any(-1).sum() == 2


def test_functions_of_logits() -> None:
    """Soft caps, and arithmetic of 16 bits as the program has it."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("qd,kd->qk", q, k)
        return jax.nn.softmax(10 * jnp.tanh(s / 10)) @ v

    program = compiled(function, *[_spec(70, 64)] * 3)
    arrays = program.random_inputs(7)
    (found,), (expected,) = program.run(*arrays), program.reference(*arrays)
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.03)


def test_caps_in_text_may_divide_by_zero() -> None:
    """What divides is written as in other kernels where the divisor has no inverse."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32)
        return jax.nn.softmax(20 * jnp.tanh(s / 30)).astype(q.dtype) @ v

    text = compiled(function, *[_spec(70, 64)] * 3).ir("tiles")
    assert re.search(r"stablehlo.divide .* {xgpu.weight}", text)
    again = xgpu.compile(text.replace("dense<3.000000e+01>", "dense<0.000000e+00>"))
    q, k, v = (np.abs(each) for each in again.random_inputs(7))
    np.testing.assert_allclose(
        np.asarray(again.run(q, k, v)[0], np.float32), np.tile(np.asarray(v, np.float32).mean(0), (70, 1)), atol=0.01
    )


def test_gradients_without_the_result_have_the_weights_in_memory() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.grad(lambda q: einsum_attention(q, k, v).astype(jnp.float32).sum())(q)

    program = xgpu.compile(function, *[_spec(1, 64, 1, 64)] * 3)
    assert "attention" not in [kernel.emitter for kernel in program.kernels]


def test_levels_go_on_from_text() -> None:
    program = compiled(causal, *[_spec(1, 140, 1, 64)] * 3)
    arrays = program.random_inputs(8)
    (expected,) = program.run(*arrays)
    for level in ("fusions", "tiles"):
        again = xgpu.compile(program.ir(level))
        assert again.ir("ptx") == program.ir("ptx")
        (found,) = again.reference(*arrays)
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.02)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("forms", [(), _FORMS], ids=str)
@pytest.mark.parametrize("width", [64, 128])
def test_sums_stay_in_registers(width: int, forms: tuple[str, ...]) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    program = compiled(causal, *[_spec(1, 512, 1, width)] * 3, **dict.fromkeys(forms, True))
    assembled = program.kernels[0].assembled
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]


def test_a_cpu_has_no_tensor_cores_for_it() -> None:
    specs = [jax.ShapeDtypeStruct((2, 256, 4, 64), jnp.bfloat16)] * 3
    assert [kernel.emitter for kernel in xgpu.compile(causal, *specs).kernels] == ["attention"]
    off = xgpu.compile(causal, *specs, options=xgpu.Options(fuse_attention=False))
    assert "attention" not in [kernel.emitter for kernel in off.kernels]
    assert jax.default_backend() == "cpu"
    assert "attention" not in [kernel.emitter for kernel in xgpu.jit(causal).explain(*specs).kernels]


def _through(dtype: Any) -> Any:
    return lambda x: x.astype(dtype).astype(jnp.float32)


@pytest.mark.parametrize(
    ("logits", "weights", "numbers"),
    [
        (_through(jnp.int32), None, jnp.int32),
        (_through(jnp.float8_e4m3fn), None, jnp.int32),
        (None, _through(jnp.float8_e4m3fn), jnp.int32),
        (None, _through(jnp.int32), jnp.int32),
        (None, None, jnp.uint8),
        (None, None, jnp.bfloat16),
    ],
)
def test_conversions_that_change_numbers_are_made(logits: Any, weights: Any, numbers: Any) -> None:
    """Of logits, of weights, and of the numbers that a mask compares, which wrap or are rounded from 256 on."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.3
        rows, keys = (jnp.arange(size, dtype=jnp.int32).astype(numbers) for size in s.shape[-2:])
        s = jnp.where(rows[:, None] >= keys, s, -jnp.inf)
        p = jax.nn.softmax(logits(s) if logits else s, -1)
        return jnp.einsum("bhqk,bkhd->bqhd", (weights(p) if weights else p).astype(q.dtype), v)

    program = xgpu.compile(function, *[_spec(1, 300, 1, 64)] * 3)
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((1, 300, 1, 64)).astype(ml_dtypes.bfloat16) for _ in range(3)]
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    # Weights are rounded to 2^-9 of their size before they are added up, in another order; numbers are up to 4.
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=2**-5)

"""Forms of attention's kernels: where results are handed on, what sums are relative to, how weights are computed."""

import re
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.device import device
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import causal, compiled, einsum_attention, is_right


def _spec(*shape: int, dtype: str = "bf16") -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


@pytest.mark.parametrize("groups", [2, 3])
def test_threads_take_no_more_registers_than_a_block_has(groups: int) -> None:
    """A block has as many as its threads begin with; more would be waited for without end."""
    program = compiled(causal, *[_spec(1, 260, 1, 64)] * 3, tile_m=64 * groups, groups=groups, tile_n=64)
    (more,) = re.findall(r"setmaxnreg\.inc\D*32 (\d+)", program.kernels[0].ptx)
    (fewer,) = re.findall(r"setmaxnreg\.dec\D*32 (\d+)", program.kernels[0].ptx)
    threads = (groups + 1) * 128
    begin = device("sm_90a").registers_per_sm // threads // 8 * 8
    assert (int(more) * groups + int(fewer)) * 128 <= begin * threads


def test_results_have_the_memory_of_queries() -> None:
    """Also where rows of results are shorter, where queries are turned in memory, and in several tiles of a block."""
    specs = [_spec(1, 260, 1, 128), _spec(1, 150, 1, 128), _spec(1, 150, 1, 64)]
    is_right_of(einsum_attention, specs, reuse=True, blocks=1)

    def turned(q: Any, k: Any, v: Any) -> Any:
        return einsum_attention(jnp.transpose(q, (0, 3, 1, 2)), k, v)

    is_right_of(turned, [_spec(1, 1, 128, 264), *[_spec(1, 150, 1, 128)] * 2], (0, 3, 1, 2), reuse=True, blocks=1)


def whole(function: Any, specs: list[str], **schedule: int) -> xgpu.Compiled:
    """Return a program of one kernel, attention of whole keys, with some numbers of its schedule fixed."""
    options = xgpu.Options(attention_parts=1)
    if schedule:
        name = planned(function, specs, TARGET, options).kernels[0].name
        options = replace(options, schedules={name: schedule})
    program = xgpu.compile(function, *specs, options=options)
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    return program


def is_right_of(function: Any, specs: list[str], order: tuple[int, ...] = (0, 1, 2, 3), **schedule: int) -> None:
    """Compare a program of attention whose queries are transposed with float64."""
    program = whole(function, specs, **schedule)
    arrays = program.random_inputs(1)
    (found,) = program.run(*arrays, sanitize=True)
    q, k, v = (np.asarray(each, np.float64) for each in arrays)
    q = q.transpose(order)
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    expected, size = (np.einsum("bhqk,bkhd->bqhd", p, each) for each in (v, np.abs(v)))
    assert np.all(np.abs(np.asarray(found, np.float64) - expected) <= 1.5 * 2**-8 * size)


def test_results_take_the_memory_of_queries_where_that_makes_room_for_a_stage() -> None:
    texts = [whole(causal, [_spec(1, 512, 1, width)] * 3).ir("fusions") for width in (64, 128, 256)]
    found = [re.findall(r"stages = (\d+).* reuse = (\w+)", text)[0] for text in texts]
    assert found == [("2", "false"), ("2", "false"), ("2", "true")]


def test_results_longer_than_queries_have_memory_of_their_own() -> None:
    specs = [_spec(1, 260, 1, 64), _spec(1, 150, 1, 64), _spec(1, 150, 1, 128)]
    with pytest.raises(xgpu.InvalidInput, match="reuse = true: expected rows of results as long as those of queries"):
        is_right_of(einsum_attention, specs, reuse=True)


def test_steps_of_keys_that_are_neighbours_are_whole_rows_of_memory() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return einsum_attention(q, jnp.transpose(k, (0, 3, 1, 2)), v)

    specs = [_spec(1, 260, 1, 64), _spec(1, 1, 64, 264), _spec(1, 264, 1, 64)]
    with pytest.raises(xgpu.InvalidInput, match="tile_n = 80: expected a multiple of 64, as keys are neighbours"):
        is_right_of(function, specs, tile_n=80)


@pytest.mark.parametrize("growth", [0.05, 0.4, 3.0, 40.0])
@pytest.mark.parametrize("folded", [True, False])
def test_sums_stay_relative_to_a_logit_until_another_is_far_above(growth: float, folded: bool) -> None:
    """Logits grow from key to key, in some rows: by less than is far in a step, and by more."""
    program = compiled(einsum_attention, _spec(1, 70, 1, 64), *[_spec(1, 300, 1, 64)] * 2, tile_n=64, folded=folded)
    q, k, v = program.random_inputs(3)
    q[..., 0], k[..., 0] = np.where(np.arange(70) % 3, 8.0, 0.0)[None, :, None], growth * np.arange(300)[None, :, None]
    is_right(program, [q, k, v])


@pytest.mark.parametrize(("dtype", "value"), [("bf16", 2.0**126), ("bf16", -1.0), ("f16", 60000.0)])
@pytest.mark.parametrize("folded", [True, False])
def test_one_value_is_found_again(dtype: str, value: float, folded: bool) -> None:
    """However far above others its weight is: it is rounded in the sum of weights as it is in that of values."""

    def function(q: Any, k: Any, v: Any, seen: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.125
        p = jax.nn.softmax(jnp.where(seen, s, -jnp.inf), axis=-1).astype(q.dtype)
        return jnp.einsum("bhqk,bkhd->bhqd", p, v, preferred_element_type=jnp.float32)

    shapes = [_spec(1, rows, 1, 64, dtype=dtype) for rows in (70, 300, 300)]
    program = whole(function, [*shapes, "pred[1,1,70,300]"], tile_n=64, folded=folded)
    q, k, v, seen = program.random_inputs(6)
    q[...], k[...], v[...], seen[...] = 0, 0, value, False
    q[..., 0], k[0, 200, 0, 0], seen[..., [3, 200]] = 8 * np.linspace(0.1, 5.4, 70)[None, :, None], 1, True
    (found,) = program.run(q, k, v, seen)
    # What remains are roundings of the smaller weight, which is at most half of the other when both are far apart.
    np.testing.assert_allclose(np.asarray(found[:, :, 20:], np.float64), float(v[0, 0, 0, 0]), rtol=2**-11)


def test_largest_logits_are_handed_out_as_they_are() -> None:
    """Gradients read them, and the sums that are relative to them."""
    program = xgpu.compile(_with_softmax_parts, *[_spec(1, 256, 2, 64)] * 4)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    arrays = program.random_inputs(4)
    found, expected = program.run(*arrays), program.reference(*arrays)
    for own, other in zip(found, expected, strict=True):
        own, other = (np.asarray(each, np.float32) for each in (own, other))
        np.testing.assert_allclose(own, other, atol=0.02 * np.abs(other).max())


def _with_softmax_parts(g: Any, q: Any, k: Any, v: Any) -> Any:
    result, backward = jax.vjp(einsum_attention, q, k, v)
    return (result, *backward(g))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_weights_that_are_computed_are_as_exact(dtype: str) -> None:
    """Rows without keys are not numbers, and what is hidden has no weight at all."""

    def function(q: Any, k: Any, v: Any, seen: Any) -> Any:
        return einsum_attention(q, k, v, seen)

    specs = [*[_spec(1, 130, 1, 64, dtype=dtype)] * 3, "pred[1,1,130,130]"]
    program = compiled(function, *specs, computed=8)
    q, k, v, seen = program.random_inputs(5)
    seen[0, 0, 7:9], seen[0, 0, 8, 5] = False, True
    found = is_right(program, [q, k, v, seen], seen)
    assert np.isnan(found[0, 7]).all()
    np.testing.assert_array_equal(found[0, 8], np.asarray(v, np.float64)[0, 5])


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("width", [64, 128, 256])
def test_logits_of_16_bits_leave_products_beside_each_other(width: int) -> None:
    """ptxas does products one by one where what they leave is the operand of arithmetic on 16 bits."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * jnp.bfloat16(0.0883)
        p = jnp.exp(s - s.max(-1, keepdims=True))
        return jnp.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v)

    program = xgpu.compile(function, *[_spec(2, 512, 4, width)] * 3)
    assert program.kernels[0].emitter == "attention"
    assert not [each for each in program.kernels[0].assembled.remarks if "serialized" in each]


@pytest.mark.parametrize("width", [40, 64])
def test_operands_that_are_parts_of_one_array(width: int) -> None:
    """Queries, keys and values lie beside each other, behind each other and among what is not read: none are copied."""

    def function(x: Any) -> Any:
        parts = jnp.split(x[:, 3:], 3, axis=-1)
        q, k, v = (each.reshape(1, -1, 2, width) for each in parts)
        return einsum_attention(q, k[:, :100], v[:, :100])

    program = compiled(function, f"bf16[1,133,{6 * width}]")
    (x,) = program.random_inputs(21)
    x[:, :3], x[:, 103:, 2 * width :] = np.nan, np.nan
    (found,) = program.run(x, sanitize=True)
    q, k, v = (each.reshape(1, 130, 2, width) for each in np.split(np.asarray(x[:, 3:], np.float64), 3, -1))
    s = np.einsum("bqhd,bkhd->bhqk", q, k[:, :100]) * width**-0.5
    p = np.exp(s - s.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v[:, :100])
    assert np.abs(np.asarray(found, np.float64) - expected).max() <= 2**-6


@pytest.mark.parametrize(("rows", "tile"), [(64, 64), (192, 128), (320, 128)])
@pytest.mark.parametrize("result", ["bfloat16", "float32"])
def test_tiles_have_as_many_rows_as_can_be_copied(rows: int, tile: int, result: str) -> None:
    """Heads of a group lie outside of 64 rows of queries: two heads' rows are not equally far apart."""

    def grouped(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bngqd,btgd->bgqnt", q, k, preferred_element_type=jnp.float32)
        p = jax.nn.softmax(s * 0.1, -1).astype(q.dtype)
        return jnp.einsum("bgqnt,btgd->bngqd", p, v, preferred_element_type=result)

    program = xgpu.compile(grouped, f"bf16[2,{rows},2,4,64]", "bf16[2,256,2,64]", "bf16[2,256,2,64]")
    assert "attention" in [kernel.emitter for kernel in program.kernels]
    assert f"tile_m = {tile}" in str(program.ir("fusions"))
    inputs = program.random_inputs(seed=1)
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    assert np.abs(np.asarray(found, np.float32) - np.asarray(expected, np.float32)).max() <= 2**-7


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("form", ["late", "log_softmax", "logsumexp"])
def test_weights_that_are_divided_later_or_by_a_logarithm(form: str, masked: bool, dtype: str) -> None:
    """Rows without keys are not numbers, as zeros divided by zero are."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        s = jnp.where(_seen(s.shape), s, -jnp.inf) if masked else s
        total = 1.0
        if form == "late":
            weights = jnp.exp(s - s.max(-1, keepdims=True))
            total = jnp.moveaxis(weights.sum(-1), 1, 2)[..., None]
        elif form == "log_softmax":
            weights = jnp.exp(jax.nn.log_softmax(s))
        else:
            weights = jnp.exp(s - jax.nn.logsumexp(s, -1, keepdims=True))
        sums = jnp.einsum("bhqk,bkhd->bqhd", weights.astype(v.dtype), v, preferred_element_type=jnp.float32)
        return (sums / total).astype(v.dtype)

    program = xgpu.compile(attention, *[_spec(1, 260, 2, 64, dtype=dtype)] * 3)
    emitters = [kernel.emitter for kernel in program.kernels]
    assert "attention" in emitters and "rows" not in emitters
    is_right(program, program.random_inputs(1), np.asarray(_seen((1, 2, 260, 260))) if masked else None)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("guard", ["none", "maximum", "add", "select"])
@pytest.mark.parametrize("form", ["chosen", "multiplied", "shown"])
def test_powers_that_a_mask_chooses(form: str, guard: str, late: bool) -> None:
    """Rows without keys are zeros, or not numbers if nothing keeps their sums from being zero."""
    guards = {
        "none": lambda total, _: total,
        "maximum": lambda total, xp: xp.maximum(total, 1e-9),
        "add": lambda total, _: total + 1e-9,
        "select": lambda total, xp: xp.where(total == 0, 1, total),
    }

    def attention(q: Any, k: Any, v: Any, xp: Any = jnp) -> Any:
        s = xp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        seen = xp.asarray(_seen(s.shape))
        masked = xp.where(seen, s, -1e30)
        powers = xp.exp((s if form == "shown" else masked) - masked.max(-1, keepdims=True))
        powers = powers * seen if form == "multiplied" else xp.where(seen, powers, 0)
        total = guards[guard](powers.sum(-1, keepdims=True), xp)
        if not late:
            return xp.einsum("bhqk,bkhd->bhqd", (powers / total).astype(v.dtype), v)
        return xp.einsum("bhqk,bkhd->bhqd", powers.astype(v.dtype), v) / total.astype(v.dtype)

    program = xgpu.compile(attention, *[_spec(1, 260, 2, 64)] * 3)
    emitters = [kernel.emitter for kernel in program.kernels]
    assert "attention" in emitters and "rows" not in emitters
    arrays = program.random_inputs(1)
    (found,) = program.run(*arrays, sanitize=True)
    with np.errstate(all="ignore"):
        expected = attention(*(np.asarray(each, np.float64) for each in arrays), xp=np)
    assert np.all(np.isnan(expected[:, :, :3]) if guard == "none" else expected[:, :, :3] == 0)
    error = np.abs(np.asarray(found, np.float64) - expected)
    assert np.array_equal(np.isnan(error), np.isnan(expected))
    # Weights and results of 16 bits: 2^-9 each, of numbers up to 3 times the deviation of 1.
    assert np.nanmax(error) <= 3 * 2**-8


@pytest.mark.parametrize("guard", ["doubled", "not a number", "short"])
def test_divisors_that_are_not_known_of_nothing(guard: str) -> None:
    """What is computed in many ways from the sum is not followed in all of them; such powers are left as they are."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        masked = jnp.where(_seen(s.shape), s, -1e30)
        powers = jnp.where(_seen(s.shape), jnp.exp(masked - masked.max(-1, keepdims=True)), 0)
        total = powers.sum(-1, keepdims=True)
        if guard == "not a number":
            total = total + 0 * total * jnp.inf
        for _ in range(60 if guard == "doubled" else 2 if guard == "short" else 0):
            total = total + total * 0.5
        return jnp.einsum("bhqk,bkhd->bhqd", (powers / total).astype(v.dtype), v)

    program = planned(attention, [_spec(1, 260, 2, 64)] * 3, TARGET, xgpu.Options())
    assert ("attention" in [kernel.emitter for kernel in program.kernels]) is (guard == "short")


def _seen(shape: tuple[int, ...]) -> Any:
    """Return a mask: all but the first three rows see keys up to their own."""
    row, key = jnp.arange(shape[-2])[:, None], jnp.arange(shape[-1])
    return jnp.broadcast_to((key <= row) & (row > 2), shape)

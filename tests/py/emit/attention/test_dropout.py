"""Attention whose weights are dropped after the softmax, or have other factors, on the host against float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import LOW, compiled, compiled_gradients, gradients_are_right, is_right, with_gradients

_KEEP = 0.8
_ROWS, _KEYS = 70, 130
_QKV = [f"bf16[1,{_ROWS},2,64]", *[f"bf16[1,{_KEYS},2,64]"] * 2]
_EACH = f"pred[1,2,{_ROWS},{_KEYS}]"


def _weights(q: Any, k: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    return jax.nn.softmax(s, axis=-1)


def _sums(w: Any, v: Any) -> Any:
    return jnp.einsum("bhqk,bkhd->bqhd", w.astype(v.dtype), v)


def _chosen(q: Any, k: Any, v: Any, keep: Any) -> Any:
    return _sums(jnp.where(keep, _weights(q, k) / _KEEP, 0), v)


def _dropped(q: Any, k: Any, v: Any, keep: Any) -> Any:
    """The condition says what is dropped, in the other order of a choice."""
    return _sums(jnp.where(keep, 0.0, _weights(q, k)), v)


def _of_flax(q: Any, k: Any, v: Any, keep: Any) -> Any:
    """All in the type of the operands, and a factor that is a number of that type."""
    w = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * jnp.asarray(0.125, q.dtype))
    w = w * (keep.astype(q.dtype) / jnp.asarray(_KEEP, q.dtype))
    return jnp.einsum("bhqk,bkhd->bqhd", w, v)


def _of_haiku(q: Any, k: Any, v: Any, keep: Any) -> Any:
    w = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(64).astype(q.dtype))
    return jnp.einsum("bhqk,bkhd->bqhd", keep * w / _KEEP, v)


def _multiplied(q: Any, k: Any, v: Any, factors: Any) -> Any:
    return _sums(_weights(q, k) * factors, v)


def _causal(q: Any, k: Any, v: Any, keep: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, -jnp.inf)
    return _sums(jnp.where(keep, jax.nn.softmax(s, axis=-1) / _KEEP, 0), v)


def _rounded(number: float) -> float:
    """Return a number of bf16."""
    return float(ml_dtypes.bfloat16(number))


@pytest.mark.parametrize(
    ("function", "spec", "factors"),
    [
        (_chosen, _EACH, lambda keep: keep / _KEEP),
        (_chosen, f"pred[1,1,{_ROWS},{_KEYS}]", lambda keep: keep / _KEEP),
        (_chosen, f"pred[1,2,1,{_KEYS}]", lambda keep: keep / _KEEP),
        (_dropped, _EACH, lambda dropped: ~dropped),
        (_of_flax, f"pred[1,1,{_ROWS},{_KEYS}]", lambda keep: keep * _rounded(1 / _rounded(_KEEP))),
        (_of_haiku, _EACH, lambda keep: keep / _rounded(_KEEP)),
        (_multiplied, f"f32[1,2,{_ROWS},{_KEYS}]", lambda factors: np.asarray(factors, np.float64)),
        (_multiplied, f"bf16[1,2,{_ROWS},1]", lambda factors: np.asarray(factors, np.float64)),
    ],
    ids=("each", "of all heads", "of all rows", "dropped", "flax", "haiku", "any", "of rows"),
)
def test_weights_with_factors(function: Callable[..., Any], spec: str, factors: Callable[[Any], Any]) -> None:
    """One kernel, whose sums of rows have all weights; and its gradients, which read the same factors."""
    program = compiled(function, *_QKV, spec)
    *arrays, given = program.random_inputs(1)
    if function is not _of_flax and function is not _of_haiku:
        is_right(program, [*arrays, given], factors=factors(given))
    gradients = compiled_gradients(function, _QKV[0], *_QKV, spec)
    *arrays, given = gradients.random_inputs(2)
    gradients_are_right(gradients, [*arrays, given], factors=factors(given))


def test_f32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_chains, "is_gradient_fast", lambda *_: True)
    specs = [f"f32[1,{_ROWS},2,64]", f"f32[1,{_ROWS},2,64]", *[f"f32[1,{_KEYS},2,64]"] * 2, _EACH]
    program = xgpu.compile(with_gradients(_chosen), *specs)
    assert [kernel.emitter for kernel in program.kernels].count("sums") >= 2
    *arrays, keep = program.random_inputs(3)
    found = program.run(*arrays, keep, sanitize=True)
    for own, expected in zip(found, program.reference(*arrays, keep), strict=True):
        error = np.abs(np.asarray(own, np.float64) - expected)
        assert error.max() <= 2**-9 * np.abs(expected).max()


def test_steps_that_a_causal_mask_hides_are_left_out() -> None:
    """Of gradients, too, where weights that are kept vanish by the mask."""
    specs = [*["bf16[1,150,2,64]"] * 4, "pred[1,2,150,150]"]
    program = compiled_gradients(_causal, *specs)
    assert program.ir("tiles").count("xgpu.visible") == 3
    *arrays, keep = program.random_inputs(4)
    gradients_are_right(program, [*arrays, keep], np.tri(150, dtype=bool), factors=keep / _KEEP)


def test_rows_that_are_dropped_or_see_nothing() -> None:
    """Rows without a weight that is kept are zero, hidden ones that are averaged have an average of those kept."""

    def function(q: Any, k: Any, v: Any, keep: Any, mask: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        return _sums(jnp.where(keep, jax.nn.softmax(jnp.where(mask, s, LOW), axis=-1) / _KEEP, 0), v)

    program = compiled(function, *_QKV, _EACH, f"pred[{_ROWS},{_KEYS}]")
    *arrays, keep, mask = program.random_inputs(5)
    keep[0, :, 7], mask[9] = False, False
    found = is_right(program, [*arrays, keep, mask], mask, LOW, factors=keep / _KEEP)
    assert not found[0, 7].any()
    assert found[0, 9].any()


@pytest.mark.parametrize("hidden", [-np.inf, -1e9])
def test_rows_that_see_nothing_are_zero_where_a_program_says_so(hidden: float) -> None:
    """A mask before the softmax and after it: the kernel of attention makes zeros of a row of nothing but -inf, too."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.125
        w = jax.nn.softmax(jnp.where(mask, s, hidden), axis=-1)
        return _sums(jnp.where(mask, w, 0), v)

    program = xgpu.compile(function, *_QKV, _EACH)
    assert "attention" in {kernel.emitter for kernel in program.kernels}
    *arrays, mask = program.random_inputs(1)
    mask[0, 0, 5] = False
    (result,) = program.run(*arrays, mask)
    assert (np.asarray(result, np.float32)[0, 5, 0] == 0).all()
    assert np.isfinite(np.asarray(result, np.float32)).all()


def test_rows_without_numbers_are_none() -> None:
    """Weights of a row of nothing but -inf are not numbers: neither is a result that any of them is kept for."""
    program = compiled(_causal, *["bf16[1,150,2,64]"] * 3, "pred[1,2,150,150]")
    q, k, v, keep = program.random_inputs(6)
    q[0, 11, 1, 3] = ml_dtypes.bfloat16("nan")
    (found,) = program.run(q, k, v, keep, sanitize=True)
    (expected,) = program.reference(q, k, v, keep)
    assert np.array_equal(np.isnan(found.astype(np.float32)), np.isnan(expected.astype(np.float32)))
    assert np.isnan(found[0, 11, 1].astype(np.float32)).all()


def _with_key(q: Any, k: Any, v: Any, key: Any) -> Any:
    return _chosen(q, k, v, jax.random.bernoulli(key, _KEEP, (1, 2, q.shape[1], k.shape[1])))


def test_random_conditions_are_computed_once_and_stored_as_bytes() -> None:
    """Attention and both kernels of its gradient read them; nothing else of random numbers is in memory."""
    program = xgpu.compile(with_gradients(_with_key), _QKV[0], *_QKV, "u32[2]")
    random, attention, *others = [kernel.emitter for kernel in program.kernels]
    assert (random, attention, others.count("sums")) == ("loop", "attention", 2)
    text = program.ir("fusions")
    assert f"-> tensor<1x2x{_ROWS}x{_KEYS}xi1>" in text
    called = [line for line in text.splitlines() if " call @" in line]
    assert len([line for line in called if f"tensor<1x2x{_ROWS}x{_KEYS}xi1>" in line]) == 4
    assert not [line for line in called if f"{_ROWS}x{_KEYS}xui32" in line or f"{_ROWS}x{_KEYS}xf32" in line]
    *arrays, key = program.random_inputs(7)
    keep = np.asarray(jax.random.bernoulli(jnp.asarray(key), _KEEP, (1, 2, _ROWS, _KEYS)))
    gradients_are_right(program, [*arrays, key], factors=keep / _KEEP)


@pytest.mark.parametrize("function", [_with_key, jax.checkpoint(_with_key)], ids=("without a result", "checkpoint"))
def test_gradients_alone(function: Callable[..., Any]) -> None:
    """What would be the result is computed of the weights that are kept."""

    def alone(g: Any, q: Any, k: Any, v: Any, key: Any) -> Any:
        return jax.vjp(lambda q, k, v: function(q, k, v, key), q, k, v)[1](g)

    program = xgpu.compile(alone, _QKV[0], *_QKV, "u32[2]")
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters.count("attention") == 1
    assert emitters.count("sums") == 2
    arrays = program.random_inputs(8)
    for own, expected in zip(program.run(*arrays, sanitize=True), program.reference(*arrays), strict=True):
        error = own.astype(np.float64) - expected.astype(np.float64)
        assert np.sqrt(np.mean(error**2)) <= 0.01 * np.sqrt(np.mean(expected.astype(np.float64) ** 2))


@pytest.mark.parametrize(
    "factored",
    [
        lambda w, s: w * jnp.tanh(s),
        lambda w, s: w / (jnp.sum(w * w, -1, keepdims=True) + 1),
        lambda w, s: w - 0.1,
        lambda w, s: jnp.where(s > 0, w, 1.0),
    ],
)
def test_other_functions_of_weights_are_left_in_parts(factored: Callable[[Any, Any], Any]) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        return _sums(factored(jax.nn.softmax(s, axis=-1), s), v)

    kernels = planned(function, ["bf16[2,512,4,64]"] * 3, TARGET, xgpu.Options()).kernels
    assert "attention" not in [kernel.emitter for kernel in kernels]


def test_factors_of_f16_are_conditions() -> None:
    """Weights of f16 are relative to less than the largest one, and have no room for factors."""
    specs = ["f16[2,512,4,64]"] * 3
    for function, spec, is_found in ((_chosen, "pred[2,4,512,512]", True), (_multiplied, "f16[2,4,512,512]", False)):
        kernels = planned(function, [*specs, spec], TARGET, xgpu.Options()).kernels
        assert ("attention" in [kernel.emitter for kernel in kernels]) is is_found


def test_a_gradient_with_other_conditions_is_left_in_parts() -> None:
    """Sums of gradients times weights are those of the result only if both have the same factors."""

    @jax.custom_vjp
    def dropped(w: Any, keep: Any, other: Any) -> Any:
        return jnp.where(keep, w, 0)

    dropped.defvjp(
        lambda w, keep, other: (dropped(w, keep, other), other),
        lambda other, g: (jnp.where(other, g, 0), None, None),
    )

    def function(q: Any, k: Any, v: Any, keep: Any, other: Any) -> Any:
        return _sums(dropped(_weights(q, k), keep, other), v)

    specs = [*["bf16[1,512,4,64]"] * 4, *["pred[1,4,512,512]"] * 2]
    kernels = planned(with_gradients(function), specs, TARGET, xgpu.Options()).kernels
    assert not {"attention", "sums"} & {kernel.emitter for kernel in kernels}


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("function", [_causal, _of_haiku, _of_flax])
def test_they_stay_in_registers(function: Callable[..., Any]) -> None:
    """Nor does ptxas say that products of a warp group wait for each other, or are there divisions by what is kept."""
    specs = [*["bf16[1,512,16,64]"] * 4, "pred[1,16,512,512]"]
    program = compiled_gradients(function, *specs)
    for kernel in program.kernels:
        if kernel.emitter in ("attention", "sums"):
            assert kernel.assembled.spill_bytes == 0
            assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]
            assert "div.rn.f32" not in kernel.ptx or kernel.emitter == "attention"

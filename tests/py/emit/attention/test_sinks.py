"""Attention with sinks, logits of each head that have no value, on the host executor against float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import LOW, compiled

_ROWS, _KEYS = 70, 130
_QKV = [f"bf16[1,{_ROWS},2,64]", *[f"bf16[1,{_KEYS},2,64]"] * 2]
_SINK = "f32[2]"


def _logits(q: Any, k: Any) -> Any:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5


def _sums(w: Any, v: Any) -> Any:
    return jnp.einsum("bhqk,bkhd->bqhd", w.astype(v.dtype), v)


def _column(s: Any, sink: Any) -> Any:
    return jnp.broadcast_to(sink[None, :, None, None].astype(s.dtype), (*s.shape[:3], 1))


def _appended(q: Any, k: Any, v: Any, sink: Any, mask: Any = True) -> Any:
    """A column of the logits, as gpt-oss has it, is dropped after the softmax."""
    s = jnp.where(mask, _logits(q, k), -jnp.inf)
    return _sums(jax.nn.softmax(jnp.concatenate([s, _column(s, sink)], -1), axis=-1)[..., :-1], v)


def _before(q: Any, k: Any, v: Any, sink: Any) -> Any:
    """The column comes first."""
    s = _logits(q, k)
    return _sums(jax.nn.softmax(jnp.concatenate([_column(s, sink), s], -1), axis=-1)[..., 1:], v)


def _added(q: Any, k: Any, v: Any, sink: Any, mask: Any = True) -> Any:
    """The sink is in the largest logit and in the sum."""
    s = jnp.where(mask, _logits(q, k), -jnp.inf)
    sink = sink[None, :, None, None]
    m = lax.stop_gradient(jnp.maximum(s.max(-1, keepdims=True), sink))
    e = jnp.exp(s - m)
    return _sums(e / (e.sum(-1, keepdims=True) + jnp.exp(sink - m)), v)


def _relative(q: Any, k: Any, v: Any, sink: Any) -> Any:
    """The sink is in the sum alone."""
    s = _logits(q, k)
    m = lax.stop_gradient(s.max(-1, keepdims=True))
    e = jnp.exp(s - m)
    return _sums(e / (jnp.exp(sink[None, :, None, None] - m) + e.sum(-1, keepdims=True)), v)


def _softmax1(q: Any, k: Any, v: Any, sink: Any) -> Any:
    """One is added to the sum of exponentials: a sink of 0."""
    s = _logits(q, k) + 0 * sink.sum()
    m = lax.stop_gradient(jnp.maximum(s.max(-1, keepdims=True), 0))
    e = jnp.exp(s - m)
    return _sums(e / (e.sum(-1, keepdims=True) + jnp.exp(-m)), v)


def _with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def both(g: Any, *operands: Any) -> Any:
        result, backward = jax.vjp(function, *operands)
        return (result, *backward(g))

    return both


def _exact(g: Any, q: Any, k: Any, v: Any, sink: Any, mask: Any = True) -> list[np.ndarray[Any, Any]]:
    """Return attention and its gradients in float64, and the root of the squares that a sink's is the sum of."""
    g, q, k, v, sink = (np.asarray(each, np.float64) for each in (g, q, k, v, sink))
    scale = q.shape[-1] ** -0.5
    s = np.where(mask, np.einsum("bqhd,bkhd->bhqk", q, k) * scale, -np.inf)
    s = np.concatenate([s, np.broadcast_to(sink[None, :, None, None], (*s.shape[:3], 1))], -1)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
    dp = np.einsum("bqhd,bkhd->bhqk", g, v)
    own = p[..., :-1]
    moved = (own * dp).sum(-1, keepdims=True)
    ds = np.where(mask, own * (dp - moved), 0) * scale
    result, of_queries = (np.einsum("bhqk,bkhd->bqhd", *each) for each in ((own, v), (ds, k)))
    of_keys, of_values = (np.einsum("bhqk,bqhd->bkhd", *each) for each in ((ds, q), (own, g)))
    of_sinks, parts = (-p[..., -1:] * moved).sum((0, 2, 3)), p[..., -1].transpose(0, 2, 1)[..., None] * g * result
    return [result, of_queries, of_keys, of_values, of_sinks, np.sqrt((parts**2).sum((0, 1, 3)))]


def _is_right(program: xgpu.Compiled, arrays: list[Any], expected: list[np.ndarray[Any, Any]]) -> None:
    """Run on the host, whose sanitizer finds nothing, and compare with float64 and with the reference's errors.

    The gradient of a sink is one number for all rows: it is off by what the roundings of all results add up to.
    """
    found, reference = program.run(*arrays, sanitize=True), program.reference(*arrays)
    if len(expected) > 4:
        assert np.all(np.abs(found[4] - expected[4]) <= 2**-7 * expected[5])
    for own, other, exact in zip(found[:4], reference[:4], expected[:4], strict=True):
        ours, theirs = (np.asarray(each, np.float64) - exact for each in (own, other))
        assert np.array_equal(np.isnan(ours), np.isnan(exact))
        assert np.sqrt(np.nanmean(ours**2)) <= 1.5 * np.sqrt(np.nanmean(theirs**2)) + 1e-7
        assert np.nanmax(np.abs(ours)) <= 2.5 * np.nanmax(np.abs(theirs)) + 1e-6


@pytest.mark.parametrize("function", [_appended, _before, _added, _relative])
def test_sinks(function: Callable[..., Any]) -> None:
    program = compiled(function, *_QKV, _SINK)
    q, k, v, sink = program.random_inputs(1)
    for numbers in ((0.5, -2.0), (30.0, -60.0), (-np.inf, 3e4)):
        sink[...] = numbers
        _is_right(program, [q, k, v, sink], _exact(q, q, k, v, sink)[:1])


@pytest.mark.parametrize(
    "schedule", [{"steady": False}, {"folded": False}, {"folded": False, "steady": False, "overlap": False}], ids=str
)
def test_schedules(schedule: dict[str, int]) -> None:
    program = compiled(_appended, *_QKV, _SINK, **schedule)
    q, k, v, sink = program.random_inputs(2)
    q[0, ::3] *= 40
    _is_right(program, [q, k, v, sink], _exact(q, q, k, v, sink)[:1])


@pytest.mark.parametrize("function", [_appended, _added])
def test_rows_that_see_nothing_are_zero(function: Callable[..., Any]) -> None:
    """The sink has all weight there; without a sink they are not numbers."""
    program = compiled(function, *_QKV, _SINK, f"pred[{_ROWS},{_KEYS}]")
    q, k, v, sink, mask = program.random_inputs(3)
    mask[5] = False
    sink[...] = 0.25, -np.inf
    expected = _exact(q, q, k, v, sink, mask)[:1]
    assert not expected[0][0, 5, 0].any()
    assert np.isnan(expected[0][0, 5, 1]).all()
    _is_right(program, [q, k, v, sink, mask], expected)


def test_rows_whose_hidden_logits_are_numbers_are_averaged_without_a_sink() -> None:
    """With one above them they are zero, as in the program, also where a causal mask hides steps by numbers."""

    def function(q: Any, k: Any, v: Any, sink: Any, mask: Any) -> Any:
        s = jnp.where(mask & jnp.tril(jnp.ones((150, 150), bool)), _logits(q, k), LOW)
        return _sums(jax.nn.softmax(jnp.concatenate([s, _column(s, sink)], -1), axis=-1)[..., :-1], v)

    program = compiled(function, *["bf16[1,150,2,64]"] * 3, _SINK, "pred[150,150]")
    q, k, v, sink, mask = program.random_inputs(9)
    mask[7], sink[...] = False, (0.5, LOW)
    (found,), (expected,) = program.run(q, k, v, sink, mask, sanitize=True), program.reference(q, k, v, sink, mask)
    assert not found[0, 7, 0].any()
    assert found[0, 7, 1].all()
    assert np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() <= 2**-6


@pytest.mark.parametrize("function", [_appended, _before, _added, _relative])
def test_gradients(function: Callable[..., Any]) -> None:
    """Of sinks, too, which are made of values of rows."""
    program = xgpu.compile(_with_gradients(function), _QKV[0], *_QKV, _SINK)
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters[0] == "attention"
    assert emitters.count("sums") == 2
    *arrays, sink = program.random_inputs(4)
    sink[...] = 0.5, 3.0
    _is_right(program, [*arrays, sink], _exact(*arrays, sink))


def test_one_more_in_the_sum() -> None:
    program = xgpu.compile(_with_gradients(_softmax1), _QKV[0], *_QKV, _SINK)
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    *arrays, sink = program.random_inputs(5)
    _is_right(program, [*arrays, sink], [*_exact(*arrays, np.zeros(2))[:4], np.zeros(2), np.zeros(2)])


def test_steps_that_a_causal_mask_hides_are_left_out() -> None:
    def function(q: Any, k: Any, v: Any, sink: Any) -> Any:
        return _appended(q, k, v, sink, jnp.tril(jnp.ones((150, 150), bool)))

    program = xgpu.compile(_with_gradients(function), *["bf16[1,150,2,64]"] * 4, _SINK)
    assert program.ir("tiles").count("xgpu.visible") == 3
    arrays = program.random_inputs(6)
    _is_right(program, arrays, _exact(*arrays, np.tri(150, dtype=bool)))


def test_f32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_chains, "is_gradient_fast", lambda *_: True)
    specs = [each.replace("bf16", "f32") for each in (_QKV[0], *_QKV)]
    program = xgpu.compile(_with_gradients(_appended), *specs, _SINK)
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    arrays = program.random_inputs(7)
    for own, exact in zip(program.run(*arrays, sanitize=True), _exact(*arrays)[:5], strict=True):
        assert np.abs(own - exact).max() <= 2**-9 * np.abs(exact).max()


def test_dropped_weights_with_sinks() -> None:
    def function(q: Any, k: Any, v: Any, sink: Any, keep: Any) -> Any:
        s = _logits(q, k)
        p = jax.nn.softmax(jnp.concatenate([s, _column(s, sink)], -1), axis=-1)[..., :-1]
        return _sums(jnp.where(keep, p / 0.5, 0), v)

    program = compiled(function, *_QKV, _SINK, f"pred[1,2,{_ROWS},{_KEYS}]")
    q, k, v, sink, keep = program.random_inputs(8)
    (found,), (expected,) = program.run(q, k, v, sink, keep, sanitize=True), program.reference(q, k, v, sink, keep)
    error = found.astype(np.float64) - expected.astype(np.float64)
    assert np.sqrt(np.mean(error**2)) <= 0.005 * np.sqrt(np.mean(expected.astype(np.float64) ** 2))


def test_a_column_that_is_kept_is_left_with_the_others() -> None:
    def function(q: Any, k: Any, v: Any, sink: Any) -> Any:
        s = _logits(q, k)
        p = jax.nn.softmax(jnp.concatenate([s, _column(s, sink)], -1), axis=-1)
        return _sums(p[..., :-1], v), jnp.sort(p, -1)

    kernels = planned(function, [*["bf16[1,512,2,64]"] * 3, _SINK], TARGET, xgpu.Options()).kernels
    assert "attention" not in [kernel.emitter for kernel in kernels]


def test_sums_that_are_computed_from_logits_otherwise_are_left_in_parts() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        s = _logits(q, k)
        e = jnp.exp(s - lax.stop_gradient(s.max(-1, keepdims=True)))
        return _sums(e / (e.sum(-1, keepdims=True) + jnp.sum(s * s, -1, keepdims=True)), v)

    kernels = planned(function, ["bf16[1,512,2,64]"] * 3, TARGET, xgpu.Options()).kernels
    assert "attention" not in [kernel.emitter for kernel in kernels]


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_they_stay_in_registers() -> None:
    program = xgpu.compile(_with_gradients(_appended), *["bf16[1,512,16,64]"] * 4, "f32[16]")
    for kernel in program.kernels:
        if kernel.emitter in ("attention", "sums"):
            assert kernel.assembled.spill_bytes == 0
            assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]

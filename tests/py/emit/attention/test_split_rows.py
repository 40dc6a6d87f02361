"""Attention of few rows whose keys are in parts, with sinks and factors of weights; and values of rows as results."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.target.nvptx.cubin import find_ptxas

_KEYS = 601


def _specs(keys: int, rows: int) -> list[str]:
    return [f"bf16[2,{rows},8,64]", *[f"bf16[2,{keys},2,64]"] * 2, "s32[2]"]


_SPECS = _specs(_KEYS, 1)


def _grouped(q: Any) -> Any:
    return q.reshape(*q.shape[:2], 2, q.shape[2] // 2, q.shape[3])


def _logits(q: Any, k: Any, lengths: Any) -> Any:
    s = jnp.einsum("bqhgd,bkhd->bhgqk", _grouped(q), k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    return jnp.where(jnp.arange(k.shape[1]) < lengths[:, None, None, None, None], s, -jnp.inf)


def _sums(p: Any, v: Any) -> Any:
    return jnp.einsum("bhgqk,bkhd->bqhgd", p.astype(v.dtype), v).reshape(p.shape[0], p.shape[3], -1, v.shape[-1])


def _appended(q: Any, k: Any, v: Any, lengths: Any, sink: Any) -> Any:
    s = _logits(q, k, lengths)
    column = jnp.broadcast_to(sink.reshape(2, -1)[None, :, :, None, None], (*s.shape[:-1], 1))
    return _sums(jax.nn.softmax(jnp.concatenate([s, column], -1), axis=-1)[..., :-1], v)


def _relative(q: Any, k: Any, v: Any, lengths: Any, sink: Any) -> Any:
    """The sink is in the sum alone, which is relative to the largest logit."""
    s = _logits(q, k, lengths)
    m = s.max(-1, keepdims=True)
    e = jnp.exp(s - m)
    return _sums(e / (e.sum(-1, keepdims=True) + jnp.exp(sink.reshape(2, -1)[None, :, :, None, None] - m)), v)


def _repeated(q: Any, k: Any, v: Any, lengths: Any, sink: Any) -> Any:
    """Keys are repeated for heads, whose rows become one dimension."""
    k, v = (jnp.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.arange(k.shape[1]) < lengths[:, None, None, None], s, -jnp.inf)
    column = jnp.broadcast_to(sink[None, :, None, None], (*s.shape[:-1], 1))
    p = jax.nn.softmax(jnp.concatenate([s, column], -1), axis=-1)[..., :-1]
    return jnp.einsum("bhqk,bkhd->bqhd", p.astype(v.dtype), v)


def _exact(q: Any, k: Any, v: Any, lengths: Any, sink: Any, factors: Any = 1.0) -> Any:
    """Return attention in float64, and what its weights are multiplied by: of sizes, for the error that is allowed."""
    q, k, v, sink = (np.asarray(each, np.float64) for each in (q, k, v, sink))
    k, v = (np.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    s = np.where(np.arange(k.shape[1]) < np.asarray(lengths)[:, None, None, None], s, -np.inf)
    s = np.concatenate([s, np.broadcast_to(sink[None, :, None, None], (*s.shape[:3], 1))], -1)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        p = (p / p.sum(-1, keepdims=True))[..., :-1] * factors
    return np.einsum("bhqk,bkhd->bqhd", p, v), np.einsum("bhqk,bkhd->bqhd", np.abs(p), np.abs(v))


def _compiled(function: Callable[..., Any], *specs: str, parts: int | None = None) -> xgpu.Compiled:
    """Return a program whose keys are in parts, and the combination of which is one kernel."""
    program = xgpu.compile(function, *specs, options=xgpu.Options(attention_parts=parts))
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters.count("attention") == 1
    assert len(emitters) == 2
    return program


def _is_right(program: xgpu.Compiled, arrays: list[Any], expected: Any) -> None:
    (found,) = program.run(*arrays, sanitize=True)
    exact, size = expected
    error = np.abs(np.asarray(found, np.float64) - exact)
    assert np.array_equal(np.isnan(error), np.isnan(exact))
    assert np.all(np.isnan(error) | (error <= 1.5 * 2**-8 * size + 1e-30))


@pytest.mark.parametrize("function", [_appended, _relative, _repeated])
@pytest.mark.parametrize("parts", [None, 3])
def test_sinks(function: Callable[..., Any], parts: int | None) -> None:
    """Each of the sinks, and rows that see no keys in some parts; with the parts that are fastest, and with a few."""
    program = _compiled(function, *_SPECS, "f32[8]", parts=parts)
    q, k, v, lengths, sink = program.random_inputs(1)
    for numbers in (np.linspace(-3, 3, 8), np.linspace(-60, 60, 8), np.full(8, -np.inf)):
        sink[...] = numbers
        for each in ((_KEYS, 1), (300, 129)):
            lengths[:] = each
            _is_right(program, [q, k, v, lengths, sink], _exact(q, k, v, lengths, sink))


def test_rows_that_see_nothing_are_zero() -> None:
    """The sink has all weight of them; without one they are not numbers."""
    program = _compiled(_appended, *_SPECS, "f32[8]")
    q, k, v, lengths, sink = program.random_inputs(2)
    lengths[:], sink[...] = (0, 5), 0.25
    sink[3] = -np.inf
    expected = _exact(q, k, v, lengths, sink)
    assert not expected[0][0, 0, :3].any()
    assert np.isnan(expected[0][0, 0, 3]).all()
    _is_right(program, [q, k, v, lengths, sink], expected)


def _with_factors(read: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any, lengths: Any, *factors: Any) -> Any:
        return _sums(read(jax.nn.softmax(_logits(q, k, lengths), axis=-1), *factors), v)

    return function


@pytest.mark.parametrize(
    ("read", "spec", "exact"),
    [
        (lambda p, f: p * f[:, None, None, None], f"f32[2,{_KEYS}]", lambda f: f[:, None, None]),
        (lambda p, f: p / f[:, None, None, None], f"f32[2,{_KEYS}]", lambda f: 1 / f[:, None, None]),
        (
            lambda p, f: jnp.where(f, p / 0.75, 0),
            f"pred[2,2,4,1,{_KEYS}]",
            lambda f: f.reshape(2, 8, 1, -1) / 0.75,
        ),
        (lambda p, f: p * f[None, :, :, None, None], "f32[2,4]", lambda f: f.reshape(1, 8, 1, 1)),
    ],
    ids=["factors", "divisors", "dropout", "factors of rows"],
)
def test_factors(read: Callable[[Any, Any], Any], spec: str, exact: Callable[[Any], Any]) -> None:
    """Of weights, and of all weights of a row. Parts do not divide the keys: what is padded is no factor."""
    program = _compiled(_with_factors(read), *_SPECS, spec, parts=3)
    q, k, v, lengths, factors = program.random_inputs(3)
    if factors.dtype == np.float32:
        factors[...] = np.abs(factors) + 0.5
    lengths[:] = (_KEYS, 200)
    wide = exact(np.asarray(factors, np.float64))
    _is_right(program, [q, k, v, lengths, factors], _exact(q, k, v, lengths, np.full(8, -np.inf), wide))


def test_several_queries_with_a_sink_are_one_dimension() -> None:
    """Rows are of queries and of heads, which are gathered; the sink of each is found again."""
    program = xgpu.compile(_repeated, "bf16[1,17,136,40]", *["bf16[1,1030,8,40]"] * 2, "s32[1]", "f32[136]")
    assert [kernel.emitter for kernel in program.kernels][:2] == ["loop", "attention"]
    assert f"x{17 * 17}x40x" in program.ir("fusions")
    q, k, v, lengths, sink = program.random_inputs(4)
    lengths[:], sink[...] = 953, np.linspace(-4, 6, 136)
    _is_right(program, [q, k, v, lengths, sink], _exact(q, k, v, lengths, sink))


def test_divisors_of_keys_beyond_the_last() -> None:
    """Tiles go beyond the keys, where there is no divisor."""
    program = xgpu.compile(_with_factors(lambda p, f: p / f), *_specs(130, 70), "f32[130]")
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    q, k, v, lengths, divisors = program.random_inputs(5)
    lengths[:], divisors[...] = (130, 7), np.abs(divisors) + 0.5
    _is_right(program, [q, k, v, lengths, divisors], _exact(q, k, v, lengths, np.full(8, -np.inf), 1 / divisors))


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("function", [_appended, _with_factors(lambda p, f: p * f[:, None, None, None])])
def test_sums_of_parts_stay_in_registers(function: Callable[..., Any]) -> None:
    factors = "f32[8]" if function is _appended else f"f32[2,{_KEYS}]"
    assembled = _compiled(function, *[each.replace("64]", "128]") for each in _SPECS], factors).kernels[0].assembled
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]


_RESIDUAL_SPECS = ["bf16[2,150,4,64]", *["bf16[2,150,2,64]"] * 2]


def _library(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v, *rest: jax.nn.dot_product_attention(
        q, k, v, return_residual=True, **options, **({"key_value_seq_lengths": rest[0]} if rest else {})
    )


def _by_hand(q: Any, k: Any, v: Any) -> Any:
    """The logarithm of the sum, of values that the softmax has, before its product."""
    k, v = (jnp.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    m = s.max(-1, keepdims=True)
    e = jnp.exp(s - m)
    total = e.sum(-1, keepdims=True)
    logs = (m + jnp.log(total))[..., 0].transpose(0, 2, 1)
    return jnp.einsum("bhqk,bkhd->bqhd", (e / total).astype(v.dtype), v), logs


def _exact_residual(q: Any, k: Any, v: Any, mask: Any = True) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    q, k, v = (np.asarray(each, np.float64) for each in (q, k, v))
    k, v = (np.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    s = np.where(mask, np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    logs = s.max(-1) + np.log(p.sum(-1))
    return np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v), logs.transpose(0, 2, 1)


def _are_right(program: xgpu.Compiled, arrays: list[Any], expected: Any) -> None:
    found = program.run(*arrays, sanitize=True)
    for own, exact in zip(found, expected, strict=True):
        rounding = 2.0**-8 if own.dtype != np.float32 else 2.0**-18
        assert np.abs(np.asarray(own, np.float64) - exact).max() <= 2 * rounding * np.abs(exact).max()


@pytest.mark.parametrize("function", [_library(), _by_hand])
def test_residuals(function: Callable[..., Any]) -> None:
    """One kernel of attention, and one of the rows."""
    program = xgpu.compile(function, *_RESIDUAL_SPECS)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    assert len(program.kernels) == 2
    arrays = program.random_inputs(1)
    _are_right(program, arrays, _exact_residual(*arrays))


def test_residuals_under_a_causal_mask() -> None:
    program = xgpu.compile(_library(is_causal=True), *_RESIDUAL_SPECS)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    arrays = program.random_inputs(2)
    _are_right(program, arrays, _exact_residual(*arrays, np.tri(150, dtype=bool)))


def test_residuals_of_keys_in_parts() -> None:
    """Logarithms are of all parts together."""
    specs = ["bf16[2,1,8,64]", *["bf16[2,601,2,64]"] * 2, "s32[2]"]
    program = xgpu.compile(_library(), *specs, options=xgpu.Options(attention_parts=3))
    assert "x3xf32>" in program.ir("fusions")
    q, k, v, lengths = program.random_inputs(3)
    for each in ((601, 1), (300, 129)):
        lengths[:] = each
        mask = np.arange(601) < np.asarray(each)[:, None, None, None]
        _are_right(program, [q, k, v, lengths], _exact_residual(q, k, v, mask))


def test_sums_relative_to_something_else_are_left() -> None:
    """A sum of other powers is no number of the softmax."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32)
        return jax.nn.softmax(s, axis=-1).astype(q.dtype) @ v, jnp.exp(s - s.mean(-1, keepdims=True)).sum(-1)

    kernels = planned(function, ["bf16[256,64]"] * 3, TARGET, xgpu.Options()).kernels
    assert "attention" not in [each.emitter for each in kernels]

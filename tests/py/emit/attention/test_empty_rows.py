"""Attention whose rows that see nothing are zero: by a mask after the softmax, too, or instead of what is no number."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import with_gradients

_ROWS, _KEYS = 70, 130
_QKV = [f"bf16[1,{_ROWS},2,64]", *[f"bf16[1,{_KEYS},2,64]"] * 2]
_MASK = f"pred[{_ROWS},{_KEYS}]"
_LOW = float(np.finfo(np.float32).min)


def _attention(weights: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return attention whose weights are made of logits and of a mask."""

    def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        return jnp.einsum("bhqk,bkhd->bqhd", weights(s, mask).astype(q.dtype), v)

    return attention


def _softmax(s: Any, mask: Any, fill: float = -np.inf) -> Any:
    return jax.nn.softmax(jnp.where(mask, s, fill), axis=-1)


_FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "before and after": lambda s, mask: jnp.where(mask, _softmax(s, mask), 0),
    "of a low number": lambda s, mask: jnp.where(mask, _softmax(s, mask, _LOW), 0),
    "where": lambda s, mask: jax.nn.softmax(s, axis=-1, where=mask),
    "two masks": lambda s, mask: jnp.where(mask & _tri(), _softmax(jnp.where(mask, s, -jnp.inf), _tri()), 0),
    "added": lambda s, mask: jnp.where(mask, jax.nn.softmax(s + jnp.where(mask, 0.0, -jnp.inf), axis=-1), 0),
    "any": lambda s, mask: jnp.where(mask.any(-1, keepdims=True), _softmax(s, mask), 0),
    "nan_to_num": lambda s, mask: jnp.nan_to_num(_softmax(s, mask)),
    "isnan": lambda s, mask: jnp.where(jnp.isnan(p := _softmax(s, mask)), 0, p),
}


def _tri() -> Any:
    return jnp.tril(jnp.ones((_ROWS, _KEYS), bool))


def _exact(arrays: list[Any], is_causal: bool) -> list[np.ndarray[Any, Any]]:
    """Return attention and its gradients in float64: nothing of rows that see nothing."""
    g, q, k, v, mask = (np.asarray(each, np.float64) for each in arrays)
    seen = (mask > 0) & (np.tri(_ROWS, _KEYS) > 0 if is_causal else True)
    scale = q.shape[-1] ** -0.5
    s = np.where(seen, np.einsum("bqhd,bkhd->bhqk", q, k) * scale, -1e300)
    p = np.exp(s - s.max(-1, keepdims=True)) * seen
    p /= np.maximum(p.sum(-1, keepdims=True), 1e-300)
    dp = np.einsum("bqhd,bkhd->bhqk", g, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    result, of_queries = (np.einsum("bhqk,bkhd->bqhd", *each) for each in ((p, v), (ds, k)))
    return [result, of_queries, *(np.einsum("bhqk,bqhd->bkhd", *each) for each in ((ds, q), (p, g)))]


def _arrays(program: xgpu.Compiled, empty: int) -> list[Any]:
    """Return arrays of which some rows see nothing."""
    arrays = program.random_inputs(1)
    arrays[-1][:empty] = False
    return list(arrays)


@pytest.mark.parametrize("name", _FORMS)
def test_rows_that_see_nothing_are_zero(name: str) -> None:
    """Those of a tile, all rows of a warp, and none."""
    program = xgpu.compile(_attention(_FORMS[name]), *_QKV, _MASK)
    assert [kernel.emitter for kernel in program.kernels if kernel.emitter != "reduce_row"] == ["attention"]
    for empty in (0, 3, _ROWS):
        q, k, v, mask = _arrays(program, empty)
        (found,) = program.run(q, k, v, mask, sanitize=True)
        (expected, *_) = _exact([q, q, k, v, mask], name == "two masks")
        assert not np.asarray(found[:, :empty], np.float32).any()
        assert np.abs(np.asarray(found, np.float64) - expected).max() <= 2**-6


@pytest.mark.parametrize("name", _FORMS)
def test_gradients(name: str) -> None:
    """Rows that see nothing have none, and add nothing to those of keys."""
    program = xgpu.compile(with_gradients(_attention(_FORMS[name])), _QKV[0], *_QKV, _MASK)
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters.count("attention") == 1
    assert emitters.count("sums") == 2
    # What is added to logits does not choose their gradients: those of rows that see nothing are not numbers.
    arrays = _arrays(program, 0 if name == "added" else 5)
    found, reference = program.run(*arrays, sanitize=True), program.reference(*arrays)
    for own, other, exact in zip(found, reference, _exact(arrays, name == "two masks"), strict=True):
        ours, theirs = (np.asarray(each, np.float64) - exact for each in (own, other))
        assert np.array_equal(np.isnan(ours), np.isnan(theirs))
        assert np.sqrt(np.nanmean(ours**2)) <= 1.5 * np.sqrt(np.nanmean(theirs**2)) + 1e-7


def test_a_mask_before_that_hides_more_is_left_in_parts() -> None:
    """A row may see nothing that the mask after the softmax keeps: it is not a number then."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        def weights(s: Any, mask: Any) -> Any:
            return jnp.where(mask, _softmax(jnp.where(_tri(), s, -jnp.inf), mask), 0)

        return _attention(weights)(q, k, v, mask)

    emitters = [each.emitter for each in planned(function, (*_QKV, _MASK), TARGET, xgpu.Options()).kernels]
    assert "attention" not in emitters


def test_keys_in_parts() -> None:
    """Parts that see nothing do not count, and rows of nothing but these are zero."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return _attention(lambda s, m: jnp.where(m[:, None], _softmax(s, m[:, None]), 0))(q, k, v, mask)

    program = xgpu.compile(function, "bf16[2,1,4,64]", *["bf16[2,601,4,64]"] * 2, "pred[2,1,601]")
    assert len(program.kernels) == 2
    q, k, v, mask = program.random_inputs(2)
    mask[0], mask[1, 0, 200:] = False, False
    (found,) = program.run(q, k, v, mask, sanitize=True)
    (expected,) = program.reference(q, k, v, mask)
    assert not np.asarray(found[0], np.float32).any()
    assert np.abs(np.asarray(found, np.float64) - np.asarray(expected, np.float64)).max() <= 2**-6


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("name", ["before and after", "any", "where"])
def test_kernels_stay_in_registers(name: str) -> None:
    for kernel in xgpu.compile(with_gradients(_attention(_FORMS[name])), _QKV[0], *_QKV, _MASK).kernels:
        if kernel.emitter in ("attention", "sums"):
            assert kernel.assembled.spill_bytes == 0
            assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]

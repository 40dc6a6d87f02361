"""Multi-head latent attention: keys and values are parts of one compressed cache, and wider than those of others."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

_KEYS = 300
_SCALE = 192**-0.5


def _seen(lengths: Any, keys: int) -> Any:
    return jnp.arange(keys) < lengths[:, None, None, None]


def _one_cache(q: Any, cache: Any, lengths: Any) -> Any:
    """The first columns of the cache are the values, and all of them the keys."""
    s = jnp.einsum("bqhc,bkc->bhqk", q, cache, preferred_element_type=jnp.float32) * _SCALE
    p = jax.nn.softmax(jnp.where(_seen(lengths, cache.shape[1]), s, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkc->bqhc", p.astype(q.dtype), cache[..., :512])


def _two_caches(q: Any, cache: Any, lengths: Any) -> Any:
    """Keys that have positions are a cache of their own, and logits the sum of two products."""
    values, turned = cache[..., :512], cache[..., 512:]
    s = jnp.einsum("bqhc,bkc->bqhk", q[..., :512], values, preferred_element_type=jnp.float32)
    s = (s + jnp.einsum("bqhr,bkr->bqhk", q[..., 512:], turned, preferred_element_type=jnp.float32)) * _SCALE
    p = jax.nn.softmax(jnp.where(_seen(lengths, cache.shape[1]), s, -jnp.inf), axis=-1)
    return jnp.einsum("bqhk,bkc->bqhc", p.astype(q.dtype), values)


def _exact(q: Any, cache: Any, lengths: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    q, cache = (np.asarray(each, np.float64) for each in (q, cache))
    s = np.einsum("bqhc,bkc->bhqk", q, cache) * _SCALE
    s = np.where(np.arange(cache.shape[1]) < np.asarray(lengths)[:, None, None, None], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    values = cache[..., :512]
    return np.einsum("bhqk,bkc->bqhc", p, values), np.einsum("bhqk,bkc->bqhc", p, np.abs(values))


def test_sums_of_two_products_are_left_to_libraries() -> None:
    """The kernel would read one of them as a bias, which is slower where there are many sequences."""
    specs = "bf16[32,1,16,576]", "bf16[32,4096,576]", "s32[32]"
    for function, is_kernel in ((_one_cache, True), (_two_caches, False)):
        program = xgpu.compile(function, *specs)
        assert ("attention" in {kernel.emitter for kernel in program.kernels}) == is_kernel


@pytest.mark.parametrize("function", [_one_cache, _two_caches])
@pytest.mark.parametrize(("heads", "parts"), [(16, 1), (16, 3), (128, 2)])
def test_decoding_from_a_compressed_cache(
    function: Callable[..., Any], heads: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns in two parts of 256, of keys together and in parts; the cache is not copied."""
    monkeypatch.setattr(find_chains, "is_fast", lambda *_: True)
    specs = [f"bf16[2,1,{heads},576]", f"bf16[2,{_KEYS},576]", "s32[2]"]
    program = xgpu.compile(function, *specs, options=xgpu.Options(attention_parts=parts))
    (kernel,) = (each for each in program.kernels if each.emitter == "attention")
    assert f"tensor<2x{_KEYS}x576xbf16>" in program.ir("fusions").split(f"@{kernel.name}(")[1].split("{")[0]
    arrays = program.random_inputs(1)
    for lengths in ((_KEYS, 1), (129, 256)):
        arrays[2][:] = lengths
        # XLA has the product of what has positions.
        (found,) = program.run(*arrays, sanitize=function is _one_cache)
        exact, size = _exact(*arrays)
        assert np.all(np.abs(np.asarray(found, np.float64) - exact) <= 1.5 * 2**-8 * size)


def test_wide_heads() -> None:
    """Queries, keys and values of 512 elements each, for many rows."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 512**-0.5
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)

    program = xgpu.compile(function, *["bf16[2,1024,16,512]"] * 3)
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("heads", [16, 128])
def test_wide_kernels_stay_in_registers(heads: int) -> None:
    program = xgpu.compile(_one_cache, f"bf16[8,1,{heads},576]", "bf16[8,4096,576]", "s32[8]")
    (assembled,) = (each.assembled for each in program.kernels if each.emitter == "attention")
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]

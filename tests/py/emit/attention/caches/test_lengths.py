"""Attention to as many keys as lengths of sequences say: steps after the last key are left out."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.target.nvptx.cubin import find_ptxas

_KEYS = 500
_attention = jax.nn.dot_product_attention


def _before(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """Hidden logits are a large negative number: rows that see nothing see all keys alike."""
    return _attention(q, k, v, key_value_seq_lengths=lengths)


def _causal(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    return _attention(q, k, v, key_value_seq_lengths=lengths, is_causal=True)


def _where(q: Any, k: Any, v: Any, seen: Any, hidden: float) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.1
    p = jax.nn.softmax(jnp.where(seen[:, None, None], s, hidden), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", p.astype(v.dtype), v)


def _infinite(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """Rows that see nothing are no numbers."""
    return _where(q, k, v, jnp.arange(k.shape[1]) < lengths[:, None], -jnp.inf)


def _up_to(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """Positions of last keys, computed, on the other side of the comparison."""
    return _where(q, k, v, (lengths - 3)[:, None] >= jnp.arange(k.shape[1]), -1e9)


def _both(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """The shorter of two lengths."""
    numbers = jnp.arange(k.shape[1])
    return _where(q, k, v, (numbers < lengths[:, None]) & (numbers <= (lengths // 2 + 100)[:, None]), -jnp.inf)


def _specs(rows: int, heads: int = 4, keys: int = _KEYS) -> tuple[str, ...]:
    return (f"bf16[4,{rows},{heads},64]", *[f"bf16[4,{keys},2,64]"] * 2, "s32[4]")


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "hidden by a number": (_before, _specs(70)),
    "a query, heads share keys": (_before, _specs(1, 8, 1500)),
    "causal": (_causal, _specs(_KEYS)),
    "hidden by infinity": (_infinite, _specs(70, 2)),
    "up to a position": (_up_to, _specs(70, 2)),
    "both": (_both, _specs(70, 2)),
}


@pytest.mark.parametrize("name", _PROGRAMS)
@pytest.mark.parametrize("lengths", [(_KEYS, 1, 250, 130), (0, _KEYS + 9, 64, 129), (3, 2, -4, 1)], ids=str)
def test_they_see_so_many_keys(name: str, lengths: tuple[int, ...]) -> None:
    function, specs = _PROGRAMS[name]
    program = xgpu.compile(function, *specs)
    text = program.ir("tiles")
    assert "d3 in [0, " in text.split("xgpu.visible = ")[1].split(">")[1]
    q, k, v, given = program.random_inputs(1)
    given[:] = lengths
    (found,) = program.run(q, k, v, given, sanitize=True)
    (expected,) = program.reference(q, k, v, given)
    # Weights and results are rounded to 8 bits.
    bound = 2**-7 * np.nanmax(np.abs(np.asarray(v, np.float32)))
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), rtol=0, atol=bound)


_WHOLE = xgpu.Options(attention_parts=1)
"""Keys are not divided among blocks: a part that sees none is computed as a whole if it is hidden by a number."""


@pytest.mark.parametrize("name", ["hidden by a number", "a query, heads share keys", "causal"])
def test_steps_after_the_last_key_are_left_out(name: str) -> None:
    """What they would read are no numbers."""
    function, specs = _PROGRAMS[name]
    program = xgpu.compile(function, *specs, options=_WHOLE)
    q, k, v, lengths = program.random_inputs(1)
    lengths[:] = (1, 128, 200, 256)
    (expected,) = program.run(q, k, v, lengths)
    for number, length in enumerate(lengths):
        end = -(-int(length) // 256) * 256
        k[number, end:], v[number, end:] = np.nan, np.nan
    (found,) = program.run(q, k, v, lengths)
    np.testing.assert_array_equal(found, expected)


def test_pages_beyond_the_last_key_are_left_out() -> None:
    def function(q: Any, k: Any, v: Any, table: Any, lengths: Any) -> Any:
        keys, values = (each[table].reshape(table.shape[0], -1, *each.shape[2:]) for each in (k, v))
        return _attention(q, keys, values, key_value_seq_lengths=lengths)

    cache = "bf16[99,16,2,64]"
    program = xgpu.compile(function, "bf16[3,1,8,64]", cache, cache, "s32[3,64]", "s32[3]", options=_WHOLE)
    assert [each.kernel.emitter for each in program.launches] == ["attention"]
    q, k, v, table, lengths = program.random_inputs(1)
    lengths[:], table[:] = (1, 300, 512), np.random.default_rng(0).integers(0, 90, table.shape)
    (expected,) = program.run(q, k, v, table, lengths, sanitize=True)
    for each, reference in zip(expected, program.reference(q, k, v, table, lengths)[0], strict=True):
        np.testing.assert_allclose(np.asarray(each, np.float32), np.asarray(reference, np.float32), atol=2**-6)
    for each in (k, v):
        each[90:] = np.nan
    table[0, 16:], table[1, 32:], table[2, 32:] = 95, 96, 97
    (found,) = program.run(q, k, v, table, lengths)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["hidden by a number", "causal"])
def test_every_element_is_written_once(name: str) -> None:
    function, specs = _PROGRAMS[name]
    emitter = emitter_of(xgpu.compile(function, *specs, options=_WHOLE))
    shape = tuple(int(each) for each in specs[0][5:-1].split(","))
    assert emitter.thread_to_output(0).coverage(shape).is_exact


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("name", ["a query, heads share keys", "causal"])
def test_kernels_stay_in_registers(name: str) -> None:
    function, specs = _PROGRAMS[name]
    program = xgpu.compile(function, *specs)
    (assembled,) = (kernel.assembled for kernel in program.kernels if kernel.emitter == "attention")
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]

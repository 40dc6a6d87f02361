"""Attention of few rows and many keys, which are split among blocks, on the host executor against float64."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.attention.attention import AttentionEmitter
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import LOW, is_right

_INF = float("inf")


def _specs(batch: int, rows: int, keys: int, heads: tuple[int, int], width: int, dtype: str = "bf16") -> list[str]:
    """Return the arrays of attention whose ``heads`` are those of queries and of keys, and the lengths of its keys."""
    query, key = heads
    shared = f"{dtype}[{batch},{keys},{key},{width}]"
    return [f"{dtype}[{batch},{rows},{query},{width}]", shared, shared, f"s32[{batch}]"]


def _in_parts(function: Callable[..., Any], *specs: str, parts: int = 3) -> xgpu.Compiled:
    """Return a program of two kernels: attention of parts of the keys, and what combines them."""
    program = xgpu.compile(function, *specs, options=xgpu.Options(attention_parts=parts))
    first, second = program.kernels
    assert first.emitter == "attention"
    assert second.emitter != "attention"
    return program


def _grouped(fill: float = -_INF) -> Callable[..., Any]:
    """Return attention by a cache that is filled up to some lengths, whose heads are shared by groups of queries."""

    def function(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        groups = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
        s = jnp.einsum("bqhgd,bkhd->bhgqk", groups, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        s = jnp.where(jnp.arange(k.shape[1]) < lengths[:, None, None, None, None], s, fill)
        return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v).reshape(q.shape)

    return function


def _library(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths)


def _repeated(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    k, v = (jnp.repeat(each, q.shape[2] // each.shape[2], 2) for each in (k, v))
    return _library(q, k, v, lengths)


def _turned(q: Any, k: Any, v: Any, lengths: Any) -> Any:
    """Heads come before rows, in the cache and in the result."""
    q, k, v = (each.reshape(each.shape[0], each.shape[2], each.shape[1], -1) for each in (q, k, v))
    groups = q.reshape(q.shape[0], k.shape[1], -1, *q.shape[2:])
    s = jnp.einsum("bhgqd,bhkd->bhgqk", groups, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    s = jnp.where(jnp.arange(k.shape[2]) < lengths[:, None, None, None, None], s, LOW)
    return jnp.einsum("bhgqk,bhkd->bhgqd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v).reshape(q.shape)


def _seen(keys: int, lengths: Any) -> Any:
    return np.arange(keys) < np.asarray(lengths)[:, None, None, None]


@pytest.mark.parametrize(
    ("function", "rows", "keys", "heads", "width", "parts", "dtype"),
    [
        (_grouped(), 1, 512, (8, 2), 64, 2, "bf16"),
        (_grouped(), 3, 601, (4, 1), 72, 5, "bf16"),
        (_library, 1, 700, (4, 2), 128, 3, "f16"),
        (_library, 2, 513, (1, 1), 256, 3, "bf16"),
        (_repeated, 1, 384, (4, 2), 64, 3, "bf16"),
    ],
)
def test_forms(
    function: Callable[..., Any], rows: int, keys: int, heads: tuple[int, int], width: int, parts: int, dtype: str
) -> None:
    """Groups of queries, one query, several; lengths of which parts are left that have no keys, and odd ones."""
    program = _in_parts(function, *_specs(2, rows, keys, heads, width, dtype), parts=parts)
    q, k, v, _ = program.random_inputs(1)
    for lengths in ((keys, 1), (keys // 2 + 1, keys - 1)):
        given = [q, k, v, np.array(lengths, np.int32)]
        is_right(program, given, _seen(keys, lengths), LOW)


@pytest.mark.parametrize(
    ("function", "rows", "keys", "heads"), [(_grouped(LOW), 16, 1200, (144, 9)), (_repeated, 17, 1030, (136, 8))]
)
def test_rows_of_several_dimensions_are_gathered(
    function: Callable[..., Any], rows: int, keys: int, heads: tuple[int, int]
) -> None:
    """Queries of a group of heads are rows that share keys, all of them together."""
    program = xgpu.compile(function, *_specs(1, rows, keys, heads, 40))
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters[:2] == ["loop", "attention"]
    assert f"x{rows * heads[0] // heads[1]}x40x" in program.ir("fusions")
    arrays = program.random_inputs(8)
    arrays[3][0] = keys - 77
    is_right(program, arrays, _seen(keys, [keys - 77]), LOW)


def test_rows_of_repeated_keys() -> None:
    """Heads whose keys are repeated are rows that share them; keys are not read for each head."""
    program = xgpu.compile(_repeated, *_specs(2, 1, 100, (12, 3), 64))
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    assert "tensor<2x3x4x64xbf16>" in program.ir("fusions")
    arrays = program.random_inputs(9)
    arrays[3][:] = (1, 99)
    is_right(program, arrays, _seen(100, (1, 99)), LOW)


def test_heads_before_rows() -> None:
    program = _in_parts(_turned, *_specs(1, 1, 600, (8, 2), 64))
    arrays = program.random_inputs(2)
    arrays[3][0] = 333
    (found,), (expected,) = program.run(*arrays, sanitize=True), program.reference(*arrays)
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.02)


@pytest.mark.parametrize("fill", [-_INF, LOW])
def test_rows_without_keys(fill: float) -> None:
    """Of logits of -inf they are not numbers; of others they average all keys, those of the last part, too."""
    program = _in_parts(_grouped(fill), *_specs(3, 1, 520, (4, 1), 64))
    q, k, v, lengths = program.random_inputs(3)
    lengths[:] = (0, 1, 129)
    found = is_right(program, [q, k, v, lengths], _seen(520, lengths), fill)
    assert np.isnan(found[0]).all() == (fill == -_INF)
    assert not np.isnan(found[1:]).any()


def test_numbers_that_are_none() -> None:
    """A row with a query that is not a number is none; one infinite value is one of those columns that have it."""
    program = _in_parts(_grouped(), *_specs(1, 1, 520, (4, 1), 64))
    q, k, v, lengths = program.random_inputs(4)
    lengths[:] = 520
    q[0, 0, 2, 5] = ml_dtypes.bfloat16("nan")
    v[0, 300, 0, 7] = ml_dtypes.bfloat16("inf")
    (found,) = program.run(q, k, v, lengths, sanitize=True)
    assert np.isnan(found[0, 0, 2].astype(np.float32)).all()
    others = found[0, 0, [0, 1, 3]].astype(np.float32)
    assert (others[:, 7] == _INF).all()
    assert np.isfinite(np.delete(others, 7, 1)).all()


def test_logits_far_apart() -> None:
    """The largest logit of one part is far above those of others: they have no weight then."""

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, bias=bias)

    program = _in_parts(function, *_specs(1, 1, 640, (4, 1), 64)[:3], "f32[1,4,1,640]")
    q, k, v, bias = program.random_inputs(5)
    bias[...] = np.repeat([0.0, 3e4, -3e38, 50.0, 2.9e4], 128)
    bias[0, 1] = -1e38
    is_right(program, [q, k, v, bias], bias=np.asarray(bias, np.float64))


def test_levels_go_on_from_text() -> None:
    """What the chain of parts says is what XLA computes of it, too."""
    program = _in_parts(_library, *_specs(1, 1, 300, (4, 1), 64), parts=2)
    arrays = program.random_inputs(10)
    arrays[3][0] = 290
    (expected,) = program.run(*arrays)
    again = xgpu.compile(program.ir("fusions"))
    assert again.ir("ptx") == program.ir("ptx")
    (found,) = again.reference(*arrays)
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.02)


def test_rows_of_many_tiles() -> None:
    """A prefix of some rows has several tiles, each of all parts."""
    program = _in_parts(lambda q, k, v: jax.nn.dot_product_attention(q, k, v), *_specs(1, 200, 520, (1, 1), 64)[:3])
    is_right(program, program.random_inputs(6))


def test_results_of_more_bits() -> None:
    """What is stored of parts is a program's result as well."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jax.nn.softmax(jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32))
        return jnp.einsum("qk,kd->dq", s.astype(q.dtype), v, preferred_element_type=jnp.float32)

    program = xgpu.compile(function, "bf16[70,40]", "bf16[100,40]", "bf16[100,72]")
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    arrays = program.random_inputs(7)
    (found,), (expected,) = program.run(*arrays, sanitize=True), program.reference(*arrays)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=0.02)
    emitter = emitter_of(program)
    assert emitter.thread_to_output(0).coverage((72, 70)).is_exact


@pytest.mark.parametrize(("keys", "heads", "width"), [(512, (8, 2), 64), (601, (4, 1), 40)])
def test_every_element_of_parts_is_written_once(keys: int, heads: tuple[int, int], width: int) -> None:
    program = _in_parts(_grouped(), *_specs(1, 1, keys, heads, width))
    emitter = emitter_of(program)
    assert isinstance(emitter, AttentionEmitter)
    for number, result in enumerate(emitter.fusion.results):
        assert emitter.thread_to_output(number).coverage(tuple(result.type.shape)).is_exact


def test_steps_are_of_one_part() -> None:
    """Where the last part is shorter, tiles that go beyond the end of a part would have keys of the next."""
    specs = _specs(1, 1, 601, (4, 1), 64)
    name = _in_parts(_grouped(), *specs).kernels[0].name
    with pytest.raises(xgpu.InvalidInput, match="tile_n = 192: expected a divisor of a part's 256 keys"):
        xgpu.compile(_grouped(), *specs, options=xgpu.Options(attention_parts=3, schedules={name: {"tile_n": 192}}))


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("width", [64, 128, 256])
def test_sums_of_parts_stay_in_registers(width: int) -> None:
    program = _in_parts(_library, *_specs(1, 1, 2000, (8, 2), width))
    assembled = program.kernels[0].assembled
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]

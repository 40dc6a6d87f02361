"""Attention whose keys and values are gathered: caches in pages, of a layer, in slots, and windows of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.target.nvptx.cubin import find_ptxas

_attention = jax.nn.dot_product_attention


def _in_pages(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Keys and values in pages, (page, key, head, width), of each sequence."""
    keys, values = (each[table].reshape(table.shape[0], -1, *each.shape[2:]) for each in (k, v))
    return _attention(q, keys, values)


def _up_to_lengths(q: Any, k: Any, v: Any, table: Any, lengths: Any) -> Any:
    keys, values = (each[table].reshape(table.shape[0], -1, *each.shape[2:]) for each in (k, v))
    return _attention(q, keys, values, key_value_seq_lengths=lengths)


def _clipped(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Numbers beyond the pages are the last one's; nothing is computed of them before."""
    taken = (jnp.take(each, table, axis=0, mode="clip") for each in (k, v))
    keys, values = (each.reshape(table.shape[0], -1, *each.shape[3:]) for each in taken)
    return _attention(q, keys, values, is_causal=True)


def _twice(q: Any, k: Any, v: Any, table: Any, pages: Any) -> Any:
    return _in_pages(q, k, v, pages[table])


def _computed(q: Any, k: Any, v: Any, table: Any, base: Any) -> Any:
    """Numbers of pages relative to that of each sequence's first one, every other page."""
    return _clipped(q, k, v, base[:, None] + 2 * table)


def _by_heads(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Pages of (page, head, key, width)."""
    turned = (jnp.swapaxes(each[table], 2, 3) for each in (k, v))
    keys, values = (each.reshape(table.shape[0], -1, *each.shape[3:]) for each in turned)
    return _attention(q, keys, values)


def _each(q: Any, k: Any, v: Any, table: Any) -> Any:
    def one(q: Any, numbers: Any) -> Any:
        keys, values = (each[numbers].reshape(-1, *each.shape[2:]) for each in (k, v))
        return _attention(q, keys, values)

    return jax.vmap(one)(q, table)


def _of_layer(q: Any, k: Any, v: Any, layer: Any) -> Any:
    return _attention(q, *(lax.dynamic_index_in_dim(each, layer, 0, keepdims=False) for each in (k, v)))


def _in_slots(q: Any, k: Any, v: Any, layer: Any, slots: Any) -> Any:
    """Two numbers: those of the layer, and of each sequence's slot."""
    return _attention(q, k[layer, slots], v[layer, slots])


def _window(q: Any, k: Any, v: Any, first: Any) -> Any:
    return _attention(q, *(lax.dynamic_slice_in_dim(each, first, 250, 1) for each in (k, v)))


def _layers(q: Any, k: Any, v: Any, first: Any) -> Any:
    """Each layer writes its keys into the caches, and then reads all of them."""

    def layer(number: Any, carried: Any) -> Any:
        x, k, v = carried
        own = jnp.tanh(x)[None]
        k, v = (lax.dynamic_update_slice(each, own, (number, 0, first, 0, 0)) for each in (k, v))
        return x + _attention(x, k[number], v[number]), k, v

    return lax.fori_loop(0, k.shape[0], layer, (q, k, v))[0]


_PAGED = ("bf16[2,70,4,64]", "bf16[20,16,4,64]", "bf16[20,16,4,64]", "s32[2,13]")
_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...], int]] = {
    "in pages": (_in_pages, _PAGED, 20),
    "few rows, heads share keys": (
        _up_to_lengths,
        ("bf16[2,1,8,64]", "bf16[30,32,2,64]", "bf16[30,32,2,64]", "s32[2,21]", "s32[2]"),
        30,
    ),
    "pages longer than tiles": (
        _in_pages,
        ("f16[2,70,4,40]", "f16[5,256,4,40]", "f16[5,256,4,40]", "s32[2,2]"),
        5,
    ),
    "pages of 24 keys": (_in_pages, ("bf16[2,70,1,64]", "bf16[20,24,1,64]", "bf16[20,24,1,64]", "s32[2,7]"), 20),
    "clipped": (_clipped, _PAGED, 20),
    "clipped, short numbers": (_clipped, (*_PAGED[:3], "s8[2,13]"), 20),
    "clipped, numbers without signs": (_clipped, (*_PAGED[:3], "u32[2,13]"), 20),
    "numbers of numbers": (_twice, (*_PAGED, "s32[20]"), 20),
    "computed numbers": (_computed, (*_PAGED, "s32[2]"), 10),
    "by heads": (_by_heads, ("bf16[2,70,4,64]", "bf16[20,4,16,64]", "bf16[20,4,16,64]", "s32[2,13]"), 20),
    "one by one": (_each, _PAGED, 20),
    "of a layer": (_of_layer, ("bf16[2,70,4,64]", "bf16[3,2,200,4,64]", "bf16[3,2,200,4,64]", "s32[]"), 3),
    "in slots": (
        _in_slots,
        ("bf16[3,70,2,64]", "bf16[3,8,100,2,64]", "bf16[3,8,100,2,64]", "s32[]", "s32[3]"),
        8,
    ),
    "a window": (_window, ("bf16[2,70,4,64]", "bf16[2,500,4,64]", "bf16[2,500,4,64]", "s32[]"), 250),
    "layers": (_layers, ("bf16[2,20,4,64]", "bf16[3,2,100,4,64]", "bf16[3,2,100,4,64]", "s32[]"), 80),
}


def _inputs(program: xgpu.Compiled, most: int, outside: int) -> list[np.ndarray[Any, Any]]:
    """Return random inputs, whose numbers are up to ``outside`` beyond the first and the last."""
    generator = np.random.default_rng(0)
    return [
        generator.integers(-outside, most + outside, each.shape).astype(each.dtype)
        if np.issubdtype(each.dtype, np.integer)
        else each
        for each in program.random_inputs(1)
    ]


@pytest.mark.parametrize("name", _PROGRAMS)
def test_they_are_read_where_they_are(name: str) -> None:
    function, specs, most = _PROGRAMS[name]
    program = xgpu.compile(function, *specs)
    assert program.ir("tiles").count('"xgpu.gather_tile"') == 2
    arrays = _inputs(program, most, 3)
    # XLA has the loop over layers, and the sanitizer takes kernels alone.
    (found,) = program.run(*arrays, sanitize=name != "layers")
    (expected,) = program.reference(*arrays)
    # Weights and results are rounded, and in the layers all that follows.
    bound = 2**-7 * np.abs(np.asarray(expected, np.float32)).max()
    assert np.abs(np.asarray(found, np.float32) - np.asarray(expected, np.float32)).max() <= bound


@pytest.mark.parametrize("pages", [13, 15, 16])
def test_other_pages_are_not_read(pages: int) -> None:
    """All others are not numbers; the last tile has room for more pages than there are."""
    specs = (*_PAGED[:3], f"s32[2,{pages}]")
    program = xgpu.compile(_clipped, *specs)
    q, k, v, _ = program.random_inputs(1)
    table = np.random.default_rng(0).permutation(18)[: 2 * pages % 18 or 9]
    table = np.resize(table, (2, pages)).astype(np.int32) + 1
    for each in (k, v):
        each[[number for number in range(20) if number not in table]] = np.nan
    (found,) = program.run(q, k, v, table)
    assert np.isfinite(np.asarray(found, np.float32)).all()
    (expected,) = program.reference(q, k, v, table)
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=2**-6)


def _of_slots(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Queries are gathered, too, before the kernel; two of the sequences may be one."""
    return _in_pages(q[table[:, 0] % 2], k, v, table)


def _sliced(q: Any, k: Any, v: Any, table: Any) -> Any:
    return _in_pages(lax.dynamic_slice_in_dim(q, table[0, 0], 40, 1), k, v, table)


def _of_itself(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Queries are the keys."""
    keys, values = (each[table].reshape(table.shape[0], -1, *each.shape[2:]) for each in (k, v))
    return q[:, :1] + _attention(keys, keys, values)


@pytest.mark.parametrize("function", [_of_slots, _sliced, _of_itself])
def test_queries_are_gathered_before(function: Callable[..., Any]) -> None:
    program = xgpu.compile(function, *_PAGED)
    arrays = _inputs(program, 20, 0)
    (found,), (expected,) = program.run(*arrays, sanitize=True), program.reference(*arrays)
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=2**-5)


def _decoded(q: Any, k: Any, v: Any, table: Any, new: Any) -> Any:
    """A step that writes its key into a page first; each head has four queries, which could be sums."""
    k, v = (each.at[:, table[:, 0], 3].set(new) for each in (k, v))
    taken = (jnp.take(each, table, axis=1, mode="clip") for each in (k, v))
    keys, values = (each.reshape(*each.shape[:2], -1, each.shape[-1]) for each in taken)
    s = jnp.einsum("bhgd,hbkd->bhgk", q, keys, preferred_element_type=jnp.float32) * 0.1
    return jnp.einsum("bhgk,hbkd->bhgd", jax.nn.softmax(s, -1).astype(v.dtype), values)


def test_few_rows_read_a_cache_that_was_just_written() -> None:
    cache = "bf16[8,4096,64,128]"
    large = xgpu.compile(_decoded, "bf16[8,8,4,128]", cache, cache, "s32[8,64]", "bf16[8,8,128]")
    assert [each.kernel.emitter for each in large.launches].count("attention") == 1
    cache = "bf16[2,40,64,64]"
    program = xgpu.compile(_decoded, "bf16[2,2,4,64]", cache, cache, "s32[2,16]", "bf16[2,2,64]")
    arrays = _inputs(program, 40, 0)
    (found,), (expected,) = program.run(*arrays), program.reference(*arrays)
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=2**-6)


@pytest.mark.parametrize("entries", [2, 5])
def test_one_page_is_repeated_by_tiles_of_its_keys(entries: int) -> None:
    """The number of the only page is known; a tile of two of them would be no box."""
    cache = "bf16[1,64,2,64]"
    program = xgpu.compile(_in_pages, "bf16[2,70,2,64]", cache, cache, f"s32[2,{entries}]")
    (kernel,) = (each for each in program.kernels if each.emitter == "attention")
    assert "tile_n = 64" in kernel.text("tiles")
    arrays = _inputs(program, 1, 2)
    (found,), (expected,) = program.run(*arrays, sanitize=True), program.reference(*arrays)
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(expected, np.float32), atol=2**-6)


def test_pages_of_no_eight_keys_are_stored() -> None:
    program = xgpu.compile(_in_pages, "bf16[2,70,4,64]", "bf16[20,20,4,64]", "bf16[20,20,4,64]", "s32[2,13]")
    text = program.ir("tiles")
    assert "xgpu.steps" in text
    assert "xgpu.gather_tile" not in text


def test_gradients_read_what_is_stored() -> None:
    """Keys that a gradient reads again are gathered once."""

    def loss(q: Any, k: Any, v: Any, table: Any) -> Any:
        return jnp.sum(_in_pages(q, k, v, table).astype(jnp.float32) ** 2)

    program = xgpu.compile(jax.grad(loss, (0, 1, 2)), *_PAGED)
    assert "xgpu.gather_tile" not in program.ir("tiles")


def test_every_element_is_written_once() -> None:
    function, specs, _ = _PROGRAMS["clipped"]
    emitter = emitter_of(xgpu.compile(function, *specs))
    assert emitter.thread_to_output(0).coverage((2, 70, 4, 64)).is_exact


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(("rows", "size"), [(1, 16), (1, 128), (2048, 64)])
def test_wide_kernels_stay_in_registers(rows: int, size: int) -> None:
    cache = f"bf16[4096,{size},8,128]"
    program = xgpu.compile(_clipped, f"bf16[4,{rows},32,128]", cache, cache, f"s32[4,{4096 // size}]")
    (assembled,) = (kernel.assembled for kernel in program.kernels if kernel.emitter == "attention")
    assert assembled.spill_bytes == 0
    assert not [remark for remark in assembled.remarks if "serialized" in remark]

"""Chains of sums without a softmax, on the host executor: which there are, and what they compute."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.costs import attention as costs
from xgpu.device import device
from xgpu.interface.api import compile_to
from xgpu.passes.prepare.chains import sums

from .attentions import with_gradients

_Program = Callable[..., Any]


def _logits(q: Any, k: Any) -> Any:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5


def _out(w: Any, v: Any) -> Any:
    return jnp.einsum("bhqk,bkhd->bqhd", w.astype(v.dtype), v)


def _distance(q: Any, k: Any) -> Any:
    return jnp.arange(q.shape[1])[:, None] - jnp.arange(k.shape[1])


def _sigmoid(q: Any, k: Any, v: Any) -> Any:
    return _out(jax.nn.sigmoid(_logits(q, k) - 4), v)


def _causal_squares(q: Any, k: Any, v: Any) -> Any:
    return _out(jnp.where(_distance(q, k) >= 0, jnp.square(jax.nn.relu(_logits(q, k))), 0) / 64, v)


def _retention(q: Any, k: Any, v: Any) -> Any:
    rates = (1 - 2.0 ** (-5 - jnp.arange(q.shape[2], dtype=jnp.float32)))[:, None, None]
    distance = _distance(q, k)
    return _out(_logits(q, k) * jnp.where(distance >= 0, rates ** jnp.maximum(distance, 0), 0), v)


def _groups(q: Any, k: Any, v: Any) -> Any:
    b, t, _, d = q.shape
    groups = q.reshape(b, t, k.shape[2], -1, d)
    w = jnp.tanh(jnp.einsum("btkgd,bskd->bkgts", groups, k, preferred_element_type=jnp.float32))
    return jnp.einsum("bkgts,bskd->btkgd", w.astype(v.dtype), v).reshape(q.shape)


def _layers(x: Any, w: Any, v: Any) -> Any:
    return jax.nn.gelu(x @ w) @ v


def _gated(x: Any, w: Any, g: Any, v: Any) -> Any:
    return (jax.nn.silu(x @ w) * (x @ g)) @ v


def _specs(rows: int, keys: int, heads: int, shared: int, width: int) -> list[str]:
    of_rows, of_keys = f"bf16[1,{rows},{heads},{width}]", f"bf16[1,{keys},{shared},{width}]"
    return [of_rows, of_rows, of_keys, of_keys]


@pytest.fixture
def _is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "are_sums_fast", lambda *_: True)


def _are_right(function: _Program, specs: list[str], emitters: int) -> None:
    """Run on the host; errors beside float64 are not much larger than XLA's, which rounds other values."""
    program = xgpu.compile(function, *specs)
    assert [kernel.emitter for kernel in program.kernels].count("sums") == emitters
    arrays = [array * jnp.bfloat16(0.5) for array in program.random_inputs(seed=1)]
    found, reference = program.run(*arrays, sanitize=True), program.reference(*arrays)
    with jax.enable_x64():
        exact = jax.tree.leaves(jax.jit(function)(*(jnp.asarray(np.asarray(each, np.float64)) for each in arrays)))
    for own, other, value in zip(found, reference, exact, strict=True):
        ours, theirs = (np.asarray(each, np.float64) - np.asarray(value) for each in (own, other))
        assert np.sqrt(np.mean(ours**2)) <= 1.2 * np.sqrt(np.mean(theirs**2))
        assert np.max(np.abs(ours)) <= 2 * np.max(np.abs(theirs))


@pytest.mark.usefixtures("_is_fast")
@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (_sigmoid, _specs(70, 130, 2, 2, 40)),
        (_causal_squares, _specs(150, 150, 2, 2, 64)),
        (_retention, _specs(130, 130, 4, 4, 64)),
        (_groups, _specs(70, 90, 4, 2, 64)),
    ],
)
def test_gradients(function: _Program, specs: list[str]) -> None:
    """The result, and the gradients of all three operands, each by a kernel: no product's result is in memory."""
    _are_right(with_gradients(function), specs, 4)


@pytest.mark.usefixtures("_is_fast")
@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (_layers, ["bf16[200,64]", "bf16[64,136]", "bf16[136,48]"]),
        (_layers, ["bf16[80,256]", "bf16[256,128]", "bf16[128,256]"]),
        (_gated, ["bf16[200,64]", "bf16[64,128]", "bf16[64,128]", "bf16[128,64]"]),
    ],
)
def test_layers(function: _Program, specs: list[str]) -> None:
    """Layers of few columns, whose steps go along the columns of a matrix that lie beside each other in memory."""
    _are_right(function, specs, 1)


@pytest.mark.usefixtures("_is_fast")
def test_steps_of_neighbours_are_no_narrower_than_boxes() -> None:
    """Registers leave room for 32 columns of these matrices, of which no box has rows: they are left to products."""
    specs = ["bf16[8192,256]", "bf16[256,1024]", "bf16[256,1024]", "bf16[1024,256]"]
    program = xgpu.compile(_gated, *specs)
    assert "sums" not in {kernel.emitter for kernel in program.kernels}


def _sums_read_by(read: _Program) -> _Program:
    def function(q: Any, k: Any, v: Any) -> Any:
        w = jax.nn.sigmoid(_logits(q, k))
        return _out(w, v), read(w)

    return function


_LARGE = ("bf16[2,2048,8,64]",) * 3


@pytest.mark.parametrize(
    ("function", "specs", "kernels"),
    [
        (_sigmoid, _LARGE, 1),
        (_layers, ("bf16[65536,64]", "bf16[64,256]", "bf16[256,64]"), 1),
        (with_gradients(_retention), (*_LARGE, _LARGE[0]), 4),
        (jax.vmap(_sigmoid), ("bf16[2,2,2048,8,64]",) * 3, 1),
        (_sums_read_by(lambda w: w), _LARGE, 0),
        (_sums_read_by(lambda w: w.sum(-1)), _LARGE, 0),
        (_sigmoid, ("f32[2,2048,8,64]",) * 3, 0),
        (_layers, ("bf16[4096,1024]", "bf16[1024,4096]", "bf16[4096,1024]"), 0),
        (with_gradients(_layers), ("bf16[65536,64]", "bf16[65536,64]", "bf16[64,256]", "bf16[256,64]"), 0),
    ],
)
def test_found(function: _Program, specs: tuple[str, ...], kernels: int) -> None:
    program = compile_to(None, function, specs, device("sm_90a"), xgpu.Options())
    assert [kernel.emitter for kernel in program.kernels].count("sums") == kernels


def test_gradients_are_left_if_that_is_asked_for() -> None:
    options = xgpu.Options(fuse_attention_gradients=False)
    specs = (_LARGE[0], *_LARGE)
    program = compile_to(None, with_gradients(_sigmoid), specs, device("sm_90a"), options)
    assert "sums" not in {kernel.emitter for kernel in program.kernels}


def test_chains_are_expected_faster_where_weights_are_many() -> None:
    """Each of the four chains of retention has two products or three, where a library has six."""
    target = device("sm_90a")
    few, many = (costs.AttentionSizes(16, rows, rows, 64, 64) for rows in (32, 2048))
    assert costs.are_sums_fast([(many, 2)], 2, target)
    assert costs.are_sums_fast([(many, 2)] * 4, 6, target)
    assert not costs.are_sums_fast([(many, 2)] * 12, 6, target)
    assert costs.are_sums_fast([(few, 2)], 2, target)
    tall = costs.AttentionSizes(1, 256, 65536, 64, 64)
    assert not costs.are_sums_fast([(tall, 2)], 2, target)


def test_products_of_few_terms_are_part_of_what_reads_them() -> None:
    """Filters multiply by a matrix of 4 x 4 for each time: tiles would be empty, and blocks take them in turn."""

    def step(gain: Any, matrix: Any, mean: Any, information: Any) -> Any:
        return gain @ (mean + matrix @ information)

    filters = jax.vmap(jax.vmap(step), (None, None, 0, 0))
    program = xgpu.compile(filters, *["f32[256,4,4]"] * 2, *["f32[64,256,4]"] * 2, target="sm_90a")
    assert {kernel.emitter for kernel in program.kernels} == {"transpose"}


def test_tiles_have_as_many_keys_as_can_be_copied() -> None:
    """Keys in pages of 64 for each head: those of two pages are not equally far apart."""

    def paged(q: Any, keys: Any, values: Any, table: Any) -> Any:
        k, v = (jnp.swapaxes(pages[table], 2, 3).reshape(4, 512, 4, 64) for pages in (keys, values))
        return _sigmoid(q, k, v)

    specs = ["bf16[4,512,4,64]", "bf16[35,4,64,64]", "bf16[35,4,64,64]", "s32[4,8]"]
    program = xgpu.compile(paged, *specs)
    assert "sums" in [kernel.emitter for kernel in program.kernels]
    inputs = program.random_inputs(seed=1)
    inputs[3] = np.arange(32, dtype=np.int32).reshape(4, 8)
    (found,), (expected,) = program.run(*inputs), program.reference(*inputs)
    assert np.abs(np.asarray(found, np.float32) - np.asarray(expected, np.float32)).max() <= 2**-5

"""Which programs have attention that one kernel computes, in the forms that JAX programs have it."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.analysis.attention.attention import Attention
from xgpu.costs.attention import AttentionSizes
from xgpu.device import device
from xgpu.emit.families.attention.facts import sizes_of
from xgpu.interface.api import compile_to
from xgpu.passes.prepare.products import find_chains

_Program = Callable[..., Any]
_Q = "bf16[2,48,4,64]"


def _emitters(function: _Program, *specs: str) -> set[str]:
    program = compile_to(None, function, specs, device("sm_90a"), xgpu.Options())
    return {kernel.emitter for kernel in program.kernels}


def _logits(q: Any, k: Any) -> Any:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)


def _exact_logits(q: Any, k: Any) -> Any:
    return jnp.einsum("bqhd,bkhd->bhqk", q, k, precision=lax.Precision.HIGHEST)


def _sums(s: Any, v: Any) -> Any:
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(v.dtype), v)


def _layers(x: Any) -> Any:
    return lax.scan(lambda x, _: (x + _sums(_logits(x, x), x), None), x, length=2)[0]


def _layers_computed_again(w: Any, x: Any) -> Any:
    """The loop of the gradient uses the mask from outside, where it is computed once."""

    def layer(x: Any, w: Any) -> Any:
        s = jnp.where(jnp.tril(jnp.ones((48, 48), bool)), _logits(x, x), -1e9)
        return x + _sums(s, x) @ w, None

    return jnp.sum(lax.scan(jax.checkpoint(layer), x, w)[0].astype(jnp.float32))


def _layers_of_one_softmax(x: Any, k: Any) -> Any:
    s = _logits(k, k)
    return lax.scan(lambda x, _: (x + _sums(s, x), None), x, length=2)[0]


def _branch_of_logits_from_outside(x: Any, p: Any) -> Any:
    s = _logits(x, x)
    return lax.cond(p, lambda: _sums(s, x), lambda: x)


def _of_several(mix: _Program) -> _Program:
    """Attention whose logits are each computed from several results of the first product."""

    def function(q: Any) -> Any:
        s = _logits(q, q)
        return _sums(mix(s), q)

    return function


def _shifted(s: Any) -> Any:
    return s + jnp.pad(s, [(0, 0)] * 3 + [(1, 0)]).reshape(2, 4, 49, 48)[:, :, 1:]


def _of_queries_twice(q: Any, k: Any, v: Any) -> Any:
    """The queries are computed; what they are added to is read before the product."""
    q = q * jnp.bfloat16(0.125)
    s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32)
    return jax.nn.softmax(q[:, :1].astype(jnp.float32) + s, axis=-1).astype(v.dtype) @ v


def _hashed(q: Any, k: Any, v: Any) -> Any:
    """A mask by numbers of which each takes the one before twice."""
    x = lax.broadcasted_iota(jnp.uint32, (48, 48), 0) * 48 + lax.broadcasted_iota(jnp.uint32, (48, 48), 1)
    for shift in range(20):
        x = x ^ (x >> (shift % 13 + 1))
    s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type=jnp.float32)
    return jax.nn.softmax(jnp.where((x & 1) == 0, s, -jnp.inf), axis=-1).astype(v.dtype) @ v


def _dropout(q: Any, key: Any) -> Any:
    p = jax.nn.softmax(_logits(q, q), axis=-1)
    kept = jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, p.shape), p, 0)
    return jnp.einsum("bhqk,bkhd->bqhd", kept.astype(q.dtype), q)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (lambda q: _sums(_logits(q * 0.125, q), q), (_Q,)),
        (lambda q: _sums(10 * jnp.tanh(_logits(q, q) / 10), q), (_Q,)),
        (_dropout, (_Q, "u32[2]")),
        (lambda q, b: _sums(_logits(q, q) + b, q), (_Q, "f32[4,48,48]")),
        (lambda q, k: jax.nn.dot_product_attention(q, k, k, is_causal=True), (_Q, "bf16[2,48,2,64]")),
        (lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True, local_window_size=(7, 0)), (_Q,)),
        (lambda q, k: _sums(_logits(q, jnp.repeat(k, 2, 2)), jnp.repeat(k, 2, 2)), (_Q, "bf16[2,48,2,64]")),
        (lambda q, k: _sums(_logits(q, k), k), ("bf16[2,1,4,64]", _Q)),
        (lambda x: jax.nn.softmax(x @ x.T) @ x, ("f16[48,64]",)),
        (jax.vmap(lambda q: _sums(_logits(q, q), q)), ("bf16[3,2,48,4,64]",)),
        (_layers, (_Q,)),
        (_of_queries_twice, ("bf16[48,64]",) * 3),
        (_hashed, ("bf16[48,64]",) * 3),
        (jax.grad(_layers_computed_again), ("bf16[2,64,64]", _Q)),
        (lambda q: _sums(_logits(q, q), q), ("f32[2,512,4,64]",)),
        (lambda q, v: _sums(_logits(q, q), v), ("bf16[2,512,4,64]", "f32[2,512,4,64]")),
        (lambda x: jax.nn.softmax(x @ x.T) @ x, ("f32[1024,64]",)),
    ],
)
def test_found(function: _Program, specs: tuple[str, ...]) -> None:
    assert "attention" in _emitters(function, *specs)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (lambda q: _sums(_exact_logits(q, q), q), ("f32[2,512,4,64]",)),
        (lambda q: _sums(_logits(q, q), q), ("f32[2,512,4,256]",)),
        (lambda q: (_sums(s := _logits(q, q), q), s), (_Q,)),
        (lambda q: jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(_logits(q, q), axis=2).astype(q.dtype), q), (_Q,)),
        (_layers_of_one_softmax, (_Q, _Q)),
        (_branch_of_logits_from_outside, (_Q, "pred[]")),
        (_of_several(lambda s: s - s.mean(-1, keepdims=True)), (_Q,)),
        (_of_several(lambda s: jnp.where(s >= lax.top_k(s, 5)[0][..., -1:], s, -jnp.inf)), (_Q,)),
        (_of_several(lambda s: s + jnp.cumsum(s, -1)), (_Q,)),
        (_of_several(_shifted), (_Q,)),
        (_of_several(lambda s: s @ jnp.sin(s) + s), (_Q,)),
        (lambda q, k: _sums(_logits(q, k), k), ("bf16[2,0,4,64]", _Q)),
        (lambda q, k: _sums(_logits(q, k), k), (_Q, "bf16[2,0,4,64]")),
        (lambda q: _sums(_logits(q, q), q), ("bf16[2,48,4,36]",)),
    ],
)
def test_left(function: _Program, specs: tuple[str, ...]) -> None:
    assert "attention" not in _emitters(function, *specs)


def _loss(attention: _Program, *others: int) -> _Program:
    """Return a function that has the loss of attention of its arguments, and the gradients of some."""

    def function(*arguments: Any) -> Any:
        def loss(*arguments: Any) -> Any:
            return (attention(*arguments).astype(jnp.float32) ** 2).sum()

        return jax.value_and_grad(loss, (0, 1, 2, *others))(*arguments)

    return function


def _attend(q: Any, k: Any, v: Any) -> Any:
    return _sums(_logits(q, k) * 0.125, v)


def _biased(q: Any, k: Any, v: Any, b: Any) -> Any:
    return _sums(_logits(q, k) + b, v)


def _updated(q: Any, k: Any, v: Any, b: Any) -> Any:
    """The gradient of the bias is read by what computes element by element, as those of the logits are."""
    loss, (*others, of_bias) = _loss(_biased, 3)(q, k, v, b)
    return loss, others, b - 0.1 * of_bias


def _vjp_of_merged_heads(q: Any, k: Any, v: Any, g: Any) -> Any:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(2, 48, 256)

    return jax.vjp(attend, q, k, v)[1](g)


def _by_columns(x: Any, w: Any, o: Any) -> Any:
    """Matrices from the left, of each row, as a vmap has them: products ask for columns of results and gradients."""
    q, k, v = (jnp.einsum("ef,btf->bet", m, x).reshape(2, 4, 64, 48).transpose(0, 3, 1, 2) for m in w)
    return jnp.einsum("ef,btf->ebt", o, _sums(_logits(q, k), v).reshape(2, 48, 256))


def _projected(x: Any, w: Any, v: Any) -> Any:
    q, k = (jnp.einsum("bqhd,de->bqhe", x, w) for _ in range(2))
    return jnp.einsum("bqf,fg->bqg", _sums(_logits(q, k), v).reshape(2, 48, 256), jnp.tile(w, (4, 4)))


@pytest.mark.parametrize(
    ("logits", "instructions"),
    [(lambda s: s / 8.3, 0), (lambda s: s * 0.125, 0), (lambda s: 30 * jnp.tanh(s / 30), 20)],
)
def test_functions_of_logits_count(logits: _Program, instructions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors and divisors do not: they are left to the exponential."""
    found = []

    def sizes(attention: Attention) -> AttentionSizes:
        found.append(sizes_of(attention))
        return found[-1]

    monkeypatch.setattr(find_chains, "sizes_of", sizes)
    assert "attention" in _emitters(lambda q: _sums(logits(_logits(q, q)), q), _Q)
    assert {each.instructions for each in found} == {instructions}


def test_gradients_are_left_if_that_is_asked_for() -> None:
    options = xgpu.Options(fuse_attention_gradients=False)
    program = compile_to(None, _loss(_attend), (_Q,) * 3, device("sm_90a"), options)
    assert {kernel.emitter for kernel in program.kernels}.isdisjoint({"attention", "sums"})


@pytest.mark.parametrize(
    ("function", "specs", "kernels"),
    [
        (_loss(_attend), (_Q,) * 3, 2),
        (jax.vmap(_loss(_attend)), ("bf16[3,2,48,4,64]",) * 3, 2),
        (_loss(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True)), (_Q,) * 3, 2),
        (
            _loss(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True, local_window_size=(7, 0))),
            (_Q, "bf16[2,48,2,64]", "bf16[2,48,2,64]"),
            2,
        ),
        (
            _loss(lambda q, k, v: _attend(q, *(jnp.repeat(each, 2, 2) for each in (k, v)))),
            (_Q, *["bf16[2,48,2,64]"] * 2),
            2,
        ),
        (_loss(_biased), (_Q, _Q, _Q, "f32[4,48,48]"), 2),
        (_loss(_biased, 3), (_Q, _Q, _Q, "f32[4,48,48]"), 2),
        (_loss(_biased, 3), (_Q, _Q, _Q, "f32[]"), 2),
        (_loss(jax.checkpoint(_biased), 3), (_Q, _Q, _Q, "bf16[2,1,48,48]"), 2),
        (_loss(jax.vmap(_biased, (0, 0, 0, None)), 3), (*["bf16[3,2,48,4,64]"] * 3, "f32[4,48,48]"), 2),
        (_loss(lambda q, k, v, b: _biased(q, k, v, b.T[0] * b[:, 1:2]), 3), (_Q, _Q, _Q, "f32[48,48]"), 2),
        (_loss(lambda q, k, v, b: _biased(_biased(q, k, v, b), k, v, b), 3), (_Q, _Q, _Q, "f32[4,48,48]"), 4),
        (_updated, (_Q, _Q, _Q, "f32[2,4,48,48]"), 2),
        (_loss(_projected), (_Q, "bf16[64,64]", _Q), 2),
        (_loss(lambda q, k, v: _attend(_attend(q, k, v), k, v)), (_Q,) * 3, 4),
        (_loss(jax.checkpoint(_attend)), (_Q,) * 3, 2),
        (_loss(_by_columns), ("bf16[2,48,256]", "bf16[3,256,256]", "bf16[256,256]"), 2),
        (lambda q, k, v, g: jax.vjp(_attend, q, k, v)[1](g), (_Q,) * 4, 2),
        (_vjp_of_merged_heads, (_Q, "bf16[2,48,2,64]", "bf16[2,48,2,64]", "bf16[2,48,256]"), 2),
        (jax.grad(lambda q: _sums(_logits(q, q), q).astype(jnp.float32).sum()), (_Q,), 2),
        (lambda q, k, v: jax.value_and_grad(lambda q: (_attend(q, k, v) ** 2).sum())(q), (_Q,) * 3, 1),
        (lambda q, k, v: jax.value_and_grad(lambda v: (_attend(q, k, v) ** 2).sum())(v), (_Q,) * 3, 1),
    ],
)
def test_gradients_found(function: _Program, specs: tuple[str, ...], kernels: int) -> None:
    program = compile_to(None, function, specs, device("sm_90a"), xgpu.Options())
    emitters = [kernel.emitter for kernel in program.kernels]
    assert "attention" in emitters
    assert emitters.count("sums") == kernels


def test_what_follows_attention_is_computed_once() -> None:
    """The gradient of the result depends on the result, which is stored: only weights are computed again."""

    def function(q: Any, k: Any, v: Any, w: Any) -> Any:
        y = _attend(q, k, v).reshape(2, 48, 256)
        return _attend(jnp.tanh(y @ w).reshape(q.shape), k, v)

    def products(options: xgpu.Options) -> int:
        program = compile_to(None, _loss(function, 3), (*[_Q] * 3, "bf16[256,256]"), device("sm_90a"), options)
        # Those of chains are further to the right.
        return len(re.findall(r"^    %\w+ = stablehlo.dot_general", program.ir("prepared"), re.MULTILINE))

    in_chains = 2 * (2 + 4)
    assert products(xgpu.Options(fuse_attention_gradients=False)) == 3 + in_chains
    assert products(xgpu.Options()) == 3


def test_a_gradient_of_weights_of_f32_that_f16_does_not_hold_is_left() -> None:
    program = compile_to(None, _loss(_attend), ("f16[2,48,4,64]",) * 3, device("sm_90a"), xgpu.Options())
    assert "sums" not in {kernel.emitter for kernel in program.kernels}


def test_the_gradient_of_a_bias_alone_is_left() -> None:
    """There are no products for a chain to end with."""

    def function(q: Any, k: Any, v: Any, b: Any) -> Any:
        return jax.grad(lambda b: (_biased(q, k, v, b) ** 2).sum())(b)

    assert "attention" not in _emitters(function, _Q, _Q, _Q, "f32[4,48,48]")


def test_kernels_of_equal_layers_are_equal() -> None:
    """The first layer makes the mask of all, in its forward and its backward pass before what depends on the layer."""

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            q, k, v = jnp.split(x @ w, 3, -1)
            s = jnp.where(jnp.tril(jnp.ones((48, 48), bool)), _logits(q, k) * 0.125, -jnp.inf)
            x = x + jax.nn.gelu(_sums(s, v))
        return jnp.sum(x.astype(jnp.float32) ** 2)

    def emitters(layers: int) -> list[str]:
        weights = [jax.ShapeDtypeStruct((64, 192), "bfloat16")] * layers
        program = compile_to(None, jax.grad(loss), (weights, _Q), device("sm_90a"), xgpu.Options())
        return sorted(kernel.emitter for kernel in program.kernels)

    few = emitters(3)
    assert few.count("attention") == 1
    assert few.count("sums") == 2
    assert emitters(6) == few

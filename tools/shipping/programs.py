"""The programs that are shipped: one for each thing that a package does on a GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "loops"


@dataclass(frozen=True)
class Shipped:
    """A program, its signatures, and what JAX computes it with, if it is not a function of JAX itself.

    A result may be off by ``tolerance`` times the largest element, or 1 if that is less.
    """

    name: str
    source: Callable[..., Any] | Path
    signatures: tuple[tuple[str, ...], ...] = ((),)
    tolerance: float = 1e-4
    reference: Callable[..., Any] | None = None

    def expected(self, arguments: Sequence[Any]) -> list[Any]:
        """Return what the program computes, by JAX."""
        function = self.reference or self.source
        assert callable(function)
        return [np.asarray(each) for each in jax.tree.leaves(jax.jit(function)(*arguments))]


def _block(x: Any, w_in: Any, w_out: Any) -> Any:
    """Attention and a gated layer, each with a norm before it: products, rows, attention."""
    heads, (batch, time, width) = 4, x.shape

    def norm(x: Any) -> Any:
        wide = x.astype(jnp.float32)
        return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype)

    split = (norm(x) @ w_in).reshape(batch, time, 3, heads, width // heads)
    mixed = jax.nn.dot_product_attention(split[:, :, 0], split[:, :, 1], split[:, :, 2], is_causal=True)
    x = x + mixed.reshape(x.shape) @ w_out
    return x + jax.nn.silu(norm(x) @ w_out)


def _lstm(xs: Any, wx: Any, wh: Any) -> Any:
    """A loop that the host counts, with results of all steps."""

    def step(state: Any, x: Any) -> Any:
        i, f, g, o = jnp.split(x @ wx + state[0] @ wh, 4, -1)
        memory = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    zeros = jnp.zeros((xs.shape[1], wh.shape[0]), xs.dtype)
    return lax.scan(step, (zeros, zeros), xs)


def _heat(u: Any) -> Any:
    """A loop whose states change hands, an odd number of times."""
    return lax.fori_loop(0, 9, lambda _, u: 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + u), u)


def _roots(a: Any) -> Any:
    """A loop that values end."""

    def step(state: Any) -> Any:
        better = 0.5 * (state[0] + a / state[0])
        return better, jnp.max(jnp.abs(better - state[0])), state[2] + 1

    a = jnp.abs(a) + 1
    return lax.while_loop(lambda state: state[1] > 1e-3, step, (a, jnp.float32(1), 0))[0]


def _branches(i: Any, x: Any) -> Any:
    """A branch that a value chooses."""
    return lax.switch(i, [jnp.cumsum, lambda x: x / jnp.linalg.norm(x), jnp.sin], x)


def _updated(state: Any, rows: Any, at: Any) -> Any:
    """Copies and zeros beside kernels; an update of a copy."""
    return state.at[at].add(rows), jnp.cumsum(rows.reshape(-1)), jnp.argmax(state, 1)


def _sampled(key: Any, x: Any) -> Any:
    """Random numbers inside of a loop."""

    def step(state: Any, t: Any) -> Any:
        x, key = state
        key, one = jax.random.split(key)
        return (0.9 * x + 0.1 * jax.random.normal(one, x.shape) * t, key), None

    return lax.scan(step, (x, jax.random.wrap_key_data(key)), jnp.arange(5.0))[0][0]


def _types(x: Any, y: Any, z: Any, q: Any) -> Any:
    return x * 2, y.astype(jnp.float16) / 3, (z > 4) & (x[:7] > 0), lax.dot(q, q, preferred_element_type=jnp.int32)


def _images(x: Any, stem: Any, inner: Any, last: Any) -> Any:
    """Convolutions with windows that overlap, in steps, and of one element."""
    convolved = partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(convolved(x, stem, (2, 2), "SAME"))
    x = x + jax.nn.relu(convolved(x, inner, (1, 1), "SAME"))
    return convolved(x, last, (1, 1), "VALID").mean((1, 2))


def _decomposed(a: jax.Array, b: jax.Array) -> Any:
    """QR factors, eigenvalues and singular values, and of the vectors what their signs do not change."""
    values, vectors = jnp.linalg.eigh(a + a.T)
    q, r = jnp.linalg.qr(b)
    u, s, v = jnp.linalg.svd(b, full_matrices=False)
    square = jnp.einsum("ij,j,kj->ik", vectors, values**2, vectors, precision="highest")
    whole = jnp.einsum("ij,j,jk->ik", u, s, v, precision="highest")
    return values, square, jnp.abs(r), jnp.einsum("ij,jk->ik", q, r, precision="highest"), s, whole


def _solved(a: Any, b: Any) -> Any:
    """Factors by loops."""
    a = a + 8 * jnp.eye(len(a))
    return jnp.linalg.solve(a, b), jnp.linalg.cholesky(a @ a.T / 8), jnp.linalg.det(a[:12, :12] / 8)


PROGRAMS = (
    Shipped("bias_relu", lambda x, b: jnp.maximum(x + b, 0), (("f32[256,1024]", "f32[1024]"),), 0),
    Shipped("rows", lambda x, s: (jax.nn.softmax(x * s, 1), x.sum(0)),
            (("f32[64,256]", "f32[256]"), ("f32[100,256]", "f32[256]"))),
    Shipped("block", _block, (("bf16[2,256,256]", "bf16[256,768]", "bf16[256,256]"),), 0.02),
    Shipped("lstm", _lstm, (("f32[20,16,32]", "f32[32,128]", "f32[32,128]"),), 5e-3),
    Shipped("heat", _heat, (("f32[200,300]",),)),
    Shipped("roots", _roots, (("f32[5000]",),)),
    Shipped("branches", _branches, (("s32[]", "f32[3000]"),)),
    Shipped("updated", _updated, (("f32[2000,60]", "f32[900,60]", "s32[900]"),), 1e-3),
    Shipped("sampled", _sampled, (("u32[2]", "f32[999]"),)),
    Shipped("types", _types, (("s8[65]", "bf16[33]", "u16[7]", "s8[64,64]"),), 1e-3),
    Shipped("sorted", lambda x: (jnp.sort(x), jnp.argsort(x)), (("f32[200000]",),), 0),
    Shipped("largest", lambda x: lax.top_k(x, 50), (("f32[4,50000]",),), 0),
    Shipped("images", _images,
            (("bf16[4,64,64,16]", "bf16[7,7,16,64]", "bf16[3,3,64,64]", "bf16[1,1,64,128]"),), 0.02,
            # On CPUs XLA makes NaN of these convolutions in bf16.
            reference=lambda *arrays: _images(*(each.astype(jnp.float32) for each in arrays))),
    Shipped("solved", _solved, (("f32[40,40]", "f32[40,3]"),), 5e-3),
    Shipped("decomposed", _decomposed, (("f32[32,32]", "f32[40,24]"),), 1e-4),
    Shipped("spectrum", lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2, jnp.fft.ifft(x + 0j).real), (("f32[50,400]",),)),
    Shipped("prefix_sum", _EXAMPLES / "prefix_sum.te", reference=lambda x: jnp.cumsum(x, 1, dtype=jnp.int32)),
    Shipped("layer_norm", _EXAMPLES / "layer_norm.te", tolerance=0.02, reference=lambda x, scale, bias: (
        jax.nn.standardize(x.astype(jnp.float32), 1, epsilon=1e-5) * scale + bias).astype(jnp.bfloat16)),
    Shipped("tensor_core_product", _EXAMPLES / "tensor_core_product.te", tolerance=0.02, reference=lambda a, b, bias: (
        jnp.maximum(jnp.dot(a, b, preferred_element_type=jnp.float32) + bias, 0).astype(jnp.bfloat16))),
)  # fmt: skip

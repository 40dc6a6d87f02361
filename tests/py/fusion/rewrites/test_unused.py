"""Unused values are not computed, and nothing is stored for them."""

import jax
import jax.numpy as jnp
from jax import lax

import xgpu


def test_a_product_that_only_the_value_of_a_function_needs():
    def loss(x, w, v):
        return (jnp.tanh(x @ w) @ v).sum()

    text = xgpu.compile(jax.grad(loss), "f32[256,128]", "f32[128,512]", "f32[512,64]").ir("fusions")
    # Of those forward only the first is needed, not the one that reads tanh's result; two are backward.
    assert text[text.index("func.func @main") :].count("dot_general") == 3


def test_in_a_loop():
    def function(x, w):
        def step(_, state):
            total, unused = state[0] @ w, jnp.sin(state[0]) @ w
            return total, unused[:0]

        return lax.fori_loop(0, 3, step, (x, x[:0]))[0]

    text = xgpu.compile(function, "f32[128,128]", "f32[128,128]").ir("fusions")
    assert text.count("dot_general") == 1
    assert "sine" not in text

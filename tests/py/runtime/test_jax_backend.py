"""Compiled programs called from JAX: eagerly, in jit, scan and loops, and lowered for CUDA."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


@xgpu.jit
def scaled(x: jax.Array, y: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
    return x * 2 + y, {"difference": x - y, "positive": x > y}


def arrays() -> tuple[jax.Array, jax.Array]:
    x = jnp.arange(35, dtype=jnp.float32).reshape(5, 7)
    return x, jnp.flip(x, 0)


def test_called_eagerly_with_trees_out() -> None:
    x, y = arrays()
    first, rest = scaled(x, y)
    np.testing.assert_array_equal(first, x * 2 + y)
    np.testing.assert_array_equal(rest["difference"], x - y)
    np.testing.assert_array_equal(rest["positive"], x > y)


def test_inside_jit() -> None:
    x, y = arrays()
    np.testing.assert_array_equal(jax.jit(lambda a, b: scaled(a, b)[0] + 1)(x, y), x * 2 + y + 1)


def test_inside_fori_loop() -> None:
    x, y = arrays()
    expected = x
    for _ in range(4):
        expected = expected * 2 + y
    got = jax.jit(lambda a, b: jax.lax.fori_loop(0, 4, lambda _, c: scaled(c, b)[0], a))(x, y)
    np.testing.assert_array_equal(got, expected)


def test_inside_scan() -> None:
    x, y = arrays()
    final, steps = jax.lax.scan(lambda c, row: (scaled(c, row)[0],) * 2, x[0], y)
    expected = x[0]
    for index, row in enumerate(y):
        expected = expected * 2 + row
        np.testing.assert_array_equal(steps[index], expected)
    np.testing.assert_array_equal(final, expected)


@pytest.mark.parametrize("transformation", [jax.grad, jax.vmap])
def test_what_cannot_be_transformed_says_what_can(transformation: Any) -> None:
    compiled = xgpu.compile(lambda x: x.sum(), "f32[8]")
    message = f"jax.{transformation.__name__} cannot transform a compiled program, .*: use a function of xgpu.jit"
    with pytest.raises(xgpu.InvalidInput, match=message):
        transformation(compiled)(jnp.zeros((3, 8) if transformation is jax.vmap else 8))


def test_python_scalars_and_keywords() -> None:
    @xgpu.jit
    def function(x: jax.Array, scale: float, *, shift: float = 1.0) -> jax.Array:
        return x * scale + shift

    x = jnp.arange(5, dtype=jnp.float32)
    np.testing.assert_array_equal(function(x, 3.0, shift=2.0), x * 3 + 2)
    np.testing.assert_array_equal(function(x, 3.0), x * 3 + 1)
    assert function(x.astype(jnp.bfloat16), 3.0).dtype == jnp.bfloat16


def test_static_arguments() -> None:
    @xgpu.jit(static_argnums=(1,), static_argnames=("flip",))
    def function(x: jax.Array, axis: int, flip: bool = False) -> jax.Array:
        return jnp.flip(x, axis) if flip else jnp.roll(x, 1, axis)

    function = xgpu.jit(function.__wrapped__, static_argnums=(1,), static_argnames=("flip",))
    x, _ = arrays()
    np.testing.assert_array_equal(function(x, 0), jnp.roll(x, 1, 0))
    np.testing.assert_array_equal(function(x, 1), jnp.roll(x, 1, 1))
    np.testing.assert_array_equal(function(x, 1, flip=True), jnp.flip(x, 1))


def test_compiled_once_per_shape_and_type() -> None:
    traced = []

    @xgpu.jit
    def function(x: jax.Array) -> jax.Array:
        traced.append(x.shape)
        return x + 1

    for shape in ((3,), (4,), (3,)):
        function(jnp.ones(shape))
    assert traced == [(3,), (4,)]


def test_results_without_elements() -> None:
    empty, full = xgpu.jit(lambda x: (x[:0], x + 1))(jnp.ones((3, 2)))
    assert empty.shape == (0, 2)
    np.testing.assert_array_equal(full, np.full((3, 2), 2.0))


def test_lowered_for_cuda_each_kernel_is_one_call_of_its_ptx() -> None:
    x, y = arrays()
    text = jax.jit(scaled).trace(x, y).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("stablehlo.custom_call @__gpu$xla.gpu.ptx") == 1
    assert ".entry scaled_fusion_0" in text
    assert "callback" not in text


@pytest.mark.parametrize("value", [jnp.bfloat16(1.5), jnp.int8(3), jnp.bool_(True)])
def test_scalars_of_any_type(value: jax.Array) -> None:
    got = xgpu.jit(lambda x: (x, x == x))(value)
    assert got[0].dtype == value.dtype
    np.testing.assert_array_equal(got[0], value)
    assert bool(got[1])

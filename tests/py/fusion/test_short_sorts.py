"""Sorts of a few elements each are computed by kernels, with XLA's order of values that are no numbers or alike."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu

VALUES = np.array([0.0, -0.0, 1, -1, 2, np.nan, -np.nan, np.inf, -np.inf, 3, 3], np.float32)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: jnp.sort(x, 1),
    "argsort": lambda x: jnp.argsort(x, 1),
    "descending": lambda x: jnp.argsort(x, 1, descending=True),
    "first dimension": lambda x: jnp.sort(x.T, 0),
    "median": lambda x: jnp.median(x.astype(jnp.float32), 1),
    "several keys": lambda x: lax.sort((x, (x * 0 == 0).astype(jnp.int32), x), dimension=1, num_keys=2),
    "largest": lambda x: lax.top_k(x, 1 + x.shape[1] // 3),
}


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int8, np.uint32], ids=["f32", "bf16", "s8", "u32"])
@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_rows(name: str, size: int, dtype: Any) -> None:
    generator = np.random.default_rng(size)
    is_float = jnp.issubdtype(dtype, jnp.floating)
    x = generator.choice(VALUES if is_float else np.arange(9), (50, size)).astype(dtype)
    compiled = xgpu.compile(FUNCTIONS[name], x)
    assert "stablehlo.sort" not in compiled.ir("prepared") and "top_k" not in compiled.ir("prepared")
    expected = jax.tree.leaves(jax.jit(FUNCTIONS[name])(x))
    for result, reference in zip(compiled.run(x), expected, strict=True):
        # NumPy knows no NaN of narrow floats.
        exact = np.float32 if jnp.issubdtype(result.dtype, jnp.floating) else result.dtype
        np.testing.assert_array_equal(result.astype(exact), np.asarray(reference).astype(exact))
        assert not is_float or np.array_equal(np.signbit(result)[result == 0], np.signbit(reference)[reference == 0])


def test_routing_is_one_kernel() -> None:
    def route(x: Any) -> Any:
        values, experts = lax.top_k(jnp.tanh(x), 2)
        return jax.nn.softmax(values), experts

    assert len(xgpu.compile(route, "f32[8192,8]").kernels) == 1


def test_long_exchanges_stay_sorts() -> None:
    """Rows of 16 with positions would be some 2,000 operations."""
    text = xgpu.compile(lambda x: (jnp.argsort(x, 1), lax.top_k(x, 2)), "f32[64,16]").ir("prepared")
    assert text.count("stablehlo.sort") == 1 and "top_k" not in text

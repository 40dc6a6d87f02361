"""Exponentials for which a program gives a tolerance (`jax.lax.exp` with an accuracy)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu


def program(dtype: str, accuracy: object) -> xgpu.Compiled:
    """Return the compiled exponential of an array, for a GPU."""
    return xgpu.compile(lambda x: lax.exp(x, accuracy=accuracy), jax.ShapeDtypeStruct((256,), dtype), target="sm_90a")


@pytest.mark.parametrize(
    ("dtype", "accuracy", "is_weight"),
    [
        ("float32", None, False),
        ("float32", lax.Tolerance(rtol=1e-6), False),
        ("float32", lax.Tolerance(atol=1e-3), False),
        ("float32", lax.AccuracyMode.HIGHEST, False),
        ("float32", lax.AccuracyMode.DEFAULT, False),
        ("float32", lax.Tolerance(rtol=1e-5), True),
        ("float32", lax.Tolerance(rtol=2.0**-8), True),
    ],
)
def test_a_tolerance_saves_instructions(dtype: str, accuracy: object, is_weight: bool) -> None:
    """Two instructions, a product and a power of two, where the error that this has is allowed."""
    compiled = program(dtype, accuracy)
    assert ("xgpu.weight" in compiled.ir("emitted")) == is_weight
    assert ("fma.rn.sat" in compiled.ir("ptx")) != is_weight


def test_numbers() -> None:
    """The host computes it as exactly as any other."""
    x = np.linspace(-87, 88, 1001, dtype=np.float32)
    found = xgpu.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(rtol=1e-5)))(x)
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=1e-6)
    assert jnp.isnan(xgpu.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(rtol=1e-5)))(jnp.float32("nan")))

"""Powers with constant exponents: as exact as any power, and with its values for special numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

EXPONENTS = [-1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, 1e-45]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_values(exponent, dtype):
    generator = np.random.default_rng(1)
    numbers = np.concatenate([SPECIAL, generator.standard_normal(500) * 4.0 ** generator.integers(-8, 8, 500)])
    with np.errstate(over="ignore"):
        x = jnp.asarray(numbers, dtype)
    program = xgpu.compile(lambda x: x**exponent, x)
    (result,) = program.run(x)
    with np.errstate(all="ignore"):
        exact = np.power(np.asarray(x, np.float64), np.full(x.shape, exponent))
        rounded = np.asarray(jnp.asarray(exact.astype(np.float32), dtype), np.float64)
    found, finite = np.asarray(result, np.float64), np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    np.testing.assert_array_equal(np.signbit(found[rounded == 0]), np.signbit(rounded[rounded == 0]))
    digits = jnp.finfo(dtype)
    np.testing.assert_allclose(
        found[finite], exact[finite], rtol=2 * float(digits.eps), atol=float(digits.smallest_subnormal)
    )


def test_no_function_of_powers_is_left_of_them_and_their_gradients():
    def all_of(x):
        return sum(jnp.sum(x**exponent) for exponent in (2.0, 3.0, 4.0, 0.5))

    program = xgpu.compile(jax.value_and_grad(all_of), "f32[64,64]")
    assert "stablehlo.power" in program.ir("stablehlo")
    assert "stablehlo.power" not in program.ir("prepared")


def test_a_square_is_a_product():
    power, product = (xgpu.compile(f, "f32[1024]").kernels[0].ptx for f in (lambda x: x**2.0, lambda x: x * x))
    assert len(power.splitlines()) == len(product.splitlines())

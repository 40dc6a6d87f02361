"""Functions that JAX makes polynomials of stay one operation, and XLA still gets them as JAX makes them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.dtypes import dtype_named
from xgpu.frontend import from_jax
from xgpu.frontend.xla_form import xla_form
from xgpu.runtime.reference import Reference

FUNCTIONS = {
    "chlo.lgamma": lax.lgamma,
    "chlo.digamma": lax.digamma,
    "chlo.bessel_i1e": lax.bessel_i1e,
    "xgpu.bessel_i0e": lax.bessel_i0e,
}


def op_names(function: Callable[..., Any], *specs: Any) -> list[str]:
    module = from_jax(function, specs).module
    (main,) = module.body.operations
    return [op.operation.name for op in main.regions[0].blocks[0].operations]


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_operation(name: str, dtype: str) -> None:
    assert op_names(FUNCTIONS[name], f"{dtype}[4]") == [name, "func.return"]


@pytest.mark.parametrize("name", ["chlo.lgamma", "xgpu.bessel_i0e"])
def test_narrow_floats_are_converted(name: str) -> None:
    spec = jax.ShapeDtypeStruct((4,), jnp.float8_e5m2)  # type: ignore[no-untyped-call]
    expected = ["stablehlo.convert", name, "stablehlo.convert", "func.return"]
    assert op_names(FUNCTIONS[name], spec) == expected


def test_in_transformations_and_control_flow() -> None:
    def step(x: Any) -> Any:
        return lax.cond(x[0] > 0, lax.bessel_i0e, lax.lgamma, x)

    source = from_jax(step, ["f32[4]"])
    assert "xgpu.bessel_i0e" in str(source.module) and "chlo.lgamma" in str(source.module)
    gradient = op_names(jax.vmap(jax.grad(lax.bessel_i0e)), "f32[4]")
    assert {"xgpu.bessel_i0e", "chlo.bessel_i1e"} <= set(gradient)


def test_other_lowerings_in_the_process_are_left_alone() -> None:
    from_jax(lax.bessel_i0e, ["f32[4]"])
    spec = jax.ShapeDtypeStruct((4,), jnp.float32)  # type: ignore[no-untyped-call]
    assert "xgpu" not in jax.jit(lax.bessel_i0e).lower(spec).as_text()


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64"])
def test_xla_takes_them_as_jax_makes_them(dtype: str) -> None:
    def function(x: Any, y: Any) -> Any:
        return lax.bessel_i0e(x) + lax.bessel_i0e(lax.bessel_i0e(x)) + y, lax.bessel_i0e(y[None])

    module = from_jax(function, [f"{dtype}[4]", f"{dtype}[4]"]).module
    form = xla_form(module)
    assert "xgpu.bessel_i0e" in str(module) and "xgpu.bessel_i0e" not in str(form)
    x, y = np.arange(8.0).reshape(2, 4).astype(dtype_named(dtype).numpy)
    with jax.enable_x64(True):
        expected = [np.asarray(value) for value in jax.jit(function)(x, y)]
    for got, value in zip(Reference(module)([x, y]), expected, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), value.astype(np.float64), rtol=2.0**-7)


def test_in_programs_of_which_parts_are_left_to_xla() -> None:
    """Beside a sort and in a loop's condition."""

    def function(x: Any) -> Any:
        keys = lax.bessel_i0e(x)
        ordered = lax.sort_key_val(keys, x * 2)[1]
        steps = lax.while_loop(lambda n: lax.bessel_i0e(n) > 0.25, lambda n: n + 1, jnp.float32(0))
        return ordered + lax.bessel_i0e(x), steps

    x = np.linspace(-2, 3, 16, dtype=np.float32)
    for got, expected in zip(jax.jit(xgpu.jit(function))(x), jax.jit(function)(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_what_has_none_of_them_stays_itself() -> None:
    module = from_jax(lax.lgamma, ["f32[4]"]).module
    assert xla_form(module) is module

"""Complex numbers beyond tools/programs/scalars/complex_numbers.py: accuracy of each part, refusals, restarts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.levels.pipeline import GRAPH, MLIR_LEVELS

LEVELS = [level for level in MLIR_LEVELS if GRAPH.leads("stablehlo", level)]
"""The levels that programs of JAX have."""

Array = np.ndarray[Any, Any]


def numbers(real: Array, imaginary: Array) -> Array:
    values = np.empty(real.size, np.complex64)
    values.real, values.imag = real, imaginary
    return values


def moderate(low: float, high: float) -> Array:
    """Parts of either sign whose magnitudes are spread over powers of ten."""
    generator = np.random.default_rng(0)
    magnitudes = 10 ** generator.uniform(low, high, (2, 4096))
    real, imaginary = magnitudes * generator.choice([-1, 1], magnitudes.shape)
    return numbers(real, imaginary)


def exact_tanh(z: Array) -> Array:
    sinh, cosh, cos, sin = np.sinh(z.real), np.cosh(z.real), np.cos(z.imag), np.sin(z.imag)
    scale = sinh**2 + cos**2
    return np.asarray(sinh * cosh / scale + 1j * (sin * cos / scale))


@pytest.mark.parametrize(
    ("function", "exact", "inputs", "ulps"),
    [
        (lax.abs, np.abs, moderate(-15, 15), 2),
        (lax.sign, lambda z: z / np.abs(z), moderate(-15, 15), 4),
        (lax.rsqrt, lambda z: 1 / np.sqrt(z), moderate(-15, 15), 8),
        (lax.sin, np.sin, moderate(-4, 1.3), 6),
        (lax.cos, np.cos, moderate(-4, 1.3), 6),
        (lax.tanh, exact_tanh, moderate(-4, 1.3), 8),
        (lax.tan, lambda z: -1j * exact_tanh(1j * z), moderate(-4, 1.3), 8),
    ],
    ids=["abs", "sign", "rsqrt", "sin", "cos", "tanh", "tan"],
)
def test_each_part_is_accurate(
    function: Callable[[Any], Any], exact: Callable[[Array], Array], inputs: Array, ulps: int
) -> None:
    """A small part is not lost beside a large one, nor in a difference."""
    (got,) = xgpu.compile(function, f"c64[{inputs.size}]").run(inputs, on="host")
    expected = np.ascontiguousarray(exact(inputs.astype(np.complex128))).view(np.float64)
    error = np.abs(got.view(np.float32) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() <= ulps


def of_type(operation: str, operands: int) -> str:
    type_ = "tensor<4xcomplex<f32>>"
    taken, types = ", ".join(["%a"] * operands), ", ".join([type_] * operands)
    return (
        f"func.func @main(%a: {type_}) -> {type_} {{\n"
        f'  %0 = "stablehlo.{operation}"({taken}) : ({types}) -> {type_}\n  return %0 : {type_}\n}}'
    )


@pytest.mark.parametrize(("operation", "operands"), [("atan2", 2), ("cbrt", 1), ("clamp", 3), ("maximum", 2)])
def test_other_operations_are_refused(operation: str, operands: int) -> None:
    message = rf"2:\d+: stablehlo.{operation} of type tensor<4xcomplex<f32>>: .* no scalar code .* on complex numbers"
    with pytest.raises(xgpu.Unsupported, match=message):
        xgpu.compile(of_type(operation, operands)).ir("emitted")


def test_an_order_is_refused() -> None:
    text = """func.func @main(%a: tensor<4xcomplex<f32>>) -> tensor<4xi1> {
      %0 = stablehlo.compare LT, %a, %a : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
      return %0 : tensor<4xi1>
    }"""
    with pytest.raises(xgpu.Unsupported, match=r"complex numbers have no order: .* got LT"):
        xgpu.compile(text).ir("emitted")


def test_a_real_number_is_the_real_part() -> None:
    text = """func.func @main(%a: tensor<3xcomplex<f64>>) -> (tensor<3xi8>, tensor<3xf32>) {
      %0 = stablehlo.convert %a : (tensor<3xcomplex<f64>>) -> tensor<3xi8>
      %1 = stablehlo.convert %a : (tensor<3xcomplex<f64>>) -> tensor<3xf32>
      return %0, %1 : tensor<3xi8>, tensor<3xf32>
    }"""
    integers, floats = xgpu.compile(text).run(np.array([1.5 + 7j, -3.25, 1e3j]), on="host")
    np.testing.assert_array_equal(integers, [1, -3, 0])
    np.testing.assert_array_equal(floats, [1.5, -3.25, 0])


def program(dtype: str) -> xgpu.Compiled:
    def function(x: Any, y: Any) -> Any:
        return lax.pad(x * y, x[0, 0], ((1, 0, 0), (0, 2, 0))), lax.real(y)

    return xgpu.compile(function, f"{dtype}[5,7]", f"{dtype}[5,7]")


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_compilation_goes_on_from_every_level(dtype: str) -> None:
    direct = program(dtype)
    for level in LEVELS:
        for again, kernel in zip(xgpu.compile(direct.ir(level)).kernels, direct.kernels, strict=True):
            # The text of level stablehlo does not say the user's function, which the kernel is named after.
            assert again.ptx.replace(again.name, kernel.name) == kernel.ptx


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_parameters_are_complex_until_tensors_are_gone(dtype: str) -> None:
    direct = program(dtype)
    inputs = direct.random_inputs(0)
    results = direct.run(*inputs, on="host")
    restarted = xgpu.compile(direct.ir("optimized"))
    flat = [each.reshape(-1) for each in inputs]
    for got, expected in zip(restarted.run(*flat, on="host"), results, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected.reshape(-1))


def test_an_element_that_is_no_type_is_refused() -> None:
    text = program("c64").ir("optimized").replace("xgpu.element = complex<f32>", "xgpu.element = 3 : i64", 1)
    with pytest.raises(xgpu.InvalidInput, match=r"attribute 'xgpu\.element': expected a type"):
        xgpu.compile(text)

"""Complex constants become real ones, and functions of complex numbers functions of real ones."""

from typing import Any

import numpy as np
import pytest

from xgpu import ir
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.signature import normalize


def normalized(body: str, type_: str) -> ir.Module:
    module = parse_module(f"func.func @main(%a: {type_}) -> {type_} {{\n{body}\n}}", "t.mlir")
    normalize(module)
    return module


def operations(module: ir.Module) -> list[ir.Operation]:
    (main,) = module.body.operations
    return [op.operation for op in main.operation.regions[0].blocks[0].operations]


def constants(value: str, type_: str) -> list[np.ndarray]:
    module = normalized(f"%0 = stablehlo.constant {value} : {type_}\nreturn %0 : {type_}", type_)
    *parts, joined, returned = operations(module)
    assert joined.name == "stablehlo.complex"
    assert list(returned.operands) == list(joined.results)
    by_result = {part.results[0]: np.array(part.attributes["value"]) for part in parts}
    return [by_result[operand] for operand in joined.operands]


@pytest.mark.parametrize(
    ("value", "type_", "real", "imaginary"),
    [
        ("dense<(1.5, -2.0)>", "tensor<complex<f32>>", 1.5, -2.0),
        ("dense<(1.5, -2.0)>", "tensor<2x1xcomplex<f64>>", [[1.5], [1.5]], [[-2.0], [-2.0]]),
        ("dense<[[(1.0, 2.0)], [(0.1, 0x7F800000)]]>", "tensor<2x1xcomplex<f32>>", [[1], [0.1]], [[2], [np.inf]]),
        ("dense<[(0x7FF8000000000000, 1.0E-300), (0.1, -0.0)]>", "tensor<2xcomplex<f64>>", [np.nan, 0.1], [1e-300, 0]),
        ("dense<>", "tensor<0x3xcomplex<f32>>", np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_a_constant_is_made_of_its_parts(value: str, type_: str, real: object, imaginary: object) -> None:
    got = constants(value, type_)
    dtype = np.float64 if "f64" in type_ else np.float32
    for part, expected in zip(got, (real, imaginary), strict=True):
        np.testing.assert_array_equal(part, np.array(expected, dtype))
        assert part.dtype == dtype


def test_the_sign_of_a_zero_stays() -> None:
    real, imaginary = constants("dense<[(-0.0, 0.0), (0.0, -0.0)]>", "tensor<2xcomplex<f32>>")
    assert list(np.signbit(real)) == [True, False]
    assert list(np.signbit(imaginary)) == [False, True]


@pytest.mark.parametrize("number", [np.complex64, np.complex128])
def test_many_elements_come_as_bytes(number: type[np.complexfloating[Any]]) -> None:
    values: np.ndarray[Any, Any] = (np.arange(300) * 0.1 + 1j / (1 + np.arange(300))).astype(number)
    element = "f32" if number is np.complex64 else "f64"
    real, imaginary = constants(f'dense<"0x{values.tobytes().hex()}">', f"tensor<30x10xcomplex<{element}>>")
    np.testing.assert_array_equal(real.reshape(-1), values.real)
    np.testing.assert_array_equal(imaginary.reshape(-1), values.imag)


def test_other_attributes_of_a_constant_do_not_matter() -> None:
    real, imaginary = constants('{name = "dense<(7.0, 8.0)> : x"} dense<(1.0, 2.0)>', "tensor<complex<f32>>")
    np.testing.assert_array_equal([real, imaginary], [1.0, 2.0])


@pytest.mark.parametrize("function", ["exponential", "log", "log_plus_one", "sqrt"])
def test_functions_become_functions_of_real_numbers(function: str) -> None:
    type_ = "tensor<4xcomplex<f32>>"
    module = normalized(f"%0 = stablehlo.{function} %a : {type_}\nreturn %0 : {type_}", type_)
    names = [op.name for op in operations(module)]
    assert names[-2:] == ["stablehlo.complex", "func.return"]
    assert {"stablehlo.real", "stablehlo.imag"} <= set(names)


def test_a_reduction_by_a_function_of_complex_numbers() -> None:
    body = """
      %0 = stablehlo.constant dense<(0.0, 1.0)> : tensor<complex<f32>>
      %1 = stablehlo.reduce(%a init: %0) across dimensions = [0]
        : (tensor<1xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
        reducer(%x: tensor<complex<f32>>, %y: tensor<complex<f32>>) {
          %2 = stablehlo.constant dense<(2.0, 3.0)> : tensor<complex<f32>>
          %3 = stablehlo.multiply %x, %2 : tensor<complex<f32>>
          %4 = stablehlo.add %3, %y : tensor<complex<f32>>
          stablehlo.return %4 : tensor<complex<f32>>
        }
      %5 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<complex<f32>>) -> tensor<1xcomplex<f32>>
      return %5 : tensor<1xcomplex<f32>>"""
    module = normalized(body, "tensor<1xcomplex<f32>>")
    (reduce,) = [op for op in operations(module) if op.name == "stablehlo.reduce"]
    inner = [op.operation for op in reduce.regions[0].blocks[0].operations]
    assert all(not isinstance(op.results[0].type.element_type, ir.ComplexType) for op in inner if "constant" in op.name)

"""What xgpu says about programs that it cannot compile: the operation, its type and the user's line."""

from pathlib import Path

import pytest

import xgpu
from xgpu.cli.main import main

PROGRAM = """\
import jax
import jax.numpy as jnp
from jax import lax


def helper(x):
    return {helper}


def program(*arguments):
    x = arguments[0]
    y = arguments[-1]
    z = x
    return {expression}


program.example_args = {arguments}
"""
CALL_LINE = 14
HELPER_LINE = 7


def message(tmp_path: Path, expression: str, arguments: tuple[str, ...], helper: str = "x") -> str:
    """Return the error for a function that returns ``expression`` of its first argument, x, and its last, y."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(expression=expression, arguments=arguments, helper=helper))
    with pytest.raises(xgpu.Unsupported) as caught:
        xgpu.compile(f"{file}:program")
    return str(caught.value).replace(str(file), "program.py")


OPERATIONS = [
    ("jnp.sort(x)", ("bf16[8]",), "stablehlo.sort of type tensor<8xbf16>"),
    ("lax.top_k(x, 2)", ("f32[8]",), "stablehlo.sort of type tensor<8xf32>, tensor<8xi32>"),
    ("jnp.fft.fft(x)", ("f32[8]",), "stablehlo.fft of type tensor<8xcomplex<f32>>"),
    ("lax.fori_loop(0, 3, lambda i, c: c * 2, x)", ("f32[8]",), "stablehlo.while of type tensor<i32>, tensor<i32>, t"),
    ("lax.cond(x, jnp.sin, jnp.cos, y)", ("pred[]", "f32[8]"), "stablehlo.case of type tensor<8xf32>"),
    ("lax.linalg.triangular_solve(x, y)", ("f32[4,4]",), "stablehlo.triangular_solve of type tensor<4x4xf32>"),
]


@pytest.mark.parametrize(("expression", "arguments", "expected"), OPERATIONS)
def test_operation_type_and_line_are_named(
    tmp_path: Path, expression: str, arguments: tuple[str, ...], expected: str
) -> None:
    text = message(tmp_path, expression, arguments)
    assert text.startswith(f"program.py:{CALL_LINE}:")
    assert f": {expected}" in text


def test_the_line_is_that_of_the_innermost_function(tmp_path: Path) -> None:
    text = message(tmp_path, "helper(x)", ("f32[8]",), helper="jax.jit(jnp.sort)(x)")
    assert text.startswith(f"program.py:{HELPER_LINE}:")


def test_the_command_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(expression="jnp.sort(x)", arguments=("f32[8]",), helper="x"))
    assert main(["compile", f"{file}:program"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    first, line, caret = captured.err.splitlines()
    assert first == f"{file}:{CALL_LINE}:12: error: stablehlo.sort of type tensor<8xf32>: operation not supported"
    assert (line, caret) == ("    return jnp.sort(x)", "           ^")


HLO = """\
HloModule module
ENTRY main {
  x = f32[8] parameter(0)
  ROOT spectrum = c64[5] fft(x), fft_type=RFFT, fft_length={8}
}
"""
STABLEHLO = """\
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x : tensor<8xf32>
  %1 = "stablehlo.sort"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


ELEMENT_TYPE = """\
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.convert %x : (tensor<8xf32>) -> tensor<8xf6E2M3FN>
  %1 = stablehlo.convert %0 : (tensor<8xf6E2M3FN>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.hlo", HLO, "stablehlo.fft ('spectrum') of type tensor<5xcomplex<f32>>: operation not supported"),
        (
            "a.mlir",
            ELEMENT_TYPE,
            "{file}:2:8: stablehlo.convert of type tensor<8xf6E2M3FN>: element type 'f6E2M3FN' is not supported",
        ),
        ("a.mlir", STABLEHLO, "{file}:3:8: stablehlo.sort of type tensor<8xf32>: operation not supported"),
    ],
)
def test_text_is_referred_to_by_its_lines_or_names(tmp_path: Path, name: str, text: str, expected: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(xgpu.Unsupported) as caught:
        xgpu.compile(file)
    assert str(caught.value) == expected.format(file=file)

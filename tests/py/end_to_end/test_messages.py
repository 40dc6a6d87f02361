"""Messages about programs that xgpu cannot compile: the operation, its type and the user's line."""

from pathlib import Path

import jax
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.cli.main import main
from xgpu.interface.explanation import explain

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
COMPLEX = "there is no scalar code for it on complex numbers; the program has no kernels, as all of it is left to XLA"


def message(tmp_path: Path, expression: str, arguments: tuple[str, ...], helper: str = "x") -> str:
    """Return the error for a function that returns ``expression`` of its first argument, x, and its last, y."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(expression=expression, arguments=arguments, helper=helper))
    with pytest.raises(xgpu.Unsupported) as caught:
        xgpu.compile(f"{file}:program").ir("ptx")
    return str(caught.value).replace(str(file), "program.py")


OPERATIONS = [
    ("lax.atan2(x, y)", ("c64[8]",), "stablehlo.atan2 of type tensor<8xcomplex<f32>>"),
    ("lax.clamp(x, y, x)", ("c128[8]",), "stablehlo.clamp of type tensor<8xcomplex<f64>>"),
    (
        "lax.reduce(x, 1j, lax.atan2, (0,))",
        ("c64[8]",),
        "stablehlo.reduce of type tensor<complex<f32>>: in its",
    ),
    ("x.astype(jnp.float6_e2m3fn)", ("f32[8]",), "stablehlo.convert of type tensor<8xf6E2M3FN>"),
]
"""Operations that no kernel can compute, and that cannot fall back to XLA."""


@pytest.mark.parametrize(("expression", "arguments", "expected"), OPERATIONS)
def test_operation_type_and_line_are_named(
    tmp_path: Path, expression: str, arguments: tuple[str, ...], expected: str
) -> None:
    text = message(tmp_path, expression, arguments)
    assert text.startswith(f"program.py:{CALL_LINE}:")
    assert f": {expected}" in text


def test_the_line_is_that_of_the_innermost_function(tmp_path: Path) -> None:
    text = message(tmp_path, "helper(x)", ("c64[8]",), helper="jax.jit(lax.atan2)(x, x)")
    assert text.startswith(f"program.py:{HELPER_LINE}:")


def test_the_command_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(expression="lax.atan2(x, y)", arguments=("c64[8]",), helper="x"))
    assert main(["compile", f"{file}:program"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    first, line, caret = captured.err.splitlines()
    assert first == f"{file}:{CALL_LINE}:12: error: stablehlo.atan2 of type tensor<8xcomplex<f32>>: {COMPLEX}"
    assert (line, caret) == ("    return lax.atan2(x, y)", "           ^")


HLO = """\
HloModule module
ENTRY main {
  x = c64[8] parameter(0)
  ROOT angle = c64[8] atan2(x, x)
}
"""
STABLEHLO = """\
func.func @main(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %1 = stablehlo.atan2 %x, %x : tensor<8xcomplex<f32>>
  return %1 : tensor<8xcomplex<f32>>
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
        ("a.hlo", HLO, f"{{file}}:4:3: stablehlo.atan2 of type tensor<8xcomplex<f32>>: {COMPLEX}"),
        (
            "a.mlir",
            ELEMENT_TYPE,
            "{file}:2:8: stablehlo.convert of type tensor<8xf6E2M3FN>: element type 'f6E2M3FN' is not supported",
        ),
        ("a.mlir", STABLEHLO, f"{{file}}:2:8: stablehlo.atan2 of type tensor<8xcomplex<f32>>: {COMPLEX}"),
    ],
)
def test_text_is_referred_to_by_its_lines(tmp_path: Path, name: str, text: str, expected: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(xgpu.Unsupported) as caught:
        xgpu.compile(file).ir("emitted")
    assert str(caught.value) == expected.format(file=file)


def test_a_program_of_which_all_is_left_to_xla_says_why(tmp_path: Path) -> None:
    text = message(tmp_path, "lax.fori_loop(0, 3, lambda i, x: lax.sort(x), x)", ("f32[80]",))
    assert text.startswith(f"program.py:{CALL_LINE}:")
    assert text.endswith(
        "stablehlo.sort of type tensor<80xf32>: operation not supported: no element of its result can be computed alone"
        "; the program has no kernels, as all of it is left to XLA"
    )


def test_a_program_of_which_all_is_left_to_xla_runs_and_is_explained() -> None:
    program = xgpu.compile(lambda x: lax.sort(x), "f32[80]")
    assert program.kernels == ()
    inputs = program.random_inputs(1)
    np.testing.assert_array_equal(program.run(*inputs)[0], np.sort(inputs[0]))
    assert [each.operation for each in explain(program).fallbacks] == ["stablehlo.sort"]


def test_a_schedule_that_fits_no_kernel_is_said_to_be_why_xla_has_the_function() -> None:
    def halve(x: jax.Array) -> jax.Array:
        return x / 2

    options = xgpu.Options(schedules={"halve_fusion_0": {"vector": 3}})
    with pytest.warns(UserWarning, match="xgpu leaves halve to XLA: fusion @halve_fusion_0 .*: vector = 3: expected a"):
        assert xgpu.jit(halve, options=options)(np.float32(3)) == 1.5


def test_what_a_message_of_jax_announces_is_in_the_error() -> None:
    with pytest.raises(xgpu.InvalidInput, match=r"but they differ: The input carry x has type float32\[8\] but"):
        xgpu.compile(lambda x: lax.while_loop(lambda x: x.sum() < 3, lambda x: x[1:], x), "f32[8]")


def test_more_arrays_than_a_launch_takes() -> None:
    with pytest.raises(xgpu.Unsupported, match="reads and writes 4097 arrays, of which a launch takes 4095 at most"):
        xgpu.compile(lambda *arrays: lax.concatenate(arrays, 0), *["f32[4]"] * 4096)


def test_more_dimensions_than_numpy_has() -> None:
    type_ = f"tensor<{'1x' * 64}4xf32>"
    compiled = xgpu.compile(f"func.func @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}")
    with pytest.raises(xgpu.Unsupported, match="at most 64 dimensions can be run, as NumPy has them: arg0 has 65"):
        compiled.random_inputs()


def test_more_blocks_than_a_launch_has() -> None:
    with pytest.raises(
        xgpu.Unsupported, match="a launch has at most 2147483647 blocks, and this one would need 549755813888"
    ):
        xgpu.compile(lambda x: -x, "f32[65536,65536,65536]")

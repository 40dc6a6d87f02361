"""Compilation goes on from the text of any level, and gives what the direct way gives."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.pipeline import MLIR_LEVELS


def program() -> xgpu.Compiled:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.pad(x, ((1, 0), (0, 2))) * 2, y > 0

    return xgpu.compile(function, "f32[30,33]", "s8[7]")


@pytest.mark.parametrize("level", MLIR_LEVELS)
def test_ptx_is_the_same_from_every_level(level: str) -> None:
    """But for the names, which the text of level ``stablehlo`` does not say: they are those of the user's functions."""
    direct = program()
    restarted = xgpu.compile(direct.ir(level))
    names = [kernel.name for kernel in restarted.kernels]
    assert names == (["fusion_0", "fusion_1"] if level == "stablehlo" else ["function_fusion_0", "function_fusion_1"])
    for again, kernel in zip(restarted.kernels, direct.kernels, strict=True):
        assert again.ptx.replace(again.name, kernel.name) == kernel.ptx
    assert [kernel.grid for kernel in restarted.kernels] == [kernel.grid for kernel in direct.kernels]
    assert [kernel.emitter for kernel in restarted.kernels] == ["loop", "loop"]


@pytest.mark.parametrize("level", ["fusions", "emitted"])
def test_levels_with_tensors_run(level: str) -> None:
    direct = program()
    inputs = direct.random_inputs(3)
    for got, expected in zip(xgpu.compile(direct.ir(level)).run(*inputs), direct.run(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_earlier_levels_are_not_to_be_had() -> None:
    restarted = xgpu.compile(program().ir("optimized"))
    for level in ("stablehlo", "fusions", "emitted"):
        with pytest.raises(xgpu.InvalidInput, match=f"later level than '{level}'"):
            restarted.ir(level)
    with pytest.raises(xgpu.InvalidInput, match="later level than 'stablehlo'"):
        restarted.reference(*restarted.random_inputs(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('module attributes {xgpu.level = "nowhere"} {}', "'nowhere' is not a level to go on from"),
        ('module attributes {xgpu.level = "emitted"} {}', "expected one function with xgpu.kernel in a module, got 0"),
        (
            'module attributes {xgpu.level = "emitted"} { func.func @f() attributes {xgpu.kernel} { return } }',
            "the kernel's function lacks the attribute xgpu.grid",
        ),
        ('module attributes {xgpu.level = "fusions"} {}', "has a function @main that calls the fusions"),
        (
            'module attributes {xgpu.level = "emitted"} { func.func @f() { "xgpu.nothing"() : () -> ()\n return } }',
            "'xgpu.nothing' is not an operation of the xgpu dialect",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "input.mlir"
    file.write_text(text)
    with pytest.raises(xgpu.InvalidInput, match=message) as caught:
        xgpu.compile(file)
    assert str(file) in str(caught.value)


def test_lines_of_a_later_part_are_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "input.mlir"
    file.write_text(program().ir("emitted") + '\n// -----\nmodule attributes {xgpu.level = "emitted"} {\n  oops\n}\n')
    lines = file.read_text().splitlines()
    with pytest.raises(xgpu.InvalidInput) as caught:
        xgpu.compile(file)
    assert caught.value.location is not None
    assert lines[caught.value.location.line - 1].strip() == "oops"

"""Messages of the xgpu command about wrong usage (exit code 2) and wrong input (exit code 1)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROGRAMS = """\
import jax.numpy as jnp

def double(x):
    return x * 2

def mismatch(x):
    return x + jnp.zeros((3, 4))

VALUE = 3
"""

FILES = {
    "programs.py": PROGRAMS,
    "imports.py": "import no_such_module\n",
    "syntax.py": "def f(:\n",
    "program.bin": "",
    "add.hlo": "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] add(x, x) }\n",
    "truncated.hlo": "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8",
    "shapes.hlo": "HloModule m\nENTRY e { x = f32[8] parameter(0) y = f32[4] parameter(1) ROOT z = f32[8] add(x, y) }",
    "undeclared.mlir": "func.func @main() -> tensor<8xf32> {\n  return %y : tensor<8xf32>\n}\n",
    "unknown.mlir": 'func.func @main(%x: tensor<8xf32>) {\n  "foo.bar"(%x) : (tensor<8xf32>) -> ()\n  return\n}\n',
    "dynamic.mlir": "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n",
    "types.mlir": (
        "func.func @main(%x: tensor<8xf6E2M3FN>) -> tensor<8xf6E2M3FN> {\n"
        "  %0 = stablehlo.negate %x : tensor<8xf6E2M3FN>\n  return %0 : tensor<8xf6E2M3FN>\n}\n"
    ),
    "not_an_array.npy": "hello",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files above."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "the following arguments are required: COMMAND; see xgpu --help"),
        ("translate", "argument COMMAND: invalid choice: 'translate' (choose from 'compile', 'run',"),
        ("compile", "the following arguments are required: SOURCE; see xgpu compile --help"),
        ("cache everything", "unrecognized arguments: everything; see xgpu cache --help"),
        ("compile a.py:f --no-such", "unrecognized arguments: --no-such; see xgpu compile --help"),
        ("compile a.py:f --emit sas", "unknown level 'sas' (did you mean 'sass'?); the levels are stablehlo,"),
        ("compile a.py:f --emit optimised", "unknown level 'optimised' (did you mean 'optimized'?); the levels are"),
        ("compile a.py:f --target sm90a", "unknown target 'sm90a' (did you mean 'sm_90a'?); known targets are sm_80,"),
        (
            "compile a.py:f --prodcts all",
            "unrecognized arguments: --prodcts all (did you mean '--products'?); see xgpu",
        ),
        (
            "compile a.py:f --product=all",
            "unrecognized arguments: --product=all (did you mean '--products'?); see xgpu",
        ),
        ("compile a.py:f --schedule x", "unrecognized arguments: --schedule x; see xgpu compile --help"),
        ("run a.py:f --arg i8[4]", "unknown element type 'i8' (did you mean 's8'?); known are pred,"),
        ("compile a.py:f --emit ptx,", "unknown level ''; the levels are"),
        ("compile a.py:f --target sm_42", "unknown target 'sm_42'; known targets are sm_80, sm_86, sm_89, sm_90,"),
        ("run a.py:f --target sm_42", "unknown target 'sm_42'; known targets are sm_80,"),
        ("compile a.py:f --arg f33[8]", "unknown element type 'f33'; known are pred,"),
        ("compile a.py:f --arg f32[8", "'f32[8' is not an array specification; expected a form such as f32[128,1024]"),
        ("compile a.py:f --arg f32[8] --arg f32[-1]", "'-1' in 'f32[-1]' is not a dimension size; expected a number"),
        ("compile a.py:f --arg @x.npy", "--arg @x.npy: only xgpu run takes arrays of files; expected a form such as"),
        ("explain a.py:f --arg bf16@x.npy", "--arg bf16@x.npy: only xgpu run takes arrays of files; expected a form"),
        ("run a.py:f --arg f32[8", "'f32[8' is not an array specification; expected a form such as f32[128,1024]"),
        ("run a.py:f --on tpu", "argument --on: invalid choice: 'tpu' (choose from 'host', 'gpu'); see xgpu run"),
        ("run a.py:f --seed x", "argument --seed: expected a number such as 0, got 'x'; see xgpu run --help"),
        ("run a.py:f --seed=-1", "argument --seed: expected a number such as 0, got '-1'; see xgpu run --help"),
    ],
)
def test_wrong_usage(xgpu: Callable[..., Any], arguments: str, message: str) -> None:
    outcome = xgpu(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"xgpu: error: {message}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("command", ["compile", "run"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.py:f", "xgpu: error: cannot read none.py: No such file or directory\n"),
        ("none.hlo", "xgpu: error: cannot read none.hlo: No such file or directory\n"),
        ("none.mlir", "xgpu: error: cannot read none.mlir: No such file or directory\n"),
        ("program.bin", "xgpu: error: 'program.bin' is not a program: expected file.py:function, file.hlo,"),
        ("programs.py", "xgpu: error: 'programs.py' names no function; expected programs.py:function; its functions"),
        ("programs.py:triple", "xgpu: error: programs.py has no function 'triple'; expected"),
        ("programs.py:VALUE", "xgpu: error: programs.py has no function 'VALUE'; expected"),
        ("programs.py:double", "xgpu: error: double(x) does not take the arguments given: missing a required argument"),
        ("programs.py:double --arg f32[2] --arg f32[2]", "xgpu: error: double(x) does not take the arguments given:"),
        ("programs.py:mismatch --arg f32[8]", "{folder}/programs.py:7: error: tracing mismatch failed: ValueError: "),
        ("imports.py:f", "{folder}/imports.py:1: error: loading imports.py failed: ModuleNotFoundError: "),
        ("syntax.py:f", "{folder}/syntax.py:1:7: error: loading syntax.py failed: SyntaxError: "),
        ("add.hlo --arg f32[9]", "xgpu: error: argument 0 (x) is f32[8], but f32[9] was given\n"),
        ("add.hlo --arg f32[8] --arg f32[8]", "xgpu: error: m: expected 1 argument, got 2\n"),
        ("truncated.hlo", "truncated.hlo:2:49: error: "),
        ("shapes.hlo", "shapes.hlo:2:59: error: "),
        ("undeclared.mlir", "undeclared.mlir:2:10: error: use of undeclared SSA value name\n  return %y"),
        ("unknown.mlir", "unknown.mlir:2:3: error: foo.bar: not a StableHLO operation\n"),
        ("dynamic.mlir", "dynamic.mlir:1:1: error: ... the shape of tensor<?xf32> is dynamic"),
        (
            "types.mlir",
            "types.mlir:1:1: error: argument number 0 of \"main\": element type 'f6E2M3FN' is not ",
        ),
    ],
)
def test_wrong_program(xgpu: Callable[..., Any], folder: Path, command: str, arguments: str, message: str) -> None:
    outcome = xgpu(command, *arguments.split())
    assert (outcome.code, outcome.out) == (1, "")
    start, _, rest = message.format(folder=folder).partition("... ")
    assert outcome.err.startswith(start)
    assert rest in outcome.err


def test_errors_show_the_users_line(xgpu: Callable[..., Any], folder: Path) -> None:
    assert xgpu("compile", "programs.py:mismatch", "--arg", "f32[8]").err.endswith(
        "\n    return x + jnp.zeros((3, 4))\n"
    )
    assert xgpu("compile", "syntax.py:f").err.endswith("\ndef f(:\n      ^\n")


def test_warnings_are_diagnostics_and_no_errors(xgpu: Callable[..., Any], folder: Path) -> None:
    lines = ("a = f32[64] parameter(0)", "b = f32[64] constant({...})", "ROOT c = f32[64] add(a, b)")
    text = "\n  ".join(("HloModule m\nENTRY e {", *lines)) + "\n}\n"
    (folder / "left_out.hlo").write_text(text)
    outcome = xgpu("compile", "left_out.hlo", "--emit", "stablehlo")
    assert outcome.code == 0
    assert "stablehlo.add" in outcome.out
    assert outcome.err == (
        "left_out.hlo:4:15: warning: the text leaves out the values of a constant, {...}: others are compiled in their "
        "place\n  b = f32[64] constant({...})\n              ^\n"
    )


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("@none.npy", "xgpu: error: cannot read 'none.npy' as an array: No such file or directory\n"),
        ("@not_an_array.npy", "xgpu: error: cannot read 'not_an_array.npy' as an array: "),
        ("@objects.npy", "xgpu: error: cannot read 'objects.npy' as an array: Object arrays cannot be loaded"),
        ("@truncated.npy", "xgpu: error: cannot read 'truncated.npy' as an array: "),
        ("@several.npz", "xgpu: error: cannot read 'several.npz' as an array: "),
        (
            "@raw.npy",
            "xgpu: error: 'raw.npy' holds elements of unknown type, as NumPy saves bf16;",
        ),
        ("@text.npy", "xgpu: error: 'text.npy': arrays of NumPy type '<U1' are not supported\n"),
        ("@four.npy", "xgpu: error: argument 0 (x) is f32[8], but f32[4] was given\n"),
    ],
)
def test_wrong_arrays(xgpu: Callable[..., Any], folder: Path, argument: str, message: str) -> None:
    np.save(folder / "objects.npy", np.array([{}, {}], dtype=object))
    np.save(folder / "four.npy", np.zeros(4, np.float32))
    np.save(folder / "raw.npy", np.zeros(8, "V2"))
    np.save(folder / "text.npy", np.array(["a"]))
    np.savez(folder / "several.npz", a=np.zeros(1))
    (folder / "truncated.npy").write_bytes((folder / "four.npy").read_bytes()[:-4])
    outcome = xgpu("run", "add.hlo", "--arg", argument)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(message)
    assert outcome.err.count("\n") == 1


def test_an_unknown_type_of_an_array_file(xgpu: Callable[..., Any], folder: Path) -> None:
    np.save(folder / "raw.npy", np.zeros(8, "V2"))
    outcome = xgpu("run", "add.hlo", "--arg", "b16@raw.npy")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("xgpu: error: unknown element type 'b16' (did you mean 'bf16'?); known are")


def test_a_failing_pass_is_repeated_from_the_program_that_was_compiled(
    xgpu: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from xgpu.passes.unroll_loops import UnrollLoops

    def fail(self: object, module: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(UnrollLoops, "apply", fail)
    monkeypatch.setattr("xgpu.passes.framework.manager._compile", None)
    outcome = xgpu("compile", "programs.py:double", "--arg", "f32[8]", "--target", "sm_80")
    assert outcome.code == 1
    failed, repeat = outcome.err.splitlines()
    assert failed.startswith("xgpu: error: pass 'unroll-loops{target=sm_80}' failed: KeyError: 'lost' at ")
    command = "xgpu compile programs.py:double --arg 'f32[8]' --target sm_80 --emit emitted"
    assert repeat.startswith(f"to repeat: {command} | xgpu-opt --split-input-file -p 'expand-complex,")
    assert repeat.endswith("unroll-loops{target=sm_80}'")


def test_a_program_without_kernels_is_said_to_have_none(xgpu: Callable[..., Any], folder: Path) -> None:
    (folder / "same.py").write_text("def same(x):\n    return x\n")
    outcome = xgpu("compile", "same.py:same", "--arg", "f32[8]")
    assert (outcome.code, outcome.out) == (0, "\n")
    assert outcome.err == "xgpu: note: the program has no kernels: it returns what it is given\n"


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_is_no_error(xgpu: Callable[..., Any], option: str) -> None:
    outcome = xgpu(option)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("xgpu 0." if option == "--version" else "usage: xgpu ")


def test_attributes_that_xla_cannot_read(xgpu: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "decomposed.mlir"
    path.write_text("""func.func @main(%a: tensor<4x6xf32>) -> tensor<4xf32> {
  %0:5 = stablehlo.custom_call @cusolver_gesvdj_ffi(%a) {mhlo.backend_config = {
    full_matrices = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>}}
    : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<6x6xf32>, tensor<i32>)
  return %0#1 : tensor<4xf32>
}
""")
    outcome = xgpu("run", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    assert "error: an operation that is left to XLA has what XLA cannot read: #" in outcome.err
    assert "internal error" not in outcome.err

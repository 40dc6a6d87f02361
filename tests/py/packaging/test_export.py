"""What `xgpu.export` and ``xgpu export`` write, and what they refuse."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from tests.py.packaging.packages import STRICT, STRICTER, Library, bits, do_run, exported, tool
from xgpu.cli.main import main
from xgpu.errors import InvalidInput, ToolError, Unsupported
from xgpu.target.nvptx.cubin import find_ptxas

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = f"{ROOT / 'examples' / 'bias_relu.py'}:bias_relu"


def doubled(x: jax.Array) -> jax.Array:
    return x * 2


def read_manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def test_the_manifest_lists_all_files(tmp_path: Path) -> None:
    exported(doubled, "f32[64]", to=tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    listed = read_manifest(tmp_path)["files"]
    assert found == {*listed, "manifest.json"}
    for path, described in listed.items():
        data = (tmp_path / path).read_bytes()
        assert described == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_the_manifest_describes_launches(tmp_path: Path) -> None:
    def rows(x: jax.Array) -> jax.Array:
        return jnp.cumsum(jax.nn.softmax(x, axis=0).reshape(-1))

    exported(rows, "f32[300,300]", to=tmp_path, targets=["sm_90a", "sm_80"])
    found, program = read_manifest(tmp_path), xgpu.compile(rows, "f32[300,300]", target="sm_80")
    assert (found["schema"], found["kind"], found["name"]) == (1, "xgpu package", "rows")
    assert [target["name"] for target in found["targets"]] == ["sm_90a", "sm_80"]
    kernels = found["targets"][1]["kernels"]
    assert [tuple(each["grid"]) for each in kernels] == [each.grid for each in program.kernels]
    assert [tuple(each["block"]) for each in kernels] == [each.block for each in program.kernels]
    assert [(tmp_path / each["ptx"]).read_text() for each in kernels] == [each.ptx for each in program.kernels]
    (signature,) = found["signatures"]
    described = {"name": "x", "called": "x", "type": "f32", "shape": [300, 300], "layout": "row-major"}
    assert signature["arguments"] == [described | {"bytes": 360000, "alignment": 16}]
    steps = signature["variants"][1]["steps"]
    assert [step["launch"] for step in steps if "launch" in step] == list(range(len(kernels)))
    assert any("zero" in step for step in steps)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_machine_code(tmp_path: Path) -> None:
    exported(doubled, "f32[64]", to=tmp_path)
    ((kernel,),) = (target["kernels"] for target in read_manifest(tmp_path)["targets"])
    assert (tmp_path / kernel["cubin"]).read_bytes()[:4] == b"\x7fELF"
    assert 0 < kernel["resources"]["registers"] < 255


def test_without_ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for module in ("xgpu.packaging.build.find_ptxas", "xgpu.target.nvptx.cubin.find_ptxas"):
        monkeypatch.setattr(module, lambda: None)
    assert main(["export", EXAMPLE, "-o", str(tmp_path)]) == 0
    assert "some as PTX alone: ptxas was not found" in capsys.readouterr().out
    found = read_manifest(tmp_path)
    assert found["versions"]["ptxas"] is None
    assert [(each["cubin"], each["resources"]) for each in found["targets"][0]["kernels"]] == [(None, None)]
    source = tmp_path / "src" / "bias_relu.c"
    do_run(tool("gcc"), "-std=c99", *STRICTER, f"-I{tmp_path / 'include'}", "-c", source, "-o", tmp_path / "a.o")


@pytest.mark.parametrize(
    ("message", "is_too_old"),
    [
        ("ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'", True),
        ("kernel.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.0'", True),
        ("kernel.ptx, line 9; error   : Unknown symbol '%rd9'", False),
    ],
)
def test_a_ptxas_that_refuses(message: str, is_too_old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ptxas = tmp_path / "bin" / "ptxas"
    ptxas.parent.mkdir()
    ptxas.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "release 11.8" && exit\necho "{message}" >&2\nexit 1\n')
    ptxas.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ptxas.parent}:{os.environ['PATH']}")
    if not is_too_old:
        with pytest.raises(ToolError, match="Unknown symbol"):
            exported(doubled, "f32[64]", to=tmp_path / "package")
        return
    package = exported(doubled, "f32[64]", to=tmp_path / "package")
    assert [kernel.cubin for kernel in package.targets[0].kernels] == [None]
    assert read_manifest(tmp_path / "package")["versions"]["ptxas"] == "11.8"


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    code = """
import jax, sys, xgpu
def product(x, w):
    return jax.nn.relu(x @ w), x.sum()
def sums(x):
    return jax.nn.softmax(x, axis=0).sum(1)
folder = sys.argv[1]
xgpu.export(product, "bf16[512,64]", "bf16[64,512]", to=f"{folder}/product", targets=["sm_90a", "sm_80"], host=False)
xgpu.export(sums, "f32[128,64]", to=f"{folder}/sums")
"""
    folders = [tmp_path / name for name in ("first", "second")]
    for number, folder in enumerate(folders):
        environment = {**os.environ, "XGPU_CACHE": "off", "PYTHONHASHSEED": str(number), "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, "-c", code, folder], check=True, env=environment, cwd=tmp_path)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert first == second and len(first) > 30


def test_kernels_that_are_kept_give_the_same_bytes(tmp_path: Path) -> None:
    """LLVM's options are those of a process: one that takes a kernel from the cache has never compiled for a GPU."""
    source = tmp_path / "scale.te"
    source.write_text("""fn scale(A: f32[64, 100], F: f32[64], out B: f32[64, 100]) {
      par 64 i { par 100 j { B[i, j] = A[i, j] * F[i] } }
    }""")
    environment = {**os.environ, "XGPU_CACHE": "on", "XGPU_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("first", "second"):
        command = [sys.executable, "-m", "xgpu.cli.main", "export", str(source), "-o", str(tmp_path / name)]
        subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    first, second = ((tmp_path / name / "src" / "scale_host_x86_64.o").read_bytes() for name in ("first", "second"))
    assert first == second


def test_hostile_names(tmp_path: Path) -> None:
    def run(int: jax.Array, tree: Any, *, errno: jax.Array, stream: jax.Array, Größe: jax.Array) -> Any:
        return {"class": int + errno, '*/ " \\ @P@ ??/': tree["fn"] * stream, "result": tree["*/"] + Größe}

    array = jax.ShapeDtypeStruct((5,), "float32")
    import functools

    function = functools.partial(run, errno=jnp.ones(5), stream=jnp.full(5, 2.0), Größe=jnp.zeros(5))
    function.__name__ = "@P@ */ main\n"  # type: ignore[attr-defined]
    package = xgpu.export(function, array, {"fn": array, "*/": array}, to=tmp_path).package
    source, include = tmp_path / "src" / f"{package.name}.c", f"-I{tmp_path / 'include'}"
    do_run(tool("gcc"), "-std=c99", *STRICTER, include, "-c", source, "-o", tmp_path / "a.o")
    (tmp_path / "a.cpp").write_text(f'#include "xgpu/{package.name}.hpp"\n')
    do_run(tool("g++"), "-std=c++17", *STRICT, include, "-c", tmp_path / "a.cpp", "-o", tmp_path / "a.o")
    do_run(tool("cargo"), "check", "--offline", "--quiet", cwd=tmp_path, CARGO_TARGET_DIR=str(tmp_path / "target"))
    x, y, z = (jnp.arange(5.0) + n for n in range(3))
    found = Library(tmp_path, package).run([x, y, z])
    expected = jax.tree.leaves(function(x, {"*/": y, "fn": z}))
    for result, wanted in zip(found, expected, strict=True):
        assert (bits(result) == bits(wanted)).all()


def test_arrays_that_are_called_as_the_source_calls_things(tmp_path: Path) -> None:
    names = """array call cuda fail in_place kernel kernels kernels_0 loaded lock place places_0_0 ptx_0_0 session step
    target variant""".split()
    arguments = {"named": lambda *arrays: sum(arrays)}
    exec(f"def called({', '.join(names)}): return named({', '.join(names)})", arguments)
    package = xgpu.export(arguments["called"], *[jnp.ones(5)] * len(names), to=tmp_path, name="named")
    assert "const float *place," in (tmp_path / "include" / "xgpu" / "named.h").read_text()
    source, include = tmp_path / "src" / "named.c", f"-I{tmp_path / 'include'}"
    for flags in ([], ["-DNAMED_HOST"]):
        do_run(tool("gcc"), "-std=c99", *STRICTER, *flags, include, "-c", source, "-o", tmp_path / "a.o")
    (found,) = Library(tmp_path, package.package).run([jnp.full(5, float(number)) for number in range(len(names))])
    assert (found == sum(range(len(names)))).all()


def test_a_program_without_arguments_or_results(tmp_path: Path) -> None:
    for name, function, specs in (("made", lambda: lax.iota("int32", 9), ()), ("dropped", lambda x: (), ("f32[3]",))):
        package = exported(function, *specs, to=tmp_path / name, name=name)
        source = tmp_path / name / "src" / f"{name}.c"
        strict = tool("gcc"), "-std=c99", *STRICTER, f"-I{tmp_path / name / 'include'}", "-c", source
        do_run(*strict, "-o", tmp_path / "a.o")
        given = [jnp.ones(3)] if specs else []
        assert [result.tolist() for result in Library(tmp_path / name, package).run(given)] == (
            [] if specs else [list(range(9))]
        )


def test_what_needs_xla_is_named(tmp_path: Path) -> None:
    def sines_of_eigenvalues(x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.linalg.eigvals(x).real)

    with pytest.raises(Unsupported) as caught:
        exported(sines_of_eigenvalues, "f32[64,64]", to=tmp_path)
    message = str(caught.value)
    assert message.startswith(
        "sines_of_eigenvalues: a package has kernels alone, and XLA is needed for\n  stablehlo.custom_call of type"
    )
    assert f"{Path(__file__).name}:" in message
    assert message.endswith("is a library's code for eigenvalues of matrices that are not symmetric")
    assert not list(tmp_path.iterdir())


def test_products_are_of_kernels_however_slow(tmp_path: Path) -> None:
    made = xgpu.export(lambda x: x @ x, "f32[64,64]", to=tmp_path, targets=["sm_80"], name="squared", host=False)
    assert [kernel.emitter for kernel in made.package.targets[0].kernels] == ["loop"]
    assert made.package.host is None and not list((tmp_path / "src").glob("*.o"))
    assert f"  slow: stablehlo.dot_general of type tensor<64x64xf32> ({__file__}:" in str(made)


@pytest.mark.parametrize("level", ["fusions", "emitted"])
def test_a_program_of_a_later_level(level: str, tmp_path: Path) -> None:
    text = tmp_path / "program.mlir"
    assert main(["compile", EXAMPLE, "--arg", "f32[8,4]", "--arg", "f32[4]", "--emit", level, "-o", str(text)]) == 0
    package = exported(text, to=tmp_path / "package", name="later")
    x, bias = jnp.arange(32.0).reshape(8, 4) - 9, jnp.arange(4.0)
    (found,) = Library(tmp_path / "package", package).run([x, bias])
    assert (found == jnp.maximum(x + bias, 0)).all()


def test_signatures_differ_in_sizes_alone(tmp_path: Path) -> None:
    cases = [
        ([("f32[8]",), ("f32[8]",)], "two signatures have the same sizes"),
        ([("f32[8]",), ("f64[8]",)], "argument 'x' is f32[8] in one and f64[8] in another"),
        ([("f32[8]",), ("f32[8,2]",)], "argument 'x' is f32[8] in one and f32[8,2] in another"),
    ]
    for (first, *others), message in cases:
        with pytest.raises(InvalidInput, match="signatures") as caught, jax.enable_x64(True):
            exported(doubled, *first, signatures=others, to=tmp_path)
        assert message in str(caught.value)


def test_a_folder_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="expected an empty folder, or one with an earlier package"):
        exported(doubled, "f32[8]", to=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "notes.txt"}


def test_a_package_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    exported(doubled, "f32[8]", to=tmp_path, name="earlier")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "object.o").write_text("built")
    manifest = read_manifest(tmp_path)
    (tmp_path.parent / "outside.txt").write_text("mine")
    manifest["files"]["../outside.txt"] = {}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    exported(doubled, "f32[8]", to=tmp_path, name="later")
    names = {path.name for path in tmp_path.rglob("*")}
    assert {"object.o", "later.h"} <= names and "earlier.h" not in names
    assert (tmp_path.parent / "outside.txt").exists()


def test_what_is_no_file_of_a_package_stays(tmp_path: Path) -> None:
    """A file of the user's own in place of one of the package's, or a changed one, is not written over."""
    exported(doubled, "f32[8]", to=tmp_path, name="twice")
    changed = tmp_path / "include" / "xgpu" / "twice.h"
    changed.write_text("// mine\n" + changed.read_text())
    with pytest.raises(InvalidInput, match=r"'include/xgpu/twice.h' was changed since"):
        exported(doubled, "f32[8]", to=tmp_path, name="twice")
    exported(doubled, "f32[8]", to=tmp_path / "other", name="twice")
    own = tmp_path / "other" / "include" / "xgpu" / "thrice.h"
    own.write_text("// mine\n")
    with pytest.raises(InvalidInput, match=r"'include/xgpu/thrice.h' is not of that package"):
        exported(doubled, "f32[8]", to=tmp_path / "other", name="thrice")
    assert own.read_text() == "// mine\n"


@pytest.mark.parametrize("files", [[1], {"a": 1}, 7])
def test_a_manifest_that_no_export_wrote(files: object, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "xgpu package", "files": files}))
    with pytest.raises(InvalidInput, match="expected an empty folder, or one with an earlier package"):
        exported(doubled, "f32[8]", to=tmp_path)


def test_signatures_have_results_of_one_rank(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return x if x.shape[0] > 8 else x[None]

    with pytest.raises(InvalidInput, match="differ in sizes alone: result"):
        exported(function, "f32[8]", signatures=[["f32[16]"]], to=tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot write a package into"):
        exported(doubled, "f32[8]", to=tmp_path / "file" / "package")


def test_targets(tmp_path: Path) -> None:
    for targets, message in (
        ([], "got none"),
        (["sm_80", "sm_80"], "each once"),
        (["sm_1"], "unknown target 'sm_1'"),
        (["host"], "expected GPUs"),
    ):
        with pytest.raises(InvalidInput, match=message):
            exported(doubled, "f32[8]", to=tmp_path, targets=targets)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"targets": "sm_80"}, r"targets: expected several names, such as \('sm_90a',\), got 'sm_80'"),
        ({"targets": None}, "targets: expected several names, .* got None"),
        ({"targets": [3]}, "unknown target 3; known targets are"),
        ({"to": None}, "to: expected the path of a folder, got None"),
        ({"name": 3}, "name: expected a word, got 3"),
        ({"host": "no"}, "host: expected True or False, got 'no'"),
        ({"signatures": 3}, "signatures: expected tuples of arguments, .* got 3"),
        ({"signatures": ["f32[9]"]}, r"signatures: expected tuples .* got \['f32\[9\]'\]"),
    ],
)
def test_arguments_of_another_kind(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message):
        exported(doubled, "f32[8]", **{"to": tmp_path, **given})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--arg", "f32[8,4]", "--arg", "f32[4]", "--also", "--arg", "f32[16,4]", "--arg", "f32[4]"]
    options = ["--target", "sm_80", "--target", "sm_90a", "--name", "fused", "--no-host"]
    assert main(["export", EXAMPLE, "-o", str(tmp_path), *arguments, *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"package fused in {tmp_path}",
        "  kernels: 2, for sm_80, sm_90a"
        + ("" if find_ptxas() else "; some as PTX alone: ptxas was not found, or is too old"),
        "  scratch: 0 bytes",
        "  host library: none",
    ]
    assert "int64_t x_dim0" in (tmp_path / "include" / "xgpu" / "fused.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "sm_1"], "unknown target 'sm_1'"),
        (["--arg", "g32[4]"], "unknown element type 'g32'"),
        (["--arg", "f32[4]", "--also"], "--also: expected --arg before and after it"),
        (["--also", "--arg", "f32[4]"], "--also: expected --arg before and after it"),
        (["--name"], "expected one argument"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", EXAMPLE, "-o", str(tmp_path / "package"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "package").exists()


def test_a_name_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", EXAMPLE, "-o", str(tmp_path / "package"), "--name", "a-b"]) == 1
    assert "'a-b' cannot be the name of a package" in capsys.readouterr().err

"""Output of the xgpu command for valid input."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu.target.nvptx.cubin import find_ptxas

PROGRAMS = """\
import jax
import jax.numpy as jnp

def scale(x, y):
    return x * 2 + y, x > y

scale.example_args = ("f32[40,8]", "f32[40,8]")

def pick(table, rows):
    return table[rows]

def double(x):
    return x + x

def apart(x):
    return jax.lax.optimization_barrier(jnp.sin(x)) + 1

apart.example_args = ("f32[64]",)

def linear(x, w):
    return x @ w

linear.example_args = ("bf16[64,64]", "bf16[64,32]")

def root(a):
    def step(state):
        x, _ = state
        better = 0.5 * (x + (a * a + 1) / x)
        return better, jnp.max(jnp.abs(better - x))
    return jax.lax.while_loop(lambda state: state[1] > 1e-3, step, (a * a + 1, jnp.float32(1)))[0]

root.example_args = ("f32[100]",)
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of the file above, from the current folder."""
    (tmp_path / "programs.py").write_text(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    return "programs.py"


def test_compile_prints_ptx(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("compile", f"{programs}:scale")
    assert (outcome.code, outcome.err) == (0, "")
    assert ".target sm_90a" in outcome.out
    assert outcome.out.count(".entry") == 1
    assert "=====" not in outcome.out


def test_compile_for_another_target(xgpu: Callable[..., Any], programs: str) -> None:
    assert ".target sm_80" in xgpu("compile", f"{programs}:scale", "--target", "sm_80").out


def test_compile_prints_several_levels_in_the_order_given(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("compile", f"{programs}:double", "--arg", "bf16[8]", "--emit", "ptx,stablehlo")
    assert re.findall(r"^// ===== (\w+) =====$", outcome.out, re.MULTILINE) == ["ptx", "stablehlo"]
    assert outcome.out.index(".entry") < outcome.out.index("stablehlo.add")


def test_compile_writes_a_file(xgpu: Callable[..., Any], programs: str) -> None:
    assert xgpu("compile", f"{programs}:scale", "-o", "kernel.ptx") == (0, "", "")
    assert Path("kernel.ptx").read_text() == xgpu("compile", f"{programs}:scale").out


def test_compile_writes_a_file_per_level(xgpu: Callable[..., Any], programs: str) -> None:
    levels = "stablehlo,prepared,fusions,emitted,optimized,lowered,llvm,llvmir,ptx"
    assert xgpu("compile", f"{programs}:scale", "--emit", levels, "-o", "a/levels") == (0, "", "")
    names = [f"{level}.mlir" for level in levels.split(",")[:-2]] + ["llvmir.ll", "ptx.ptx"]
    assert sorted(path.name for path in Path("a/levels").iterdir()) == sorted(names)
    assert ".entry" in Path("a/levels/ptx.ptx").read_text()


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_compile_writes_machine_code_as_bytes(xgpu: Callable[..., Any], programs: str) -> None:
    assert xgpu("compile", f"{programs}:scale", "--emit", "cubin", "-o", "kernel.cubin") == (0, "", "")
    machine_code = Path("kernel.cubin").read_bytes()
    assert machine_code.startswith(b"\x7fELF")
    assert xgpu("compile", f"{programs}:scale", "--emit", "cubin").out == f"{machine_code.hex()}\n"


def test_machine_code_of_several_kernels_takes_a_file_each(
    xgpu: Callable[..., Any], programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [SimpleNamespace(name=name, text=lambda level, name=name: name.encode().hex()) for name in ("a", "b")]
    compiled = SimpleNamespace(kernels=kernels, ir=lambda level: "")
    monkeypatch.setattr("xgpu.interface.api.compile_to", lambda *arguments, **options: compiled)
    assert xgpu("compile", f"{programs}:scale", "--emit", "cubin", "-o", "k.cubin") == (0, "", "")
    assert (Path("k.a.cubin").read_bytes(), Path("k.b.cubin").read_bytes()) == (b"a", b"b")


def test_compile_says_where_it_cannot_write(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("compile", f"{programs}:scale", "-o", "no/kernel.ptx")
    assert outcome == (1, "", "xgpu: error: cannot write 'no/kernel.ptx': No such file or directory\n")
    outcome = xgpu("compile", f"{programs}:scale", "--emit", "ptx,llvm", "-o", "programs.py")
    assert outcome == (1, "", "xgpu: error: cannot make folder 'programs.py': File exists\n")


def test_every_level_is_accepted_back(xgpu: Callable[..., Any], opt: Callable[..., Any], programs: str) -> None:
    for level in ("stablehlo", "prepared", "fusions", "emitted", "optimized", "lowered", "llvm"):
        text = xgpu("compile", f"{programs}:scale", "--emit", level).out
        again = opt("--split-input-file", stdin=text)
        assert (again.code, again.err, again.out) == (0, "", text), level


def test_a_compilation_goes_on_from_text(xgpu: Callable[..., Any], opt: Callable[..., Any], programs: str) -> None:
    from xgpu.device import DEFAULT_DEVICE
    from xgpu.levels.pipeline import OPTIMIZE

    emitted = xgpu("compile", f"{programs}:scale", "--emit", "emitted").out
    optimized = xgpu("compile", f"{programs}:scale", "--emit", "optimized").out
    passes = ",".join(text for text, _ in OPTIMIZE).format(target=DEFAULT_DEVICE)
    assert opt("-p", passes, stdin=emitted).out == optimized


def test_compile_tells_the_time_of_stages_and_passes(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("compile", f"{programs}:scale", "--timing")
    assert outcome.code == 0
    pattern = r"kernels: 1, of [1-9]\d* operations; launches: 1; operations left to XLA: 0\n"
    assert re.match(pattern, outcome.err) is not None
    names = re.findall(r"^ +[\d.]+ \( *[\d.]+%\)  (.*)$", outcome.err, re.MULTILINE)
    assert names[0] == "frontend"
    assert names[-1] == "Total"
    assert len(set(names)) == len(names)
    assert {"emit", "inline", "lower-tensors", "LLVM to PTX"} < set(names)


def test_run_prints_a_line_per_output(xgpu: Callable[..., Any], programs: str) -> None:
    outcome = xgpu("run", f"{programs}:scale", "--check")
    assert (outcome.code, outcome.err) == (0, "")
    first, second = outcome.out.splitlines()
    assert re.search(r"f32\[40,8\]: absolute error \S+, relative \S+, \d+ ULP: agrees$", first)
    assert re.search(r"pred\[40,8\]: absolute error 0, relative 0: agrees$", second)


def test_run_takes_hlo_text(xgpu: Callable[..., Any], programs: str) -> None:
    Path("add.hlo").write_text("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] add(x, x) }\n")
    outcome = xgpu("run", "add.hlo", "--check")
    assert (outcome.code, outcome.err) == (0, "")
    assert "f32[8]: absolute error 0, relative 0, 0 ULP: agrees" in outcome.out


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The inputs of the runs of the test, which take place as usual."""
    from xgpu.interface.api import Compiled

    runs: list[list[Any]] = []
    run = Compiled.run

    def recorded(self: Compiled, *arrays: Any, **options: Any) -> Any:
        runs.append(list(arrays))
        return run(self, *arrays, **options)

    monkeypatch.setattr(Compiled, "run", recorded)
    return runs


def test_run_is_repeatable_by_its_seed(xgpu: Callable[..., Any], programs: str, seen: list[list[Any]]) -> None:
    for seed in ("1", "1", "2"):
        assert xgpu("run", f"{programs}:scale", "--seed", seed).code == 0
    first, again, other = (run[0] for run in seen)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_run_draws_indices_inside_and_outside_the_range(
    xgpu: Callable[..., Any], programs: str, seen: list[list[Any]]
) -> None:
    assert xgpu("run", f"{programs}:pick", "--arg", "f32[8,4]", "--arg", "s32[100]", "--check").code == 0
    rows = seen[0][1]
    assert (rows < 0).any() and (rows > 7).any() and ((rows >= 0) & (rows < 8)).any()


def test_run_reads_arrays_from_files(xgpu: Callable[..., Any], programs: str, seen: list[list[Any]]) -> None:
    table = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.save("table.npy", table)
    assert xgpu("run", f"{programs}:pick", "--arg", "@table.npy", "--arg", "s32[3]", "--check").code == 0
    assert np.array_equal(seen[0][0], table)
    assert seen[0][1].shape == (3,)


@pytest.mark.parametrize("wide", [np.float64, np.int64])
def test_run_keeps_the_width_of_arrays(
    xgpu: Callable[..., Any], programs: str, seen: list[list[Any]], wide: Any
) -> None:
    np.save("x.npy", np.ones(4, wide))
    outcome = xgpu("run", f"{programs}:double", "--arg", "@x.npy", "--check")
    assert (outcome.code, outcome.err) == (0, "")
    assert seen[0][0].dtype == wide
    assert ("f64[4]" if wide is np.float64 else "s64[4]") in outcome.out


@pytest.mark.parametrize("stored", [ml_dtypes.bfloat16, np.float32])
def test_run_reads_bf16_from_files_by_naming_it(
    xgpu: Callable[..., Any], programs: str, seen: list[list[Any]], stored: Any
) -> None:
    values = np.array([1.5, -2, 0], stored)
    np.save("x.npy", values)
    outcome = xgpu("run", f"{programs}:double", "--arg", "bf16@x.npy", "--check")
    assert (outcome.code, outcome.err) == (0, "")
    assert seen[0][0].dtype == ml_dtypes.bfloat16
    assert seen[0][0].tolist() == [1.5, -2, 0]


@pytest.mark.parametrize("check", [True, False])
def test_check_fails_on_a_wrong_output(
    xgpu: Callable[..., Any], programs: str, monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    from xgpu.interface.api import Compiled

    def wrong(self: Compiled, *arrays: Any) -> list[Any]:
        return [arrays[0] * 2 + arrays[1] + 1, arrays[0] > arrays[1]]

    monkeypatch.setattr(Compiled, "reference", wrong)
    outcome = xgpu("run", f"{programs}:scale", *(["--check"] if check else []))
    assert outcome.code == (1 if check else 0)
    assert outcome.err == ("xgpu: error: 1 of 2 outputs disagree with XLA's\n" if check else "")
    assert "320 elements disagree, the first at [0, 0]" in outcome.out.splitlines()[0]


PLAN = """\
module attributes {xgpu.level = "fusions"} {
  func.func private @first(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {xgpu.emitter = "loop"} {
    %0 = stablehlo.sine %x : tensor<64x32xf32>
    return %0 : tensor<64x32xf32>
  }
  func.func private @second(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {xgpu.emitter = "loop"} {
    %0 = stablehlo.negate %x : tensor<64x32xf32>
    return %0 : tensor<64x32xf32>
  }
  func.func @main(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
    %0 = call @first(%x) : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %1 = call @second(%0) : (tensor<64x32xf32>) -> tensor<64x32xf32>
    return %1 : tensor<64x32xf32>
  }
}
"""


def test_a_plan_by_hand_runs_and_is_compared_with_xla(xgpu: Callable[..., Any], programs: str) -> None:
    Path("plan.mlir").write_text(PLAN)
    outcome = xgpu("run", "plan.mlir", "--check", "--sanitize")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("sanitized: no fault found\nresult0: f32[64,32]: absolute error ")


def test_barriers_that_part_kernels(xgpu: Callable[..., Any], programs: str) -> None:
    arguments = ("compile", f"{programs}:apart", "--emit", "fusions")
    assert xgpu(*arguments).out.count("private @") == 1
    assert xgpu(*arguments, "--keep-barriers").out.count("private @") == 2
    assert xgpu("run", f"{programs}:apart", "--keep-barriers", "--check").code == 0


def test_products_by_kernels(xgpu: Callable[..., Any], programs: str) -> None:
    arguments = (f"{programs}:linear", "--products")
    assert 'xgpu.emitter = "product"' in xgpu("compile", *arguments, "kernels", "--emit", "fusions").out
    assert "xgpu.emitter" not in xgpu("compile", *arguments, "library", "--emit", "fusions").out
    assert "left to XLA" in xgpu("explain", f"{programs}:linear").out
    assert "left to XLA" not in xgpu("explain", *arguments, "kernels").out
    assert xgpu("run", *arguments, "kernels", "--check").code == 0
    assert xgpu("compile", *arguments, "cublas").code == 2


def test_loops_that_launches_run(xgpu: Callable[..., Any], programs: str) -> None:
    arguments = f"{programs}:root", "--control-flow"
    by_xla, by_launches = (xgpu("compile", *arguments, how, "--emit", "fusions").out for how in ("xla", "launches"))
    assert "xgpu.host" in by_launches and "xgpu.host" not in by_xla
    left = xgpu("explain", *arguments, "launches").out.partition("left to XLA")[2]
    assert "stablehlo.while" in left and "run by launches" in left
    assert xgpu("run", *arguments, "launches", "--check").code == 0
    assert xgpu("compile", *arguments, "host").code == 2


def test_how_a_package_was_compiled_can_be_repeated(
    xgpu: Callable[..., Any], programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, module: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("xgpu.passes.prepare.control.count_loops.CountLoops.apply", fail)
    outcome = xgpu("export", f"{programs}:root", "--arg", "f32[100]", "-o", "made")
    assert outcome.code == 1
    assert f"xgpu compile {programs}:root --arg 'f32[100]' --products all --control-flow launches" in outcome.err


def test_ops_prints_every_operation(xgpu: Callable[..., Any]) -> None:
    from xgpu.dialects.xgpu import OPS

    outcome = xgpu("ops")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.findall(r"^### `(.*)`$", outcome.out, re.MULTILINE) == list(OPS)


def test_devices_prints_every_target(xgpu: Callable[..., Any]) -> None:
    from xgpu.device import DEVICES

    outcome = xgpu("devices")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == list(DEVICES)

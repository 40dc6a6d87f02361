"""``xgpu run --sanitize``: faults as diagnostics, at the user's line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"

REVERSE = """module attributes {xgpu.level = "emitted"} {
  func.func @k(%in: tensor<64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {
      xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "loop", xgpu.grid = array<i64: 1, 1, 1>,
      xgpu.inputs = 1 : i64, xgpu.kernel} {
    %t = gpu.thread_id x upper_bound 64
    %x = tensor.extract %in[%t] : tensor<64xf32>
    %tile = "xgpu.allocate_shared"() : () -> tensor<64xf32>
    %w = tensor.insert %x into %tile[%t] : tensor<64xf32>
    %s = "xgpu.sync_threads"(%w) : (tensor<64xf32>) -> tensor<64xf32>
    %r = "xgpu.apply_indexing"(%t) {map = #xgpu.map<(d0) -> (63 - d0), d0 in [0, 63]>} : (index) -> index
    %y = tensor.extract %s[%r] : tensor<64xf32>
    %o = tensor.insert %y into %out[%t] : tensor<64xf32>
    return %o : tensor<64xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_program_without_fault(xgpu: Callable[..., Any]) -> None:
    outcome = xgpu("run", f"{EXAMPLES}/bias_relu.py:bias_relu", "--arg", "f32[33,7]", "--arg", "f32[7]", "--sanitize")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("sanitized: no fault found\nresult: f32[33,7]: absolute error 0")


def test_kernel_without_fault(xgpu: Callable[..., Any]) -> None:
    """A program of a later level cannot be compared with XLA, but be checked."""
    Path("reverse.mlir").write_text(REVERSE)
    assert xgpu("run", "reverse.mlir", "--sanitize") == (0, "sanitized: no fault found\n", "")
    outcome = xgpu("run", "reverse.mlir", "--sanitize", "--check")
    assert (
        outcome.code == 1
        and "and a kernel of level 'tiles', to compare with; this one was given at level " in outcome.err
    )


def test_a_later_level_runs_and_is_compared_with_nothing(xgpu: Callable[..., Any]) -> None:
    Path("reverse.mlir").write_text(REVERSE)
    said = "result0: f32[64]: compared with nothing, as XLA does not run the level of this program\n"
    assert xgpu("run", "reverse.mlir") == (0, said, "")
    assert xgpu("run", "reverse.mlir", "--arg", "f32[3]").code == 1


def test_race(xgpu: Callable[..., Any]) -> None:
    text = REVERSE.replace("%y = tensor.extract %s", "%y = tensor.extract %w")
    Path("race.mlir").write_text("\n".join(line for line in text.splitlines() if "sync_threads" not in line))
    outcome = xgpu("run", "race.mlir", "--sanitize")
    assert (outcome.code, outcome.out) == (1, "")
    lines = outcome.err.splitlines()
    assert lines[:3] == [
        "race.mlir:8:10: error: kernel 'k': thread (32, 0, 0) of block (0, 0, 0) writes element 32 (byte 128) of tile "
        "'k__tile_0', which thread (31, 0, 0) accesses with no barrier between (32 times)",
        "    %w = tensor.insert %x into %tile[%t] : tensor<64xf32>",
        "         ^",
    ]
    assert lines[3].startswith("race.mlir:8:10: note: in 'llvm.store ") and "!llvm.ptr<3>'" in lines[3]
    assert lines[4].startswith("race.mlir:10:10: note: and '%") and "llvm.load" in lines[4]
    assert "which no thread of the block has written (32 times)" in outcome.err


def test_barrier_that_some_threads_do_not_reach(xgpu: Callable[..., Any]) -> None:
    """Without --sanitize it is an error as well: the threads would never go on."""
    barrier = '%s = "xgpu.sync_threads"(%w) : (tensor<64xf32>) -> tensor<64xf32>'
    divided = f"""%limit = arith.constant 40 : index
    %inside = arith.cmpi ult, %t, %limit : index
    %s = scf.if %inside -> (tensor<64xf32>) {{
      {barrier.replace("%s", "%then")}
      scf.yield %then : tensor<64xf32>
    }} else {{
      scf.yield %w : tensor<64xf32>
    }}"""
    Path("divided.mlir").write_text(REVERSE.replace(barrier, divided))
    for options in ([], ["--sanitize"]):
        outcome = xgpu("run", "divided.mlir", *options)
        assert (outcome.code, outcome.out) == (1, "")
        message = (
            "thread (32, 0, 0) of block (0, 0, 0) waits at barrier 1 for its block, but thread (40, 0, 0) has ended"
        )
        assert f"divided.mlir:12:15: error: kernel 'k': {message}\n" in outcome.err


def test_only_on_the_host(xgpu: Callable[..., Any]) -> None:
    outcome = xgpu("run", f"{EXAMPLES}/bias_relu.py:bias_relu", "--on", "gpu", "--sanitize")
    assert (outcome.code, outcome.err) == (2, "xgpu: error: --sanitize runs on the host: leave out --on gpu\n")

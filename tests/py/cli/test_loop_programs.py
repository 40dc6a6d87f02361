"""The commands on programs of loops: compile to every level, run, explain, and what is said of wrong ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "loops"
COPY = str(FOLDER / "copy.te")


def test_compile_run_and_explain(xgpu: Callable[..., Any], opt: Callable[..., Any]) -> None:
    assert ".entry copy_0" in xgpu("compile", COPY).out
    for level in ("loops", "mapped", "emitted"):
        text = xgpu("compile", COPY, "--emit", level, "--arg", "f32[3,5]").out
        again = opt("--split-input-file", stdin=text)
        assert (again.code, again.err, again.out) == (0, "", text), level
    assert "par 3 |i| {" in xgpu("compile", COPY, "--emit", "te", "--arg", "f32[3,5]").out
    assert xgpu("run", COPY, "--sanitize") == (0, "sanitized: no fault found\n", "")
    explained = xgpu("explain", COPY).out
    assert "201 blocks of 128" in explained
    assert f"par i, j at {COPY}:5:3: by the threads of all blocks, independence proved" in explained
    assert "copy_0" in xgpu("compile", f"{FOLDER / 'scale_rows.py'}:scale_rows", "--emit", "ptx").out.replace(
        "scale_rows_0", "copy_0"
    )


def test_what_is_wrong_is_said_with_its_line(xgpu: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "wrong.te"
    path.write_text("fn f(A: f32[8], out B: f32[8]) {\n  par 8 i {\n    B[i] = A[i + 1]\n  }\n}\n")
    outcome = xgpu("compile", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"{path}:3:16: error: index 0 of 'A' may be from 1 to 8; expected 0 to 7")
    assert "    B[i] = A[i + 1]" in outcome.err
    path.write_text("fn f(A: f32[8], out B: f32[8]) {\n  par 8 i {\n    B[0] = A[i]\n  }\n}\n")
    assert (
        f"{path}:3:5: error: iterations of par 'i' are not independent: i = 0 changes B[0]"
        in xgpu("run", str(path)).err
    )
    assert xgpu("compile", str(tmp_path / "missing.te")).code == 1

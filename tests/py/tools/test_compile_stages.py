"""The table of the stages of compiling whole programs."""

from pathlib import Path

import pytest

from xgpu.tools import compile_stages

MODELS = Path(__file__).resolve().parents[3] / "examples" / "models"
SINE = """
HloModule sine
ENTRY main {
  x = f32[8] parameter(0)
  ROOT y = f32[8] sine(x)
}
"""


def test_layers_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_stages.main(["--layers", "1", "--models", str(MODELS)]) == 0
    _, row = capsys.readouterr().out.splitlines()
    assert row.startswith("GPT-2, 1 layers, trained")
    lines, kernels, launches, *_ = row.removeprefix("GPT-2, 1 layers, trained").split()
    assert int(lines) > 1000
    assert 10 < int(kernels) <= int(launches)


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sine.hlo").write_text(SINE)
    assert compile_stages.main([str(tmp_path / "sine.hlo")]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert row.split()[:4] == ["sine", str(len(SINE.splitlines())), "1", "1"]
    assert len(row) == len(head)


def test_a_file_that_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sine.hlo").write_text(SINE.replace("sine(x)", "sine(z)"))
    assert compile_stages.main([str(tmp_path / "sine.hlo")]) == 1
    assert "sine.hlo:5" in capsys.readouterr().out

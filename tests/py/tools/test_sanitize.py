"""Cases, verdicts and processes of ``sanitize``; compute-sanitizer is replaced, as there is no GPU."""

import re
import stat
from pathlib import Path

import pytest

from xgpu.tools.sanitize import __main__ as sanitize
from xgpu.tools.sanitize import cases
from xgpu.tools.sanitize.__main__ import verdict
from xgpu.tools.sanitize.cases import CASES

CLEAN = "========= COMPUTE-SANITIZER\nresults ok 1.0e-03\n========= ERROR SUMMARY: 0 errors\n"
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k+0x10
=========     and Read access at k+0x20
=========
results ok 0.0e+00
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
REFUSED = "========= COMPUTE-SANITIZER\n========= Error: Device not supported\nTraceback\nRuntimeError: no GPU\n"


@pytest.mark.parametrize("name", CASES)
def test_cases_are_all_kernels(name: str) -> None:
    """With the numbers of the schedule that they are for."""
    case = CASES[name]
    program = case.planned()
    text = program.ir("tiles" if "block" in case.emitters else "fusions")
    assert {*case.emitters} <= {each.emitter for each in program.kernels}
    assert not re.search(r"stablehlo\.dot_general.*xgpu\.(expected|fallback)", text)
    assert all(f"{number} = {each}" in text for number, each in case.schedule.items())


@pytest.mark.parametrize("name", ["product of bytes", "product of groups"])
def test_results_are_compared(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sanitize.main(["--one", name, "--on", "host"]) == 0
    assert capsys.readouterr().out == "results ok 0.0e+00\n"


def test_results_that_are_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cases, "_TOLERANCE", -1.0)
    assert sanitize.main(["--one", "product of bytes", "--on", "host"]) == 0
    assert capsys.readouterr().out == "results WRONG 0.0e+00\n"


@pytest.mark.parametrize(
    ("output", "said", "clean"),
    [
        (CLEAN, "results ok 1.0e-03 | ERROR SUMMARY: 0 errors", True),
        (
            RACE,
            "results ok 0.0e+00 | RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"
            " | Error: Race reported between Write access at k+0x10 | and Read access at k+0x20",
            False,
        ),
        (CLEAN.replace("ok", "WRONG"), "results WRONG 1.0e-03 | ERROR SUMMARY: 0 errors", False),
        (CLEAN.replace("results ok", "no"), "no results, exit code 0 | ERROR SUMMARY: 0 errors", False),
        (
            REFUSED,
            "no results, exit code 0 | no summary | ========= Error: Device not supported | Traceback"
            " | RuntimeError: no GPU",
            False,
        ),
    ],
)
def test_verdicts(output: str, said: str, clean: bool) -> None:
    assert verdict(output, 0) == (said, clean)


@pytest.fixture
def sanitizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that says what it was called with, and that all is well but with racecheck."""
    script = tmp_path / "compute-sanitizer"
    script.write_text(
        '#!/bin/sh\n[ "$2" = slow ] && sleep 600\necho "results ok 0"\n'
        'if [ "$2" = racecheck ]; then echo "========= $*"; echo "========= RACECHECK SUMMARY: 2 hazards displayed"\n'
        'else echo "========= ERROR SUMMARY: 0 errors"; fi\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sanitize, "_sanitizer", lambda: str(script))
    return script


def test_a_line_for_each_case_and_tool(sanitizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sanitize.main(["attention, f32", "--jobs", "1"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [["attention,", "f32", each] for each in sanitize.TOOLS]
    assert " clean " in lines[0] and " clean " in lines[2]
    assert "NOT CLEAN" in lines[1] and "--one attention, f32" in lines[1]
    assert last.startswith("2 of 3 clean in ")
    assert sanitize.main(["product of f32", "--tools", "memcheck,synccheck"]) == 0


def test_processes_have_limits(
    sanitizer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sanitize.TOOLS, "slow", ())
    assert sanitize.main(["product of f32", "--tools", "slow", "--limit", "0.2"]) == 1
    assert "more than 0 s; no results" in capsys.readouterr().out
    assert sanitize.main(["product of f32", "--seconds", "-1", "--tools", "memcheck"]) == 1
    assert "NOT RUN: -1 s were over" in capsys.readouterr().out


def test_without_a_sanitizer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sanitize, "_sanitizer", lambda: None)
    assert sanitize.main([]) == 1
    assert capsys.readouterr().err == "sanitize: error: compute-sanitizer is not installed\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fft"], "no case has a name with one of: fft"),
        (["--tools", "initcheck"], "--tools: expected some of memcheck, racecheck, synccheck, got 'initcheck'"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        sanitize.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

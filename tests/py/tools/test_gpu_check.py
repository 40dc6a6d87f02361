"""Runs and messages of ``gpu_check``; its programs are replaced by a few small ones, run on the host."""

import jax.numpy as jnp
import pytest

from xgpu.errors import Unsupported
from xgpu.tools import gpu_check
from xgpu.tools.programs.base import TestProgram

NAMES = ["add", "double", "negate", "twice"]


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [("small", TestProgram(name, lambda x: x + x, ("f32[3]",))) for name in NAMES]
    monkeypatch.setattr(gpu_check, "all_programs", lambda: iter(found))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that were run."""
    names: list[str] = []
    monkeypatch.setattr(gpu_check, "check", lambda program, on, sanitize: names.append(program.name))
    return names


@pytest.mark.parametrize(
    ("part", "expected"),
    [("1/1", NAMES), ("1/3", ["add", "twice"]), ("2/3", ["double"]), ("3/3", ["negate"]), ("4/4", ["twice"])],
)
def test_parts(part: str, expected: list[str], checked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--on", "host", "--part", part]) == 0
    assert checked == expected
    assert f"{len(expected)} passed, 0 failed" in capsys.readouterr().out


def test_the_parts_are_all_programs(checked: list[str]) -> None:
    for number in range(1, 4):
        gpu_check.main(["--on", "host", "--part", f"{number}/3"])
    assert sorted(checked) == NAMES


def test_words_choose_among_a_part(checked: list[str]) -> None:
    assert gpu_check.main(["--on", "host", "--part", "1/3", "small/t"]) == 0
    assert checked == ["twice"]


def test_a_part_without_programs_fails(checked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--on", "host", "--part", "5/5"]) == 1
    assert "0 passed, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["0/2", "3/2", "2", "1/0", "a/b", "-1/2", "1/2/3", ""])
def test_wrong_parts(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu_check.main(["--on", "host", f"--part={part}"])
    assert ended.value.code == 2
    assert f"--part: expected I/N with I from 1 to N, got {part!r}" in capsys.readouterr().err


def test_accesses_are_checked_on_the_host_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu_check.main(["--sanitize"])
    assert ended.value.code == 2
    assert "--sanitize goes with --on host" in capsys.readouterr().err


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise Unsupported("no GPU")

    monkeypatch.setattr(gpu_check, "gpu_device", missing)
    assert gpu_check.main([]) == 1
    assert "gpu_check: error: no GPU" in capsys.readouterr().err


def test_failures_are_named_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = TestProgram("wrong", lambda x: x + 1, ("f32[3]",), expected=lambda inputs: [inputs[0] + 2])
    broken = TestProgram("broken", lambda x: jnp.reshape(x, (7,)), ("f32[3]",))
    right = TestProgram("right", lambda x: x + 1, ("f32[3]",))
    monkeypatch.setattr(gpu_check, "all_programs", lambda: iter([("a", wrong), ("a", broken), ("b", right)]))
    assert gpu_check.main(["--on", "host"]) == 1
    found = capsys.readouterr().out
    assert "FAIL a/wrong: result 0: " in found
    assert "FAIL a/broken: InvalidInput: " in found
    assert "1 passed, 2 failed" in found

"""Commands run in this process: ``run(main, arguments, stdin=...)`` gives exit code, stdout and stderr."""

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest


class Outcome(NamedTuple):
    """The outcome of a command."""

    code: int
    out: str
    err: str


type Command = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run_command(main: Callable[[list[str]], int], *arguments: object, stdin: str | bytes = "") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def opt(run: Command) -> Command:
    from xgpu.cli.opt.main import main

    return lambda *arguments, **keywords: run(main, *arguments, **keywords)


@pytest.fixture
def xgpu(run: Command) -> Command:
    from xgpu.cli.main import main

    def command(*arguments: Any, **keywords: Any) -> Outcome:
        return run(main, *arguments, **keywords)

    return command

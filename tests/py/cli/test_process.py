"""The commands as processes: how they end by signals, closed pipes and crashes in native code, and how they start."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OPT = [sys.executable, "-m", "xgpu.cli.opt.main"]
XGPU = [sys.executable, "-m", "xgpu.cli.main"]


# With these, Python says more on stderr when native code crashes, and writes what it is to write later at once.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in ("PYTHONFAULTHANDLER", "PYTHONUNBUFFERED")
}
PATIENCE = 300
"""Seconds after which a process that does not end counts as one that never will."""


def execute(command: list[str], stdin: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False, env=ENVIRONMENT
    )
    return done.returncode, done.stdout, done.stderr


def start(command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, env=ENVIRONMENT)


def start_reading(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a command and wait until it reads its input, which is more than a pipe holds."""
    process = start(command)
    assert process.stdin is not None
    process.stdin.write(b"module {" + b" " * (1 << 20))
    process.stdin.flush()
    return process


@pytest.mark.parametrize("command", [OPT, XGPU], ids=["xgpu-opt", "xgpu"])
def test_wrong_usage(command: list[str]) -> None:
    code, out, err = execute([*command, "--no-such"])
    assert (code, out) == (2, "")
    assert "error: " in err
    assert err.count("\n") == 1


def test_nothing_but_the_result_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "add.hlo"
    path.write_text("HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] add(x, x) }\n")
    code, out, err = execute([*XGPU, "run", str(path), "--check"])
    assert (code, out.count("\n"), err) == (0, 1, "")


def test_a_crash_in_native_code_is_a_diagnostic(tmp_path: Path) -> None:
    path = tmp_path / "crash.py"
    path.write_text("import os\nos.abort()\n")
    code, out, err = execute([*XGPU, "compile", f"{path}:f"])
    assert (code, out) == (1, "")
    assert err == f"xgpu: error: crashed (SIGABRT) while compiling {path}:f\n"


def test_a_crash_in_a_pass_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "empty.mlir"
    path.write_text("module {}")
    code = """
import os
from xgpu.passes.set_level import SetLevel
from xgpu.cli.opt.main import main
SetLevel.apply = lambda self, module: os.abort()
raise SystemExit(main())
"""
    code, out, err = execute([sys.executable, "-c", code, str(path), "-p", "cse,set-level,canonicalize"])
    assert (code, out) == (1, "")
    crash = "xgpu-opt: error: crashed (SIGABRT) while running pass 'set-level'\n"
    assert err == f"{crash}to repeat: xgpu-opt {path} -p 'cse,set-level'\n"


def test_interrupt_is_quiet() -> None:
    process = start_reading(OPT)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_an_interrupt_is_not_what_becomes_of_it(tmp_path: Path) -> None:
    """Some libraries drop it, others make another error of it and say so: the command ends by it all the same."""
    path = tmp_path / "program.py"
    path.write_text(
        "import os, signal, sys\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print('dropped', file=sys.stderr)\n"
        "raise ImportError('something failed to import')\n"
    )
    assert execute([*XGPU, "compile", f"{path}:f"]) == (130, "", "")


def _shell(command: list[str], redirections: str) -> tuple[int, str, str]:
    return execute(["bash", "-c", f"{shlex.join(command)} {redirections}"])


def test_streams_that_are_closed_or_full(tmp_path: Path) -> None:
    path = tmp_path / "empty.mlir"
    path.write_text("module {}\n")
    cannot = "xgpu-opt: error: cannot"
    read, written = [*OPT, "-"], [*OPT, str(path)]
    assert _shell(read, "<&-") == (1, "", f"{cannot} read '-': Bad file descriptor\n")
    assert _shell(written, ">&-") == (1, "", f"{cannot} write the output: Bad file descriptor\n")
    assert _shell(written, ">/dev/full") == (1, "", f"{cannot} write the output: No space left on device\n")
    assert _shell([*OPT, "--help"], ">/dev/full") == (1, "", f"{cannot} write the output: No space left on device\n")
    # What cannot be said is in the exit code.
    assert _shell(read, "<&- >&- 2>&-")[0] == 1
    assert _shell([*OPT, "nothing"], "2>/dev/full")[0] == 1
    assert _shell(written, "<&- 2>&-") == (0, "module {\n}\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_stays_behind(number: signal.Signals) -> None:
    process = start_reading(OPT)
    process.send_signal(number)
    # Both processes hold stdout: this returns when both are gone.
    assert process.stdout is not None
    assert process.stdout.read() == b""
    assert process.wait(timeout=PATIENCE) == (143 if number == signal.SIGTERM else -signal.SIGKILL)


def test_a_reader_that_goes_away_is_no_error() -> None:
    functions = "\n".join(f"func.func private @function_{i}()" for i in range(20_000))
    process = start(OPT)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stdin.write(functions.encode())
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=PATIENCE) == 141


def test_xgpu_opt_starts_without_jax() -> None:
    code = "import sys, xgpu.cli.opt.session; sys.exit('jax' in sys.modules)"
    assert execute([sys.executable, "-c", code])[0] == 0


def test_xgpu_help_starts_without_jax() -> None:
    code = "import sys; from xgpu.cli.main import main; main(['compile', '--help']); sys.exit('jax' in sys.modules)"
    assert execute([sys.executable, "-c", code])[0] == 0

"""The commands as processes: how they end by signals, closed pipes and crashes in native code, and how they start."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OPT = [sys.executable, "-m", "xgpu.tools.xgpu_opt"]
XGPU = [sys.executable, "-m", "xgpu.cli.main"]


# With it, Python says more on stderr when native code crashes.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONFAULTHANDLER"}
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
    # A chain of aliases nests an attribute deeper than MLIR's printer can recurse, with no bracket inside another.
    aliases = "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(100_000))
    path = tmp_path / "chain.mlir"
    path.write_text(f"#a0 = 1\n{aliases}module attributes {{x.a = #a100000}} {{}}")
    code, out, err = execute([*OPT, str(path), "-p", "cse"])
    assert (code, out) == (1, "")
    assert err.startswith("xgpu-opt: error: crashed (SIGSEGV) while ")
    assert err.endswith(f"{path}\n")


def test_interrupt_is_quiet() -> None:
    process = start_reading(OPT)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, b"", b"")


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
    code = "import sys, xgpu.tools.opt_session; sys.exit('jax' in sys.modules)"
    assert execute([sys.executable, "-c", code])[0] == 0


def test_xgpu_help_starts_without_jax() -> None:
    code = "import sys; from xgpu.cli.main import main; main(['compile', '--help']); sys.exit('jax' in sys.modules)"
    assert execute([sys.executable, "-c", code])[0] == 0

"""The Makefile's search for a Python, on machines unlike this one: each test makes its own PATH and home."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "dirname", "sed", "sort", "ls", "cat", "env")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with a few base tools in bin and nothing else."""
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def command(path: Path, script: str) -> None:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{script}\n")
    path.chmod(0o755)


def real_python(path: Path) -> None:
    """A command that is the Python of this test run."""
    command(path, f'exec "{sys.executable}" "$@"')


def find_python(machine: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(machine / "bin"), "HOME": str(machine), **variables}
    script = [str(machine / "bin" / "bash"), str(ROOT / "tools" / "find_python.sh")]
    return subprocess.run(script, env=environment, capture_output=True, text=True, check=False)


def test_takes_python3_if_it_is_new_enough(machine: Path) -> None:
    real_python(machine / "bin" / "python3")
    assert find_python(machine).stdout.strip() == sys.executable


def test_passes_over_an_old_python(machine: Path) -> None:
    command(machine / "bin" / "python3.12", "exit 1")
    real_python(machine / "bin" / "python3.14")
    assert find_python(machine).stdout.strip() == sys.executable


def test_finds_the_version_that_a_pyenv_shim_refuses(machine: Path) -> None:
    command(machine / "bin" / "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    real_python(machine / ".pyenv" / "versions" / "3.12.9" / "bin" / "python3")
    assert find_python(machine).stdout.strip() == sys.executable


def test_finds_pyenv_by_its_variable(machine: Path) -> None:
    real_python(machine / "elsewhere" / "versions" / "3.12.9" / "bin" / "python3")
    assert find_python(machine, PYENV_ROOT=str(machine / "elsewhere")).stdout.strip() == sys.executable


def test_says_what_it_looked_at(machine: Path) -> None:
    command(machine / "bin" / "python3", "exit 1")
    done = find_python(machine)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "xgpu needs Python >= 3.12" in done.stderr
    assert f"  {machine / 'bin' / 'python3'}\n" in done.stderr
    assert "XGPU_PYTHON=" in done.stderr


def test_says_that_there_is_no_python(machine: Path) -> None:
    assert "no Python at all" in find_python(machine).stderr


def test_a_named_python_is_taken_or_refused_but_never_replaced(machine: Path) -> None:
    real_python(machine / "bin" / "python3")
    command(machine / "old", "exit 1")
    real_python(machine / "new")
    assert find_python(machine, XGPU_PYTHON=str(machine / "new")).stdout.strip() == sys.executable
    refused = find_python(machine, XGPU_PYTHON=str(machine / "old"))
    assert refused.returncode == 1
    assert f"XGPU_PYTHON={machine / 'old'} is not a Python >= 3.12" in refused.stderr


def test_the_link_tree_is_a_package_that_needs_no_install() -> None:
    """As on a machine that has the dependencies but where nothing may be installed (XGPU_NO_VENV=1)."""
    subprocess.run([ROOT / "tools" / "link_tree.sh"], check=True)
    code = "import xgpu.errors, importlib.util as u; print(xgpu.errors.__file__, u.find_spec('xgpu.passes').origin)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "tree"), "PYTHONSAFEPATH": "1"}
    # -S: without site-packages, where this tree may be installed.
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    tree = ROOT / "build" / "tree" / "xgpu"
    assert done.stdout.split() == [str(tree / "errors.py"), str(tree / "passes" / "__init__.py")]

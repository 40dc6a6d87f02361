"""What is distributed holds every file of the package but the developers' tools, and works from any folder."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = (".py", ".typed", ".c", ".h", ".hpp", ".rs", ".in", ".toml", ".txt", ".md")
"""The suffixes of files that users get: of the package, and of the templates of exported programs."""
DEVELOPERS = "xgpu.tools"
"""The package that only editable installations have, and trees that are imported without being installed."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def package_folders() -> dict[str, str]:
    folders: dict[str, str] = project()["tool"]["setuptools"]["package-dir"]
    return folders


def in_tree(suffixes: tuple[str, ...]) -> set[str]:
    """The files of the package with these suffixes, by the paths they have once installed."""
    return {
        str(Path(*package.split("."), path.relative_to(ROOT / folder)))
        for package, folder in package_folders().items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes
    }


def in_wheel(suffixes: tuple[str, ...]) -> set[str]:
    """Those of the files that users get."""
    return {name for name in in_tree(suffixes) if not name.startswith(DEVELOPERS.replace(".", os.sep) + os.sep)}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree: setuptools would leave its build folder in the tree itself."""
    pytest.importorskip("setuptools", reason="setuptools builds the wheel; offline nothing can install it")
    clone = tmp_path_factory.mktemp("clone")
    for folder in package_folders().values():
        shutil.copytree(ROOT / folder, clone / folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for name in (
        "pyproject.toml",
        "setup.py",
        "MANIFEST.in",
        "LICENSE",
        "CHANGELOG.md",
        project()["project"]["readme"],
    ):
        shutil.copy(ROOT / name, clone / name)
    return clone


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(out), str(clone))
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed in it, the commands in its bin."""
    target = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    return target


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(installed: Path, cwd: Path, *command: str) -> str:
    """Run a command with the installed package first on the path, outside the tree."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_folder_with_python_files_is_a_declared_package() -> None:
    found = {str(Path(name).parent).replace(os.sep, ".") for name in in_tree((".py",))}
    assert found == set(project()["tool"]["setuptools"]["packages"])


def test_wheel_holds_what_users_need(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == in_wheel(SHIPPED)
    assert names < in_tree(SHIPPED)


def test_the_wheel_has_the_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
    assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    assert b"License-Expression: Apache-2.0 WITH LLVM-exception" in archive.read(metadata)


def test_the_source_distribution_makes_the_same_wheel(clone: Path, wheel: Path, tmp_path: Path) -> None:
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(tmp_path, clone, sys.executable, "-c", build)
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        folders = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 2}
    assert folders == {"dialects", "passes", "xgpu", "xgpu.egg-info"}
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path), str(source))
    (made,) = tmp_path.glob("*.whl")
    ours, theirs = (zipfile.ZipFile(each) for each in (made, wheel))
    files = [name for name in theirs.namelist() if ".dist-info/" not in name]
    assert sorted(ours.namelist()) == sorted(theirs.namelist())
    assert all(ours.read(name) == theirs.read(name) for name in files)


def test_an_editable_installation_has_the_tools(clone: Path, tmp_path: Path) -> None:
    build = f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})"
    run(tmp_path, clone, sys.executable, "-c", build)
    (editable,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(editable).extractall(tmp_path / "site")
    start = f"import site, importlib.util; site.addsitedir({str(tmp_path / 'site')!r}); "
    find = "print(importlib.util.find_spec('xgpu.tools.gpu_check').origin)"
    # Without this Python's packages, of which an editable installation of xgpu may be one.
    place = run(tmp_path, tmp_path, sys.executable, "-S", "-c", start + find)
    assert place.strip() == str(clone / "tools" / "gpu_check.py")


def test_every_module_of_the_wheel_imports(installed: Path, tmp_path: Path) -> None:
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in in_wheel((".py",))
        if not name.endswith("__main__.py")
    )
    code = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    places = run(installed, tmp_path, sys.executable, "-c", code, *modules).splitlines()
    assert len(places) == len(modules)
    assert not [place for place in places if not place.startswith(str(installed))]


@pytest.mark.parametrize("command", ["xgpu", "xgpu-opt"])
def test_commands_start_from_any_folder(installed: Path, tmp_path: Path, command: str) -> None:
    assert set(project()["project"]["scripts"]) == {"xgpu", "xgpu-opt"}
    assert "usage" in run(installed, tmp_path, str(installed / "bin" / command), "--help").lower()

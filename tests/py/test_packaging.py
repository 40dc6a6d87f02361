"""What is distributed holds every file of the package but the developers' tools, and works from any folder."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

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


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new environment that has the wheel and what it says that it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    assert not list(site.iterdir())
    pip("--python", str(folder / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    (own,) = site.glob("xgpu-*.dist-info")
    for each in required(Distribution.at(own)):
        link(each, site)
    return folder / "bin"


def required(wanted: Distribution) -> list[Distribution]:
    """What a distribution requires without extras, and what that requires, as this environment has it."""
    pending, found = [wanted], dict[str, Distribution]()
    while pending:
        for requirement in map(Requirement, pending.pop().requires or ()):
            is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_needed and requirement.name not in found:
                found[requirement.name] = distribution(requirement.name)
                pending.append(found[requirement.name])
    return list(found.values())


def link(each: Distribution, site: Path) -> None:
    """Let the environment with these packages have what a distribution installed."""
    for file in each.files or ():
        # What lies outside are commands, of no use here.
        if file.parts[0] != ".." and not (site / file.parts[0]).is_symlink() and file.suffix != ".pyc":
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(Path(str(each.locate_file(file))))


def in_empty(commands: Path, cwd: Path, *command: str) -> str:
    """Run a command of the new environment, which sees nothing of this one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XGPU"))}
    environment["XGPU_CACHE"] = "off"
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_empty_environment_compiles_runs_and_exports(empty: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "bias_relu.py", tmp_path)
    program = "bias_relu.py:bias_relu"
    assert ".visible .entry" in in_empty(empty, tmp_path, str(empty / "xgpu"), "compile", program)
    in_empty(empty, tmp_path, str(empty / "xgpu"), "run", program, "--check")
    in_empty(empty, tmp_path, str(empty / "xgpu"), "export", program, "-o", "exported")
    assert list((tmp_path / "exported").rglob("*.h"))
    assert "jax" in in_empty(empty, tmp_path, str(empty / "xgpu"), "doctor")


def test_an_empty_environment_calls_kernels_from_jax(empty: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, jax.numpy as jnp, xgpu\n"
        "assert importlib.util.find_spec('xgpu.tools') is None\n"
        "assert importlib.util.find_spec('pytest') is None\n"
        "print(float(xgpu.jit(lambda x: (x * 2 + 1).sum())(jnp.arange(8.0))))"
    )
    assert float(in_empty(empty, tmp_path, str(empty / "python"), "-c", code)) == 64

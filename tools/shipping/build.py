"""Exports a program, and builds test programs of C, C++ and Rust that call the package, with data from JAX."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import xgpu
from xgpu.options import Options
from xgpu.packaging.model import Package
from xgpu.runtime.packing import packed
from xgpu.tools.shipping.programs import Shipped
from xgpu.tools.shipping.sources import sources

FILES = Path(__file__).resolve().parent / "files"
LANGUAGES = ("c", "cpp", "rust")
_CARGO = """[package]
name = "check"
version = "0.1.0"
edition = "2021"
build = "build.rs"

[[bin]]
name = "check"
path = "check.rs"

[profile.release]
strip = true

[workspace]

[dependencies]
"""
_BUILD_RS = """fn main() {
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=harness");
    println!("cargo:rustc-link-lib=dl");
}
"""


def build(program: Shipped, to: Path, host: bool, target: str = "sm_90a") -> Package:
    """Build what tries a program: executables in ``to``/bin, data in ``to``/data, the rest in ``to``/build.

    With ``host`` the executables run here, on the packages' host libraries.
    """
    folder = to / "build" / program.name
    first, *others = program.signatures
    exported = xgpu.export(
        program.source, *first, signatures=others, to=folder / "package", name=program.name, targets=[target], host=host
    )
    (to / "bin").mkdir(exist_ok=True)
    for number, signature in enumerate(exported.package.signatures):
        case = f"{program.name}_{number}"
        for name, text in sources(exported.package, signature).items():
            (folder / case).mkdir(exist_ok=True)
            (folder / case / name).write_text(text)
        _build_c(exported.package, folder, case, to / "bin", host)
        _build_rust(exported.package, folder, case, to / "bin", host)
        _write_data(program, program.signatures[number], to / "data" / case)
    return exported.package


def run_command(*words: Any, cwd: Path | None = None, **environment: str) -> None:
    """Run a command; raises RuntimeError with what it prints if it fails."""
    paths = os.environ.get("PATH", ""), str(Path.home() / ".cargo" / "bin")
    given = {**os.environ, "PATH": os.pathsep.join(paths), **environment}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=cwd, env=given, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


def _build_c(package: Package, folder: Path, case: str, to: Path, host: bool) -> None:
    name, here = package.name, folder / case
    includes = f"-I{folder / 'package' / 'include'}", f"-I{here}", f"-I{FILES}"
    defines = [f"-D{name.upper()}_HOST", "-DHARNESS_HOST"] if host else []
    objects = [here / f"{each}.o" for each in ("package", "harness")]
    for source, target in zip((folder / "package" / "src" / f"{name}.c", FILES / "harness.c"), objects, strict=True):
        run_command("cc", "-std=c11", "-O2", "-fPIC", *defines, *includes, "-c", source, "-o", target)
    if host and package.host is not None:
        objects.append(folder / "package" / package.host.object_path(name))
    libraries = "-ldl", "-lpthread", "-lm"
    run_command(
        "cc", "-std=c11", "-O2", "-g", *includes, FILES / "check.c", *objects, *libraries, "-o", to / f"{case}_c"
    )
    cpp = "c++", "-std=c++17", "-O2", "-g", *includes, FILES / "check.cpp"
    run_command(*cpp, *objects, *libraries, "-static-libstdc++", "-o", to / f"{case}_cpp")


def _build_rust(package: Package, folder: Path, case: str, to: Path, host: bool) -> None:
    crate, here = folder / case / "crate", folder / case
    crate.mkdir(exist_ok=True)
    (here / "libharness.a").unlink(missing_ok=True)
    run_command("ar", "crs", here / "libharness.a", here / "harness.o")
    feature = ', features = ["host"]' if host else ""
    (crate / "Cargo.toml").write_text(f'{_CARGO}xgpu_{package.name} = {{ path = "../../package"{feature} }}\n')
    (crate / "build.rs").write_text(_BUILD_RS.replace("{folder}", str(here)))
    shutil.copy(FILES / "check.rs", crate)
    shutil.copy(here / "package.rs", crate)
    run_command("cargo", "build", "--release", "--offline", "--quiet", cwd=crate)
    shutil.copy(crate / "target" / "release" / "check", to / f"{case}_rust")


def _write_data(program: Shipped, specs: tuple[str, ...], to: Path) -> None:
    compiled = xgpu.compile(program.source, *specs, options=Options(products="all", control_flow="launches"))
    arguments = compiled.random_inputs(seed=1)
    to.mkdir(parents=True)
    for number, (each, spec) in enumerate(zip(arguments, compiled.arguments, strict=True)):
        data = packed(each, spec.dtype) if spec.dtype.is_packed else np.ascontiguousarray(each)
        data.tofile(to / f"argument{number}")
    for number, result in enumerate(program.expected(arguments)):
        wanted = np.asarray(result).astype(np.float64)
        largest = max(1.0, np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted)))
        is_exact = result.dtype.kind in "iub"
        wanted.tofile(to / f"result{number}")
        np.float64(0 if is_exact else program.tolerance * largest).tofile(to / f"tolerance{number}")


def kernels_of(to: Path, name: str) -> list[dict[str, Any]]:
    """Return the kernels of a package that was built, as its manifest has them."""
    manifest = json.loads((to / "build" / name / "package" / "manifest.json").read_text())
    return list(manifest["targets"][0]["kernels"])

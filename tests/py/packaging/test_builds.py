"""Packages build with the compilers and build systems that people use, without a warning, and what is built runs."""

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.py.packaging.packages import STRICT, do_run, exported, tool
from xgpu.packaging.model import Package


def blend(x: Any, y: Any, weights: Any) -> tuple[Any, Any]:
    """Two kernels, with scratch between, and two results."""
    z = x * 2 - x.sum(0)
    return (z + y).sum(1), z * weights


MAIN_C = """
#include <stdio.h>
#include <stdlib.h>
#include "xgpu/blend.h"
int main(void) {
  static float memory[4][512] __attribute__((aligned(128)));
  static float weights[16] __attribute__((aligned(128)));
  static char scratch[4096] __attribute__((aligned(128)));
  for (int i = 0; i < 128; i++) memory[0][i] = (float)i, memory[1][i] = 1;
  for (int i = 0; i < 16; i++) weights[i] = 0.5f;
  blend_extents extents;
  if (blend_get_extents(8, &extents) != BLEND_OK || extents.x != 128) return 1;
  if (extents.scratch_bytes > sizeof scratch) return 1;
  blend_status status =
      blend_run(8, memory[0], memory[1], weights, memory[2], memory[3], scratch, extents.scratch_bytes, NULL);
  if (status != BLEND_OK) return puts(blend_error_message()), 2;
  printf("%g %g %g\\n", memory[2][0], memory[2][7], memory[3][127]);
  if (blend_run(9, memory[0], memory[1], weights, memory[2], memory[3], scratch, 4096, NULL) != BLEND_UNKNOWN_SIZE)
    return 3;
  return 0;
}
"""
MAIN_CPP = """
#include <cstdlib>
#include <iostream>
#include <vector>
#include "xgpu/blend.hpp"
namespace blend = xgpu::blend;
static void *allocate(std::size_t bytes) { return std::aligned_alloc(128, (bytes + 127) / 128 * 128); }
int main() {
  const auto extents = blend::get_extents(8);
  blend::loaded kernels;
  blend::memory scratch(extents.scratch_bytes, allocate, std::free), first(0, allocate, std::free);
  first = std::move(scratch);
  std::vector<float> x(extents.x), y(extents.y, 1), weights(extents.weights, 0.5f), scaled(extents.result_1);
  float sums[8];
  for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
  blend::run(8, x, y, weights, sums, scaled, first);
  std::cout << sums[0] << ' ' << sums[7] << ' ' << scaled[127] << '\\n';
  try {
    y.pop_back();
    blend::run(8, x, y, weights, sums, scaled, first);
    return 1;
  } catch (const blend::error &error) {
    std::cout << error.status() << ' ' << error.what() << '\\n';
  }
}
"""
MAIN_RS = """
use xgpu_blend::{extents, run_on_host, Status};

#[repr(align(128))]
struct Aligned<const N: usize>([f32; N]);

fn main() {
    let mut x = Aligned([0.0; 128]);
    let (y, weights) = (Aligned([1.0; 128]), Aligned([0.5; 16]));
    let (mut sums, mut scaled) = (Aligned([0.0; 8]), Aligned([0.0; 128]));
    x.0.iter_mut().enumerate().for_each(|(i, each)| *each = i as f32);
    assert_eq!(extents(8).unwrap().x, 128);
    run_on_host(8, &x.0, &y.0, &weights.0, &mut sums.0, &mut scaled.0).unwrap();
    println!("{} {} {}", sums.0[0], sums.0[7], scaled.0[127]);
    let error = run_on_host(8, &x.0, &y.0[1..], &weights.0, &mut sums.0, &mut scaled.0).unwrap_err();
    assert_eq!(error.status, Status::WrongExtent);
    println!("{error}");
    assert_eq!(extents(9).unwrap_err().status, Status::UnknownSize);
}
"""


def expected() -> str:
    """What all these programs print: the first and the last of the sums, and the last that was scaled."""
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    sums, scaled = (np.asarray(each) for each in blend(x, np.ones_like(x), np.full(16, 0.5, np.float32)))
    return f"{sums[0]:g} {sums[7]:g} {scaled[7, 15]:g}"


EXPECTED = expected()
WRONG = "blend: 'y' has 127 elements; it must have 128"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("builds") / "package"
    specs = [(f"f32[{rows},16]", f"f32[{rows},16]", "f32[16]") for rows in (8, 24)]
    package = exported(blend, *specs[0], signatures=specs[1:], to=path, targets=["sm_80", "sm_90a"])
    assert isinstance(package, Package) and package.size_names == ("x_dim0",)
    assert all(len(code.kernels) > 2 for code in package.targets)
    return path


def host_sources(folder: Path) -> list[Path]:
    return [folder / "src" / "blend.c", *(folder / "src").glob("*.o")]


@pytest.mark.parametrize("standard", ["c99", "c11"])
def test_c(standard: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN_C)
    gcc = tool("gcc"), f"-std={standard}", "-O1", *STRICT, f"-I{folder / 'include'}"
    do_run(*gcc, "-c", folder / "src" / "blend.c", "-o", tmp_path / "gpu.o")
    do_run(*gcc, "-DBLEND_HOST", tmp_path / "main.c", *host_sources(folder), "-lm", "-o", tmp_path / "main")
    assert do_run(tmp_path / "main") == f"{EXPECTED}\n"


def test_clang(folder: Path, tmp_path: Path) -> None:
    clang = tool("clang"), "-std=c99", *STRICT, f"-I{folder / 'include'}"
    do_run(*clang, "-c", folder / "src" / "blend.c", "-o", tmp_path / "gpu.o")


def test_cpp(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(MAIN_CPP)
    include = f"-I{folder / 'include'}"
    do_run(tool("gcc"), include, "-DBLEND_HOST", "-c", folder / "src" / "blend.c", "-o", tmp_path / "blend.o")
    objects = tmp_path / "blend.o", *(folder / "src").glob("*.o")
    gxx = tool("g++"), "-std=c++17", *STRICT, "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Weffc++", include
    do_run(*gxx, tmp_path / "main.cpp", *objects, "-lm", "-o", tmp_path / "main")
    assert do_run(tmp_path / "main") == f"{EXPECTED}\n6 {WRONG}\n"


def test_memory_is_used_as_it_should_be(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN_C)
    flags = "-g", "-DBLEND_HOST", f"-I{folder / 'include'}"
    do_run(tool("gcc"), *flags, tmp_path / "main.c", *host_sources(folder), "-lm", "-o", tmp_path / "main")
    checked = tool("valgrind"), "--quiet", "--error-exitcode=9", "--leak-check=full", tmp_path / "main"
    assert do_run(*checked) == f"{EXPECTED}\n"


def test_cargo(folder: Path, tmp_path: Path) -> None:
    crate = tmp_path / "app"
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "main.rs").write_text(MAIN_RS)
    # Inside of a workspace, of which it becomes a member.
    shutil.copytree(folder, crate / "blend")
    dependency = 'xgpu_blend = { path = "blend", features = ["host"] }'
    manifest = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
    (crate / "Cargo.toml").write_text(f"{manifest}{dependency}\n")
    target = {"CARGO_TARGET_DIR": str(tmp_path / "target")}
    said = do_run(tool("cargo"), "run", "--offline", "--quiet", cwd=crate, **target)
    assert said == f"{EXPECTED}\n{WRONG}\n"
    # For the GPU, on which nothing runs here.
    threads = "fn is_send<T: Send>() {}\n#[test]\nfn others() { is_send::<(xgpu_blend::Stream, "
    threads += "xgpu_blend::DeviceSlice<f32>, xgpu_blend::DeviceSliceMut<f32>)>(); }\n"
    (crate / "tests").mkdir()
    (crate / "tests" / "threads.rs").write_text(threads)
    do_run(tool("cargo"), "test", "--offline", "--quiet", "--test", "threads", cwd=crate, **target)
    do_run(tool("cargo"), "rustc", "--offline", "--quiet", "--", "-D", "warnings", cwd=folder, **target)


CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(app LANGUAGES C CXX)
{find}
foreach(library blend_host blend_host_shared)
  add_executable(${{library}}_c main.c)
  add_executable(${{library}}_cpp main.cpp)
  target_compile_features(${{library}}_cpp PRIVATE cxx_std_17)
  target_link_libraries(${{library}}_c PRIVATE xgpu::${{library}})
  target_link_libraries(${{library}}_cpp PRIVATE xgpu::${{library}})
endforeach()
foreach(library blend blend_shared)
  add_executable(${{library}}_gpu main.c)
  target_link_libraries(${{library}}_gpu PRIVATE xgpu::${{library}})
endforeach()
"""


def cmake_programs(tmp_path: Path, find: str, *options: str) -> None:
    """Build programs against all libraries of a package, and run those that need no GPU."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "main.c").write_text(MAIN_C)
    (app / "main.cpp").write_text(MAIN_CPP)
    (app / "CMakeLists.txt").write_text(CMAKE.format(find=find))
    do_run(tool("cmake"), "-S", app, "-B", app / "build", "-G", "Ninja", *options)
    do_run(tool("cmake"), "--build", app / "build")
    for library in ("blend_host", "blend_host_shared"):
        assert do_run(app / "build" / f"{library}_c") == f"{EXPECTED}\n"
        assert do_run(app / "build" / f"{library}_cpp").startswith(EXPECTED)


def test_cmake_in_a_folder_of_a_program(folder: Path, tmp_path: Path) -> None:
    tool("ninja")
    cmake_programs(tmp_path, f'add_subdirectory("{folder}" package)')


def test_cmake_and_pkg_config_installed(folder: Path, tmp_path: Path) -> None:
    tool("ninja")
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    do_run(tool("cmake"), "-S", folder, "-B", build, "-G", "Ninja", f"-DCMAKE_INSTALL_PREFIX={prefix}",
           "-DCMAKE_INSTALL_LIBDIR=lib")  # fmt: skip
    do_run(tool("cmake"), "--build", build, "--target", "install")
    cmake_programs(tmp_path, "find_package(xgpu_blend REQUIRED)", f"-DCMAKE_PREFIX_PATH={prefix}")
    (tmp_path / "main.c").write_text(MAIN_C)
    found = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = do_run(tool("pkg-config"), "--cflags", "--libs", "--static", "xgpu_blend_host", **found).split()
    do_run(tool("gcc"), tmp_path / "main.c", "-static-libgcc", *flags, "-o", tmp_path / "main")
    environment = {"LD_LIBRARY_PATH": str(prefix / "lib")}
    assert do_run(tmp_path / "main", **environment) == f"{EXPECTED}\n"
    symbols = do_run(tool("nm"), "-D", "--defined-only", prefix / "lib" / "libxgpu_blend_host.so").split("\n")
    exported_names = {line.split()[-1] for line in symbols if line}
    assert exported_names and all(name.startswith("blend_") and "kernel" not in name for name in exported_names)


def test_two_packages_in_one_program(folder: Path, tmp_path: Path) -> None:
    """Nothing in one collides with the other, though both bring the same functions for their kernels."""

    def halved(x: jax.Array) -> jax.Array:
        return (x.astype("float16") / 2).sum(0)

    def softened(x: jax.Array) -> jax.Array:
        return jax.nn.softmax(x.astype("float16"), axis=1)

    sources: list[Path | str] = []
    for function in (halved, softened):
        path = tmp_path / function.__name__
        package = exported(function, "f32[64,32]", to=path)
        assert package.host is not None
        flags = f"-D{package.name.upper()}_HOST", f"-I{path / 'include'}"
        do_run(tool("gcc"), *flags, "-c", path / "src" / f"{package.name}.c", "-o", path / "main.o")
        sources += [path / "main.o", path / package.host.object_path(package.name), f"-I{path / 'include'}"]
    (tmp_path / "main.c").write_text(
        '#include "xgpu/halved.h"\n#include "xgpu/softened.h"\n'
        "int main(void) { return (int)halved_prepare(0) + (int)softened_prepare(0); }\n"
    )
    do_run(tool("gcc"), tmp_path / "main.c", *sources, "-lm", "-o", tmp_path / "main")
    do_run(tmp_path / "main")

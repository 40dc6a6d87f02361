"""Packages that tests export, build with the tools of this machine, and call through ctypes."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xgpu
from xgpu.packaging.model import SCRATCH_ALIGNMENT, Package, PackageArray
from xgpu.runtime.packing import packed, packed_empty, unpacked

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
STRICTER = [*STRICT, "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wcast-qual"]
"""For the sources of packages: nothing is converted but where it is said."""
EXTRA_PATH = (Path.home() / ".cargo" / "bin",)
"""Where tools lie that are not in PATH."""


def tool(name: str) -> str:
    """The path of a tool; a test that needs one that is not there is skipped and says so."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, EXTRA_PATH)])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def do_run(*command: Any, cwd: Path | None = None, **environment: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, EXTRA_PATH)])
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, **environment},
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def host_library(folder: Path, package: Package) -> Path:
    """Build the package's host library as a shared one, without a build system."""
    assert package.host is not None
    library = folder / "host.so"
    sources = [folder / "src" / f"{package.name}.c", folder / package.host.object_path(package.name)]
    flags = "-shared", "-Wl,-z,defs", "-fPIC", "-O1", f"-D{package.name.upper()}_HOST", f"-I{folder / 'include'}"
    do_run(tool("gcc"), *STRICTER, *flags, *sources, "-lm", "-o", library)
    return library


class Library:
    """A host library that was loaded; a call takes and returns NumPy arrays."""

    def __init__(self, folder: Path, package: Package):
        self.package = package
        self._library = ctypes.CDLL(str(host_library(folder, package)))
        for name in ("error_message", "status_text"):
            self.function(name).restype = ctypes.c_char_p

    def function(self, name: str) -> Any:
        return getattr(self._library, f"{self.package.name}_{name}")

    @property
    def message(self) -> str:
        return str(self.function("error_message")().decode())

    def run(self, arrays: Sequence[Any], signature: int = 0) -> list[Any]:
        """Run on one array per argument, and return one per result."""
        given = self.package.signatures[signature]
        inputs = [placed(array, spec) for array, spec in zip(arrays, given.arguments, strict=True)]
        before = [memory.copy() for memory in inputs]
        outputs = [aligned(spec.bytes, 0xA5) for spec in given.results]
        status = self.call(signature, [*inputs, *outputs], aligned(given.scratch_bytes, 0x5A))
        assert status == 0, self.message
        for memory, old in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(memory, old)
        return [taken(memory, spec) for memory, spec in zip(outputs, given.results, strict=True)]

    def call(self, signature: int, memories: Sequence[Any], scratch: Any) -> int:
        """Call the function on memory, and return its status."""
        sizes = [ctypes.c_int64(size) for size in self.package.signatures[signature].sizes]
        pointers = [ctypes.c_void_p(memory.ctypes.data if memory.size else None) for memory in memories]
        its = ctypes.c_void_p(scratch.ctypes.data), ctypes.c_size_t(scratch.nbytes)
        return int(self.function("run")(*sizes, *pointers, *its, None))


def aligned(size: int, filled_with: int = 0) -> Any:
    """Memory that begins where scratch may, and where kernels want arrays."""
    memory = np.full(size + SCRATCH_ALIGNMENT, filled_with, np.uint8)
    start = -memory.ctypes.data % SCRATCH_ALIGNMENT
    return memory[start : start + size]


def placed(array: Any, spec: PackageArray) -> Any:
    """The array in memory as a package takes it."""
    memory = aligned(spec.bytes)
    data = packed(array, spec.dtype) if spec.dtype.is_packed else np.ascontiguousarray(array).reshape(-1)
    memory[:] = data.view(np.uint8)[: spec.bytes]
    return memory


def taken(memory: Any, spec: PackageArray) -> Any:
    """The array that a package has written."""
    if spec.dtype.is_packed:
        assert memory.size == packed_empty(spec.shape, spec.dtype).size
        return unpacked(memory, spec.shape, spec.dtype)
    return memory.view(spec.dtype.numpy).reshape(spec.shape)


def exported(function: Callable[..., Any] | str | Path, *specs: str, to: Path, **options: Any) -> Package:
    """Export into a folder, and return the package."""
    return xgpu.export(function, *specs, to=to, **options).package


def bits(array: Any) -> Any:
    """The bytes of an array's elements: NaNs compare equal."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

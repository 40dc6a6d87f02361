"""``xgpu doctor``: what was found on this machine, and what is missing for what."""

import argparse
import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import xgpu
from xgpu.cli.command import Command
from xgpu.cli.process import DONE
from xgpu.device import DEVICES
from xgpu.records import dataclass

_PACKAGES = ("jax", "jaxlib", "llvmlite", "numpy", "ml_dtypes")
_TOOLS = {
    "cc": "C programs of exported packages",
    "c++": "C++ programs of exported packages",
    "cargo": "Rust programs of exported packages",
    "cmake": "builds of exported packages by CMake",
}
_PLUGINS = ("jax-cuda13-plugin", "jax-cuda12-plugin")


@dataclass(frozen=True)
class Finding:
    """Something that was looked for: its name, what was found, empty if nothing, and what needs it."""

    name: str
    found: str
    needed_for: str = ""

    def __str__(self) -> str:
        return f"{self.name:<12}{self.found or f'missing: needed for {self.needed_for}'}"


def findings() -> Iterator[Finding]:
    """Yield what was found, in the order in which it is needed."""
    yield Finding("xgpu", f"{xgpu.__version__} in {os.path.dirname(xgpu.__file__)}")
    yield Finding("Python", f"{platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores")
    for package in _PACKAGES:
        yield Finding(package, _version_of(package), "everything")
    yield from _assemblers()
    yield from _gpus()
    for tool, needed_for in _TOOLS.items():
        yield Finding(tool, shutil.which(tool) or "", needed_for)
    yield _cache()


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _assemblers() -> Iterator[Finding]:
    from xgpu.target.nvptx.cubin import find_disassembler, find_ptxas, ptxas_version

    ptxas = find_ptxas()
    found = "" if ptxas is None else f"{ptxas_version() or 'of unknown version'} at {ptxas}"
    yield Finding(
        "ptxas",
        found,
        "levels cubin and sass, machine code in exported packages, and first runs on a GPU without a wait",
    )
    yield Finding("nvdisasm", str(find_disassembler() or ""), "level sass")


def _gpus() -> Iterator[Finding]:
    from xgpu.target.nvptx.cuda_driver import find_driver

    driver = find_driver()
    known = {target.rstrip("af") for target in DEVICES}
    found = "" if driver is None else f"for CUDA {driver.version}" + (f"; {driver.problem}" if driver.problem else "")
    yield Finding("driver", found, "running on a GPU")
    for number, (name, target) in enumerate(() if driver is None else driver.gpus):
        is_known = "" if target in known else ": no target of xgpu's, see xgpu devices"
        yield Finding(f"GPU {number}", f"{name}, {target}{is_known}")
    if driver is not None and not driver.gpus:
        yield Finding("GPU", "", "running on a GPU")
    plugins = [f"{name} {found}" for name in _PLUGINS if (found := _version_of(name))]
    yield Finding("JAX on GPUs", ", ".join(plugins), "running on a GPU: pip install 'jax[cuda13]'")


def _cache() -> Finding:
    from xgpu.driver.cache import kernel_cache

    kernels = kernel_cache()
    if kernels.folder is None:
        return Finding("cache", "off, by XGPU_CACHE or XGPU_CACHE_DIR")
    files = kernels.entries()
    return Finding("cache", f"{len(files)} entries, {sum(size for _, size in files):,} bytes, in {kernels.folder}")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def _run(arguments: argparse.Namespace) -> int:
    for finding in findings():
        print(finding)
    return DONE


DOCTOR = Command("doctor", "say what was found on this machine, and what is missing for what", _add_arguments, _run)

"""Writes a package into a folder: all files, and last the manifest that lists them."""

import hashlib
import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from xgpu.errors import InvalidInput
from xgpu.packaging.files.build_files import build_files
from xgpu.packaging.files.c_source import c_files
from xgpu.packaging.files.cpp_source import cpp_files
from xgpu.packaging.files.interface import Interface
from xgpu.packaging.files.manifest import PATH, kernel_path, manifest_text
from xgpu.packaging.files.rust_source import rust_files
from xgpu.packaging.model import Package


def package_files(package: Package, checks: Sequence[object] = ()) -> dict[str, bytes]:
    """Return the contents of a package's files by their paths, the manifest last; it has the ``checks``."""
    interface = Interface(package)
    texts = c_files(interface)
    texts |= cpp_files(interface) | build_files(interface)
    texts |= rust_files(interface, texts[f"include/xgpu/{package.name}.h"])
    files = {path: text.encode() for path, text in texts.items()}
    if package.host is not None:
        files[package.host.object_path(package.name)] = package.host.code
    for code in package.targets:
        for number, kernel in enumerate(code.kernels):
            files[kernel_path(code, number, "ptx")] = kernel.ptx.encode()
            if kernel.cubin is not None:
                files[kernel_path(code, number, "cubin")] = kernel.cubin
    files = dict(sorted(files.items()))
    return files | {PATH: manifest_text(package, files, checks).encode()}


def write_package(package: Package, folder: Path, checks: Sequence[object] = ()) -> None:
    """Write a package into a folder, which is made, or has nothing but what an earlier export wrote into it.

    Raises InvalidInput if the folder is somebody else's or cannot be written.
    """
    files = package_files(package, checks)
    try:
        earlier = _earlier(folder, files)
        for path, data in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for path in earlier:
            if path not in files:
                (folder / path).unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidInput(f"cannot write a package into '{folder}': {reason}") from None


def _earlier(folder: Path, files: Container[str]) -> list[str]:
    """Return the files of an earlier export in a folder; what else is there, built files say, stays.

    Raises InvalidInput if there is something else in place of ``files``, or something without an export.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return []
    manifest = folder / PATH
    listed = _read(manifest) if manifest.is_file() else None
    if listed is None:
        raise _refused(folder, "it has other files")
    # A path that leads out of the folder is none that an export wrote.
    within = folder.resolve()
    earlier = {path: checksum for path, checksum in listed.items() if (folder / path).resolve().is_relative_to(within)}
    for path in sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()):
        if path == PATH:
            continue
        if path in files and path not in earlier:
            raise _refused(folder, f"'{path}' is not of that package")
        if path in earlier and hashlib.sha256((folder / path).read_bytes()).hexdigest() != earlier[path]:
            raise _refused(folder, f"'{path}' was changed since")
    return list(earlier)


def _refused(folder: Path, reason: str) -> InvalidInput:
    return InvalidInput(
        f"cannot write a package into '{folder}': expected an empty folder, or one with an earlier package; {reason}"
    )


def _read(manifest: Path) -> dict[str, str] | None:
    """Return the files that a manifest lists, with their checksums; None if it is of something else."""
    try:
        found: Any = json.loads(manifest.read_text(encoding="utf-8"))
        if found["kind"] != "xgpu package":
            return None
        return {str(path): str(each.get("sha256")) for path, each in found["files"].items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None

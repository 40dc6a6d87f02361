"""Compiled kernels kept on disk and in memory, by everything that they were made from.

The folder is ``$XGPU_CACHE_DIR``, else ``xgpu`` in the user's cache folder; ``XGPU_CACHE=off`` keeps nothing.
Each kernel is one file of JSON whose name is its key and which says its own checksum: what cannot be read is made anew.
A file appears whole or not at all, so processes may share the folder.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import xgpu

MOST_BYTES = 256 * 1024 * 1024
"""Size of the folder from which on the kernels that were used least recently are removed."""
_SUFFIX = ".json"


@dataclass(frozen=True)
class CachedKernel:
    """What running a kernel on a GPU takes: its PTX and the bytes of dynamic shared memory of a launch."""

    ptx: str
    shared_bytes: int


def key_of(*parts: str) -> str:
    """Return the key of a kernel that is made from ``parts``, by this version of xgpu and of what it is built on."""
    digest = hashlib.sha256(_compiler().encode())
    for part in parts:
        digest.update(f"\0{len(part)}\0".encode())
        digest.update(part.encode())
    return digest.hexdigest()


@cache
def _compiler() -> str:
    """Return what identifies the compiler: its own source, and the versions of jaxlib and llvmlite."""
    digest = hashlib.sha256()
    root = Path(xgpu.__file__).parent
    folders = {root, *(Path(module).parent for module in (xgpu.dialects.__file__, xgpu.passes.__file__) if module)}
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {version('jaxlib')} {version('llvmlite')}"


class KernelCache:
    """The kernels in a folder, of which those used by this process are in memory too; without a folder, none."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self._loaded: dict[str, CachedKernel] = {}

    def get(self, key: str) -> CachedKernel | None:
        """Return the kernel of a key; None if there is none, or none that is whole."""
        if key not in self._loaded and self.folder is not None and (kernel := _read(self._path(key))) is not None:
            self._loaded[key] = kernel
        return self._loaded.get(key)

    def put(self, key: str, kernel: CachedKernel) -> None:
        """Keep a kernel. A folder that cannot be written to is no error: the kernel is then kept in memory alone."""
        if self.folder is None:
            return
        self._loaded[key] = kernel
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self._path(key), kernel)
            self._prune()

    def entries(self) -> list[Path]:
        """Return the files, the one used least recently first."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return [path for _, path in sorted(_by_time(self.folder))]

    def clear(self) -> int:
        """Remove every kernel and return how many there were on disk."""
        self._loaded.clear()
        removed = 0
        for path in self.entries():
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
        return removed

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}{_SUFFIX}"

    def _prune(self) -> None:
        sizes = [(path, path.stat().st_size) for path in self.entries()]
        excess = sum(size for _, size in sizes) - MOST_BYTES
        for path, size in sizes:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _by_time(folder: Path) -> Iterator[tuple[float, Path]]:
    for path in folder.glob(f"*{_SUFFIX}"):
        # Another process may remove it meanwhile.
        with contextlib.suppress(OSError):
            yield path.stat().st_mtime, path


def _checksum(kernel: CachedKernel) -> str:
    return hashlib.sha256(f"{kernel.shared_bytes}\0{kernel.ptx}".encode()).hexdigest()


def _read(path: Path) -> CachedKernel | None:
    try:
        found = json.loads(path.read_text())
        kernel = CachedKernel(str(found["ptx"]), int(found["shared_bytes"]))
        if found["checksum"] != _checksum(kernel):
            return None
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kernel


def _write(path: Path, kernel: CachedKernel) -> None:
    text = json.dumps(asdict(kernel) | {"checksum": _checksum(kernel)})
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def default_folder() -> Path | None:
    """Return the folder that the environment asks for; None for none."""
    if os.environ.get("XGPU_CACHE") == "off":
        return None
    if given := os.environ.get("XGPU_CACHE_DIR"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "xgpu"


@cache
def _cache_in(folder: Path | None) -> KernelCache:
    return KernelCache(folder)


def kernel_cache() -> KernelCache:
    """Return the cache of this process for the folder that the environment asks for now."""
    return _cache_in(default_folder())

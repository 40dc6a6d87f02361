"""A cache on disk and in memory: of compiled kernels, by all inputs of their compilation, and of what was measured.

The folder is ``$XGPU_CACHE_DIR``, else ``xgpu`` in the user's cache folder; ``XGPU_CACHE=off`` keeps nothing.
Each entry is one file of JSON whose name is its key and its user, and which says its own checksum, of which the key
is part: what cannot be read, or is another entry's, is made anew. A file appears whole or not at all, so processes
may share the folder. Users may too: PTX runs on the GPU with the rights of who loads it, so a file is believed only if
it is this user's or root's and nobody else can write to it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import xgpu
from xgpu.errors import InvalidInput
from xgpu.records import dataclass

MOST_BYTES = 256 * 1024 * 1024
"""Size of a user's entries in the folder from which on those that were used least recently are removed."""
_ROOM = 16
"""Part of that size which is free after it, and which a process writes before it looks at the folder again."""
_ENTRY = re.compile(r"[0-9a-f]{64}\.[0-9]+\.json")
"""The name of an entry's file: other files in the folder are somebody else's, and are left alone."""
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.[0-9]+\.json\.[0-9a-f]+\.tmp")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TEMPORARY_SECONDS = 600
"""After this time a file that is being written belongs to a process that ended."""
_ROOT = 0
_OFF = frozenset(("off", "0", "no", "false"))
_ON = frozenset(("", "on", "1", "yes", "true"))


class Entry(Protocol):
    """An entry of a cache: a dataclass of values that JSON has."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self | None:
        """Return the entry whose fields are ``found``; None if they are not of their types."""


@dataclass(frozen=True)
class CachedKernel:
    """A kernel as a GPU runs it: its PTX and the bytes of dynamic shared memory of a launch."""

    ptx: str
    shared_bytes: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self | None:
        """Return the kernel whose fields are ``found``; None if they are not of their types."""
        ptx, shared_bytes = found.get("ptx"), found.get("shared_bytes")
        return cls(ptx, shared_bytes) if isinstance(ptx, str) and type(shared_bytes) is int else None


@dataclass(frozen=True)
class CachedCode:
    """A kernel's machine code, in base 64."""

    code: str

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self | None:
        """Return the machine code whose fields are ``found``; None if they are not of their types."""
        code = found.get("code")
        return cls(code) if isinstance(code, str) and _BASE64.fullmatch(code) else None


def key_of(*parts: str) -> str:
    """Return the key of ``parts`` as compiled by this version of xgpu and of its dependencies."""
    digest = hashlib.sha256(_compiler().encode())
    for part in parts:
        digest.update(f"\0{len(part)}\0".encode())
        digest.update(part.encode())
    return digest.hexdigest()


@cache
def _compiler() -> str:
    """Return what identifies the compiler: its own source, and the versions of jaxlib and llvmlite."""
    digest = hashlib.sha256()
    files = (package.__file__ for package in (xgpu, xgpu.dialects, xgpu.passes))
    for path in sorted(_sources(Path(file) for file in files if file)):
        digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {version('jaxlib')} {version('llvmlite')}"


def _sources(packages: Iterable[Path]) -> set[Path]:
    """Return the source files of packages, given by their ``__init__.py``; folders in them may be symbolic links."""
    found = set[Path]()
    for package in packages:
        for folder, _, names in package.parent.walk(follow_symlinks=True):
            found |= {folder / name for name in names if name.endswith(".py")}
    return found


class Cache[T: Entry]:
    """The entries of one kind in a folder; those that this process used are in memory, too.

    Without a folder there are none. Limits and removal are those of all entries in the folder.
    """

    def __init__(self, folder: Path | None, kind: type[T]):
        self.folder = folder
        self._kind = kind
        self._loaded: dict[str, T] = {}
        # How much may be written before the folder, of many thousand files, is looked through again.
        self._room = 0

    def get(self, key: str) -> T | None:
        """Return the entry of a key; None if there is none, or its file is damaged or not to be trusted."""
        if key not in self._loaded and self.folder is not None:
            for user in dict.fromkeys((os.geteuid(), _ROOT)):
                if (entry := _read(self._path(key, user), key, self._kind)) is not None:
                    self._loaded[key] = entry
                    break
        return self._loaded.get(key)

    def put(self, key: str, entry: T) -> None:
        """Store an entry. If the folder cannot be written to, it is kept in memory alone."""
        if self.folder is None:
            return
        self._loaded[key] = entry
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._room -= _write(self._path(key, os.geteuid()), key, asdict(entry))
            if self._room < 0:
                self._prune()

    def entries(self) -> list[tuple[Path, int]]:
        """Return the files of this user's entries and their sizes, the one used least recently first."""
        found = sorted((status.st_mtime, path, status.st_size) for path, status in _files(self.folder, _ENTRY))
        return [(path, size) for _, path, size in found]

    def clear(self) -> int:
        """Remove every entry of this user and return how many there were on disk."""
        self._loaded.clear()
        for path, _ in _files(self.folder, _TEMPORARY):
            _remove(path)
        return sum(_remove(path) for path, _ in self.entries())

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process of this user at a time do what is inside, of those that share the folder.

        Where files cannot be locked, as in some that a network shares, all are let in.
        """
        with contextlib.ExitStack() as stack:
            if self.folder is not None:
                with contextlib.suppress(OSError):
                    self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                    _lock(self.folder / f".{os.geteuid()}.lock", stack)
            yield

    def _path(self, key: str, user: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{key}.{user}.json"

    def _prune(self) -> None:
        """Remove what a process left half written, and entries until all are within the limit."""
        for path, status in _files(self.folder, _TEMPORARY):
            if time.time() - status.st_mtime > _TEMPORARY_SECONDS:
                _remove(path)
        entries, room = self.entries(), MOST_BYTES // _ROOM
        left = sum(size for _, size in entries)
        if left > MOST_BYTES:
            for path, size in entries:
                if left <= MOST_BYTES - room:
                    break
                left -= size * _remove(path)
        self._room = min(room, MOST_BYTES - left)


def _lock(path: Path, stack: contextlib.ExitStack) -> None:
    """Wait for a file that each process locks, until ``stack`` is left; raises OSError if it cannot be locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, descriptor)
    # Nobody else is to make this user wait.
    if _is_believed(os.fstat(descriptor)):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A child that was forked meanwhile has the file open for longer.
        stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)


def _files(folder: Path | None, name: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield this user's regular files in a folder whose whole name matches, as far as they can be seen."""
    if folder is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            # Another process may remove it meanwhile.
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if name.fullmatch(entry.name) and stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    yield Path(entry), status


def _remove(path: Path) -> bool:
    """Remove a file and return whether it was there, and this user may."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _checksum(key: str, fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{key}\0{json.dumps(fields, sort_keys=True)}".encode()).hexdigest()


def _read[T: Entry](path: Path, key: str, kind: type[T]) -> T | None:
    """Return the entry of ``key`` from a file, whatever lies in its place; None if it is not one to believe."""
    try:
        # Not blocking, as it may be a pipe that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not _is_believed(os.fstat(descriptor)):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            entry = _decoded(json.loads(file.read()), key, kind)
        # Where nothing can be written, nothing is removed either.
        with contextlib.suppress(OSError):
            os.utime(descriptor)
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    return entry


def _is_believed(status: os.stat_result) -> bool:
    """Whether a file is one that only this user or root can have written, of a size that is ours."""
    is_ours = status.st_uid in (os.geteuid(), _ROOT) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and is_ours and status.st_size <= MOST_BYTES


def _decoded[T: Entry](found: Any, key: str, kind: type[T]) -> T | None:
    if not isinstance(found, dict):
        return None
    checksum = found.pop("checksum", None)
    entry = kind.of(found)
    return entry if entry is not None and checksum == _checksum(key, asdict(entry)) else None


def _write(path: Path, key: str, fields: Mapping[str, Any]) -> int:
    """Write an entry's file, and return its size."""
    text = json.dumps({**fields, "checksum": _checksum(key, fields)})
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    # Others may read it if the user's umask lets them, nobody may write to it.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
        temporary.replace(path)
    except BaseException:
        _remove(temporary)
        raise
    return len(text)


def default_folder() -> Path | None:
    """Return the folder that the environment asks for; None for none. Raises InvalidInput for what asks for neither."""
    given = os.environ.get("XGPU_CACHE_DIR", "").strip()
    word = os.environ.get("XGPU_CACHE", "").strip()
    if word.lower() not in _OFF | _ON:
        raise InvalidInput(f"XGPU_CACHE={word}: expected on or off; XGPU_CACHE_DIR names a folder")
    if word.lower() in _OFF or given.lower() in _OFF:
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    # Relative ones are to be ignored, says the specification of this variable.
    home = base if os.path.isabs(base) else "~/.cache"
    folder = Path(os.path.expanduser(given or os.path.join(home, "xgpu")))
    # Where the user has no home, "~" stays.
    if folder.parts[:1] == ("~",):
        return None
    folder = folder.absolute()
    there = next((path for path in (folder, *folder.parents) if os.path.exists(path)), None)
    if given and there is not None and not os.path.isdir(there):
        raise InvalidInput(f"XGPU_CACHE_DIR={given}: expected a folder, but {there} is a file")
    return folder


@cache
def _cache_in[T: Entry](folder: Path | None, kind: type[T]) -> Cache[T]:
    return Cache(folder, kind)


def kernel_cache() -> Cache[CachedKernel]:
    """Return the cache of this process's kernels for the folder that the environment asks for now."""
    return cache_of(CachedKernel)


def cache_of[T: Entry](kind: type[T]) -> Cache[T]:
    """Return the cache of this process for entries of a kind, in the folder that the environment asks for now."""
    return _cache_in(default_folder(), kind)

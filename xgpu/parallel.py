"""Compiles the kernels of large programs in several processes, as many as there are cores.

The passes are Python, which runs on one core for a process. A process starts in the time of a few kernels, so small
programs are compiled in this one. ``XGPU_JOBS`` says how many processes there may be; 1 for this one alone.
"""

import base64
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import xgpu
from xgpu import errors
from xgpu.compiler import Built, Kernel
from xgpu.errors import CompilerError, InvalidInput, SourceLocation, XgpuError
from xgpu.runtime.cache import CachedKernel

_KERNELS_PER_PROCESS = 8
"""A process takes 0.9 s of a core to start, as long as it compiles about as many kernels."""
_MOST_PROCESSES = 32
_SILENT_SECONDS = 2.0

type _Pending = queue.SimpleQueue[tuple[int, str, bytes]]
"""Kernels to compile: position, name and request."""
type _Done = queue.SimpleQueue[tuple[int, dict[str, Any] | XgpuError]]
"""Positions of kernels and what was made of them."""
type Progress = Callable[[int], None]
"""Is told how many kernels are compiled."""


def compile_kernels(kernels: Sequence[Kernel], level: str) -> None:
    """Compile ``kernels`` to ``level``, ``lowered`` or ``ptx``, or few of them as far as errors in them can be found.

    Raises what compiling one of them raises, of the first in the order of the program. If it is interrupted, kernels
    that are done stay compiled, and nothing keeps running.
    """
    missing = [kernel for kernel in kernels if not kernel.is_known]
    # Kernels that were given at a later level have less to go.
    whole = [kernel for kernel in missing if "emitted" in kernel.modules]
    processes = min(_jobs(), len(whole) // _KERNELS_PER_PROCESS)
    if processes > 1:
        with _progress(len(whole)) as progress:
            _compile(whole, level, processes, progress)
    for kernel in missing:
        if kernel.built is None:
            kernel.check()


def _jobs() -> int:
    if not sys.executable:
        return 1
    try:
        return min(_MOST_PROCESSES, int(os.environ.get("XGPU_JOBS") or len(os.sched_getaffinity(0))))
    except ValueError:
        raise InvalidInput(f"XGPU_JOBS={os.environ['XGPU_JOBS']}: expected a number of processes") from None


def _compile(kernels: Sequence[Kernel], level: str, processes: int, progress: Progress) -> None:
    """Hand the kernels to processes, each of which a thread talks to, and take what they made in any order."""
    pending: _Pending = queue.SimpleQueue()
    done: _Done = queue.SimpleQueue()
    for number, kernel in enumerate(kernels):
        pending.put((number, kernel.name, _request(kernel, level)))
    workers: list[_Worker] = []
    failed: dict[int, XgpuError] = {}
    try:
        if not _start(workers, processes, pending, done):
            return
        for count in range(len(kernels)):
            progress(count)
            number, answer = done.get()
            if isinstance(answer, XgpuError):
                failed[number] = answer
            else:
                kernels[number].accept(_built(answer))
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                pending.get_nowait()
        for worker in workers:
            worker.end()
    if failed:
        raise failed[min(failed)]


def _start(workers: "list[_Worker]", processes: int, pending: "_Pending", done: "_Done") -> bool:
    """Start as many of the processes as the machine lets, and return whether there is one."""
    with contextlib.suppress(OSError):
        for _ in range(processes):
            workers.append(_Worker())
    for worker in workers:
        threading.Thread(target=worker.serve, args=(pending, done), daemon=True).start()
    return bool(workers)


class _Worker:
    """A process that compiles kernels, one after the other."""

    def __init__(self) -> None:
        paths = [str(Path(xgpu.__file__).parents[1]), *sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "xgpu.compile_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "XGPU_CACHE": "off"},
            # An interrupt from the terminal is for this process, which then ends the others.
            start_new_session=True,
        )

    def serve(self, pending: "_Pending", done: "_Done") -> None:
        """Have the process compile what is pending, until nothing is."""
        while True:
            try:
                number, name, request = pending.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((number, self._ask(request)))
            except (OSError, ValueError) as error:
                done.put((number, CompilerError(f"kernel {name}: the process that compiled it ended: {error}")))

    def _ask(self, request: bytes) -> dict[str, Any] | XgpuError:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return _error(answer["error"]) if "error" in answer else answer

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()


def _request(kernel: Kernel, level: str) -> bytes:
    request = {
        "name": kernel.name,
        "emitted": base64.b64encode(kernel.bytecode("emitted")).decode(),
        "device": kernel.device.name,
        "options": asdict(kernel.options),
        "level": level,
    }
    return json.dumps(request).encode() + b"\n"


def _built(answer: dict[str, Any]) -> Built:
    compiled = CachedKernel(**answer["compiled"]) if answer["compiled"] else None
    return Built(base64.b64decode(answer["lowered"]), compiled, [(name, seconds) for name, seconds in answer["times"]])


def _error(described: dict[str, Any]) -> XgpuError:
    """Return the error that a process described."""
    kind = getattr(errors, described["type"], CompilerError)
    location = described["location"]
    error: XgpuError = kind(described["message"], SourceLocation(**location) if location else None)
    return error


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """Say on a terminal how far it is, if it takes long."""
    start = time.monotonic()
    shown = False

    def progress(count: int) -> None:
        nonlocal shown
        if sys.stderr is not None and sys.stderr.isatty() and time.monotonic() - start > _SILENT_SECONDS:
            print(f"\rxgpu: compiled {count} of {total} kernels", end="", file=sys.stderr, flush=True)
            shown = True

    try:
        yield progress
    finally:
        if shown:
            print(f"\r{' ' * len(f'xgpu: compiled {total} of {total} kernels')}\r", end="", file=sys.stderr, flush=True)

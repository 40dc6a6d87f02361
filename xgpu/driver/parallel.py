"""Compiles the kernels of a program in several processes, as many as there are cores.

The passes are Python, which runs on one core for a process. The first process starts in the time of some kernels, see
`nursery`, and is started for programs that may have many; those after it take no time. This one compiles kernels
meanwhile, and as long as there are any. ``XGPU_JOBS`` says how many processes there may be, this one among them; 1 for
this one alone.

A process that ends, or that was stopped, is replaced once for a kernel, since what ended it may have been the machine
(memory, an operator); the second time it is an error, and not tried in this process, which would end too. Where no
process can be started, kernels are compiled in this one.
"""

import base64
import contextlib
import functools
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from xgpu import errors, ir
from xgpu.driver.cache import CachedKernel
from xgpu.driver.kernel import Built, ProgramKernel
from xgpu.driver.nursery import Process, has_nursery, is_nursery_ready, nursery
from xgpu.errors import CompilerError, InvalidInput, SourceLocation, XgpuError
from xgpu.passes.framework import manager
from xgpu.structure import count_ops

_MANY_KERNELS = 8
"""The first process takes 0.35 to 0.9 s of a core to start, as long as it compiles about as many kernels."""
_MANY_OPERATIONS = 250
"""Of programs with so many operations of StableHLO most have many kernels."""
_MANY_CORES = 4
"""A start takes half a second of one of them, and the second program of most processes comes after it."""
_MOST_PROCESSES = 32
_PROCESS_SECONDS = 0.05
"""The time of a process besides compiling: it is forked, copies the memory that it writes to, and ends."""
_BYTES_PER_SECOND = 175_000
"""Bytes of requests that become PTX in a second of a core: of 356 kernels half took 0.75 to 1.5 times as long."""
_SILENT_SECONDS = 2.0
_FEWEST = 2
_ATTEMPTS = 2
_WATCH_SECONDS = 1.0
_STALLED_SECONDS = 30.0
"""A process with work that used no processor time for so long was stopped, or waits in vain."""

type _Pending = queue.SimpleQueue[tuple[int, str, bytes]]
"""Kernels to compile: position, name and request."""
type _Answer = dict[str, Any] | XgpuError
type _Done = queue.SimpleQueue[tuple[int, _Answer | None] | None]
"""Positions of kernels and their compiled forms; None from each thread that has ended."""
type Progress = Callable[[int], None]
"""Is told how many kernels are compiled."""


def compile_kernels(kernels: Sequence[ProgramKernel], level: str) -> None:
    """Compile ``kernels`` to ``level``, or few of them as far as errors in them can be found.

    It is ``lowered``, ``ptx``, or ``cubin``, which is left out where there is no ptxas.

    Raises what compiling one of them raises, of the first in the order of the program. If it is interrupted, kernels
    that are done stay compiled, and nothing keeps running.
    """
    for _, error in compile_each(kernels, level):
        raise error


def compile_each(
    kernels: Sequence[ProgramKernel], level: str, many: int = _MANY_KERNELS
) -> Iterator[tuple[ProgramKernel, XgpuError]]:
    """Compile ``kernels`` as `compile_kernels` does; yield those that cannot be compiled, in order, and the error.

    ``many`` of them take longer to compile than the first process does to start. Machine code is always used, and at
    once: a process that is about to be there is then worth waiting for, as this one compiles meanwhile.
    """
    missing = [kernel for kernel in kernels if not kernel.is_known]
    # Kernels that were given at a later level have less to go.
    whole = [kernel for kernel in missing if kernel.source is not None]
    failed: dict[ProgramKernel, XgpuError] = {}
    is_near = is_nursery_ready() or (level == "cubin" and has_nursery())
    if len(whole) >= (_FEWEST if is_near else many) and _jobs() > 1:
        requests = [_request(kernel, level) for kernel in whole]
        if processes := _others(requests):
            with _progress(len(whole)) as progress:
                failed = _compile(whole, requests, level, processes, progress)
    for kernel in missing:
        if kernel.built is None and kernel not in failed and (error := _error_of(kernel.check)) is not None:
            failed[kernel] = error
        if kernel in failed:
            yield kernel, failed[kernel]


def expect_kernels(program: ir.Module) -> None:
    """Have processes ready when a program of level ``stablehlo`` has been planned, if it may have many kernels.

    Where cores are idle it is done for the programs that may follow.
    """
    if has_nursery() or (jobs := _jobs()) == 1:
        return
    if jobs >= _MANY_CORES or count_ops(program.operation, _MANY_OPERATIONS) >= _MANY_OPERATIONS:
        with contextlib.suppress(OSError):
            nursery()


def _others(requests: Sequence[bytes]) -> int:
    """Return how many processes are to compile kernels besides this one: each is worth what it takes to start."""
    seconds = sum(map(len, requests)) / _BYTES_PER_SECOND
    return max(0, min(_jobs(), len(requests), int(seconds / _PROCESS_SECONDS)) - 1)


def _jobs() -> int:
    if not sys.executable:
        return 1
    try:
        jobs = int(os.environ.get("XGPU_JOBS") or len(os.sched_getaffinity(0)))
    except ValueError:
        jobs = 0
    if jobs > 0:
        return min(_MOST_PROCESSES, jobs)
    raise InvalidInput(f"XGPU_JOBS={os.environ['XGPU_JOBS']}: expected a number of processes, at least 1")


def _compile(
    kernels: Sequence[ProgramKernel], requests: Sequence[bytes], level: str, processes: int, progress: Progress
) -> dict[ProgramKernel, XgpuError]:
    """Compile the kernels in processes, each with a thread that talks to it, and here, and accept them in any order.

    Returns the errors of those that cannot be compiled.
    """
    assembler = ThreadPoolExecutor()
    pending: _Pending = queue.SimpleQueue()
    done: _Done = queue.SimpleQueue()
    workers: list[_Worker] = []
    failed: dict[ProgramKernel, XgpuError] = {}
    try:
        # The longest kernels are compiled first: nothing is left to do beside the last.
        for number in sorted(range(len(kernels)), key=lambda number: -len(requests[number])):
            pending.put((number, kernels[number].name, requests[number]))
        for _ in range(processes):
            workers.append(_Worker())
            threading.Thread(target=workers[-1].serve, args=(pending, done), daemon=True).start()
        here = functools.partial(_compile_here, kernels, level, pending, assembler)
        for count, (number, answer) in enumerate(_answers(workers, len(kernels), done, here)):
            progress(count)
            if isinstance(answer, XgpuError):
                failed[kernels[number]] = answer
            elif answer is not None:
                kernels[number].accept(_built(answer))
    finally:
        with contextlib.suppress(queue.Empty):
            while True:
                pending.get_nowait()
        # Processes end beside each other, each in the time that its memory takes to be freed.
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.end()
        assembler.shutdown(cancel_futures=True)
    return failed


def _compile_here(
    kernels: Sequence[ProgramKernel], level: str, pending: _Pending, assembler: Executor
) -> tuple[int, XgpuError | None] | None:
    """Compile one of the pending kernels in this process; return its position and error, None if there is none.

    Its machine code is made while this process goes on.
    """
    try:
        number, _, _ = pending.get_nowait()
    except queue.Empty:
        return None
    kernel = kernels[number]
    error = _error_of(kernel.check if level == "lowered" else lambda: kernel.compiled)
    if level == "cubin" and error is None:
        assembler.submit(lambda: kernel.machine_code)
    return number, error


def _error_of(compile_one: Callable[[], object]) -> XgpuError | None:
    try:
        compile_one()
    except XgpuError as error:
        return error
    except Exception as error:  # As another process would: the other kernels go on.
        return CompilerError(f"{type(error).__name__}: {error}")
    return None


def _answers(
    workers: "Sequence[_Worker]", count: int, done: _Done, here: Callable[[], tuple[int, XgpuError | None] | None]
) -> Iterator[tuple[int, _Answer | None]]:
    """Yield the answers for ``count`` kernels, fewer if no process is left, and keep an eye on the processes.

    While there is none, ``here`` compiles a kernel, whose answer is None or its error.
    """
    serving = len(workers)
    while count:
        for worker in workers:
            worker.watch()
        answer: tuple[int, _Answer | None] | None = here() if done.empty() else None
        if answer is None:
            if not serving and done.empty():
                return
            try:
                answer = done.get(timeout=_WATCH_SECONDS)
            except queue.Empty:
                continue
        if answer is None:
            serving -= 1
            continue
        count -= 1
        yield answer


class _Worker:
    """A process that compiles kernels, one after the other, and another one in its place if it ends.

    A thread of this process calls `serve`, which starts it; `watch` and `end` are called by another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._process: Process | None = None
        self._seen = (0.0, time.monotonic())

    def serve(self, pending: "_Pending", done: "_Done") -> None:
        """Compile pending kernels in a process, until none is left, or no process can be started."""
        try:
            while self._process is not None or self._start():
                number, name, request = pending.get_nowait()
                answer = self._answer(name, request)
                if answer is None:
                    pending.put((number, name, request))
                    return
                done.put((number, answer))
        except queue.Empty:
            return
        finally:
            done.put(None)

    def _start(self) -> bool:
        """Start a process, in place of the one there was, unless all is over; return whether it was possible."""
        with self._lock:
            self._close()
            if self._is_over:
                return False
        try:
            # This waits until the nursery is ready: meanwhile the other thread may find that all is over.
            process = nursery().start()
        except OSError:
            return False
        with self._lock:
            self._process, self._seen = process, (0.0, time.monotonic())
            if self._is_over:
                self._close()
            return not self._is_over

    def _answer(self, name: str, request: bytes) -> "_Answer | None":
        """Return the process's answer to a request, None if all is over before there is one."""
        reason = ""
        for _ in range(_ATTEMPTS):
            process = self._process
            if process is None:
                return None
            try:
                self._send(process, request)
                answer = _received(process)
                return _error(answer["error"]) if "error" in answer else answer
            except OSError:
                code = process.wait()
                reason = f"exit code {code}" if code >= 0 else f"signal {-code}"
            except ValueError as error:
                reason = f"its answer is none: {error}"
            if not self._start():
                break
        return CompilerError(f"kernel {name}: the process that compiled it ended, {_ATTEMPTS} times: {reason}")

    def _send(self, process: Process, request: bytes) -> None:
        process.stdin.write(request)
        process.stdin.flush()

    def watch(self) -> None:
        """End the process if it makes no progress: the thread that waits for it then hears that it ended."""
        with self._lock:
            if self._process is None:
                return
            used, now = _processor_seconds(self._process.pid), time.monotonic()
            if used is None or used != self._seen[0]:
                self._seen = (used or 0.0, now)
            elif now - self._seen[1] > _STALLED_SECONDS:
                self._process.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Let the process end, whatever it does."""
        with self._lock:
            self._is_over = True
            if self._process is not None:
                self._process.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """End the process, and wait for its end."""
        with self._lock:
            self._is_over = True
            self._close()

    def _close(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _received(process: Process) -> dict[str, Any]:
    line = process.stdout.readline()
    if not line.endswith(b"\n"):
        raise OSError("the process ended")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _processor_seconds(process: int) -> float | None:
    """Return the time of a core that a process took; None where that cannot be read."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def _request(kernel: ProgramKernel, level: str) -> bytes:
    request = {
        "name": kernel.name,
        "emitted": base64.b64encode(kernel.bytecode("emitted")).decode(),
        "device": kernel.device.name,
        "options": asdict(kernel.options),
        "command": manager.compiled_with(),
        "level": level,
    }
    return json.dumps(request).encode() + b"\n"


def _built(answer: dict[str, Any]) -> Built:
    compiled = CachedKernel(**answer["compiled"]) if answer["compiled"] else None
    code = base64.b64decode(answer["code"]) if answer["code"] else None
    times = [(name, seconds) for name, seconds in answer["times"]]
    return Built(base64.b64decode(answer["lowered"]), compiled, code, times)


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

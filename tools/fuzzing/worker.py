"""A process that calls functions for the fuzzers, so that a crash, a hang or a greedy allocation is a finding."""

import contextlib
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

_POLL_SECONDS = 0.05
# Stops a single huge allocation before it stops the machine; what is really used is measured.
_ADDRESS_SPACE = 24 << 30


class WorkerDied(Exception):
    """The call did not return. The message says why, and is the same for all calls that end in the same way."""


class Worker:
    """A process that is started when it is first needed, and again after a call that did not return."""

    def __init__(self, seconds: float, memory: int = 4 << 30):
        self._seconds, self._memory = seconds, memory
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a module's function returns in the process. Raises `WorkerDied` if it does not return.

        The function must raise nothing.
        """
        connection = self._connection or self._start()
        connection.send((function, arguments))
        limit = time.monotonic() + self._seconds
        while not connection.poll(_POLL_SECONDS):
            if not self._is_alive():
                raise WorkerDied(self._cause_of_death())
            if time.monotonic() > limit:
                self._stop()
                raise WorkerDied(f"no answer within {self._seconds:g} s")
            if self._resident() > self._memory:
                self._stop()
                raise WorkerDied(f"used more than {self._memory >> 20} MiB of memory")
        try:
            return connection.recv()
        except (EOFError, ConnectionResetError):
            raise WorkerDied(self._cause_of_death()) from None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        connection, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._connection = process, connection
        return connection

    def _is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def _cause_of_death(self) -> str:
        process = self._process
        assert process is not None
        process.join()
        code = process.exitcode or 0
        self._stop()
        return f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended by itself with exit code {code}"

    def _resident(self) -> int:
        """Return the process's resident memory in bytes, 0 where that cannot be read."""
        assert self._process is not None
        with contextlib.suppress(OSError), open(f"/proc/{self._process.pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
        return 0

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _serve(connection: Connection) -> None:
    """Answer calls until the other end goes away."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))

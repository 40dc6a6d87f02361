"""Starts processes that compile kernels: they are forked from one that has imported what they need, its nursery.

To start Python and import the passes takes 0.35 to 0.9 s of a core, to fork a process that has done so a few
milliseconds. This process cannot be forked itself, as JAX has threads; the nursery has none. It is started once, stays
idle until this process ends, and ends with it, as do the processes it has forked. It serves `compile_worker`.
"""

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import xgpu
from xgpu.driver.compile_worker import READY, REAP, START

_LONGEST_ANSWER = 64


class Process:
    """A process that compiles kernels: ``pid``, and its standard input and output."""

    def __init__(self, nursery: "Nursery", pid: int, requests: int, answers: int):
        self._nursery = nursery
        self.pid = pid
        self.stdin = os.fdopen(requests, "wb")
        self.stdout = os.fdopen(answers, "rb")
        self._status: int | None = None
        self._waiting = threading.Lock()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process's end was waited for."""
        if self._status is None and not self._nursery.has_ended:
            # Until then the number is its own: only its parent's wait, which is asked for here, sets it free.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self) -> None:
        """End the process, whatever it does."""
        self.send_signal(signal.SIGKILL)
        self.wait()
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def wait(self) -> int:
        """Wait for the process's end, and return its exit code, or minus the signal that ended it."""
        with self._waiting:
            if self._status is None:
                answer = self._nursery.ask(b"%s %d" % (REAP, self.pid))
                # Without its nursery it ends when its pipes are closed.
                self._status = int(answer) if answer else -signal.SIGKILL
            return self._status


class Nursery:
    """The process that is forked. Threads may call `start`, which waits until it is ready."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_ready = False
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = [str(Path(xgpu.__file__).parents[1]), *sys.path]
        # A library of numbers that started threads would make it one that cannot be forked.
        own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "XGPU_CACHE": "off", "OPENBLAS_NUM_THREADS": "1"}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "xgpu.driver.compile_worker", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | own,
                pass_fds=[other.fileno()],
                # An interrupt from the terminal is for this process, which then ends the others.
                start_new_session=True,
            )

    def start(self) -> Process:
        """Fork a process; raises `OSError` if there is no nursery any more, or it has no room for one."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            answer = self.ask(START, (theirs_in, theirs_out))
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        if not answer.isdigit() or answer == b"0":
            os.close(ours_in)
            os.close(ours_out)
            raise OSError("no process can be started that compiles kernels")
        return Process(self, int(answer), ours_in, ours_out)

    def ask(self, message: bytes, files: tuple[int, ...] = ()) -> bytes:
        """Return the nursery's answer to a message that may have open files; empty if it has ended."""
        with self._lock:
            try:
                # The first that it says is that it is ready.
                self._is_ready = self._is_ready or self._socket.recv(_LONGEST_ANSWER) == READY
                socket.send_fds(self._socket, [message], files)
                return self._socket.recv(_LONGEST_ANSWER)
            except OSError:
                return b""

    @property
    def is_ready(self) -> bool:
        """Whether it answers at once."""
        # If another thread waits for it to become ready, it is not.
        if not self._is_ready and self._lock.acquire(blocking=False):
            with contextlib.suppress(OSError):
                self._is_ready = self._socket.recv(_LONGEST_ANSWER, socket.MSG_DONTWAIT) == READY
            self._lock.release()
        return self._is_ready and not self.has_ended

    def end(self) -> None:
        """End it. Processes that it has forked end when nobody asks them anything any more."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None


_lock = threading.Lock()
_nursery: Nursery | None = None


def nursery() -> Nursery:
    """Return this process's nursery, and start it, which does not wait; raises `OSError` if that is impossible."""
    global _nursery
    with _lock:
        if _nursery is None or _nursery.has_ended:
            _nursery = Nursery()
        return _nursery


@atexit.register
def _end() -> None:
    """End the nursery, as the end of this process would, and leave no child behind that nobody waited for."""
    if _nursery is not None:
        _nursery.end()


def has_nursery() -> bool:
    """Whether this process has one."""
    return _nursery is not None and not _nursery.has_ended


def is_nursery_ready() -> bool:
    """Whether a process takes no time to start."""
    return _nursery is not None and _nursery.is_ready


def _forget() -> None:
    """Leave the nursery to the process that was forked: it answers one of them."""
    global _nursery, _lock
    _nursery, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)

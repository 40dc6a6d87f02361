"""The frame of every command: exit codes, no tracebacks, and no crashed process.

Exit codes: 0 done; 1 something is wrong with the input, said on stderr; 2 wrong usage; 130 interrupted; 141 the reader
of the output went away.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO

from xgpu.errors import CompilerError, KernelFault, XgpuError, XgpuWarning

DONE, WRONG_INPUT, WRONG_USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 128 + signal.SIGINT, 128 + signal.SIGPIPE

TRACEBACK_VARIABLE = "XGPU_TRACEBACK"
"""Environment variable: if set, errors of ours are followed by Python's traceback, into a pass that failed too."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of writing to stdout when its disk is full, or it is closed."""
_ACTIVITY_BYTES = 4096
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)

_SECONDS_TO_STOP = 10
"""Seconds until an interrupted command is killed: native code does not look at signals."""

_activity: mmap.mmap | None = None
_current = "starting"
_is_interrupted = False
"""Whether the command was interrupted: whatever it does then, that is how it ended."""


class UsageError(Exception):
    """The command line itself is wrong, in a way that argparse does not see."""


def doing(what: str) -> None:
    """Record what the process is about to do, such as ``compiling f.py:f``: named if native code crashes in it."""
    global _current
    _current = what
    doing_step(None)


def doing_step(what: str | None) -> None:
    """Record a step of what the process is doing, such as ``running pass 'cse'``, or with None that it is over."""
    if _activity is not None:
        _activity[:] = (what or _current).encode()[:_ACTIVITY_BYTES].ljust(_ACTIVITY_BYTES, b"\0")


def supervise(program: str) -> None:
    """Continue in a child process; this process waits for it, and turns a crash into a diagnostic and exit code 1.

    MLIR and LLVM run in this process, and some inputs (deep recursion, assertions, memory) end it by a signal that
    Python cannot catch. Call this before importing anything that starts threads.
    """
    global _activity
    _open_standard_streams()
    _activity = mmap.mmap(-1, _ACTIVITY_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    # Neither process is to be interrupted before it can handle that.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    child = os.fork()
    if child:
        os._exit(_wait(program, child))
    _die_with_parent()
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, once.

    Native code that it passes through may report it in its own way, make another error of it, or drop it: so what is
    printed from now on goes nowhere, and the exit code does not depend on what becomes of it.
    """
    global _is_interrupted
    _is_interrupted = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    raise KeyboardInterrupt


def _open_standard_streams() -> None:
    """Put something in place of standard streams that are closed: a file would get their number otherwise.

    Reading and writing them fails as if they were closed, but what goes to stderr is lost: there is no place to say so.
    """
    modes = {0: (os.O_WRONLY, "r"), 1: (os.O_RDONLY, "w"), 2: (os.O_WRONLY, "w")}
    for number, (flags, mode) in modes.items():
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is the next file's.
            os.open(os.devnull, flags)
            setattr(sys, ("stdin", "stdout", "stderr")[number], open(number, mode, closefd=False))  # noqa: SIM115


def _die_with_parent() -> None:
    """Without this, killing the command would leave its child running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _wait(program: str, child: int) -> int:
    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    def interrupt(number: int, frame: FrameType | None) -> None:
        global _is_interrupted
        _is_interrupted = True
        # A terminal sends it to the child as well, which takes notice of the first only.
        forward(number, frame)
        signal.alarm(_SECONDS_TO_STOP)

    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, lambda number, frame: forward(signal.SIGKILL, frame))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    _, status = os.waitpid(child, 0)
    if _is_interrupted:
        return INTERRUPTED
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = signal.Signals(os.WTERMSIG(status))
    if number not in (*_CRASHES, signal.SIGKILL):
        return 128 + number
    assert _activity is not None
    activity = _activity[:].rstrip(b"\0").decode(errors="ignore")
    reason = "was killed, perhaps for lack of memory," if number == signal.SIGKILL else f"crashed ({number.name})"
    report(f"{program}: error: {reason} while {activity or 'starting'}")
    return WRONG_INPUT


def report(text: str) -> None:
    """Print ``text`` to stderr; if that cannot be written, the exit code says it all."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def report_error(program: str, error: XgpuError) -> None:
    """Print an error as a diagnostic: with its place and source line if it has one, else after the program's name."""
    # Loading this loads MLIR, which must not happen before `supervise`.
    from xgpu.cli.diagnostics import Sources, from_error, from_faults, render

    sources = Sources("<text>")
    found = from_faults(error, sources) if isinstance(error, KernelFault) else [from_error(error, sources)]
    for diagnostic in found:
        report(render(diagnostic, sources, program))


def report_cause(error: XgpuError) -> None:
    """Print the traceback behind an error of the compiler's own, if the environment asks for it."""
    cause = error.__cause__
    if isinstance(error, CompilerError) and cause is not None and os.environ.get(TRACEBACK_VARIABLE):
        report("".join(traceback.format_exception(cause)).rstrip())


def _show_warnings(program: str) -> None:
    """Print xgpu's warnings as diagnostics from now on."""
    show = warnings.showwarning

    def show_ours(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if not isinstance(message, XgpuWarning):
            show(message, category, *rest, **more)
            return
        from xgpu.cli.diagnostics import Sources, from_warning, render

        sources = Sources("<text>")
        report(render(from_warning(message, sources), sources, program))

    warnings.showwarning = show_ours


def exit_code(program: str, body: Callable[[], int]) -> int:
    """Run ``body`` and return its exit code, or the one for what it raised, which is reported on stderr."""
    code = _code_of_errors(program, body)
    return INTERRUPTED if _is_interrupted else code


def _code_of_errors(program: str, body: Callable[[], int]) -> int:
    try:
        with warnings.catch_warnings():
            _show_warnings(program)
            code = _code_of(body)
        sys.stdout.flush()
        return code
    except UsageError as error:
        report(f"{program}: error: {error}")
        return WRONG_USAGE
    except XgpuError as error:
        report_error(program, error)
        report_cause(error)
        return WRONG_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up(sys.stdout)
        return BROKEN_PIPE
    except RecursionError:
        report(f"{program}: error: the input is nested too deeply")
        return WRONG_INPUT
    except MemoryError:
        report(f"{program}: error: out of memory")
        return WRONG_INPUT
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
            _give_up(sys.stdout)
            report(f"{program}: error: cannot write the output: {error.strerror}")
            return WRONG_INPUT
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        report(f"{program}: internal error: {type(error).__name__}: {error}\n{TRACEBACK_VARIABLE}=1 shows where")
        return WRONG_INPUT


def _code_of(body: Callable[[], int]) -> int:
    try:
        return body()
    except SystemExit as stop:  # How argparse ends after --help and --version.
        return int(stop.code or 0)


def _give_up(stream: TextIO) -> None:
    """Discard buffered output, which would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

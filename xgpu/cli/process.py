"""What every command does around its work: exit codes, no tracebacks, and no crashed process.

Exit codes: 0 done; 1 something is wrong with the input, said on stderr; 2 wrong usage; 130 interrupted; 141 the reader
of the output went away.
"""

import contextlib
import ctypes
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from xgpu.errors import KernelFault, XgpuError, XgpuWarning

DONE, WRONG_INPUT, WRONG_USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 128 + signal.SIGINT, 128 + signal.SIGPIPE

TRACEBACK_VARIABLE = "XGPU_TRACEBACK"
"""Environment variable: if set, an internal error ends in Python's traceback."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_ACTIVITY_BYTES = 512
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)

_activity: mmap.mmap | None = None


class UsageError(Exception):
    """The command line itself is wrong, in a way that argparse does not see."""


def doing(what: str) -> None:
    """Record what the process is about to do, such as ``running pass 'cse'``: named if native code crashes in it."""
    if _activity is not None:
        _activity[:] = what.encode()[:_ACTIVITY_BYTES].ljust(_ACTIVITY_BYTES, b"\0")


def supervise(program: str) -> None:
    """Continue in a child process; this process waits for it, and turns a crash into a diagnostic and exit code 1.

    MLIR and LLVM run in this process, and some inputs (deep recursion, assertions, memory) end it by a signal that
    Python cannot catch. Call this before importing anything that starts threads.
    """
    global _activity
    _activity = mmap.mmap(-1, _ACTIVITY_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _die_with_parent()
        return
    os._exit(_wait(program, child))


def _die_with_parent() -> None:
    """Without this, killing the command would leave its child running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _wait(program: str, child: int) -> int:
    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to the child as well.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    _, status = os.waitpid(child, 0)
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
    """Print ``text`` to stderr."""
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)


def report_error(program: str, error: XgpuError) -> None:
    """Print an error as a diagnostic: with its place and source line if it has one, else after the program's name."""
    # Loading this loads MLIR, which must not happen before `supervise`.
    from xgpu.cli.diagnostics import Sources, from_error, from_faults, render

    sources = Sources("<text>")
    found = from_faults(error, sources) if isinstance(error, KernelFault) else [from_error(error, sources)]
    for diagnostic in found:
        report(render(diagnostic, sources, program))


def _show_warnings(program: str) -> None:
    """Have xgpu's warnings printed as diagnostics, from now on."""
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
    try:
        with warnings.catch_warnings():
            _show_warnings(program)
            code = body()
        sys.stdout.flush()
        return code
    except UsageError as error:
        report(f"{program}: error: {error}")
        return WRONG_USAGE
    except XgpuError as error:
        report_error(program, error)
        return WRONG_INPUT
    except SystemExit as stop:  # How argparse ends after --help and --version.
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is still buffered would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except RecursionError:
        report(f"{program}: error: the input is nested too deeply")
        return WRONG_INPUT
    except MemoryError:
        report(f"{program}: error: out of memory")
        return WRONG_INPUT
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        report(f"{program}: internal error: {type(error).__name__}: {error}\n{TRACEBACK_VARIABLE}=1 shows where")
        return WRONG_INPUT

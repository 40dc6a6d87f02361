"""The errors that xgpu raises: what the user wrote, what the compiler got wrong, what a tool reported."""

import difflib
import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, cast

from xgpu.records import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's source. ``line`` and ``column`` count from 1; 0 means unknown.

    ``function`` is the name of the function around it, empty if unknown.
    """

    file: str
    line: int = 0
    column: int = 0
    function: str = field(default="", compare=False)

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class XgpuError(Exception):
    """Base of every error that xgpu raises on purpose; the commands print it as one diagnostic and exit with 1.

    ``location`` is where in the user's source, if known; it is printed before the message as ``file:line:col``.
    """

    def __init__(self, message: str, location: SourceLocation | None = None):
        super().__init__(message, location)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class XgpuWarning(UserWarning):
    """A warning: the program compiled may not be the one meant. Commands print it as a diagnostic at ``location``."""

    def __init__(self, message: str, location: SourceLocation):
        super().__init__(message, location)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}"


class InvalidInput(XgpuError):
    """The input itself is wrong: text that does not parse, a missing file, shapes that do not fit, an unknown pass."""


class Unsupported(InvalidInput):
    """The input is valid, but xgpu cannot compile it. The message names the operation, its type and the reason."""


class UnknownKeyword(InvalidInput, TypeError):
    """A keyword argument that a function does not have. It is the TypeError that callers expect of Python, too."""


class CompilerError(XgpuError):
    """An error of xgpu itself: a pass wrote IR that does not verify. Names the pass and says how to repeat it."""


def did_you_mean(name: object, known: Iterable[str], similarity: float = 0.6) -> str:
    """Return `` (did you mean 'X'?)`` for the known name nearest to ``name``, or nothing if none or several are.

    Names are compared without case; what a user gave may be no word, and is near to none. ``similarity`` is the least
    of difflib's ratios that counts as near.
    """
    if not isinstance(name, str):
        return ""
    ratios = {each: difflib.SequenceMatcher(None, each.lower(), name.lower()).ratio() for each in known}
    best = max(ratios.values(), default=0.0)
    nearest = [each for each, ratio in ratios.items() if ratio == best >= similarity]
    return f" (did you mean '{nearest[0]}'?)" if len(nearest) == 1 else ""


def checks_keywords[F: Callable[..., Any]](what: str, others: Iterable[str] = ()) -> Callable[[F], F]:
    """Have a function raise UnknownKeyword for a keyword that it does not have, with the nearest that it has.

    ``what`` is its name in the message, ``others`` are keywords that it passes on.
    """

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        known = [*(each.name for each in parameters if each.kind in named and each.name != "self"), *others]

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in known:
                    near = did_you_mean(name, known) or f"; expected {', '.join(known)}"
                    raise UnknownKeyword(f"{what}: unexpected keyword '{name}'{near}")
            return function(*args, **kwargs)

        return cast(F, checked)

    return decorate


def described(error: BaseException) -> str:
    """Return the type and text of an exception of Python's, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


@dataclass(frozen=True)
class Fault:
    """Something that a kernel did and no GPU defines: what, by which operation, where in the user's source if known.

    ``kind`` is ``diverged``, ``deadlock``, ``misused`` or one of `xgpu.target.host.access_checks.FAULTS`.
    ``thread`` and ``block`` are the first that did it, as (x, y, z); ``byte`` and ``index`` where in ``memory``, None
    if the operation accesses none. ``other`` is the other operation of two that do not go together, at
    ``other_location``; ``count`` how often it was found.
    """

    kind: str
    message: str
    operation: str
    location: SourceLocation | None
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    memory: str | None = None
    byte: int | None = None
    index: int | None = None
    other: str | None = None
    other_location: SourceLocation | None = None
    count: int = 1

    def __str__(self) -> str:
        lines = [self.message, _named("in", self.operation, self.location)]
        if self.other is not None:
            lines.append(_named("and", self.other, self.other_location))
        return "\n  ".join(lines)


def _named(word: str, operation: str, location: SourceLocation | None) -> str:
    return f"{word} '{operation}'" + (f" at {location}" if location else "")


class KernelFault(CompilerError):
    """A kernel of ours did what no GPU defines, found by running it on the host: ``faults`` says what, and where."""

    def __init__(self, kernel: str, faults: tuple[Fault, ...]):
        super().__init__("\n".join(f"kernel '{kernel}': {fault}" for fault in faults))
        self.args = (kernel, faults)
        self.kernel = kernel
        self.faults = faults


class ToolError(XgpuError):
    """An external tool (LLVM, ptxas, the driver) reported a failure, or is missing."""

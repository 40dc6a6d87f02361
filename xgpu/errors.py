"""The errors that xgpu raises: what the user wrote, what the compiler got wrong, what a tool reported."""

from dataclasses import dataclass


class XgpuError(Exception):
    """Base of every error that xgpu raises on purpose; the commands print it as one diagnostic and exit with 1."""


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's source. ``line`` and ``column`` count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class InvalidInput(XgpuError):
    """The input itself is wrong: text that does not parse, a missing file, shapes that do not fit, an unknown pass.

    ``location`` is where in the user's source, if known; it is printed before the message as ``file:line:col``.
    """

    def __init__(self, message: str, location: SourceLocation | None = None):
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class Unsupported(InvalidInput):
    """The input is valid, but xgpu cannot compile it. The message names the operation, its type and the reason."""


class CompilerError(XgpuError):
    """xgpu itself is at fault: a pass made IR that does not verify. Names the pass and says how to repeat it."""


class ToolError(XgpuError):
    """An external tool (LLVM, ptxas, the driver) reported a failure, or is missing."""

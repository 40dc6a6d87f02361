"""Reading the commands' inputs and writing their outputs; every failure is an `InvalidInput`."""

import sys
from pathlib import Path

from xgpu.errors import InvalidInput, SourceLocation

STDIN = "-"


def name_of_file(path: str) -> str:
    """Return how diagnostics name the input ``path``."""
    return "<stdin>" if path == STDIN else path


def read_text(path: str) -> str:
    """Return the text of a file, or of stdin for ``-``, without the mark that some editors begin a file with."""
    name = name_of_file(path)
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read '{path}': {reason_of(error)}") from None
    if data.startswith(b"ML\xefR"):
        raise InvalidInput("expected MLIR text, got MLIR bytecode", SourceLocation(name))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise InvalidInput("expected UTF-8 text", SourceLocation(name, line, column)) from None


def write_text(path: str, text: str) -> None:
    """Write ``text`` to a file, or to stdout for ``-``."""
    if path == STDIN:
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot write '{path}': {reason_of(error)}") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to a file."""
    try:
        path.write_bytes(data)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot write '{path}': {reason_of(error)}") from None


def reason_of(error: Exception) -> str:
    """Return what went wrong with a file, without its name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

"""HLO text, also optimised GPU HLO with fusions, to the ``stablehlo`` level."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

from xgpu.errors import InvalidInput, SourceLocation, ToolError, Unsupported, XgpuWarning
from xgpu.frontend import hlo_import_worker
from xgpu.frontend.hlo_lines import ENTRY, instruction_places, root_place
from xgpu.frontend.mlir_text import check_text, parse_module, place_at
from xgpu.frontend.signature import Source, make_source, module_name

# Far above the import time of any real program; a safeguard against text that makes the importer loop.
TIMEOUT_SECONDS = 300

_HAD_ENTRY = re.compile(r"^[^\S\n]*HloModule\b.*\bentry_computation_layout=", re.MULTILINE)
_UNKNOWN = re.compile(r'"mhlo\.unknown"\(.*loc\((#\w+|"[^"]*")\)')
"""The output of XLA's importer for an instruction without a StableHLO form, and the location with its name."""
_LEFT_OUT = re.compile(r"\bconstant\(\s*\{\s*\.\.\.\s*\}")
"""A large constant as XLA dumps it: without its values."""
_WRONG_RESULT = re.compile(r"function result type .* in function @([\w.-]+)")
_PARSE_ERROR = re.compile(r"was parsing (\d+):(\d+): error: ([^\n]*)")
_CHECK_FAILURE = re.compile(r"^F\d+ [^\]\n]*\] (.*)$", re.MULTILINE)


def from_hlo_text(text: str, filename: str = "<text>", name: str = "program") -> Source:
    """Read an HLO module. ``name`` is the program's name if the module has none.

    Raises InvalidInput with file, line and column where XLA's parser gives them, and what ``normalize`` raises.
    """
    imported = _import_hlo(text, filename)
    _warn_of_constants_left_out(text, filename)
    places = instruction_places(text, filename)
    if (unknown := _UNKNOWN.search(imported)) is not None:
        name, instruction = _instruction(text, imported, unknown.group(1))
        reason = f"the HLO instruction {instruction} is not supported: it has no form in StableHLO"
        raise Unsupported(reason, places.get(name, SourceLocation(filename)))
    try:
        module = parse_module(imported, filename, places)
    except InvalidInput as error:
        raise _at_root(error, text, filename) from None
    return make_source(module, module_name(module, name), filename)


def _import_hlo(text: str, filename: str) -> str:
    """Return MLIR text of an HLO module, converted by XLA in a process of its own."""
    place = SourceLocation(filename)
    check_text(text, filename)
    worker = Path(hlo_import_worker.__file__)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(worker)],
            input=text.encode(),
            capture_output=True,
            env=environment,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"XLA's HLO importer took longer than {TIMEOUT_SECONDS} s", place) from None
    except OSError as error:
        raise ToolError(f"cannot run {sys.executable} for XLA's HLO importer: {error.strerror}") from None
    if done.returncode == hlo_import_worker.INVALID:
        raise _parse_error(done.stdout.decode(errors="replace"), place)
    if not ENTRY.search(text) and _HAD_ENTRY.search(text):
        # XLA takes the last computation then, as is meant where there is only a fusion; but this is a truncated file.
        raise InvalidInput("the HLO text has no ENTRY computation; is the file complete?", place)
    if done.returncode == 0:
        return done.stdout.decode()
    if done.returncode < 0:
        failure = _CHECK_FAILURE.search(done.stderr.decode(errors="replace"))
        reason = failure.group(1).strip() if failure else f"it ended with signal {-done.returncode}"
        raise InvalidInput(f"XLA cannot import this HLO module: {reason}", place)
    raise ToolError(f"XLA's HLO importer failed: {done.stderr.decode(errors='replace').strip()}")


def _warn_of_constants_left_out(text: str, filename: str) -> None:
    found = [match.start() for match in _LEFT_OUT.finditer(text)]
    if found:
        count = "a constant" if len(found) == 1 else f"{len(found)} constants"
        message = f"the text leaves out the values of {count}, {{...}}: others are compiled in their place"
        warnings.warn(XgpuWarning(message, place_at(text, found[0], filename)), stacklevel=2)


def _instruction(text: str, imported: str, location: str) -> tuple[str, str]:
    """Return the name, and opcode and name, of the instruction whose location in the imported text is ``location``."""
    if location.startswith("#"):
        defined = re.search(rf'^{location} = loc\("([^"]*)"', imported, re.MULTILINE)
        name = defined.group(1) if defined else ""
    else:
        name = location.strip('"')
    opcode = re.search(rf"(?:^|\s)%?{re.escape(name)}\s*=\s.*?\s([a-z][a-z-]*)\(", text)
    return name, f"'{opcode.group(1)}' ('{name}')" if opcode else f"'{name}'"


def _at_root(error: InvalidInput, text: str, filename: str) -> InvalidInput:
    """Return the error, placed at the root of the computation that it names if it has no line: returns have none."""
    function = _WRONG_RESULT.search(error.message)
    if function is None or error.location is None or error.location.line:
        return error
    return InvalidInput(error.message, root_place(text, filename, function.group(1)) or error.location)


def _parse_error(message: str, place: SourceLocation) -> InvalidInput:
    """Return the error for a message of XLA's parser, which lists the innermost place first."""
    first = _PARSE_ERROR.search(message)
    if first is None:
        return InvalidInput(f"XLA cannot parse this HLO text: {message.strip()}", place)
    reason = f"XLA cannot parse this HLO text: {first.group(3)}"
    return InvalidInput(reason, SourceLocation(place.file, int(first.group(1)), int(first.group(2))))

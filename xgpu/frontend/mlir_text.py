"""Parses MLIR text safely: every error has a place in the file, and no text can crash the parser."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from math import prod
from pathlib import Path

import xgpu
from xgpu import ir
from xgpu.dtypes import MAX_RANK
from xgpu.errors import InvalidInput, SourceLocation, ToolError
from xgpu.hlo.source_location import name_of, source_of
from xgpu.hlo.unreadable import unreadable_attribute
from xgpu.structure import walk

# MLIR's parser recurses for each bracket and each affine operator, and overflows the stack from about 2,000 on.
MAX_NESTING = 256
MAX_CHAIN = 2_000
"""Length of chains of aliases; these nest as brackets do, for all that walks or prints them."""
MAX_AFFINE_LINE = 20_000
MAX_VECTOR = 1 << 16
"""Elements of a vector. MLIR's parser allocates memory for each that an operation joins, written or not."""

# Strings and comments hold no brackets; '->', '>=' and '<=' are none.
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[\[({<]|[\])}>]')
_ALIAS = re.compile(r"^[^\S\n]*([#!][A-Za-z_][\w$.-]*)\s*=", re.MULTILINE)
_ALIAS_NAME = re.compile(r"[#!][A-Za-z_][\w$.-]*")
_AFFINE = re.compile(r"affine_(?:map|set)\s*<([^\n]*)")
_VECTOR = re.compile(r"\bvector\s*<([\d\sx\[\]]*)")
_FROM_ELEMENTS = re.compile(r"\bfrom_elements\b[^\n]*")
_TENSOR = re.compile(r"\btensor\s*<([\d\sx]*)")
# MLIR's parser reads an address space of any kind as a number, and an atomic update's type without a check, and ends
# the process at others. Both are found here as they are always written.
_NO_ADDRESS_SPACE = re.compile(r"\baddr_space\s*=\s*(?![\d\s#])|\baddr_space\s*=\s*\d+\s*(?!\s|\d|:\s*i32\b)")
_UPDATED = r"(?:b?f\d+|i\d+|!llvm\.ptr(?:<\d+>)?|vector<\d+x(?:b?f|i)\d+>)"
_UPDATE = rf"[^\n]*!llvm\.ptr(?:<\d+>)?, {_UPDATED}(?: loc\([^\n]*\))?$"
_DIMENSION_NUMBERS = re.compile(r"\[[^\[\]\n]*\]\s*x\s*\[[^\[\]\n]*\]\s*->\s*\[[^\[\]\n]*\]")
"""Attributes that number dimensions: the parser allocates memory for all up to the largest number."""
_CRASHES = re.compile(rf"\baddr_space\s*(?:=\s*#|[^=\s])|^(?!\s*//)[^\n]*\batomicrmw\b(?!{_UPDATE})", re.MULTILINE)
"""Text that may crash the parser: it is first parsed in another process, which takes half a second to start."""
_WORKER_SECONDS = 300


def parse_module(text: str, filename: str, places: Mapping[str, SourceLocation] | None = None) -> ir.Module:
    """Parse MLIR text of any level in a new context from ``ir.make_context``.

    Locations name ``filename``. Operations at the top of the text are put into a module, as mlir-opt does.
    ``places`` says where operations are whose location in the text is but a name.
    Raises InvalidInput at the line and column of an error.
    """
    check_mlir_text(text, filename)
    module = parse_unguarded(text, filename, places or {})
    if places:
        _place(module, places)
    return module


def parse_unguarded(text: str, filename: str, places: Mapping[str, SourceLocation]) -> ir.Module:
    """Parse MLIR text that was checked, see `parse_module`."""
    try:
        return _parse(text, filename, ir.make_context())
    except ir.MLIRError as error:
        diagnostics = error.error_diagnostics
        if not diagnostics:
            raise InvalidInput(str(error), SourceLocation(filename)) from None
        raise _diagnosed(diagnostics[0], filename, places) from None


def check_mlir_text(text: str, filename: str) -> None:
    """Refuse all that `check_text` refuses, and text that crashes MLIR's parser, which another process finds out."""
    check_text(text, filename)
    _check_aliases(text, filename)
    for match in _NO_ADDRESS_SPACE.finditer(text):
        if not _is_in_comment(text, match.start()):
            place = place_at(text, match.start(), filename)
            raise InvalidInput("expected a number of type i32 as an address space", place)
    if _CRASHES.search(text):
        _try_to_parse(text, filename)


def _try_to_parse(text: str, filename: str) -> None:
    """Parse text in another process; raises InvalidInput if that finds an error, or crashes."""
    command = [sys.executable, "-P", "-m", "xgpu.frontend.mlir_parse_worker", filename]
    paths = [str(Path(xgpu.__file__).parents[1]), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, env=environment, timeout=_WORKER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"MLIR's parser took longer than {_WORKER_SECONDS} s", SourceLocation(filename)) from None
    except OSError as error:
        raise ToolError(f"cannot run {sys.executable} for MLIR's parser: {error.strerror}") from None
    if done.returncode < 0:
        reason = f"MLIR's parser crashed ({signal.Signals(-done.returncode).name}) at this text"
        raise InvalidInput(reason, SourceLocation(filename))
    if done.returncode:
        raise ToolError(f"MLIR's parser failed: {done.stderr.decode(errors='replace').strip()}")
    if done.stdout:
        # Not parsed again here to find the same error: the next time it may crash.
        found = json.loads(done.stdout)
        raise InvalidInput(found["message"], SourceLocation(**found["location"]) if found["location"] else None)


def check_text(text: str, filename: str) -> None:
    """Refuse text that could crash a parser written in C++: null bytes, deep nesting, large vectors and the like."""
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInput("the text contains a null byte", SourceLocation(filename, line))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the text is not Unicode: {error.reason}", SourceLocation(filename)) from None
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "[({<":
            depth += 1
            if depth > MAX_NESTING:
                place = place_at(text, match.start(), filename)
                raise InvalidInput(f"brackets nest deeper than {MAX_NESTING}", place)
        elif token in "])}>":
            depth = max(depth - 1, 0)
    for match in _AFFINE.finditer(text):
        if len(match.group(1)) > MAX_AFFINE_LINE:
            line = text.count("\n", 0, match.start()) + 1
            raise InvalidInput(f"affine map longer than {MAX_AFFINE_LINE} characters", SourceLocation(filename, line))
    _check_vectors(text, filename)
    _check_dimension_numbers(text, filename)


def _check_aliases(text: str, filename: str) -> None:
    """Refuse chains of more than `MAX_CHAIN` aliases."""
    found = list(_ALIAS.finditer(text))
    if len(found) <= MAX_CHAIN:
        return
    depths: dict[str, int] = {}
    for match, following in zip(found, (*found[1:], None), strict=True):
        body = text[match.end() : following.start() if following else len(text)]
        depth = 1 + max((depths.get(name, 0) for name in _ALIAS_NAME.findall(body)), default=0)
        depths[match.group(1)] = depth
        if depth > MAX_CHAIN:
            place = place_at(text, match.start(1), filename)
            raise InvalidInput(f"a chain of more than {MAX_CHAIN:,} aliases, each part of the next", place)


def _check_dimension_numbers(text: str, filename: str) -> None:
    """Refuse the number of a dimension that no array has."""
    for match in _DIMENSION_NUMBERS.finditer(text):
        if any(
            int(number, 0) >= MAX_RANK for number in re.findall(r"\b0x[0-9A-Fa-f]{1,12}|\b[1-9]\d{0,12}", match.group())
        ):
            place = place_at(text, match.start(), filename)
            raise InvalidInput(f"a dimension's number beyond {MAX_RANK - 1}", place)


def _check_vectors(text: str, filename: str) -> None:
    """Refuse vectors, and tensors put together from their elements, of more than `MAX_VECTOR` elements."""
    found = [(match.start(), match.group(1)) for match in _VECTOR.finditer(text)]
    for line in _FROM_ELEMENTS.finditer(text):
        found += [(line.start() + match.start(), match.group(1)) for match in _TENSOR.finditer(line.group())]
    for start, shape in found:
        sizes = (min(int(size.lstrip("0")[:12] or 0), MAX_VECTOR + 1) for size in re.findall(r"\d+", shape))
        if prod(sizes) > MAX_VECTOR and not _is_in_comment(text, start):
            raise InvalidInput(f"a vector of more than {MAX_VECTOR:,} elements", place_at(text, start, filename))


def _is_in_comment(text: str, position: int) -> bool:
    """Whether the line of ``position`` is but a comment."""
    return text[text.rfind("\n", 0, position) + 1 : position].lstrip().startswith("//")


def place_at(text: str, position: int, filename: str) -> SourceLocation:
    """Return the file, line and column of a position in a text."""
    line = text.count("\n", 0, position) + 1
    return SourceLocation(filename, line, position - text.rfind("\n", 0, position))


def _diagnosed(diagnostic: ir.DiagnosticInfo, filename: str, places: Mapping[str, SourceLocation]) -> InvalidInput:
    """Return the error for a diagnostic, at its line, or else naming the instruction that it is about."""
    name = name_of(diagnostic.location)
    place = source_of(diagnostic.location) or places.get(name or "")
    if place is None:
        message = f"{diagnostic.message} (in '{name}')" if name else diagnostic.message
        return InvalidInput(message, SourceLocation(filename))
    return InvalidInput(
        diagnostic.message, SourceLocation(filename, place.line, place.column) if place.file == "-" else place
    )


def _parse(text: str, filename: str, context: ir.Context) -> ir.Module:
    """Parse with the file's name in every location where the bindings allow it."""
    try:
        parsed = ir.Operation.parse(text, source_name=filename, context=context).operation
    except ir.MLIRError as error:
        # Only this entry point names the file, but it takes one operation; the other takes any number.
        if "single top-level operation" in str(error):
            module = _named(ir.Module.parse(text, context), filename)
            _check_attributes(module.operation)
            return module
        raise
    except ValueError as error:
        # MLIR's verifiers count with sizes of attributes, and LLVM's containers refuse what is beyond theirs.
        raise InvalidInput(f"MLIR cannot verify it: {error}", SourceLocation(filename)) from error
    _check_attributes(parsed)
    module = ir.Module.create(parsed.location)
    if parsed.name != "builtin.module":
        module.body.append(parsed)
        return module
    for name in list(parsed.attributes):
        module.operation.attributes[name] = parsed.attributes[name]
    for op in list(parsed.regions[0].blocks[0].operations):
        module.body.append(op)
    return module


def _check_attributes(parsed: ir.Operation) -> None:
    if (found := unreadable_attribute(parsed)) is not None:
        raise InvalidInput(found[1], source_of(found[0]))


def _named(module: ir.Module, filename: str) -> ir.Module:
    """Put the file's name in the locations that the parser called ``-``."""
    for op in walk(module.operation):
        location = op.location
        if isinstance(location, ir.FileLineColLoc) and location.filename == "-":
            op.location = ir.Location.file(filename, location.start_line, location.start_col, op.context)
    return module


def _place(module: ir.Module, places: Mapping[str, SourceLocation]) -> None:
    """Give operations whose location is only a name the source location of that name."""
    for op in walk(module.operation):
        location = op.location
        if isinstance(location, ir.NameLoc) and (found := places.get(location.name_str)) and not source_of(location):
            line = ir.Location.file(found.file, found.line, found.column, op.context)
            op.location = ir.Location.fused([location, line], context=op.context)

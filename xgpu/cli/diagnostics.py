"""Diagnostics as the commands print them: ``file:line:col: error: message``, the source line, a caret, the notes."""

import linecache
from collections.abc import Sequence
from dataclasses import field, replace

from xgpu import ir
from xgpu.errors import KernelFault, SourceLocation, XgpuError, XgpuWarning
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.remarks import Remark
from xgpu.records import dataclass

PARSED_NAME = "-"
"""The file name that MLIR's parser gives to text."""

_MAX_EXCERPT = 160
"""Characters of a source line that are shown; of a longer line, those around the caret."""

_SEVERITIES = {
    ir.DiagnosticSeverity.ERROR: "error",
    ir.DiagnosticSeverity.WARNING: "warning",
    ir.DiagnosticSeverity.NOTE: "note",
    ir.DiagnosticSeverity.REMARK: "remark",
}


@dataclass(frozen=True)
class Diagnostic:
    """One message. ``severity`` is error, warning, note or remark; ``location`` is None if unknown."""

    severity: str
    message: str
    location: SourceLocation | None = None
    notes: tuple["Diagnostic", ...] = ()

    def with_note(self, message: str) -> "Diagnostic":
        """Return this diagnostic with one more note, which has no location of its own."""
        return replace(self, notes=(*self.notes, Diagnostic("note", message)))


@dataclass
class Sources:
    """The texts that diagnostics point into. ``name`` stands for the text that MLIR's parser calls ``-``."""

    name: str
    texts: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of_text(cls, name: str, text: str) -> "Sources":
        """Return the sources that consist of one text."""
        return cls(name, {name: text.split("\n")})

    def line(self, location: SourceLocation) -> str | None:
        """Return the source line at ``location``, from a file on disk if it is in none of the texts, or None."""
        if location.file in self.texts:
            lines = self.texts[location.file]
            return lines[location.line - 1] if 0 < location.line <= len(lines) else None
        return linecache.getline(location.file, location.line).rstrip("\n") or None

    def named(self, location: SourceLocation | None) -> SourceLocation | None:
        """Return ``location`` with the text's own name in place of MLIR's."""
        return replace(location, file=self.name) if location and location.file == PARSED_NAME else location

    def in_text(self, text: str) -> str:
        """Return printed locations (``"-":3:4``) in ``text`` under the text's own name."""
        return text.replace(f'"{PARSED_NAME}":', f'"{self.name}":')


def from_mlir(info: ir.Diagnostic | ir.DiagnosticInfo, sources: Sources) -> Diagnostic:
    """Convert a diagnostic of MLIR's. A context is current."""
    # The location of a caught diagnostic has the base class only; through its attribute it gets its own.
    location = ir.Location.from_attr(info.location.attr)
    return Diagnostic(
        _SEVERITIES[info.severity],
        sources.in_text(info.message),
        sources.named(source_of(location) or _file_of(location)),
        tuple(from_mlir(note, sources) for note in info.notes),
    )


def _file_of(location: ir.Location) -> SourceLocation | None:
    """The file alone: text without a module operation gets an implicit one, which is at line 0."""
    return SourceLocation(location.filename) if isinstance(location, ir.FileLineColLoc) else None


def from_error(error: XgpuError, sources: Sources) -> Diagnostic:
    """Convert an error of xgpu's; one of several faults has `from_faults`."""
    return Diagnostic("error", sources.in_text(error.message), sources.named(error.location))


def from_warning(warning: XgpuWarning, sources: Sources) -> Diagnostic:
    """Convert a warning of xgpu's."""
    return Diagnostic("warning", sources.in_text(warning.message), sources.named(warning.location))


def from_remark(remark: Remark, sources: Sources) -> Diagnostic:
    """Convert what a pass says that it did not do."""
    return Diagnostic("remark", f"{remark.pass_name}: {remark.message}", sources.named(remark.location))


def from_faults(error: KernelFault, sources: Sources) -> list[Diagnostic]:
    """Convert what a kernel was found to do wrong, with the operations in notes."""
    diagnostics = []
    for fault in error.faults:
        location = sources.named(fault.location)
        notes = [Diagnostic("note", f"in '{fault.operation}'", location)]
        if fault.other is not None:
            notes.append(Diagnostic("note", f"and '{fault.other}'", sources.named(fault.other_location)))
        diagnostics.append(Diagnostic("error", f"kernel '{error.kernel}': {fault.message}", location, tuple(notes)))
    return diagnostics


def render(diagnostic: Diagnostic, sources: Sources, program: str) -> str:
    """Return the lines to print for ``diagnostic``; ``program`` replaces a missing location."""
    lines = [_headline(diagnostic, program), *_excerpt(diagnostic.location, sources)]
    shown = diagnostic.location
    for note in diagnostic.notes:
        lines.append(_headline(note, program))
        if note.location != shown:
            lines += _excerpt(note.location, sources)
    return "\n".join(lines)


def _headline(diagnostic: Diagnostic, program: str) -> str:
    return f"{diagnostic.location or program}: {diagnostic.severity}: {diagnostic.message}"


def _excerpt(location: SourceLocation | None, sources: Sources) -> Sequence[str]:
    """The source line and a caret under its column; tabs stay tabs, so that the caret is below its character.

    Locations in MLIR text may be of any column: there is no caret under one that the line does not have.
    """
    if location is None or not location.line or (line := sources.line(location)) is None:
        return ()
    caret = location.column - 1 if location.column - 1 <= len(line) else -1
    if len(line) > _MAX_EXCERPT:
        start = max(0, caret - _MAX_EXCERPT // 2)
        line, caret = line[start : start + _MAX_EXCERPT], caret - start
    if caret < 0:
        return (line,)
    indent = "".join("\t" if character == "\t" else " " for character in line[:caret])
    return line, f"{indent}^"

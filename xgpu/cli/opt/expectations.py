"""``--verify-diagnostics``: compares the diagnostics of a text with the ones that its comments expect.

    // expected-error {{part of the message}}        on this line
    // expected-error @+1 {{...}}, @-2, @above, @below, @unknown
    // expected-error-re {{matches {{[0-9]+}} of {{a|b}}}}    with regular expressions in double braces

The same for ``expected-warning``, ``expected-note`` and ``expected-remark``. Each expectation takes one diagnostic.
"""

import re
from collections.abc import Iterable, Sequence

from xgpu.cli.diagnostics import Diagnostic
from xgpu.errors import SourceLocation
from xgpu.records import dataclass

_EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)(?P<re>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\} *$"
)
_WORD = re.compile(r"//.*\bexpected-(?:error|warning|note|remark)\b")
_NESTED = re.compile(r"\{\{(.*?)\}\}")
# MLIR adds these to the diagnostics of its verifier; nobody wants to expect them.
_IGNORED_NOTE = "see current operation"


@dataclass(frozen=True)
class Expectation:
    """A diagnostic that a comment at ``written`` expects at ``line`` of its file, or anywhere else if that is None."""

    severity: str
    pattern: re.Pattern[str]
    text: str
    line: int | None
    written: SourceLocation

    def accepts(self, diagnostic: Diagnostic, file: str) -> bool:
        """Tell whether ``diagnostic`` is the one expected."""
        location = diagnostic.location
        line = (location.line or None) if location and location.file == file else None
        return (
            diagnostic.severity == self.severity
            and line == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def parse_expectations(lines: Sequence[str], file: str) -> tuple[list[Expectation], list[Diagnostic]]:
    """Return the expectations written in ``lines``, and errors for the malformed ones."""
    found: list[Expectation] = []
    malformed: list[Diagnostic] = []
    below: list[tuple[re.Match[str], SourceLocation]] = []
    last_other_line = 0  # The last line without an expectation, which is what "above" means.
    for number, line in enumerate([*lines, ""], 1):
        if not _WORD.search(line):
            found += [_expectation(held, number, written) for held, written in below]
            below.clear()
            last_other_line = number
            continue
        written = SourceLocation(file, number, line.index("expected-") + 1)
        match = _EXPECTATION.search(line)
        if match is None:
            malformed.append(Diagnostic("error", "expected 'expected-error @+N {{message}}'", written))
        elif problem := _regex_problem(match):
            malformed.append(Diagnostic("error", problem, written))
        elif match["where"] == "below":
            below.append((match, written))
        else:
            found.append(_expectation(match, _line(match["where"], number, last_other_line), written))
    return found, malformed


def _line(where: str | None, number: int, last_other_line: int) -> int | None:
    if where == "unknown":
        return None
    if where == "above":
        return last_other_line
    return number + int(where or 0)


def _pattern(match: re.Match[str]) -> str:
    if not match["re"]:
        return re.escape(match["text"])
    parts = _NESTED.split(match["text"])
    return "".join(f"(?:{part})" if position % 2 else re.escape(part) for position, part in enumerate(parts))


def _regex_problem(match: re.Match[str]) -> str | None:
    try:
        re.compile(_pattern(match))
    except re.error as error:
        return f"malformed regular expression: {error}"
    return None


def _expectation(match: re.Match[str], line: int | None, written: SourceLocation) -> Expectation:
    return Expectation(match["severity"], re.compile(_pattern(match)), match["text"], line, written)


def disagreements(lines: Sequence[str], file: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return an error for each diagnostic that ``lines`` do not expect and each expected one that is not there."""
    expected, wrong = parse_expectations(lines, file)
    for diagnostic in _flat(diagnostics):
        taken = next((expectation for expectation in expected if expectation.accepts(diagnostic, file)), None)
        if taken is not None:
            expected.remove(taken)
        else:
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(Diagnostic("error", message, diagnostic.location))
    for left in expected:
        wrong.append(Diagnostic("error", f'expected {left.severity} "{left.text}" was not produced', left.written))
    return wrong


def _flat(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    """Diagnostics and their notes; a note without a place comments on its diagnostic and need not be expected."""
    for diagnostic in diagnostics:
        yield diagnostic
        for note in diagnostic.notes:
            if note.location is not None and not note.message.startswith(_IGNORED_NOTE):
                yield note

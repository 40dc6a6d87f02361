"""Finds instructions in HLO text: XLA's importer keeps their names, and no lines but those of their metadata."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from xgpu.errors import SourceLocation

_ENTRY = re.compile(r"^\s*ENTRY\b", re.MULTILINE)
_INSTRUCTION = re.compile(
    r"""
    "(?:[^"\\\n]|\\.)*" | //[^\n]* | /\*.*?\*/      # strings and comments hold no instructions
    | [\s{](?P<root>ROOT\s+)? %?(?P<name>[\w.-]+) \s*=\s* (?:\(|[a-z]\w*\[)
    """,
    re.VERBOSE | re.DOTALL,
)
"""An instruction up to its shape, which an attribute has none of."""
_NUMBERED = re.compile(r"(.+)\.(\d+)")


def instruction_places(text: str, filename: str) -> Mapping[str, SourceLocation]:
    """Return where the instructions of a module are, by the names that they have once XLA has read it.

    Computations may have instructions of the same name; XLA gives the later one the next number that is free.
    """
    places: dict[str, SourceLocation] = {}
    used: defaultdict[str, set[int]] = defaultdict(set)
    following: defaultdict[str, int] = defaultdict(int)
    for match, place in _instructions(text, filename):
        name = match["name"]
        numbered = _NUMBERED.fullmatch(name)
        root, number = (numbered[1], int(numbered[2])) if numbered else (name, 0)
        if number in used[root]:
            while (number := following[root]) in used[root]:
                following[root] += 1
            name = f"{root}.{number}" if number else root
        used[root].add(number)
        places[name] = place
    return places


def root_place(text: str, filename: str, computation: str) -> SourceLocation | None:
    """Return where the root of a computation is, or None. The entry computation is ``main``."""
    header = re.compile(rf"^\s*%?{re.escape(computation)}\s*[({{]", re.MULTILINE)
    start = (_ENTRY if computation == "main" else header).search(text)
    if start is None:
        return None
    line = text.count("\n", 0, start.end()) + 1
    roots = (place for match, place in _instructions(text, filename) if match["root"] and place.line >= line)
    return next(roots, None)


def _instructions(text: str, filename: str) -> Iterator[tuple[re.Match[str], SourceLocation]]:
    line, begin = 1, 0
    for match in _INSTRUCTION.finditer(text):
        if match["name"] is not None:
            start = match.start() + 1
            line += text.count("\n", begin, start)
            begin = start
            yield match, SourceLocation(filename, line, start - text.rfind("\n", 0, start))

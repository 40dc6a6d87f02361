"""Finds instructions in HLO text: XLA's importer keeps their names, and no lines but those of their metadata."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from xgpu.errors import SourceLocation

ENTRY = re.compile(r"^[^\S\n]*ENTRY\b", re.MULTILINE)
"""The beginning of the entry computation."""
_INSTRUCTION = re.compile(
    r"""
    "(?:[^"\\\n]|\\.)*" | //[^\n]* | /\*.*?\*/      # strings and comments hold no instructions
    | [\s{](?P<root>ROOT\s+)? %?(?P<name>[\w.-]+) \s*=\s* (?:\(|[a-z]\w*\[)
    """,
    re.VERBOSE | re.DOTALL,
)
"""An instruction up to its shape, which an attribute has none of."""
_NUMBERED = re.compile(r"(.+)\.(-?)0*([0-9]{1,19})")
_NUMBERS = range(-(2**63), 2**63)
"""The number that XLA finds at the end of a name."""


def instruction_places(text: str, filename: str) -> Mapping[str, SourceLocation]:
    """Return where the instructions of a module are, by the names that they have once XLA has read it.

    Computations may have instructions of the same name; XLA gives the later one the next number that is free.
    """
    places: dict[str, SourceLocation] = {}
    used: defaultdict[str, set[int]] = defaultdict(set)
    following: defaultdict[str, int] = defaultdict(int)
    for match, place in _instructions(text, filename):
        root, number, is_numbered = _split(match["name"])
        if number in used[root]:
            while (number := following[root]) in used[root]:
                following[root] += 1
        used[root].add(number)
        places[f"{root}.{number}" if number or is_numbered else root] = place
    return places


def _split(name: str) -> tuple[str, int, bool]:
    """Return a name without the number at its end, the number, 0 for none, and whether there is one."""
    if (numbered := _NUMBERED.fullmatch(name)) and (number := int(numbered[2] + numbered[3])) in _NUMBERS:
        return numbered[1], number, True
    return name, 0, False


def root_place(text: str, filename: str, computation: str) -> SourceLocation | None:
    """Return where the root of a computation is, or None. The entry computation is ``main``."""
    header = re.compile(rf"^[^\S\n]*%?{re.escape(computation)}\s*[({{]", re.MULTILINE)
    start = (ENTRY if computation == "main" else header).search(text)
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

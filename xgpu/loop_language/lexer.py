"""The words of the loop language.

A line ends a statement, unless a bracket is open or the line ends with an operator or a comma; so does ``;``. What
follows ``--`` on a line is a comment.
"""

import re

from xgpu.errors import InvalidInput, SourceLocation
from xgpu.records import dataclass

MAX_LENGTH = 1 << 20
"""The longest text that is read, in characters."""
MAX_DIGITS = 40
"""The longest number that is read, in characters."""

KEYWORDS = frozenset(
    "fn asm size in out inout fully par seq static if else new let anchor and or not true false inf nan max min".split()
)
"""Words that name nothing of the user's; ``max`` and ``min`` are functions, and part of ``max=`` and ``min=``."""

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|--[^\n]*)"
    r"|(?P<line>[\n;])"
    r"|(?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<mark>max=|min=)"
    r'|(?P<text>"[^"\n]*")'
    r"|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>//|->|<<|>>|<=|>=|==|!=|\+=|\*=|&=|\|=|\^=|[-+*/%&|^~<>=(){}\[\],:#])"
    r"|(?P<bad>.)",
    re.DOTALL,
)
_CONTINUES = frozenset("// -> << >> <= >= == != += *= &= |= ^= max= min= + - * / % & ^ < > = ( [ , :".split())
"""A line that ends with one of these goes on."""


@dataclass(frozen=True)
class Token:
    """A word: ``kind`` is ``number``, ``word``, ``text``, ``sign``, ``line`` or ``end``; a text has its quotes."""

    kind: str
    text: str
    at: SourceLocation

    def __str__(self) -> str:
        if self.kind in ("line", "end"):
            return "the end of the line" if self.kind == "line" else "the end of the text"
        return f"'{self.text}'"


def tokenize(text: str, filename: str) -> list[Token]:
    """Return the words of ``text``, the last of kind ``end``; raises InvalidInput with line and column for others."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(
            f"the text has {len(text)} characters; at most {MAX_LENGTH} are read", SourceLocation(filename)
        )
    tokens: list[Token] = []
    depth, line, start = 0, 1, 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "bad"
        at = SourceLocation(filename, line, match.start() - start + 1)
        word = match.group()
        if kind == "bad":
            raise InvalidInput(f"unexpected character {word!r}", at)
        if kind == "number" and len(word) > MAX_DIGITS:
            raise InvalidInput(f"the number has {len(word)} characters; at most {MAX_DIGITS} are read", at)
        if kind == "line":
            if not depth and tokens and tokens[-1].kind != "line" and tokens[-1].text not in _CONTINUES:
                tokens.append(Token("line", word, at))
        elif kind != "space":
            tokens.append(Token("sign" if kind == "mark" else kind, word, at))
            depth = max(0, depth + (word in "([" and kind == "sign") - (word in ")]" and kind == "sign"))
        if word == "\n":
            line, start = line + 1, match.end()
    at = SourceLocation(filename, line, len(text) - start + 1)
    return [*tokens, Token("line", "", at), Token("end", "", at)]


def is_name(word: str) -> bool:
    """Whether ``word`` may name something of the user's."""
    return re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", word) is not None and word not in KEYWORDS

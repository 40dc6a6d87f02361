"""The text of what a user's function is computing, by the positions that Python keeps of its instructions."""

import ast
import linecache
from functools import lru_cache
from itertools import islice
from types import FrameType

_Position = tuple[int, int, int, int]
"""First and last line, counted from 1, and first and last column, in bytes."""


def expression_text(frame: FrameType) -> str | None:
    """Return the text of the expression that ``frame`` is computing; None where its source is not known."""
    position, lines = _position(frame), _lines(frame)
    if position is None or position[1] > len(lines):
        return None
    first, last, begin, end = position
    encoded = [line.encode() for line in lines[first - 1 : last]]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][begin:]
    return " ".join(b"".join(encoded).decode().split())


def target_name(frame: FrameType) -> str | None:
    """Return the name that a statement gives to what ``frame`` is computing: ``x`` of ``x = ...``, ``with ... as x``.

    None where the source is not known, or the statement gives no name, or does so to a part of the value.
    """
    position = _position(frame)
    return None if position is None else _targets("".join(_lines(frame))).get(position)


def _position(frame: FrameType) -> _Position | None:
    first, last, begin, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if first is None or last is None or begin is None or end is None:
        return None
    return first, last, begin, end


def _lines(frame: FrameType) -> list[str]:
    return linecache.getlines(frame.f_code.co_filename, frame.f_globals)


@lru_cache(maxsize=1)
def _targets(text: str) -> dict[_Position, str]:
    """Return the names that the statements of a file give, by the position of what they name."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        # What a notebook runs need not be what Python compiled.
        return {}
    named: list[tuple[ast.expr, ast.expr | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            named += [(item.context_expr, item.optional_vars) for item in node.items]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            named.append((node.value, node.targets[0]))
    return {
        (value.lineno, value.end_lineno or 0, value.col_offset, value.end_col_offset or 0): target.id
        for value, target in named
        if isinstance(target, ast.Name)
    }

"""Loads a program of the loop language from a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xgpu.frontend.load import read_text, spec_of
from xgpu.frontend.signature import Source
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse

SUFFIX = ".te"


def is_loop_program(source: Any) -> bool:
    """Whether ``source`` is the path of a program in the loop language."""
    return isinstance(source, str | Path) and "\n" not in str(source) and str(source).endswith(SUFFIX)


def load_loop_program(source: str | Path, arguments: Sequence[Any] = ()) -> Source:
    """Return a program at level ``loops``, its sizes those of the ``arguments`` or else their defaults."""
    function = parse(read_text(Path(source)), str(source))
    return build(function, [spec_of(argument) for argument in arguments])

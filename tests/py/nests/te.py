"""Programs of the loop language from text, for tests."""

from typing import Any

import xgpu
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse


def compiled(text: str) -> Any:
    """Return a program compiled from the text of the language."""
    return xgpu.compile(str(build(parse(text, "f.te")).module))

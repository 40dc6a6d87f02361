"""Loads programs of the loop language, and prints them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xgpu import ir
from xgpu.frontend.load import load_source, read_text, spec_of
from xgpu.frontend.signature import Source
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.loop_language.printer import print_function
from xgpu.loop_language.unparse import unparse
from xgpu.passes.framework.base import functions

SUFFIX = ".te"
TEXT_LEVEL = "te"
"""The level of programs as text of the language."""


def load_program(source: str | Path | Callable[..., Any], arguments: Sequence[Any] = ()) -> Source:
    """Load any program: of the loop language at level ``loops``, if it is a file of such text, else as `load_source`.

    The sizes of a program of loops are those of the ``arguments``, or their defaults.
    """
    if not isinstance(source, str | Path) or "\n" in str(source) or not str(source).endswith(SUFFIX):
        return load_source(source, arguments)
    function = parse(read_text(Path(source)), str(source))
    return build(function, [spec_of(argument) for argument in arguments])


def print_loops(module: ir.Module) -> str:
    """Return a program of level ``loops`` or ``mapped`` as text of the language."""
    with module.context:
        (function,) = functions(module)
        return print_function(unparse(function))

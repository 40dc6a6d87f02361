"""The text of ``xgpu-opt --list-passes``: every pass of xgpu with its options, made from the passes themselves."""

import ast
import dataclasses
import inspect
import textwrap
from typing import Any, get_type_hints

from xgpu.passes.framework.base import Pass, describe_type
from xgpu.passes.framework.registry import USUAL_MLIR_PASSES, all_passes

_MLIR_PASSES = f"""\
MLIR's and StableHLO's passes go by their own names in the same pipeline, as in
  {", ".join(USUAL_MLIR_PASSES)}
with options in braces (canonicalize{{max-iterations=3}}) and nested as mlir-opt does (func.func(cse)).
"""
_WIDTH = 118


def pass_list() -> str:
    """Return one entry per pass: name, summary, and per option its name, type, default and documentation."""
    return "\n".join(["xgpu's passes:", *map(_entry, all_passes()), _MLIR_PASSES])


def _entry(cls: type[Pass]) -> str:
    lines = _wrapped(f"  {cls.NAME}", cls.summary(), 28)
    hints, documentation = get_type_hints(cls), _option_docs(cls)
    for option in cls.options():
        name = f"    {option.name.replace('_', '-')}={describe_type(hints[option.name])}"
        text = f"{documentation.get(option.name, '')} (default {_default(option)})".strip()
        lines += _wrapped(name, text, 32)
    return "\n".join(lines)


def _wrapped(label: str, text: str, column: int) -> list[str]:
    """``label`` and, from ``column`` on, ``text``; on the next line if the label is too long."""
    body = textwrap.wrap(text, _WIDTH - column) or [""]
    if len(label) >= column:
        return [label, *(" " * column + line for line in body)]
    return [label.ljust(column) + body[0], *(" " * column + line for line in body[1:])]


def _default(option: dataclasses.Field[Any]) -> str:
    return str(option.default).lower() if isinstance(option.default, bool) else str(option.default)


def _option_docs(cls: type[Pass]) -> dict[str, str]:
    """The strings that follow the fields of ``cls``: Python keeps them only in the source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    documentation = {}
    for field, doc in zip(definition.body, definition.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr)):
            continue
        if isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str):
            documentation[field.target.id] = " ".join(doc.value.value.split())
    return documentation

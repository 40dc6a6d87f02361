"""Errors of the lowering passes: pass, operation, location, expected and found."""

from typing import NoReturn

from xgpu import ir
from xgpu.errors import CompilerError, Unsupported
from xgpu.hlo.source_location import source_of


def refuse(pass_name: str, op: ir.Operation, message: str) -> NoReturn:
    """Raise `CompilerError`: an earlier pass, or who wrote the IR by hand, left what this pass does not take."""
    raise CompilerError(f"pass '{pass_name}': '{op.name}': {message}", source_of(op))


def refuse_type(op: ir.Operation, what: str, type_: ir.Type) -> NoReturn:
    """Raise `Unsupported`: the program uses a type that xgpu cannot compile yet."""
    raise Unsupported(f"'{op.name}': {what} of type {type_} are not supported", source_of(op))

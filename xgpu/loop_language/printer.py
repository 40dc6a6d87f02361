"""Prints a syntax tree as text that parses back to it."""

import math
from collections.abc import Iterator, Sequence

from xgpu.loop_language.parser import LEVELS
from xgpu.loop_language.syntax import (
    Anchor,
    Asm,
    Assign,
    Binary,
    Call,
    Element,
    Expr,
    Function,
    If,
    Let,
    Loop,
    Name,
    New,
    NumberLiteral,
    Parameter,
    Pragma,
    Statement,
    Unary,
)

_INDENT = "  "
_LEVEL_OF = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}
_UNARY, _PRIMARY = len(LEVELS), len(LEVELS) + 1
_SUM = _LEVEL_OF["+"]


def print_function(function: Function) -> str:
    """Return the text of a program."""
    lines = []
    for size in function.sizes:
        lines.append(f"size {size.name}" + (f" = {expression(size.default)}" if size.default is not None else ""))
    if lines:
        lines.append("")
    parameters = ", ".join(map(_parameter, function.parameters))
    lines.append(f"fn {function.name}({parameters}) {{")
    lines += [_INDENT + line for line in _block(function.body)]
    return "\n".join([*lines, "}", ""])


def _parameter(parameter: Parameter) -> str:
    access = "" if parameter.access == "in" else f"{parameter.access} "
    return f"{access}{parameter.name}: {parameter.dtype}{_shape(parameter.shape)}"


def _shape(shape: Sequence[Expr]) -> str:
    return f"[{', '.join(expression(size, _SUM) for size in shape)}]" if shape else ""


def _block(statements: Sequence[Statement]) -> Iterator[str]:
    for statement in statements:
        yield from _statement(statement)


def _nested(head: str, statements: Sequence[Statement], end: str = "}") -> Iterator[str]:
    yield f"{head} {{"
    for line in _block(statements):
        yield _INDENT + line
    yield end


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case Loop():
            extent = expression(statement.extent, _SUM)
            head = f"{statement.kind} {extent} |{statement.variable}|{_pragmas(statement.pragmas)}"
            yield from _nested(head, statement.body)
        case If():
            yield from _if(statement)
        case New():
            shape, pragmas = _shape(statement.shape), _pragmas(statement.pragmas)
            yield f"new {statement.name}: {statement.dtype}{shape}{pragmas}"
        case Let():
            yield f"let {statement.name} = {expression(statement.value)}"
        case Anchor():
            yield f"anchor {expression(statement.value)}"
        case Asm():
            yield _asm(statement)
        case Assign():
            target, value = expression(statement.target), expression(statement.value)
            yield f"{target} {statement.operator} {value}{_pragmas(statement.pragmas)}"


def _asm(statement: Asm) -> str:
    arguments = ", ".join((f'"{statement.text}"', *(expression(each) for each in statement.operands)))
    results = [f"{name}: {dtype}" for name, dtype in statement.results]
    listed = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"asm({arguments})" + (f" -> {listed}" if results else "")


def _if(statement: If) -> Iterator[str]:
    head = f"if {expression(statement.condition)}"
    if not statement.otherwise:
        yield from _nested(head, statement.then)
        return
    yield from _nested(head, statement.then, "} else {")
    for line in _block(statement.otherwise):
        yield _INDENT + line
    yield "}"


def _pragmas(pragmas: Sequence[Pragma]) -> str:
    return "".join(f" #{each.name}{_values(each.values)}" for each in pragmas)


def _values(values: Sequence[Expr]) -> str:
    return f"({', '.join(expression(value, _SUM) for value in values)})" if values else ""


def expression(expr: Expr, level: int = 0) -> str:
    """Return the text of an expression, in brackets if it binds less than ``level``."""
    text, own = _text(expr)
    return text if own >= level else f"({text})"


def _text(expr: Expr) -> tuple[str, int]:
    match expr:
        case NumberLiteral():
            return _number(expr.value)
        case Name():
            return expr.name, _PRIMARY
        case Element():
            indices = ", ".join(expression(index) for index in expr.indices)
            return f"{expr.buffer}[{indices}]", _PRIMARY
        case Call():
            arguments = ", ".join(expression(argument) for argument in expr.arguments)
            return f"{expr.function}({arguments})", _PRIMARY
        case Unary():
            space = " " if expr.operator == "not" else ""
            return f"{expr.operator}{space}{_operand(expr)}", _UNARY
        case Binary():
            level = _LEVEL_OF[expr.operator]
            left, right = expression(expr.left, level), expression(expr.right, level + 1)
            return f"{left} {expr.operator} {right}", level


def _operand(expr: Unary) -> str:
    text = expression(expr.operand, _UNARY)
    # Two signs begin a comment.
    return f"({text})" if text.startswith("-") else text


def _number(value: float) -> tuple[str, int]:
    if isinstance(value, int):
        return (str(value), _PRIMARY) if value >= 0 else (f"-{-value}", _UNARY)
    if math.isnan(value):
        return "nan", _PRIMARY
    text = "inf" if math.isinf(value) else repr(abs(value))
    return (f"-{text}", _UNARY) if math.copysign(1.0, value) < 0 else (text, _PRIMARY)

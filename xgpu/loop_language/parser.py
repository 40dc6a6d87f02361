"""Reads the text of a program in the loop language: recursive descent, one method for each rule of docs/loops.md."""

import math
from collections.abc import Callable
from typing import NoReturn

from xgpu.errors import InvalidInput, SourceLocation, did_you_mean
from xgpu.loop_language.lexer import KEYWORDS, Token, tokenize
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
    Size,
    Statement,
    Unary,
)

MAX_NESTING = 32
"""The depth to which statements and expressions may nest."""
MAX_OPERATORS = 200
"""The most operators that a statement may have: what goes through an expression goes as deep as it has operators."""

ASSIGNMENTS = ("=", "+=", "*=", "max=", "min=", "&=", "|=", "^=")
"""The words between an element and the value that it gets or is combined with."""
_ACCESSES = ("in", "out", "inout")
_LOOPS = ("par", "seq", "static")
_STATEMENTS = (*_LOOPS, "fully", "if", "new", "let", "asm", "anchor")
FULLY_PAR = "fully par"
"""The kind of parallel loops whose iterations run at once."""
LEVELS = (
    ("or",),
    ("and",),
    ("<", "<=", ">", ">=", "==", "!="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
"""Operators between two operands, the ones that bind least first. All group to the left."""
_SUM = 7
"""The level of sums: an extent is one, as ``|`` may follow it."""
_LITERALS = {"inf": float("inf"), "nan": float("nan")}


def _number(token: Token) -> float:
    """Return a literal's value; raises InvalidInput for what no type of floats holds."""
    if not set(token.text) & set(".eE"):
        return int(token.text)
    value = float(token.text)
    if math.isinf(value):
        raise InvalidInput(f"{token.text} is beyond the numbers of every type; infinity is 'inf'", token.at)
    return value


def parse(text: str, filename: str = "<text>") -> Function:
    """Return the program that ``text`` holds; raises InvalidInput with line and column if it is none."""
    return _Parser(tokenize(text, filename)).program()


class _Parser:
    def __init__(self, tokens: list[Token]):
        self._tokens = tokens
        self._position = 0
        self._nesting = 0
        self._operators = 0

    @property
    def _token(self) -> Token:
        return self._tokens[self._position]

    def _next(self) -> Token:
        token = self._token
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def _fail(self, expected: str) -> NoReturn:
        raise InvalidInput(f"expected {expected}, got {self._token}", self._token.at)

    def _accept(self, *texts: str) -> Token | None:
        if self._token.kind in ("sign", "word") and self._token.text in texts:
            return self._next()
        return None

    def _expect(self, text: str, why: str = "") -> Token:
        return self._accept(text) or self._fail(f"'{text}'{why}")

    def _name(self, what: str) -> Token:
        if self._token.kind != "word":
            self._fail(what)
        if self._token.text in KEYWORDS:
            self._fail(f"{what}, which no keyword is")
        return self._next()

    def _end_of_statement(self) -> None:
        if self._token.text != "}" and self._token.kind != "line":
            self._fail("the end of the statement")
        self._skip_lines()

    def _skip_lines(self) -> None:
        while self._token.kind == "line":
            self._next()

    def program(self) -> Function:
        """Sizes, then one function."""
        sizes: list[Size] = []
        self._skip_lines()
        while self._accept("size"):
            while True:
                name = self._name("the name of a size")
                default = self._binary(_SUM) if self._accept("=") else None
                sizes.append(Size(name.text, default, name.at))
                if not self._accept(","):
                    break
            self._end_of_statement()
        at = self._expect("fn", " or 'size'").at
        name = self._name("the name of the program")
        parameters = self._listed("(", ")", self._parameter)
        body = self._block()
        self._skip_lines()
        if self._token.kind != "end":
            self._fail("the end of the text")
        return Function(name.text, tuple(sizes), tuple(parameters), body, at)

    def _listed[T](self, opening: str, closing: str, item: Callable[[], T]) -> list[T]:
        self._expect(opening)
        found: list[T] = []
        while not self._accept(closing):
            if found:
                self._expect(",", f" or '{closing}'")
                if self._accept(closing):
                    break
            found.append(item())
        return found

    def _parameter(self) -> Parameter:
        access = self._accept(*_ACCESSES)
        name = self._name("the name of an array")
        self._expect(":")
        dtype = self._name("an element type, such as f32")
        shape = self._shape()
        return Parameter(access.text if access else "in", name.text, dtype.text, shape, name.at)

    def _shape(self) -> tuple[Expr, ...]:
        return tuple(self._listed("[", "]", lambda: self._binary(_SUM))) if self._token.text == "[" else ()

    def _block(self) -> tuple[Statement, ...]:
        self._skip_lines()
        self._expect("{")
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise InvalidInput(f"statements nest more than {MAX_NESTING} deep", self._token.at)
        self._skip_lines()
        found: list[Statement] = []
        while not self._accept("}"):
            if self._token.kind == "end":
                self._fail("'}'")
            found.append(self._statement())
        self._nesting -= 1
        return tuple(found)

    def _statement(self) -> Statement:
        self._operators = 0
        if (keyword := self._accept(*_LOOPS, "fully")) is not None:
            return self._loop(keyword)
        if (keyword := self._accept("if")) is not None:
            return self._if(keyword)
        statement = self._simple()
        self._end_of_statement()
        return statement

    def _loop(self, keyword: Token) -> Loop:
        kind = keyword.text
        if kind == "fully":
            self._expect("par")
            kind = FULLY_PAR
        extent = self._binary(_SUM)
        barred = self._accept("|")
        variable = self._name("the name of the loop's variable")
        if barred:
            self._expect("|")
        pragmas = self._pragmas()
        body = self._block()
        self._skip_lines()
        return Loop(kind, extent, variable.text, pragmas, body, keyword.at)

    def _if(self, keyword: Token) -> If:
        condition = self.expression()
        then = self._block()
        self._skip_lines()
        otherwise: tuple[Statement, ...] = ()
        if self._accept("else"):
            nested = self._accept("if")
            otherwise = (self._if(nested),) if nested else self._block()
        self._skip_lines()
        return If(condition, then, otherwise, keyword.at)

    def _simple(self) -> Statement:
        at = self._token.at
        if self._accept("new"):
            name = self._name("the name of a buffer")
            self._expect(":")
            dtype = self._name("an element type, such as f32")
            return New(name.text, dtype.text, self._shape(), self._pragmas(), at)
        if self._accept("let"):
            name = self._name("the name of a value")
            self._expect("=")
            return Let(name.text, self.expression(), at)
        if self._accept("anchor"):
            return Anchor(self.expression(), at)
        if self._accept("asm"):
            return self._asm(at)
        name = self._name("a statement")
        target: Name | Element = Name(name.text, name.at)
        if self._token.text == "[":
            target = Element(name.text, tuple(self._listed("[", "]", self.expression)), name.at)
        elif self._token.kind in ("word", "number"):
            near = did_you_mean(name.text, _STATEMENTS)
            known = ", ".join(_STATEMENTS)
            raise InvalidInput(f"'{name.text}' begins no statement{near}; expected {known} or an assignment", name.at)
        operator = self._accept(*ASSIGNMENTS) or self._fail(f"one of {', '.join(ASSIGNMENTS)}")
        value = self.expression()
        return Assign(target, operator.text, value, self._pragmas(), at)

    def _asm(self, at: SourceLocation) -> Asm:
        """The text in one or more parts, then what it reads, then what it writes."""
        self._expect("(")
        texts = []
        while self._token.kind == "text":
            texts.append(self._next().text[1:-1])
        if not texts:
            self._fail("instructions in quotation marks")
        operands: list[Expr] = []
        while not self._accept(")"):
            self._expect(",", " or ')'")
            operands.append(self.expression())
        results: list[tuple[str, str]] = []
        if self._accept("->"):
            results = self._listed("(", ")", self._result) if self._token.text == "(" else [self._result()]
        return Asm("".join(texts), tuple(operands), tuple(results), at)

    def _result(self) -> tuple[str, str]:
        name = self._name("the name of a value")
        self._expect(":")
        return name.text, self._name("an element type, such as f32").text

    def _pragmas(self) -> tuple[Pragma, ...]:
        found = []
        while (sign := self._accept("#")) is not None:
            name = self._next()
            if name.kind != "word":
                raise InvalidInput(f"expected the name of a pragma, got {name}", name.at)
            values = self._listed("(", ")", lambda: self._binary(_SUM)) if self._token.text == "(" else []
            found.append(Pragma(name.text, tuple(values), sign.at))
        return tuple(found)

    def expression(self) -> Expr:
        """An expression of any operators."""
        return self._binary(0)

    def _binary(self, level: int) -> Expr:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._accept(*LEVELS[level])) is not None:
            self._operators += 1
            if self._operators > MAX_OPERATORS:
                raise InvalidInput(f"a statement has more than {MAX_OPERATORS} operators", operator.at)
            left = Binary(operator.text, left, self._binary(level + 1), operator.at)
        return left

    def _unary(self) -> Expr:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise InvalidInput(f"expressions nest more than {MAX_NESTING} deep", self._token.at)
        operator = self._accept("-", "~", "not")
        found = Unary(operator.text, self._unary(), operator.at) if operator else self._primary()
        self._nesting -= 1
        return found

    def _primary(self) -> Expr:
        token = self._token
        if token.kind == "number":
            self._next()
            return NumberLiteral(_number(token), token.at)
        if self._accept("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if token.text in _LITERALS:
            self._next()
            return NumberLiteral(_LITERALS[token.text], token.at)
        if token.text in ("true", "false", "max", "min") and token.kind == "word":
            self._next()
        else:
            self._name("an expression")
        if self._token.text == "(":
            return Call(token.text, tuple(self._listed("(", ")", self.expression)), token.at)
        if self._token.text == "[":
            return Element(token.text, tuple(self._listed("[", "]", self.expression)), token.at)
        return Name(token.text, token.at)

"""Reads the text form of an indexing map.

    (d0, d1)[s0] -> (d0 * 4 + s0, d1 mod 3), d0 in [0, 127], d1 in [0, 9], s0 in [0, 3], d0 * 4 + s0 in [0, 500]

Every variable has a range; what follows the ranges are constraints. The text may come from anywhere, so its length, its
nesting and its numbers are limited, and whatever is wrong is reported with its column.
"""

import re
from typing import NoReturn

from xgpu.errors import InvalidInput
from xgpu.indexing.affine import AffineExpr, constant, dim, symbol, weighted_sum
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass

MAX_LENGTH = 1 << 15
"""The longest text that is read, in characters."""
MAX_NESTING = 32
"""Nesting limit of divisions inside divisions. Of parentheses, two per division may be needed: twice that and one."""
MAX_MAGNITUDE = 1 << 63
"""The largest absolute value of a number in the text, and of a coefficient that products of numbers make."""

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>[0-9]+)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)|(?P<mark>->|[()\[\],+*-])|(?P<bad>.)|$)"
)
_MAX_DIGITS = len(str(MAX_MAGNITUDE))

Constraint = tuple[AffineExpr, Interval]


@dataclass(frozen=True, slots=True)
class MapText:
    """The parts of a parsed map, in the order of ``IndexingMap``'s fields."""

    dims: tuple[Interval, ...]
    symbols: tuple[Interval, ...]
    results: tuple[AffineExpr, ...]
    constraints: tuple[Constraint, ...]


def parse_map(text: str) -> MapText:
    """Parses a whole map; raises ``InvalidInput``, naming the column, if ``text`` is not one."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"indexing map: the text has {len(text)} characters, more than the {MAX_LENGTH} allowed")
    return _Parser(text).parse()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"'{self.text}'"


def _tokenize(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            break
        column = match.start(kind) + 1
        if kind == "bad":
            raise InvalidInput(f"indexing map, column {column}: unexpected character {match[kind]!r}")
        if kind == "number" and len(match[kind]) > _MAX_DIGITS:
            raise InvalidInput(f"indexing map, column {column}: the number has more than {_MAX_DIGITS} digits")
        tokens.append(_Token(kind, match[kind], column))
    tokens.append(_Token("end", "", len(text) + 1))
    return tokens


class _Parser:
    """Recursive descent; expressions come with the depth to which divisions nest in them."""

    def __init__(self, text: str):
        self._tokens = _tokenize(text)
        self._position = 0
        self._nesting = 0
        self._variables: dict[str, AffineExpr] = {}

    def parse(self) -> MapText:
        dim_names = self._variable_list("(", ")", "d")
        symbol_names = self._variable_list("[", "]", "s") if self._token.text == "[" else []
        self._variables = {name: dim(i) for i, name in enumerate(dim_names)}
        self._variables |= {name: symbol(i) for i, name in enumerate(symbol_names)}
        self._expect("->")
        results = self._results()
        ranges, constraints = self._ranges_and_constraints()
        if self._token.kind != "end":
            self._fail("',' or the end of the text")
        for name in (*dim_names, *symbol_names):
            if name not in ranges:
                raise InvalidInput(f"indexing map: no range is given for {name}")
        dims = tuple(ranges[name] for name in dim_names)
        return MapText(dims, tuple(ranges[name] for name in symbol_names), results, tuple(constraints))

    @property
    def _token(self) -> _Token:
        return self._tokens[self._position]

    def _fail(self, expected: str) -> NoReturn:
        raise InvalidInput(f"indexing map, column {self._token.column}: expected {expected}, got {self._token}")

    def _accept(self, text: str) -> bool:
        found = self._token.text == text
        self._position += found
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail(f"'{text}'")

    def _variable_list(self, opening: str, closing: str, prefix: str) -> list[str]:
        """Variables are numbered in order, so the list must be ``d0, d1, ...``."""
        self._expect(opening)
        names: list[str] = []
        if self._accept(closing):
            return names
        while True:
            names.append(f"{prefix}{len(names)}")
            self._expect(names[-1])
            if self._accept(closing):
                return names
            if not self._accept(","):
                self._fail(f"',' or '{closing}'")

    def _results(self) -> tuple[AffineExpr, ...]:
        self._expect("(")
        if self._accept(")"):
            return ()
        results = [self._sum()[0]]
        while self._accept(","):
            results.append(self._sum()[0])
        self._expect(")")
        return tuple(results)

    def _ranges_and_constraints(self) -> tuple[dict[str, Interval], list[Constraint]]:
        """A variable's first ``in`` is its range; all others are constraints."""
        ranges: dict[str, Interval] = {}
        constraints: list[Constraint] = []
        while self._accept(","):
            name = self._token.text
            is_range = name in self._variables and name not in ranges
            is_range = is_range and self._tokens[self._position + 1].text == "in"
            expr, _ = self._sum()
            self._expect("in")
            interval = self._interval()
            if is_range:
                ranges[name] = interval
            else:
                constraints.append((expr, interval))
        return ranges, constraints

    def _interval(self) -> Interval:
        self._expect("[")
        lower = self._integer()
        self._expect(",")
        upper = self._integer()
        self._expect("]")
        return Interval(lower, upper)

    def _integer(self) -> int:
        negative = self._accept("-")
        if self._token.kind != "number":
            self._fail("an integer")
        column = self._token.column
        value = int(self._token.text)
        self._position += 1
        self._check_magnitude(value, column)
        return -value if negative else value

    def _check_magnitude(self, value: int, column: int) -> None:
        if abs(value) > MAX_MAGNITUDE:
            raise InvalidInput(f"indexing map, column {column}: the number does not fit 64 bits")

    def _check_expr(self, expr: AffineExpr, column: int) -> None:
        for value in (expr.constant, *[c for _, c in expr.terms]):
            # Either sign of it must fit: what is subtracted is negated.
            self._check_magnitude(abs(value) + 1, column)

    def _sum(self) -> tuple[AffineExpr, int]:
        column = self._token.column
        first, depth = self._product()
        parts = [(first, 1)]
        while self._token.text in ("+", "-"):
            sign = 1 if self._accept("+") else -1
            self._position += sign == -1
            expr, its_depth = self._product()
            parts.append((expr, sign))
            depth = max(depth, its_depth)
        if len(parts) == 1:
            return first, depth
        total = weighted_sum(parts)
        self._check_expr(total, column)
        return total, depth

    def _product(self) -> tuple[AffineExpr, int]:
        expr, depth = self._operand()
        while self._token.text in ("*", "floordiv", "mod"):
            operation = self._token
            self._position += 1
            column = self._token.column
            rhs, its_depth = self._operand()
            if operation.text == "*":
                if not (expr.is_constant or rhs.is_constant):
                    raise InvalidInput(f"indexing map, column {column}: one factor of a product must be a constant")
                expr, depth = expr * rhs, max(depth, its_depth)
                self._check_expr(expr, operation.column)
                continue
            if not rhs.is_constant or rhs.constant <= 0:
                raise InvalidInput(
                    f"indexing map, column {column}: the divisor of {operation.text} must be a positive constant"
                )
            expr, depth = (expr // rhs if operation.text == "floordiv" else expr % rhs), depth + 1
            self._check_depth(depth, MAX_NESTING, operation.column)
        return expr, depth

    def _operand(self) -> tuple[AffineExpr, int]:
        negative = False
        while self._accept("-"):
            negative = not negative
        token = self._token
        if token.kind == "number":
            expr, depth = constant(self._integer()), 0
        elif token.text in self._variables:
            self._position += 1
            expr, depth = self._variables[token.text], 0
        elif self._accept("("):
            self._nesting += 1
            self._check_depth(self._nesting, 2 * MAX_NESTING + 1, token.column)
            expr, depth = self._sum()
            self._expect(")")
            self._nesting -= 1
        else:
            self._fail("a number, a declared variable or '('")
        return (-expr if negative else expr), depth

    def _check_depth(self, depth: int, limit: int, column: int) -> None:
        if depth > limit:
            raise InvalidInput(f"indexing map, column {column}: nested more than {limit} deep")

"""The syntax tree of the loop language: what the parser and the Python spelling make, and what is checked and built.

Every node says where it stands. Nodes are plain: whether a name is a size, a loop's variable or a buffer, and of what
type an expression is, is found when the tree is built into operations.
"""

from xgpu.errors import SourceLocation
from xgpu.records import dataclass


@dataclass(frozen=True)
class NumberLiteral:
    """A literal: an integer, or a number with a point or an exponent."""

    value: int | float
    at: SourceLocation


@dataclass(frozen=True)
class Name:
    """A size, a loop's variable, a value, or a buffer of no dimensions."""

    name: str
    at: SourceLocation


@dataclass(frozen=True)
class Element:
    """``buffer[index, ...]``."""

    buffer: str
    indices: tuple["Expr", ...]
    at: SourceLocation


@dataclass(frozen=True)
class Call:
    """A function of values, or the name of a type, which converts."""

    function: str
    arguments: tuple["Expr", ...]
    at: SourceLocation


@dataclass(frozen=True)
class Unary:
    """An operator before its operand: ``-`` or ``~`` or ``not``."""

    operator: str
    operand: "Expr"
    at: SourceLocation


@dataclass(frozen=True)
class Binary:
    """An operator between two operands; ``at`` is that of the operator."""

    operator: str
    left: "Expr"
    right: "Expr"
    at: SourceLocation


Expr = NumberLiteral | Name | Element | Call | Unary | Binary


@dataclass(frozen=True)
class Pragma:
    """``#name`` or ``#name(number, ...)``."""

    name: str
    values: tuple[Expr, ...]
    at: SourceLocation


@dataclass(frozen=True)
class Loop:
    """``par``, ``fully par``, ``seq`` or ``static``: a body for each value of a variable."""

    kind: str
    extent: Expr
    variable: str
    pragmas: tuple[Pragma, ...]
    body: tuple["Statement", ...]
    at: SourceLocation


@dataclass(frozen=True)
class If:
    """Statements for where conditions on indices hold, and for where they do not."""

    condition: Expr
    then: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]
    at: SourceLocation


@dataclass(frozen=True)
class New:
    """A buffer of its own for each iteration of the loops around it."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    pragmas: tuple[Pragma, ...]
    at: SourceLocation


@dataclass(frozen=True)
class Let:
    """A name for a value."""

    name: str
    value: Expr
    at: SourceLocation


@dataclass(frozen=True)
class Assign:
    """``target = value``, or a combination with what is there: ``operator`` is ``=``, ``+=``, ``max=``, ..."""

    target: Name | Element
    operator: str
    value: Expr
    pragmas: tuple[Pragma, ...]
    at: SourceLocation


@dataclass(frozen=True)
class Anchor:
    """A value that is computed here though nothing takes it."""

    value: Expr
    at: SourceLocation


@dataclass(frozen=True)
class Asm:
    """Instructions of PTX on values; ``results`` are names for what they write, with types."""

    text: str
    operands: tuple[Expr, ...]
    results: tuple[tuple[str, str], ...]
    at: SourceLocation


Statement = Loop | If | New | Let | Assign | Anchor | Asm


@dataclass(frozen=True)
class Size:
    """A parameter of the program, and what it is if nothing else says so."""

    name: str
    default: Expr | None
    at: SourceLocation


@dataclass(frozen=True)
class Parameter:
    """An array that the program is given: ``access`` is ``in``, ``out`` or ``inout``."""

    access: str
    name: str
    dtype: str
    shape: tuple[Expr, ...]
    at: SourceLocation


@dataclass(frozen=True)
class Function:
    """A program: its sizes, arrays and statements."""

    name: str
    sizes: tuple[Size, ...]
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    at: SourceLocation

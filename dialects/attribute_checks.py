"""Discardable attributes: how one is declared, and the checks of values that many of them share."""

from collections.abc import Callable

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.records import dataclass


@dataclass(frozen=True)
class OperationSet:
    """A set of operations on which an attribute may stand: those called ``names``, or all if it is None."""

    description: str
    names: frozenset[str] | None = None


@dataclass(frozen=True)
class Discardable:
    """An attribute that xgpu hangs on operations, or on arguments if it has no ``place``.

    ``problem`` returns what is wrong with a value: what was expected.
    """

    name: str
    place: OperationSet | None
    problem: Callable[[ir.Attribute], str | None]
    doc: str


def int64s(attribute: ir.Attribute) -> tuple[int, ...] | None:
    """Return the values of an ``array<i64: ...>``, None of another attribute."""
    return tuple(attribute) if isinstance(attribute, ir.DenseI64ArrayAttr) else None


def integer_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with a count."""
    is_count = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64" and attribute.value >= 0
    return None if is_count else "expected a count of type i64"


def unit_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with a unit attribute."""
    return None if isinstance(attribute, ir.UnitAttr) else "expected a unit attribute"


def string_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with a string."""
    return None if isinstance(attribute, ir.StringAttr) else "expected a string"


def type_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with a type."""
    return None if isinstance(attribute, ir.TypeAttr) else "expected a type"


def float_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with a float."""
    return None if isinstance(attribute, ir.FloatAttr) else "expected a float"


def one_of(*words: str) -> Callable[[ir.Attribute], str | None]:
    """Return the check of a string that is one of ``words``."""

    def problem(attribute: ir.Attribute) -> str | None:
        known = isinstance(attribute, ir.StringAttr) and attribute.value in words
        *first, last = map(repr, words)
        return None if known else f"expected {', '.join(first)} or {last}"

    return problem


def map_problem(attribute: ir.Attribute) -> str | None:
    """Say what is wrong with an indexing map."""
    return None if attributes.MAP.accepts(attribute) else f"expected {attributes.MAP.description}"

"""Polynomials of scalars, as graphs of operations: of a scan's region, their derivatives, and their values."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from xgpu import ir
from xgpu.hlo.scan_op import uniform
from xgpu.hlo.stablehlo_builder import Value
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of

type Number = int | float

_OF_PRED = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
"""The meanings of these operations on truth values."""
_FOLDED: Mapping[str, Callable[..., Number]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}
_LEAST_BITS = 16
"""The width of floats at least: of narrower ones, sums in another order are other numbers."""
_SMALLEST, _GREATEST = 2.0**-14, 2.0**15
"""Numbers that can be folded: all these types have them as normal ones. A product of others may be 0 or infinite."""
_OF_TRUTH = frozenset(("and", "or", "not", "select", "convert"))
"""Operations that have truth values for operands."""
_LARGEST = 1 << 10
"""Operations of all polynomials of a scan at most: derivatives of long ones are longer."""


class NoPolynomialError(Exception):
    """Raised for operations that are no polynomials, or too many."""


class Algebra[T](Protocol):
    """Things that operations can be applied to, such as arrays."""

    def apply(self, kind: str, operands: Sequence[T | Number]) -> T:
        """Return the result of an operation, such as ``add``. Some operand is no number."""


@dataclass(frozen=True)
class PolynomialNode:
    """An operation on nodes given by their numbers, an argument or a number."""

    kind: str
    operands: tuple[int, ...] = ()
    number: Number = 0


def operation_kind(op: ir.Operation) -> str:
    """Return which operation on numbers or truth values one of StableHLO is.

    These are ``add``, ``subtract``, ``multiply``, ``negate`` and ``select``, of truth values ``and``, ``or`` and
    ``not``, and ``convert`` of these to numbers. Raises `NoPolynomialError` for others, and for narrow floats.
    """
    name = op.name.partition(".")[2]
    element = element_of(op.results[0])
    if name == "select":
        is_known = not is_pred(op.results[0])
    elif name == "convert":
        is_known = is_pred(op.operands[0]) or op.operands[0].type == op.results[0].type
    elif is_pred(op.results[0]):
        name = _OF_PRED.get(name, name)
        is_known = name in ("and", "or", "not") and all(is_pred(operand) for operand in op.operands)
    else:
        is_known = name in ("add", "subtract", "multiply", "negate")
    is_wide = isinstance(element, ir.FloatType) and element.width >= _LEAST_BITS
    if not is_known or not (is_pred(op.results[0]) or is_wide or isinstance(element, ir.ComplexType)):
        raise NoPolynomialError
    return name


def is_pred(value: Value) -> bool:
    """Whether an array's elements are truth values."""
    return str(element_of(value)) == "i1"


def number_of(op: ir.Operation) -> Number | None:
    """Return the number that is every element of an operation's result, None for one that is no constant."""
    if op.name == "stablehlo.complex":
        real, imaginary = (_constant(operand) for operand in op.operands)
        return real if imaginary == 0 else None
    attribute = uniform(op)
    if attribute is None:
        return None
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    return int(ir.IntegerAttr(attribute).value)


def _constant(value: Value) -> Number | None:
    maker = defining_op(value)
    return None if maker is None else number_of(maker)


class Polynomials:
    """A graph of nodes, in which equal ones are one. Products with 0 and 1, and sums with 0, are not made."""

    def __init__(self) -> None:
        self.nodes: list[PolynomialNode] = []
        self._numbers: dict[PolynomialNode, int] = {}
        self._derivatives: dict[tuple[int, int], int] = {}

    @classmethod
    def of_region(cls, block: ir.Block) -> "tuple[Polynomials, list[int]]":
        """Return what a scan's region computes. Raises `NoPolynomialError` if that is no polynomials."""
        made = cls()
        values: dict[Value, int] = {argument: made.argument(i) for i, argument in enumerate(block.arguments)}
        *body, terminator = (op.operation for op in block.operations)
        for op in body:
            number = number_of(op)
            if number is not None:
                values[op.results[0]] = made.number(number)
            elif op.name == "stablehlo.convert" and op.operands[0].type == op.results[0].type:
                values[op.results[0]] = values[op.operands[0]]
            elif all(operand in values for operand in op.operands):
                values[op.results[0]] = made._applied(operation_kind(op), [values[each] for each in op.operands])
            else:
                raise NoPolynomialError
        if any(is_pred(value) and made.nodes[values[value]].kind == "number" for value in terminator.operands):
            raise NoPolynomialError
        return made, [values[value] for value in terminator.operands]

    def _applied(self, kind: str, operands: Sequence[int]) -> int:
        """Return the result of a program's operation. Products with 0 are refused: those with infinity are NaN."""
        zero = self.number(0)
        if kind == "multiply" and (zero in operands or self._gated(operands) is not None):
            raise NoPolynomialError
        return self.apply(kind, operands)

    def argument(self, number: int) -> int:
        """Return the argument of this number."""
        return self._node(PolynomialNode("argument", number=number))

    def number(self, number: Number) -> int:
        """Return a number."""
        return self._node(PolynomialNode("number", number=number))

    def apply(self, kind: str, operands: Sequence[int]) -> int:
        """Return the result of an operation. Raises `NoPolynomialError` where a type of floats may not have it."""
        simple = self._of_truth(kind, operands) if kind in _OF_TRUTH else self._of_numbers(kind, operands)
        if simple is not None:
            return simple
        numbers = [self.nodes[operand].number for operand in operands if self.nodes[operand].kind == "number"]
        if len(numbers) < len(operands):
            return self._node(PolynomialNode(kind, tuple(operands)))
        found = _FOLDED[kind](*numbers)
        # What is subtracted from itself is NaN where the program has infinity.
        if not all(_SMALLEST <= abs(number) <= _GREATEST for number in (*numbers, found)):
            raise NoPolynomialError
        return self.number(found)

    def _of_numbers(self, kind: str, operands: Sequence[int]) -> int | None:
        """Return what a sum or product with 0 or 1 is, and one that is gated; None for others."""
        zero, one = self.number(0), self.number(1)
        if kind == "add" and zero in operands:
            return operands[1 - operands.index(zero)]
        if kind == "subtract" and operands[1] == zero:
            return operands[0]
        if kind == "subtract" and operands[0] == zero:
            return self.apply("negate", operands[1:])
        if kind == "negate" and self.nodes[operands[0]].kind == "number":
            return self.number(-self.nodes[operands[0]].number)
        if kind == "multiply" and zero in operands:
            return zero
        if kind == "multiply" and one in operands:
            return operands[1 - operands.index(one)]
        return self._gated(operands) if kind == "multiply" else None

    def _of_truth(self, kind: str, operands: Sequence[int]) -> int | None:
        """Return what an operation of a truth value that is known comes to, None if none is."""
        zero, one = self.number(0), self.number(1)
        known = next((operand for operand in operands if operand in (zero, one)), None)
        if kind == "select":
            chosen = {one: operands[1], zero: operands[2]}.get(operands[0])
            return operands[1] if operands[1] == operands[2] else chosen
        if known is None or kind == "convert":
            return known
        if kind == "not":
            return one if known == zero else zero
        is_decided = (kind == "or") == (known == one)
        return known if is_decided else operands[1 - operands.index(known)]

    def _gated(self, operands: Sequence[int]) -> int | None:
        """Return a product with what is 0 under a condition, so that it is 0 then whatever the other factor is."""
        for operand, other in (operands, reversed(operands)):
            node = self.nodes[operand]
            if node.kind == "select" and self.number(0) in node.operands[1:]:
                products = [self.apply("multiply", [each, other]) for each in node.operands[1:]]
                return self.apply("select", [node.operands[0], *products])
        return None

    def _node(self, node: PolynomialNode) -> int:
        found = self._numbers.setdefault(node, len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(node)
        if found > _LARGEST:
            raise NoPolynomialError
        return found

    def total(self, terms: Iterable[int]) -> int:
        """Return the sum of terms, zero if there are none."""
        total = self.number(0)
        for term in terms:
            total = self.apply("add", [total, term])
        return total

    def derivative(self, root: int, argument: int) -> int:
        """Return the derivative by an argument that is no truth value."""
        # Operands have lower numbers; derivatives are made on the way, with higher ones.
        for i in range(root + 1):
            if (i, argument) not in self._derivatives:
                self._derivatives[i, argument] = self._derivative(self.nodes[i], argument)
        return self._derivatives[root, argument]

    def _derivative(self, node: PolynomialNode, argument: int) -> int:
        parts = [self._derivatives[operand, argument] for operand in node.operands]
        if node.kind == "argument":
            return self.number(int(node.number == argument))
        if node.kind == "multiply":
            left, right = node.operands
            return self.total((self.apply("multiply", [left, parts[1]]), self.apply("multiply", [parts[0], right])))
        if node.kind == "select":
            return self.apply("select", [node.operands[0], *parts[1:]])
        if node.kind in ("add", "subtract", "negate"):
            return self.apply(node.kind, parts)
        return self.number(0)

    def arguments(self, roots: Iterable[int]) -> set[int]:
        """Return the arguments that nodes are made of."""
        reached = (self.nodes[i] for i in self._reached(roots))
        return {int(node.number) for node in reached if node.kind == "argument"}

    def _reached(self, roots: Iterable[int]) -> list[int]:
        """Return what nodes are made of, and themselves, operands first."""
        pending = list(roots)
        reached = set(pending)
        while pending:
            new = set(self.nodes[pending.pop()].operands) - reached
            reached |= new
            pending += new
        return sorted(reached)

    def values[T](self, roots: Sequence[int], algebra: Algebra[T], arguments: Mapping[int, T]) -> list[T | Number]:
        """Return the values of nodes, given those of the arguments that they are made of."""
        values: dict[int, T | Number] = {}
        for i in self._reached(roots):
            node = self.nodes[i]
            if node.kind == "argument":
                values[i] = arguments[int(node.number)]
            elif node.kind == "number":
                values[i] = node.number
            else:
                operands = [values[operand] for operand in node.operands]
                values[i] = algebra.apply(node.kind, operands)
        return [values[root] for root in roots]

"""Builds expressions: index expressions as affine ones, values as operations on elements, each of one type.

Literals and sizes have no type of their own and take that of what they are combined with. Loops' variables are indices,
and so are sums, products with numbers, quotients and remainders of them; where a value is wanted, an index is an s32.
Nothing else is converted without being asked for.
"""

import math
from collections.abc import Sequence
from operator import add, mul, sub, truediv
from typing import Any

import ml_dtypes
import numpy as np

from xgpu import ir
from xgpu.dialects.nests.accesses import FromIndexOp, ReadOp, ToIndexOp
from xgpu.dtypes import DTYPES, DType, dtype_named
from xgpu.errors import InvalidInput, SourceLocation, did_you_mean
from xgpu.hlo.operations import without_code
from xgpu.indexing.affine import DIVISION_BY_INDEX, PRODUCT_OF_INDICES, AffineExpr, linearize
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.interval import Interval
from xgpu.loop_language.functions import BITS, COMPARISONS, FUNCTIONS, OPERATORS, PAIR
from xgpu.loop_language.printer import expression
from xgpu.loop_language.scope import Buffer, ScopedNames, Value, as_index
from xgpu.loop_language.sizes import combined
from xgpu.loop_language.syntax import Binary, Call, Element, Expr, Name, NumberLiteral, Unary
from xgpu.structure import dtype_of

Operand = ir.Value | AffineExpr | float
"""An element, an index, or a number without a type; truth values without a type are ``bool``."""

_TYPES = frozenset(dtype.hlo for dtype in DTYPES)
_S32 = dtype_named("s32")
_PRED = dtype_named("pred")
_F32, _F64 = dtype_named("f32"), dtype_named("f64")


def location_of(at: SourceLocation) -> ir.Location:
    """Return a place as MLIR has it."""
    return ir.Location.file(at.file, at.line, at.column) if at.line else ir.Location.unknown()


def element_type(dtype: DType) -> ir.Type:
    """Return the type of an element of ``dtype``."""
    return ir.RankedTensorType.get([], ir.Type.parse(dtype.mlir))


def make(operation: str, operands: Sequence[ir.Value], dtype: DType, at: SourceLocation, **attributes: Any) -> ir.Value:
    """Create an operation on elements; raises InvalidInput if it does not take them."""
    op = ir.Operation.create(
        operation, results=[element_type(dtype)], operands=list(operands), attributes=attributes, loc=location_of(at)
    )
    types = ", ".join(str(dtype_of(operand)) for operand in operands)
    try:
        op.verify()
        reason = without_code(op)
    except ir.MLIRError as error:
        reason = str(error.error_diagnostics[0].message).rpartition("op ")[2] if error.error_diagnostics else str(error)
    if reason:
        raise InvalidInput(f"{operation} of {types}: {reason}", at)
    return op.results[0]


class Expressions:
    """Builds the expressions of a program at the current insertion point, with the names of a scope."""

    def __init__(self, scope: ScopedNames):
        self.scope = scope

    def value(self, expr: Expr, dtype: DType | None = None) -> ir.Value:
        """Return the element that an expression makes, of ``dtype`` if that is given."""
        if isinstance(expr, Call) and expr.function == "select":
            return self._typed(self._select(expr, dtype), dtype, expr.at)
        return self._typed(self.operand(expr), dtype, expr.at)

    def index(self, expr: Expr) -> AffineExpr:
        """Return an index expression; an element makes one that it decides."""
        found = self.operand(expr)
        if isinstance(found, (bool, float)):
            raise InvalidInput(f"expected an index, got {found}", expr.at)
        if isinstance(found, ir.Value):
            hint = "select(condition, a, b) chooses by values"
            raise InvalidInput(f"expected an index, got a value of type {dtype_of(found)}; {hint}", expr.at)
        return self.scope.check_index(as_index(found), expr.at)

    def operand(self, expr: Expr) -> Operand:
        """Return what an expression is: an element, an index or a number."""
        match expr:
            case NumberLiteral():
                return expr.value
            case Name():
                return self._name(expr)
            case Element():
                return self.read(expr)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr, self.operand(expr.left), self.operand(expr.right))
            case Call():
                return self._call(expr)

    def _name(self, expr: Name) -> Operand:
        if expr.name in ("true", "false"):
            return expr.name == "true"
        meaning = self.scope.meaning(expr.name)
        if isinstance(meaning, Buffer):
            return self.read(Element(expr.name, (), expr.at))
        if meaning is None:
            raise InvalidInput(f"'{expr.name}' {self._undefined(expr.name)}", expr.at)
        return meaning.value

    def _undefined(self, name: str) -> str:
        return f"is not defined here{did_you_mean(name, self.scope.names)}; known are {_listed(self.scope.names)}"

    def place(self, target: Element) -> tuple[Buffer, list[AffineExpr]]:
        """Return the buffer and the indices of an element; raises InvalidInput if they do not fit each other."""
        buffer = self.scope.meaning(target.buffer)
        if not isinstance(buffer, Buffer):
            problem = "is no buffer" if buffer else self._undefined(target.buffer)
            raise InvalidInput(f"'{target.buffer}' {problem}", target.at)
        if len(target.indices) != len(buffer.shape):
            raise InvalidInput(
                f"'{buffer.name}' has {len(buffer.shape)} dimensions, got {len(target.indices)} indices", target.at
            )
        found: list[AffineExpr] = []
        for number, (expr, size) in enumerate(zip(target.indices, buffer.shape, strict=True)):
            operand = self.operand(expr)
            if isinstance(operand, ir.Value):
                found.append(self._decided(operand, size, expr.at))
                continue
            if isinstance(operand, (bool, float)):
                raise InvalidInput(f"expected an index, got {operand}", expr.at)
            index = self.scope.check_index(as_index(operand), expr.at)
            self._check_bounds(buffer, number, index, size, expr.at)
            found.append(index)
        self.scope.check_magnitude(linearize(found, buffer.shape), target.at)
        return buffer, found

    def _decided(self, value: ir.Value, size: int, at: SourceLocation) -> AffineExpr:
        dtype = dtype_of(value)
        if not dtype.is_integer or dtype.bits < 8:
            raise InvalidInput(f"expected an index, or an integer of 8 bits or more, got {dtype}", at)
        index = ToIndexOp.build(value, size, location_of(at))
        return self.scope.new_variable(index, size)

    def _check_bounds(self, buffer: Buffer, number: int, index: AffineExpr, size: int, at: SourceLocation) -> None:
        (found,) = self.scope.map_of([index])[0].result_ranges()
        if not Interval(0, size - 1).contains_interval(found):
            raise InvalidInput(
                f"index {number} of '{buffer.name}' may be from {found.lower} to {found.upper};"
                f" expected 0 to {size - 1}: put it under an 'if' that says so",
                at,
            )

    def read(self, expr: Element) -> ir.Value:
        """Return an element of a buffer."""
        buffer, indices = self.place(expr)
        if buffer.access in ("out", "new") and buffer.name not in self.scope.written:
            hint = "; declare it inout to start from what it is given" if buffer.access == "out" else ""
            raise InvalidInput(f"'{buffer.name}' has no value yet{hint}", expr.at)
        return ReadOp.build(buffer.value, *self.scope.map_of(indices), location_of(expr.at))

    def _typed(self, operand: Operand, dtype: DType | None, at: SourceLocation) -> ir.Value:
        """Return an operand as an element."""
        if isinstance(operand, ir.Value):
            if dtype is not None and dtype_of(operand) != dtype:
                raise InvalidInput(f"expected {dtype}, got {dtype_of(operand)}; {dtype}(...) converts", at)
            return operand
        if isinstance(operand, AffineExpr):
            if dtype is not None and dtype != _S32:
                raise InvalidInput(f"expected {dtype}, got an index; {dtype}(...) converts", at)
            return self._number_of(operand, at)
        if dtype is None:
            raise InvalidInput(f"the type of {operand} is not known here; write f32({operand}), say", at)
        return number(operand, dtype, at)

    def _number_of(self, index: AffineExpr, at: SourceLocation) -> ir.Value:
        map_, variables = self.scope.map_of([index])
        (found,) = map_.result_ranges()
        if not Interval(-(2**31), 2**31 - 1).contains_interval(found):
            raise InvalidInput(f"an index from {found.lower} to {found.upper} is no s32", at)
        if map_.results[0].is_constant:
            return number(map_.results[0].constant, _S32, at)
        return FromIndexOp.build(map_, variables, location_of(at))

    def _unary(self, expr: Unary) -> Operand:
        operand = self.operand(expr.operand)
        if isinstance(operand, bool):
            if expr.operator == "-":
                raise InvalidInput("'-' takes no truth value", expr.at)
            return not operand
        if not isinstance(operand, ir.Value):
            if expr.operator == "-":
                return -operand
            operand = self._typed(operand, None, expr.at)
        operation = "stablehlo.negate" if expr.operator == "-" else "stablehlo.not"
        if expr.operator == "not" and dtype_of(operand) != _PRED:
            raise InvalidInput(f"'not' takes a truth value, got {dtype_of(operand)}", expr.at)
        return make(operation, [operand], dtype_of(operand), expr.at)

    def _binary(self, expr: Binary, left: Operand, right: Operand) -> Operand:
        sign, at = expr.operator, expr.at
        if not isinstance(left, ir.Value) and not isinstance(right, ir.Value) and sign not in COMPARISONS:
            return self._of_numbers(expr, left, right)
        left, right = self._of_one_type(left, right, at)
        dtype = dtype_of(left)
        if sign in COMPARISONS:
            direction = ir.Attribute.parse(f"#stablehlo<comparison_direction {COMPARISONS[sign]}>")
            return make("stablehlo.compare", [left, right], _PRED, at, comparison_direction=direction)
        if sign in ("and", "or") and dtype != _PRED:
            raise InvalidInput(f"'{sign}' takes truth values, got {dtype}", at)
        if sign == ">>":
            kind = "logical" if dtype.is_unsigned else "arithmetic"
            return make(f"stablehlo.shift_right_{kind}", [left, right], dtype, at)
        if sign not in OPERATORS:
            raise InvalidInput(f"'{sign}' takes indices, got {dtype}", at)
        return make(OPERATORS[sign], [left, right], dtype, at)

    def _of_numbers(self, expr: Binary, left: AffineExpr | float, right: AffineExpr | float) -> Operand:
        """Combine what has no type: numbers, and indices."""
        sign, at = expr.operator, expr.at
        if any(isinstance(each, bool) for each in (left, right)):
            raise InvalidInput(f"'{sign}': truth values without a type are not combined; leave it out", at)
        if any(isinstance(each, float) for each in (left, right)):
            if any(isinstance(each, AffineExpr) for each in (left, right)):
                raise InvalidInput(f"'{sign}': an index and a number with a point; f32(...) converts an index", at)
            return _of_floats(sign, float(left), float(right), at)  # type: ignore[arg-type]
        if isinstance(left, int) and isinstance(right, int):
            return combined(sign, left, right, at)
        return self.scope.check_index(_affine(expr, as_index(left), as_index(right)), at)

    def _of_one_type(
        self, left: Operand, right: Operand, at: SourceLocation, wanted: DType | None = None
    ) -> tuple[ir.Value, ir.Value]:
        """Return two operands as elements of one type, which one of them says, or what takes them."""
        dtype = next((dtype_of(each) for each in (left, right) if isinstance(each, ir.Value)), None)
        if dtype is None:
            dtype = _S32 if all(isinstance(each, (int, AffineExpr)) for each in (left, right)) else None
            dtype = wanted or dtype
        return self._typed(left, dtype, at), self._typed(right, dtype, at)

    def _call(self, expr: Call) -> Operand:
        name = expr.function
        if name in _TYPES:
            return self._converted(expr, dtype_named(name))
        if name.startswith(BITS) and name.removeprefix(BITS) in _TYPES:
            return self._of_bits(expr, dtype_named(name.removeprefix(BITS)))
        if name == PAIR:
            return self._pair(expr)
        if name == "select":
            return self._select(expr)
        if name not in FUNCTIONS:
            known = [*FUNCTIONS, "select"]
            near = did_you_mean(name, known)
            raise InvalidInput(f"there is no function '{name}'{near}; known are {_listed(known)}", expr.at)
        function = FUNCTIONS[name]
        operands = [self.operand(argument) for argument in _arguments(expr, function.arity)]
        dtype = next((dtype_of(each) for each in operands if isinstance(each, ir.Value)), None)
        if dtype is None and any(isinstance(each, AffineExpr) for each in operands):
            dtype = _S32
        values = [self._typed(each, dtype, expr.at) for each in operands]
        return make(function.operation, values, _PRED if function.gives_truth else dtype_of(values[0]), expr.at)

    def _select(self, expr: Call, wanted: DType | None = None) -> Operand:
        condition, *sides = (self.operand(argument) for argument in _arguments(expr, 3))
        chosen = self._typed(condition, _PRED, expr.at)
        left, right = self._of_one_type(sides[0], sides[1], expr.at, wanted)
        return make("stablehlo.select", [chosen, left, right], dtype_of(left), expr.at)

    def _converted(self, expr: Call, dtype: DType) -> ir.Value:
        operand = self.operand(*_arguments(expr, 1))
        if not isinstance(operand, ir.Value | AffineExpr):
            return number(operand, dtype, expr.at)
        value = self._typed(operand, None, expr.at)
        return value if dtype_of(value) == dtype else make("stablehlo.convert", [value], dtype, expr.at)

    def _of_bits(self, expr: Call, dtype: DType) -> ir.Value:
        """Return a value with the bits of another one."""
        (argument,) = _arguments(expr, 1)
        value = self.value(argument)
        source = dtype_of(value)
        if source.bits != dtype.bits:
            raise InvalidInput(f"'{expr.function}' takes a value of {dtype.bits} bits, got {source}", expr.at)
        return value if source == dtype else make("stablehlo.bitcast_convert", [value], dtype, expr.at)

    def _pair(self, expr: Call) -> ir.Value:
        """Return two values of 16 bits as a u32, the first one in its lower half."""
        halves = [self.value(argument) for argument in _arguments(expr, 2)]
        dtypes = [dtype_of(half) for half in halves]
        if any(dtype.bits != 16 for dtype in dtypes):
            raise InvalidInput(f"'{PAIR}' takes values of 16 bits, got {dtypes[0]} and {dtypes[1]}", expr.at)
        u16, u32 = dtype_named("u16"), dtype_named("u32")
        bits = [
            half if dtype == u16 else make("stablehlo.bitcast_convert", [half], u16, expr.at)
            for half, dtype in zip(halves, dtypes, strict=True)
        ]
        low, high = (make("stablehlo.convert", [half], u32, expr.at) for half in bits)
        upper = make("stablehlo.shift_left", [high, number(16, u32, expr.at)], u32, expr.at)
        return make("stablehlo.or", [low, upper], u32, expr.at)

    def condition(self, expr: Expr) -> list[Constraint]:
        """Return what a condition on indices says, one constraint for each comparison; they are joined by ``and``."""
        if isinstance(expr, Binary) and expr.operator == "and":
            return [*self.condition(expr.left), *self.condition(expr.right)]
        if not isinstance(expr, Binary) or expr.operator not in COMPARISONS:
            raise InvalidInput(
                "expected comparisons of indices, joined by 'and'; select(...) chooses by values", expr.at
            )
        difference = self.scope.check_index(self.index(expr.left) - self.index(expr.right), expr.at)
        ((test, interval),) = self._comparison(expr, difference)
        # A condition has one form, wherever its numbers stand.
        return [(test - test.constant, interval - test.constant)]

    def _comparison(self, expr: Binary, difference: AffineExpr) -> list[Constraint]:
        """Return what a comparison of two indices says of their difference."""
        found = self.scope.interval(difference)
        match expr.operator:
            case "<":
                return [(difference, Interval(min(found.lower, -1), -1))]
            case "<=":
                return [(difference, Interval(min(found.lower, 0), 0))]
            case ">":
                return [(difference, Interval(1, max(found.upper, 1)))]
            case ">=":
                return [(difference, Interval(0, max(found.upper, 0)))]
            case "==":
                return [(difference, Interval(0, 0))]
        raise InvalidInput("'!=' is two conditions; put what is done under the 'else' of '=='", expr.at)


def _affine(expr: Binary, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    """Combine two indices; raises InvalidInput where that makes none."""
    match expr.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*" if left.is_constant or right.is_constant:
            return left * right
        case "*":
            raise InvalidInput(f"'{expression(expr)}' {PRODUCT_OF_INDICES}", expr.at)
        case "/" | "//" | "%" if not right.is_constant:
            raise InvalidInput(f"'{expression(expr)}' {DIVISION_BY_INDEX}", expr.at)
        case "/" | "//" | "%" if right.constant <= 0:
            raise InvalidInput(f"'{expression(expr)}': expected a divisor of at least 1, got {right.constant}", expr.at)
        case "/" | "//":
            return left // right
        case "%":
            return left % right
    raise InvalidInput(f"'{expr.operator}' makes no index of indices; s32(...) makes a value of one", expr.at)


def number(value: float, dtype: DType, at: SourceLocation) -> ir.Value:
    """Return a constant element; raises InvalidInput if the type does not hold the number."""
    if isinstance(value, bool) != (dtype.kind == "bool") or (type(value) is float and dtype.is_integer):
        raise InvalidInput(f"{str(value).lower() if isinstance(value, bool) else value} is no {dtype}", at)
    if dtype.is_integer:
        lowest = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
        if not lowest <= value < lowest + 2**dtype.bits:
            raise InvalidInput(f"{value} is no {dtype}, which is from {lowest} to {lowest + 2**dtype.bits - 1}", at)
    if dtype.kind == "complex":
        # The bindings read no complex constants.
        part = number(float(value), _F32 if dtype.bits == 64 else _F64, at)
        return make("stablehlo.convert", [part], dtype, at)
    type_ = element_type(dtype)
    if dtype.kind == "bool":
        text = str(value).lower()
    elif dtype.is_integer:
        text = str(int(value))
    else:
        bits = _rounded(value, dtype, at).tobytes()[::-1].hex()
        text = f"0x{bits.upper()[-max(1, dtype.bits // 4) :]}"
    dense = ir.Attribute.parse(f"dense<{text}> : {type_}")
    op = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": dense}, loc=location_of(at))
    return op.results[0]


def _rounded(value: float, dtype: DType, at: SourceLocation) -> np.ndarray[Any, Any]:
    """Return a number as the nearest one of a type of floats; raises InvalidInput if it is beyond those there are."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(value, np.float64).astype(dtype.numpy)
    numbers, nearest = ml_dtypes.finfo(dtype.numpy), float(rounded)  # type: ignore[no-untyped-call]
    largest = float(numbers.max)
    half_a_step = math.ldexp(float(numbers.eps) / 2, math.frexp(largest)[1] - 1)
    if math.isfinite(value):
        # Types without infinities have NaN or their largest number in place of what is beyond it.
        holds = math.isfinite(nearest) and abs(value) - largest <= half_a_step
    else:
        holds = nearest == value or (math.isnan(nearest) and math.isnan(value))
    if not holds:
        raise InvalidInput(f"{value} is no {dtype}, which is from {float(numbers.min)} to {largest}", at)
    return rounded


_FLOAT_OPERATORS = {"+": add, "-": sub, "*": mul, "/": truediv}


def _of_floats(sign: str, left: float, right: float, at: SourceLocation) -> float:
    if sign not in _FLOAT_OPERATORS:
        raise InvalidInput(f"'{sign}' takes no numbers with a point", at)
    if sign == "/" and right == 0:
        raise InvalidInput("division of a number by zero", at)
    result: float = _FLOAT_OPERATORS[sign](left, right)
    if math.isinf(result) and math.isfinite(left) and math.isfinite(right):
        raise InvalidInput(f"{left} {sign} {right} is beyond the numbers of every type", at)
    return result


def _arguments(expr: Call, expected: int) -> Sequence[Expr]:
    if len(expr.arguments) != expected:
        raise InvalidInput(f"'{expr.function}' takes {expected} arguments, got {len(expr.arguments)}", expr.at)
    return expr.arguments


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def named(value: Operand) -> Value:
    """Return what a name for an operand means."""
    return Value(value)

"""The sizes of a program: from the shapes of the arrays that it is called with, or from their defaults."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

from xgpu.dtypes import MAX_ELEMENTS, DType, dtype_named, format_spec
from xgpu.errors import InvalidInput, SourceLocation, did_you_mean
from xgpu.loop_language.syntax import Binary, Expr, Function, Name, NumberLiteral, Parameter, Unary

Spec = tuple[DType, tuple[int, ...]]
_MAX_SIZE = MAX_ELEMENTS

_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def combined(operator_: str, left: int, right: int, at: SourceLocation) -> int:
    """Return what an operator makes of two whole numbers, dividing downwards; InvalidInput if there is no such one."""
    if operator_ not in _OPERATORS:
        raise InvalidInput(f"'{operator_}' makes no whole number of whole numbers", at)
    if operator_ in ("/", "//", "%") and right <= 0:
        raise InvalidInput(f"'{operator_}': expected a positive divisor, got {right}", at)
    if operator_ in ("<<", ">>") and not 0 <= right < 64:
        raise InvalidInput(f"'{operator_}': expected to shift by 0 to 63, got {right}", at)
    found = _OPERATORS[operator_](left, right)
    if abs(found) > _MAX_SIZE:
        raise InvalidInput(f"'{operator_}': {left} {operator_} {right} is beyond {_MAX_SIZE}", at)
    return found


def whole_number(expr: Expr, known: Mapping[str, int], what: str) -> int:
    """Return the value of an expression of sizes and whole numbers; raises InvalidInput for any other."""
    match expr:
        case NumberLiteral(value=int() as value):
            return value
        case Name(name=name) if name in known:
            return known[name]
        case Unary(operator="-"):
            return -whole_number(expr.operand, known, what)
        case Binary():
            left, right = (whole_number(side, known, what) for side in (expr.left, expr.right))
            return combined(expr.operator, left, right, expr.at)
        case Name(name=name):
            near = did_you_mean(name, known)
            names = (
                f"{near}; the sizes are {', '.join(known)}" if known else f"; declare it before 'fn': size {name} = 64"
            )
            raise InvalidInput(f"{what}: expected sizes and whole numbers, got '{name}'{names}", expr.at)
    got = f", got {expr.value}" if isinstance(expr, NumberLiteral) else ""
    raise InvalidInput(f"{what}: expected sizes and whole numbers{got}", expr.at)


def names_in(expr: Expr) -> Iterator[Name]:
    """Yield the names that an expression of sizes and whole numbers is made of."""
    match expr:
        case Name():
            yield expr
        case Unary():
            yield from names_in(expr.operand)
        case Binary():
            yield from names_in(expr.left)
            yield from names_in(expr.right)


def sizes_of(function: Function, given: Sequence[Spec]) -> dict[str, int]:
    """Return every size of a program by name: as the arrays that are ``given`` have it, if any, else its default.

    A dimension that a parameter declares as a size alone says what that size is.
    """
    names = {size.name for size in function.sizes}
    if len(names) < len(function.sizes):
        twice = next(s for n, s in enumerate(function.sizes) if s.name in [o.name for o in function.sizes[:n]])
        raise InvalidInput(f"there are two sizes '{twice.name}'", twice.at)
    told: dict[str, int] = {}
    inputs = [parameter for parameter in function.parameters if parameter.access != "out"]
    if given and len(given) != len(inputs):
        raise InvalidInput(f"{function.name}: expected {len(inputs)} arguments, got {len(given)}", function.at)
    for parameter, (_, shape) in zip(inputs, given, strict=False):
        if len(shape) != len(parameter.shape):
            raise InvalidInput(
                f"'{parameter.name}' has {len(parameter.shape)} dimensions, got {len(shape)}", parameter.at
            )
        for expr, size in zip(parameter.shape, shape, strict=True):
            if isinstance(expr, Name) and expr.name in names and told.setdefault(expr.name, size) != size:
                raise InvalidInput(
                    f"'{parameter.name}': expected size '{expr.name}' to be {told[expr.name]}, got {size}", expr.at
                )
    known: dict[str, int] = {}
    for declared in function.sizes:
        name = declared.name
        if name in told:
            known[name] = told[name]
        elif declared.default is None:
            raise InvalidInput(f"size '{name}' has no default, and no argument says what it is", declared.at)
        else:
            known[name] = whole_number(declared.default, known, f"size '{name}'")
    for parameter, spec in zip(inputs, given, strict=False):
        expected = spec_of_parameter(parameter, known)
        if spec != expected:
            raise InvalidInput(
                f"'{parameter.name}': expected {format_spec(*expected)}, got {format_spec(*spec)}", parameter.at
            )
    return known


def spec_of_parameter(parameter: Parameter, sizes: Mapping[str, int]) -> Spec:
    """Return the element type and the shape of an array."""
    return dtype_at(parameter.dtype, parameter.at), shape_of(parameter.shape, sizes, f"'{parameter.name}'")


def dtype_at(name: str, at: SourceLocation) -> DType:
    """Return the element type of this name; raises InvalidInput at a place if there is none."""
    try:
        return dtype_named(name)
    except InvalidInput as error:
        raise InvalidInput(error.message, at) from None


def shape_of(exprs: Sequence[Expr], sizes: Mapping[str, int], what: str) -> tuple[int, ...]:
    """Return the sizes of a buffer's dimensions, each at least 1."""
    shape = []
    for expr in exprs:
        size = whole_number(expr, sizes, f"the shape of {what}")
        if not 1 <= size <= _MAX_SIZE:
            raise InvalidInput(f"the shape of {what}: expected a size of at least 1, got {size}", expr.at)
        shape.append(size)
    product = 1
    for size in shape:
        product *= size
    if product > _MAX_SIZE:
        raise InvalidInput(f"the shape of {what}: {product} elements are more than {_MAX_SIZE}", exprs[0].at)
    return tuple(shape)

"""The operation ``xgpu.scan``, which prefix sums and the like become: its builder, and its region on whole arrays."""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.dtypes import dtype_of_element, float_range
from xgpu.hlo.chlo import KEPT_FUNCTIONS
from xgpu.hlo.constants import splat_of
from xgpu.hlo.stablehlo_builder import Value, fill_region, hlo, integer_attribute, shape_of, tensor
from xgpu.structure import attributes_of, element_of, is_argument, producer

SCAN = "xgpu.scan"
"""The operation's name: StableHLO has none for it, so it is one of our own from the ``stablehlo`` level on."""

ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in """abs add and atan2 cbrt ceil clamp compare complex convert cosine divide exponential
    exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt
    power real remainder rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan
    tanh xor""".split()
) | frozenset(KEPT_FUNCTIONS)
"""Operations of a region that can work on whole arrays as on single elements, besides constants."""
_CONSTANT = "stablehlo.constant"
_BINARY = frozenset(f"stablehlo.{name}" for name in "add multiply minimum maximum and or xor".split())
_OF_PRED = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
"""The operations that these are on pred."""


def build_scan(
    inputs: Sequence[Value],
    dimension: int,
    reverse: bool,
    combine: Callable[[list[Value]], Sequence[Value]],
) -> list[Value]:
    """Return the inclusive scans of arrays of one shape along a dimension.

    ``combine`` emits the region, given scalars of what comes before and then of each element.
    Of single elements and of none the scans are the arrays.
    """
    shape = shape_of(inputs[0])
    if 0 in shape or shape[dimension] == 1:
        return list(inputs)
    attributes: dict[str, ir.Attribute] = {
        "dimension": _i64(dimension),
        "reverse": ir.BoolAttr.get(reverse),
    }
    types = [value.type for value in inputs]
    op = ir.Operation.create(SCAN, results=types, operands=list(inputs), attributes=attributes, regions=1)
    scalars = [tensor([], element_of(value)) for value in inputs]
    fill_region(op, [*scalars, *scalars], combine)
    return list(op.results)


def is_elementwise(block: ir.Block) -> bool:
    """Whether the operations of a region do to each element of an array what they do to a scalar."""
    *body, terminator = (op.operation for op in block.operations)
    local = {*block.arguments, *(result for op in body for result in op.results)}
    return local.issuperset(terminator.operands) and all(
        uniform(op) is not None or (op.name in ELEMENTWISE and local.issuperset(op.operands)) for op in body
    )


def uniform(op: ir.Operation) -> ir.Attribute | None:
    """Return the number that is every element of a constant operation's result, None for other operations."""
    while op.name == "stablehlo.broadcast_in_dim" and not is_argument(op.operands[0]):
        op = producer(op.operands[0])
    if op.name != _CONSTANT:
        return None
    return splat_of(op)


def combine_elements(block: ir.Block, arguments: Sequence[Value]) -> list[Value]:
    """Emit an elementwise region on arrays of one shape, or on scalars; return its results."""
    shape = shape_of(arguments[0])
    values: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    *body, terminator = (op.operation for op in block.operations)
    for op in body:
        types = [tensor(shape, element_of(result)) for result in op.results]
        if (number := uniform(op)) is not None:
            values[op.results[0]] = hlo.constant(ir.DenseElementsAttr.get_splat(types[0], number))
            continue
        attributes = attributes_of(op)
        operands = [values[operand] for operand in op.operands]
        made = ir.Operation.create(op.name, types, operands, attributes, loc=op.location)
        values.update(zip(op.results, made.results, strict=True))
    return [values[value] for value in terminator.operands]


def binary_function(block: ir.Block) -> str | None:
    """Return the function, such as ``add``, by which a region combines two scalars; None if it does more than that.

    On pred these are ``and``, ``or`` and ``xor``.
    """
    *body, terminator = (op.operation for op in block.operations)
    is_all = len(body) == len(terminator.operands) == 1 and terminator.operands[0] == body[0].results[0]
    return function_of(body[0], list(block.arguments)) if is_all else None


def function_of(op: ir.Operation, arguments: Sequence[Value]) -> str | None:
    """Return the `binary_function` that ``op`` computes if its operands are the arguments of a region."""
    if len(arguments) != 2 or op.name not in _BINARY or set(op.operands) != set(arguments):
        return None
    name = op.name.partition(".")[2]
    return _OF_PRED.get(name, name) if str(element_of(op.results[0])) == "i1" else name


def identity_of(function: str, element: ir.Type) -> Value:
    """Emit the identity element of a `binary_function`, as a scalar."""
    if isinstance(element, ir.ComplexType):
        return hlo.complex(*(identity_of(part, element.element_type) for part in (function, "add")))
    return hlo.constant(ir.DenseElementsAttr.get_splat(tensor([], element), _identity(function, element)))


def is_identity(function: str | None, start: Value) -> bool:
    """Whether combining with the elements of an array leaves every value as it is, to the last bit.

    Adding zero does not: it turns -0 into 0.
    """
    if function == "add" and isinstance(element_of(start), ir.FloatType):
        return False
    return function is not None and is_neutral(function, start)


def is_neutral(function: str, value: Value) -> bool:
    """Whether combining with the elements of an array leaves every number as it is, but for the sign of a zero."""
    element = element_of(value)
    if is_argument(value) or isinstance(element, ir.ComplexType):
        return False
    number = uniform(producer(value))
    return number is not None and number == _identity(function, element)


def _identity(function: str, element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.FloatType):
        lowest, highest = float_range(dtype_of_element(element))
        numbers = {"add": 0.0, "multiply": 1.0, "maximum": lowest, "minimum": highest}
        return ir.FloatAttr.get(element, numbers[function])
    dtype = dtype_of_element(element)
    ones = (1 << dtype.bits) - 1
    largest = ones >> 1 if dtype.is_signed else ones
    integers = {"add": 0, "multiply": 1, "xor": 0, "or": 0, "and": -1 if dtype.is_signed else ones}
    integers |= {"maximum": -largest - 1 if dtype.is_signed else 0, "minimum": largest}
    return integer_attribute(element, integers[function])


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)

"""Builders of StableHLO operations at the current insertion point, for what is expanded to them."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xgpu import ir
from xgpu.structure import element_of, nested

hlo = ir.stablehlo

Value = ir.Value[Any]


def tensor(shape: Sequence[int], element: ir.Type | str) -> ir.RankedTensorType:
    """Return an array type; ``element`` may be text such as ``ui32``."""
    return ir.RankedTensorType.get(list(shape), ir.Type.parse(element) if isinstance(element, str) else element)


def shape_of(value: Value) -> list[int]:
    """Return the shape of an array."""
    return list(ir.RankedTensorType(value.type).shape)


def splat(number: float | int, type_: ir.RankedTensorType) -> Value:
    """Return an array all of whose elements are a number, rounded to the element type."""
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        parts = tensor(type_.shape, ir.ComplexType(element).element_type)
        return hlo.complex(splat(number, parts), splat(0, parts))
    if isinstance(element, ir.FloatType):
        attribute: ir.Attribute = ir.FloatAttr.get(element, float(number))
    else:
        attribute = integer_attribute(element, int(number))
    return hlo.constant(ir.DenseElementsAttr.get_splat(type_, attribute))


def integer_attribute(element: ir.Type, number: int) -> ir.IntegerAttr:
    """Return the attribute of an integer of a type, up to its largest: the bindings take 64 signed bits."""
    return ir.IntegerAttr.get(element, number - (1 << 64) if number >= 1 << 63 else number)


def splat_like(number: float | int, value: Value) -> Value:
    """Return an array of the type of ``value`` all of whose elements are a number."""
    return splat(number, ir.RankedTensorType(value.type))


def broadcast(value: Value, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Value:
    """Return ``value`` at every index of ``shape``; its dimensions are those that ``dimensions`` names."""
    return hlo.broadcast_in_dim(tensor(shape, element_of(value)), value, list(dimensions))


def reshape(value: Value, shape: Sequence[int]) -> Value:
    """Return the elements of ``value`` in row-major order under another shape."""
    return value if shape_of(value) == list(shape) else hlo.reshape(tensor(shape, element_of(value)), value)


def transpose(value: Value, order: Sequence[int]) -> Value:
    """Return ``value`` with its dimensions in such an order."""
    if list(order) == sorted(order):
        return value
    made: Value = hlo.transpose(value, list(order))
    return made


def convert(value: Value, element: ir.Type | str) -> Value:
    """Return ``value`` converted to another element type."""
    target = tensor(shape_of(value), element)
    return value if value.type == target else hlo.convert(target, value)


def empty_constant(type_: ir.RankedTensorType) -> ir.Value:
    """Return a constant without elements; a complex one is made of its parts, as all of them are."""
    if isinstance(type_.element_type, ir.ComplexType):
        part = empty_constant(ir.RankedTensorType.get(type_.shape, ir.ComplexType(type_.element_type).element_type))
        return ir.Operation.create("stablehlo.complex", results=[type_], operands=[part, part]).results[0]
    empty = ir.Attribute.parse(f"dense<> : {type_}")
    return ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": empty}).results[0]


def scalar_at(vector: Value, index: int) -> Value:
    """Return an element of an array of rank 1."""
    return reshape(hlo.slice(vector, [index], [index + 1], [1]), [])


def linear_index(shape: Sequence[int], element: ir.Type | str) -> Value:
    """Return an array that holds each element's position in row-major order."""
    return reshape(hlo.iota(tensor([prod(shape)], element), 0), shape)


def leading_part(value: Value, shape: Sequence[int]) -> Value:
    """Return the first elements of ``value`` along each dimension, as many as ``shape`` says."""
    if shape_of(value) == list(shape):
        return value
    return hlo.slice(value, [0] * len(shape), list(shape), [1] * len(shape))


def fill_region(op: ir.Operation, types: Sequence[ir.Type], body: Callable[[list[Value]], Sequence[Value]]) -> None:
    """Fill an operation's region with a block of arguments of rank 0, which returns the values that ``body`` builds."""
    block = op.regions[0].blocks.append(*types)
    with ir.InsertionPoint(block):
        hlo.return_(list(body(list(block.arguments))))


def inline_block(block: ir.Block, arguments: Sequence[Value]) -> list[Value]:
    """Emit a copy of a region's block with these values for its arguments, and return its results."""
    values: dict[Value, Value] = dict(zip(block.arguments, arguments, strict=True))
    for op in block.operations:
        operation = op.operation
        operands = [values.get(operand, operand) for operand in operation.operands]
        if operation.name == "stablehlo.return":
            return operands
        copy = operation.clone()
        for position, operand in enumerate(operands):
            copy.operands[position] = operand
        for inner in nested(copy):
            for position, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[position] = values[operand]
        values.update(zip(operation.results, copy.results, strict=True))
    raise AssertionError("a verified region ends with stablehlo.return")


def compared(left: Value, right: Value, direction: str) -> Value:
    """Return where ``left`` is to ``right`` as ``direction`` says."""
    return hlo.compare(left, right, hlo.ComparisonDirectionAttr.get(direction))


def gathered(array: Value, places: Value) -> Value:
    """Return the elements of an array of rank 1 at positions."""
    numbers = hlo.GatherDimensionNumbers.get(
        offset_dims=[],
        collapsed_slice_dims=[0],
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=[0],
        index_vector_dim=len(shape_of(places)),
    )
    return hlo.gather(array, reshape(places, [*shape_of(places), 1]), numbers, ir.DenseI64ArrayAttr.get([1]))


def reduced(value: Value, start: Value, dimensions: Sequence[int], combine: Callable[[Value, Value], Value]) -> Value:
    """Return ``value`` combined along dimensions by a function of two scalars, beginning with the scalar ``start``."""
    rest = [size for each, size in enumerate(shape_of(value)) if each not in dimensions]
    attributes: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get(list(dimensions))}
    result = tensor(rest, element_of(value))
    op = ir.Operation.create("stablehlo.reduce", [result], [value, start], attributes, regions=1)
    fill_region(op, [start.type, start.type], lambda pair: [combine(*pair)])
    return op.results[0]


def repeated(
    trips: int, starts: Sequence[Value], step: Callable[[Value, Sequence[Value]], Sequence[Value]]
) -> Sequence[Value]:
    """Return values after ``trips`` iterations of a loop; ``step`` is given the number of each, an i32, and them."""
    counter = tensor([], "i32")
    types = [counter, *(start.type for start in starts)]
    op = ir.Operation.create("stablehlo.while", types, [splat(0, counter), *starts], regions=2)
    condition, body = (region.blocks.append(*types) for region in op.regions)
    with ir.InsertionPoint(condition):
        hlo.return_([compared(condition.arguments[0], splat(trips, counter), "LT")])
    with ir.InsertionPoint(body):
        number, *values = body.arguments
        hlo.return_([hlo.add(number, splat(1, counter)), *step(number, values)])
    return list(op.results)[1:]

"""Turns floats of 8 and fewer bits, which LLVM does not have, into the integers that hold them."""

import re
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.dtypes import dtype_of_element
from xgpu.passes.framework.base import functions
from xgpu.structure import arguments_of, walk

Codes = np.ndarray[Any, np.dtype[np.uint8]]


def is_narrow_float(type_: ir.Type) -> bool:
    """Tell whether a type, or the elements of a vector or tensor, are floats of 8 or 4 bits."""
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    return isinstance(element, ir.FloatType) and element.width in (4, 8)


def store_as_integers(module: ir.Module) -> None:
    """Give every value of a narrow float type an integer type, once nothing computes with such values any more."""
    operations = walk(module.operation)
    for op in operations:
        if op.name == "arith.constant" and is_narrow_float(op.results[0].type):
            op.attributes["value"] = _constant(op.attributes["value"])
        _convert_values([*op.results, *arguments_of(op)])
    for op in operations:
        if op.name == "arith.bitcast" and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    for function in functions(module):
        type_ = ir.FunctionType(ir.TypeAttr(function.operation.attributes["function_type"]).value)
        inputs, results = ([_integer_type(each) for each in types] for types in (type_.inputs, type_.results))
        function.operation.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _convert_values(values: list[ir.Value]) -> None:
    for value in values:
        if is_narrow_float(value.type):
            value.set_type(_integer_type(value.type))


def _integer_type(type_: ir.Type) -> ir.Type:
    if not is_narrow_float(type_):
        return type_
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    integer = ir.IntegerType.get_signless(ir.FloatType(element).width)
    if isinstance(type_, ir.VectorType):
        return ir.VectorType.get(type_.shape, integer)
    return ir.RankedTensorType.get(type_.shape, integer) if isinstance(type_, ir.RankedTensorType) else integer


def _constant(attribute: ir.Attribute) -> ir.Attribute:
    """Return a scalar or dense constant of a narrow float type as the integers that hold its values."""
    if isinstance(attribute, ir.FloatAttr):
        text = str(attribute).split(" ", 1)[0]
        return _integer(int(_codes([text], attribute.type)[0]), _integer_type(attribute.type))
    dense = ir.DenseElementsAttr(attribute)
    type_: Any = _integer_type(dense.type)
    codes = float_codes(dense)
    if dense.is_splat:
        return ir.DenseElementsAttr.get_splat(type_, _integer(int(codes[0]), type_.element_type))
    return ir.DenseElementsAttr.get(codes.reshape(type_.shape), type=type_)


def _integer(code: int, type_: ir.Type) -> ir.IntegerAttr:
    """Return an unsigned number as an attribute, which takes a signed one."""
    bits = ir.IntegerType(type_).width
    return ir.IntegerAttr.get(type_, code - (1 << bits) if code >> (bits - 1) else code)


def float_codes(dense: ir.DenseElementsAttr) -> Codes:
    """Return the bit patterns of a dense constant of a narrow float type, a single one if it is a splat."""
    body = str(dense).rsplit(" : ", 1)[0].removeprefix("dense<").removesuffix(">")
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body.strip('"')[2:]), np.uint8)
    return _codes(re.findall(r"[^\s,\[\]]+", body), ir.ShapedType(dense.type).element_type)


def _codes(literals: list[str], element: ir.Type) -> Codes:
    """Return the bit patterns of float literals as MLIR prints them: a decimal number, or the pattern as 0x7F."""
    numpy_type = dtype_of_element(element).numpy
    is_pattern = [literal.startswith("0x") for literal in literals]
    decimals = [0.0 if pattern else float(literal) for literal, pattern in zip(literals, is_pattern, strict=True)]
    values = np.array(decimals).astype(numpy_type).view(np.uint8)
    for position, (literal, pattern) in enumerate(zip(literals, is_pattern, strict=True)):
        if pattern:
            values[position] = int(literal, 16)
    return values

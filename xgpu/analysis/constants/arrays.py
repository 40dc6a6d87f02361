"""Constants of StableHLO as NumPy arrays, and back."""

from typing import Any

import numpy as np

from xgpu import ir
from xgpu.dtypes import DType, dtype_of_element
from xgpu.hlo.stablehlo_builder import integer_attribute

Array = np.ndarray[Any, np.dtype[Any]]

_FLOATS = ("f32", "f64")


def is_readable(type_: ir.Type) -> bool:
    """Whether arrays of a type are read and made: those of numbers that NumPy and the bindings share."""
    if not isinstance(type_, ir.RankedTensorType):
        return False
    dtype = dtype_of_element(type_.element_type)
    return dtype.kind == "bool" or dtype.hlo in _FLOATS or (dtype.is_integer and not dtype.is_packed)


def dtype_of_array(type_: ir.Type) -> DType:
    """Return the element type of an array's type."""
    return dtype_of_element(ir.RankedTensorType(type_).element_type)


def array_of(op: ir.Operation) -> Array | None:
    """Return the elements of a constant that is readable; None for one whose elements are elsewhere."""
    attribute, type_ = op.attributes["value"], op.results[0].type
    if not isinstance(attribute, ir.DenseElementsAttr):
        return None
    shape, numpy_type = ir.RankedTensorType(type_).shape, dtype_of_array(type_).numpy
    if attribute.is_splat:
        number: Any = attribute.get_splat_value()
        return np.broadcast_to(np.array(number.value, numpy_type), shape)
    return np.array(attribute).astype(numpy_type, copy=False).reshape(shape)


def attribute_of(array: Array, type_: ir.Type) -> ir.Attribute:
    """Return the attribute of a constant of a readable type that has the elements of ``array``."""
    ranked = ir.RankedTensorType(type_)
    element = ranked.element_type
    if array.size and (array.view(_bits(array)) == array.flat[:1].view(_bits(array))).all():
        return ir.DenseElementsAttr.get_splat(ranked, _number(array.flat[0], element))
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=ranked)


def _bits(array: Array) -> np.dtype[Any]:
    """Return the integers by whose bits elements are told apart: a negative zero is not the other one."""
    return np.dtype(f"u{array.dtype.itemsize}")


def _number(number: Any, element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.FloatType):
        return ir.FloatAttr.get(element, float(number))
    return integer_attribute(element, int(number))

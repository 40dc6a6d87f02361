"""Scalar code of constants and iota: values that depend on nothing but the indices."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dtypes import dtype_named
from xgpu.emit.scalar.complex_numbers import convert_number
from xgpu.emit.scalar.op import constant_of, element_dtype
from xgpu.structure import dtype_of


def emit_constant(op: ir.Operation, indices: Sequence[ir.Value]) -> ir.Value:
    """Return an element of a constant: of a splat the value itself, else one read from a constant tensor."""
    value = op.attributes["value"]
    shaped = ir.RankedTensorType(op.results[0].type)
    element = ir.Type.parse(element_dtype(shaped).signless)
    dense = _signless(value, shaped, element)
    if dense.is_splat:
        return constant_of(element, dense.get_splat_value())
    tensor = constant_of(dense.type, dense)
    return ir.Operation.create("tensor.extract", results=[element], operands=[tensor, *indices]).results[0]


def _signless(value: ir.Attribute, shaped: ir.RankedTensorType, element: ir.Type) -> ir.DenseElementsAttr:
    """Return a dense attribute with its elements' type made signless; the bits stay."""
    if element == shaped.element_type:
        return ir.DenseElementsAttr(value)
    text = str(value)
    body, _, _ = text.rpartition(" : ")
    return ir.DenseElementsAttr(ir.Attribute.parse(f"{body} : {ir.RankedTensorType.get(shaped.shape, element)}"))


def emit_iota(op: ir.Operation, indices: Sequence[ir.Value]) -> ir.Value:
    """Return the index along the iota's dimension in the result's type; narrow integers wrap."""
    dimension = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    size = ir.RankedTensorType(op.results[0].type).shape[dimension]
    source = dtype_named("u32" if size <= 2**32 else "u64")
    counter = ir.arith.index_castui(ir.IntegerType.get_signless(source.bits), indices[dimension])
    return convert_number(counter, source, dtype_of(op.results[0]))

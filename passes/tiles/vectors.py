"""Vectors whose elements loops number: what a thread holds in registers."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.passes.support.arith_builder import constant


def extract(vector: ir.Value, position: ir.Value) -> ir.Value:
    """Return the element of a number that is an operand."""
    element = ir.VectorType(vector.type).element_type
    return ir.Operation.create(
        "vector.extract", results=[element], operands=[vector, position], attributes=_at_operand()
    ).results[0]


def insert(scalar: ir.Value, vector: ir.Value, position: ir.Value) -> ir.Value:
    """Return a vector with another element of a number that is an operand."""
    return ir.Operation.create(
        "vector.insert", results=[vector.type], operands=[scalar, vector, position], attributes=_at_operand()
    ).results[0]


def from_elements(scalars: Sequence[ir.Value]) -> ir.Value:
    """Return the vector of some scalars of one type."""
    type_ = ir.VectorType.get([len(scalars)], scalars[0].type)
    return ir.Operation.create("vector.from_elements", results=[type_], operands=list(scalars)).results[0]


def elements(vector: ir.Value) -> list[ir.Value]:
    """Return all elements of a vector."""
    type_ = ir.VectorType(vector.type)
    op = ir.Operation.create("vector.to_elements", results=[type_.element_type] * type_.shape[0], operands=[vector])
    return list(op.results)


def bitcast(vector: ir.Value, count: int, element: ir.Type) -> ir.Value:
    """Return the bits of a vector as ``count`` elements of another type."""
    type_ = ir.VectorType.get([count], element)
    return ir.Operation.create("vector.bitcast", results=[type_], operands=[vector]).results[0]


def part(vector: ir.Value, first: int, count: int) -> ir.Value:
    """Return ``count`` elements from ``first`` on."""
    type_ = ir.VectorType.get([count], ir.VectorType(vector.type).element_type)
    sizes = {"offsets": first, "sizes": count, "strides": 1}
    return ir.Operation.create(
        "vector.extract_strided_slice", results=[type_], operands=[vector], attributes=_numbers(sizes)
    ).results[0]


def joined(parts: Sequence[ir.Value]) -> ir.Value:
    """Return the elements of vectors of one length, one after the other."""
    type_ = ir.VectorType(parts[0].type)
    length = type_.shape[0]
    whole = constant(0, ir.VectorType.get([length * len(parts)], type_.element_type))
    for number, each in enumerate(parts):
        whole = ir.Operation.create(
            "vector.insert_strided_slice",
            results=[whole.type],
            operands=[each, whole],
            attributes=_numbers({"offsets": number * length, "strides": 1}),
        ).results[0]
    return whole


def _numbers(values: dict[str, int]) -> dict[str, ir.Attribute]:
    i64 = ir.IntegerType.get_signless(64)
    return {name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, value)]) for name, value in values.items()}


def _at_operand() -> dict[str, ir.Attribute]:
    """The attributes of an access to a vector's element whose number is an operand."""
    return {"static_position": ir.DenseI64ArrayAttr.get([-(1 << 63)])}

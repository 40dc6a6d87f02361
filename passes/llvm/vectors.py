"""The lowering of the operations of the vector dialect, on vectors of one dimension."""

from collections.abc import Sequence
from functools import partial

from xgpu import ir
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.support.refusals import refuse

_DYNAMIC = -(2**63)
_POISON = -1
_refuse = partial(refuse, "lower-to-llvm")


def _length(op: ir.Operation, type_: ir.Type) -> int:
    """Return the number of elements; raises `CompilerError` unless ``type_`` is a vector of one fixed dimension."""
    if not isinstance(type_, ir.VectorType) or type_.rank != 1 or type_.scalable:
        _refuse(op, f"expected vectors of one dimension, got {type_}")
    return type_.shape[0]


def _shuffle(b: LlvmBuilder, first: ir.Value, second: ir.Value, mask: Sequence[int]) -> ir.Value:
    """Pick elements of two vectors of one type; -1 is an element of no particular value."""
    type_ = ir.VectorType.get([len(mask)], ir.VectorType(first.type).element_type)
    return b.op("shufflevector", [first, second], type_, {"mask": ir.DenseI32ArrayAttr.get(list(mask))})


def _position(b: LlvmBuilder, op: ir.Operation, dynamic: Sequence[ir.Value]) -> ir.Value:
    positions = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    if len(positions) != 1:
        _refuse(op, f"expected one position, got {positions}")
    return dynamic[0] if positions[0] == _DYNAMIC else b.constant(positions[0], b.i32)


def _extract(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    vector, *dynamic = op.operands
    _length(op, vector.type)
    return [b.op("extractelement", [vector, _position(b, op, dynamic)], op.results[0].type)]


def _insert(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    value, vector, *dynamic = op.operands
    _length(op, vector.type)
    return [b.op("insertelement", [vector, value, _position(b, op, dynamic)], vector.type)]


def _integers(attribute: ir.Attribute) -> list[int]:
    return [ir.IntegerAttr(each).value for each in ir.ArrayAttr(attribute)]


def _check_contiguous(op: ir.Operation) -> int:
    """Return the offset of a slice, which must be of neighbouring elements."""
    offsets, strides = (_integers(op.attributes[name]) for name in ("offsets", "strides"))
    if len(offsets) != 1 or strides != [1]:
        _refuse(op, f"expected one offset and stride 1, got {offsets} and {strides}")
    return offsets[0]


def _extract_slice(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    vector = op.operands[0]
    _length(op, vector.type)
    offset = _check_contiguous(op)
    return [_shuffle(b, vector, vector, range(offset, offset + _length(op, op.results[0].type)))]


def _insert_slice(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """Widen the slice to the length of the vector, then pick from both."""
    part, whole = op.operands
    size, length = _length(op, part.type), _length(op, whole.type)
    offset = _check_contiguous(op)
    widened = _shuffle(b, part, part, [*range(size), *[_POISON] * (length - size)])
    mask = [length + i - offset if offset <= i < offset + size else i for i in range(length)]
    return [_shuffle(b, whole, widened, mask)]


def _broadcast(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    source, type_ = op.operands[0], op.results[0].type
    length = _length(op, type_)
    if isinstance(source.type, ir.VectorType):
        if source.type == type_:
            return [source]
        _refuse(op, f"expected a scalar, got {source.type}")
    first = b.op("insertelement", [b.op("mlir.poison", [], type_), source, b.constant(0, b.i32)], type_)
    return [_shuffle(b, first, first, [0] * length)]


def _from_elements(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    type_ = op.results[0].type
    _length(op, type_)
    vector = b.op("mlir.poison", [], type_)
    for position, value in enumerate(op.operands):
        vector = b.op("insertelement", [vector, value, b.constant(position, b.i32)], type_)
    return [vector]


def _to_elements(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    vector = op.operands[0]
    _length(op, vector.type)
    element = ir.VectorType(vector.type).element_type
    positions = range(len(op.results))
    return [b.op("extractelement", [vector, b.constant(position, b.i32)], element) for position in positions]


def _shuffle_op(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """A shuffle of vectors of two lengths: the shorter one is widened first, and its positions stay."""
    first, second = op.operands
    sizes = [_length(op, value.type) for value in (first, second)]
    longest = max(sizes)
    if sizes[0] != sizes[1]:
        first, second = (
            _shuffle(b, value, value, [*range(size), *[_POISON] * (longest - size)]) if size < longest else value
            for value, size in zip((first, second), sizes, strict=True)
        )
    mask = list(ir.DenseI64ArrayAttr(op.attributes["mask"]))
    return [_shuffle(b, first, second, [lane if lane < sizes[0] else lane - sizes[0] + longest for lane in mask])]


def _bitcast(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    _length(op, op.operands[0].type)
    return [b.op("bitcast", list(op.operands), op.results[0].type)]


def _reshape(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    _length(op, op.operands[0].type)
    _length(op, op.results[0].type)
    return list(op.operands)


VECTOR_LOWERINGS: dict[str, Lowering] = {
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.extract_strided_slice": _extract_slice,
    "vector.insert_strided_slice": _insert_slice,
    "vector.broadcast": _broadcast,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.shuffle": _shuffle_op,
    "vector.bitcast": _bitcast,
    "vector.shape_cast": _reshape,
}
"""The lowerings by operation name."""

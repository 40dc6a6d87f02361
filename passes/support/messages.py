"""Lowers `xgpu.publish` and `xgpu.await`, for lower-tensors: words that hold a piece of a message and a mark."""

from collections.abc import Iterator, Sequence
from itertools import islice

from xgpu import ir
from xgpu.dialects.attributes import AWAITS
from xgpu.dialects.messages import MARK, PIECE_BITS, words_of
from xgpu.passes.llvm.memory import atomic_load, atomic_store, element_pointer
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.scf_ops import create_yield
from xgpu.structure import producer


def _word() -> ir.IntegerType:
    return b.integer_type(2 * PIECE_BITS)


def write_message(board: ir.Value, index: ir.Value, values: Sequence[ir.Value]) -> None:
    """Write the words of a message; ``index``, an integer, is that of the first."""
    first = element_pointer(board, _word(), index)
    for number, piece in enumerate(piece for value in values for piece in pieces_of(value)):
        word = b.or_(b.extend(piece, 2 * PIECE_BITS), MARK)
        atomic_store(word, element_pointer(first, _word(), number))


def read_message(board: ir.Value, index: ir.Value, types: Sequence[ir.Type]) -> list[ir.Value]:
    """Read the words of a message again and again until all are marked, and return its values."""
    counts = [words_of([type_]) for type_ in types]
    first = element_pointer(board, _word(), index)
    loop = ir.Operation.create("scf.while", results=[_word()] * sum(counts), operands=[], regions=2)
    test, body = loop.regions[0].blocks.append(), loop.regions[1].blocks.append(*[_word()] * sum(counts))
    with ir.InsertionPoint(test):
        words = [_read_word(element_pointer(first, _word(), number)) for number in range(sum(counts))]
        marked = words[0]
        for word in words[1:]:
            marked = b.and_(marked, word)
        is_missing = b.compare("eq", b.and_(marked, MARK), 0)
        ir.Operation.create("scf.condition", operands=[is_missing, *words])
    with ir.InsertionPoint(body):
        create_yield([])
    pieces = iter([b.truncate(word, PIECE_BITS) for word in loop.results])
    return [from_pieces(list(islice(pieces, count)), type_) for count, type_ in zip(counts, types, strict=True)]


def _read_word(pointer: ir.Value) -> ir.Value:
    word = atomic_load(pointer, _word())
    assert isinstance(word.owner, ir.Operation | ir.OpView)
    producer(word).attributes[AWAITS] = ir.UnitAttr.get()
    return word


def pieces_of(value: ir.Value) -> Iterator[ir.Value]:
    """Yield the bits of an integer or float as i32, the lowest first; less than 32 bits are extended by zeros."""
    bits = value.type.width
    code = b.bitcast(value, b.integer_type(bits))
    if bits <= PIECE_BITS:
        yield b.extend(code, PIECE_BITS)
        return
    for at in range(0, bits, PIECE_BITS):
        yield b.truncate(b.shift_right(code, at), PIECE_BITS)


def from_pieces(pieces: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """Return the value of ``type_`` that `pieces_of` took apart."""
    bits = type_.width  # type: ignore[attr-defined]
    if bits <= PIECE_BITS:
        return b.bitcast(b.truncate(pieces[0], bits), type_)
    code = b.extend(pieces[0], bits)
    for number, piece in enumerate(pieces[1:], 1):
        code = b.or_(code, b.shift_left(b.extend(piece, bits), number * PIECE_BITS))
    return b.bitcast(code, type_)

"""Takes scalars apart into pieces of 32 bits, which threads hand each other, and puts them together again."""

from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.dialects.messages import PIECE_BITS
from xgpu.passes.support import arith_builder as b


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

"""Atomic updates that no instruction does: computed from the old value, repeated until no other thread interferes."""

from collections.abc import Callable

from xgpu import ir
from xgpu.passes.llvm.memory import atomic_load, compare_exchange, element_pointer
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.scf_ops import create_if, create_yield

WORD_BITS = 32
"""The narrowest word that every target compares and exchanges."""


def swap_in_loop(pointer: ir.Value, word: ir.IntegerType, update: Callable[[ir.Value], ir.Value]) -> None:
    """Replace the word at ``pointer`` by ``update`` of it, in a loop that ends when nothing came between.

    ``update`` creates the operations that compute the new word, at the insertion point it is called at. Nothing is
    written where the new word is the old one.
    """
    if word.width > 64:
        halves = [atomic_load(element_pointer(pointer, b.integer_type(64), i), b.integer_type(64)) for i in range(2)]
        # Of two moments, maybe: the comparison then fails.
        low, high = (b.extend(half, word.width) for half in halves)
        first = b.or_(low, b.shift_left(high, 64))
    else:
        first = atomic_load(pointer, word)
    loop = ir.Operation.create("scf.while", results=[word], operands=[first], regions=2)
    test = loop.regions[0].blocks.append(word)
    body = loop.regions[1].blocks.append(word)
    old = test.arguments[0]
    with ir.InsertionPoint(test):
        new = update(old)
        conditional, changed, same = create_if(b.compare("ne", new, old), [word, b.integer_type(1)])
        seen, again = conditional.results
        ir.Operation.create("scf.condition", operands=[again, seen])
    with ir.InsertionPoint(changed):
        found, success = compare_exchange(pointer, old, new)
        create_yield([found, b.xor(success, 1)])
    with ir.InsertionPoint(same):
        create_yield([old, b.constant(0, b.integer_type(1))])
    with ir.InsertionPoint(body):
        create_yield([body.arguments[0]])


class PartOfWord:
    """A few bits of memory as part of the 32-bit word around them, which an atomic operation can work on.

    ``pointer`` is the address of the byte that they begin in, ``bits`` how many they are (at most 16), ``shift`` an
    integer: where in the byte they begin. Memory around must be there: tensors begin and end at multiples of words.
    """

    def __init__(self, pointer: ir.Value, bits: int, shift: ir.Value | None = None):
        self.bits = bits
        word, address = b.integer_type(WORD_BITS), b.integer_type(64)
        number = ir.Operation.create("llvm.ptrtoint", results=[address], operands=[pointer]).results[0]
        inside = b.and_(number, WORD_BITS // 8 - 1)
        back = b.sub(b.constant(0, address), inside)
        self.pointer = element_pointer(pointer, b.integer_type(8), back, inbounds=False)
        self._shift = b.shift_left(b.truncate(inside, WORD_BITS), 3)
        if shift is not None:
            self._shift = b.add(self._shift, b.extend(shift, WORD_BITS))
        self.word = word

    def take(self, word: ir.Value) -> ir.Value:
        """Return the bits as they are in ``word``."""
        return b.truncate(ir.arith.shrui(word, self._shift), self.bits)

    def put(self, word: ir.Value, code: ir.Value) -> ir.Value:
        """Return ``word`` with ``code`` in place of the bits."""
        return b.or_(b.and_(word, b.xor(self.mask(), -1)), self.place(code))

    def place(self, code: ir.Value) -> ir.Value:
        """Return a word of ``code`` and zeros around."""
        return ir.arith.shli(b.extend(code, WORD_BITS), self._shift)

    def mask(self) -> ir.Value:
        """Return a word with ones in place of the bits."""
        return ir.arith.shli(b.constant((1 << self.bits) - 1, self.word), self._shift)

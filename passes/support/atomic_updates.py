"""Lowers `xgpu.atomic_rmw`, for lower-tensors: to the instruction that does what the region says, or to a loop."""

from collections.abc import Callable
from functools import partial

from xgpu import ir
from xgpu.passes.llvm.memory import atomic_load, atomic_store, atomic_update
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.compare_and_swap import WORD_BITS, PartOfWord, swap_in_loop
from xgpu.passes.support.memory_layout import from_memory, to_memory
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import block_of, body_of, defining_op, walk

FLOAT_ADD, COMPLEX_ADD, OVERWRITE, OTHER = "arith.addf", "complex add", "overwrite", "other"
_INTEGER_UPDATES = {
    "arith.addi": "add",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.maxsi": "max",
    "arith.minsi": "min",
    "arith.maxui": "umax",
    "arith.minui": "umin",
}
_FLOAT_EXTREMES = ("arith.maximumf", "arith.minimumf")
_COMMUTATIVE = frozenset((*_INTEGER_UPDATES, FLOAT_ADD, *_FLOAT_EXTREMES))
_DIFFERENCES = {"arith.subi": "arith.addi", "arith.subf": FLOAT_ADD}
_BITWISE = frozenset(("arith.andi", "arith.ori", "arith.xori"))
_FADD_TYPES = frozenset(("f16", "bf16", "f32", "f64"))


@dataclass(frozen=True)
class Update:
    """The update that the region of an atomic operation computes: an operation on the old element and an outside value.

    ``kind`` is the operation's name, `COMPLEX_ADD` for the sum with two values, the real and the imaginary part,
    `OVERWRITE` if the old element plays no part, else `OTHER`, without values. Each value is given by an operation and
    the number of its operand, as which it stays known while other passes over the function replace it.
    """

    kind: str
    operands: tuple[tuple[ir.Operation, int], ...] = ()

    def values(self) -> list[ir.Value]:
        """Return the values, negated at the insertion point where the operation is a difference."""
        return [_summand(user, user.operands[position]) for user, position in self.operands]


def _summand(user: ir.Operation, value: ir.Value) -> ir.Value:
    if user.name == "arith.subf":
        return ir.arith.negf(value)
    return b.sub(b.constant(0, value.type), value) if user.name == "arith.subi" else value


def find_update(op: ir.Operation) -> Update:
    """Return what an `xgpu.atomic_rmw` does, having moved what does not depend on the old element out of its region."""
    body = body_of(op)
    old = body.arguments[0]
    _hoist(op, body, old)
    terminator = body.operations[len(body.operations) - 1].operation
    new = terminator.operands[0]
    if block_of(new) != body:
        return Update(OVERWRITE, ((terminator, 0),))
    if found := _operand(new, body, lambda value: value == old):
        kind, operand = found
        return Update(kind, (operand,))
    parts = _complex_sums(new, body)
    return Update(COMPLEX_ADD, parts) if parts else Update(OTHER)


_Operand = tuple[ir.Operation, int]


def _operand(new: ir.Value, body: ir.Block, is_old: Callable[[ir.Value], bool]) -> tuple[str, _Operand] | None:
    """Return the operation on an old value and one from outside of ``body`` that makes ``new``, and the latter."""
    op = defining_op(new)
    if op is None or len(op.operands) != 2:
        return None
    kind = _DIFFERENCES.get(op.name, op.name)
    others = [position for position, operand in enumerate(op.operands) if not is_old(operand)]
    if kind not in _COMMUTATIVE or len(others) != 1 or (op.name in _DIFFERENCES and others != [1]):
        return None
    return None if block_of(op.operands[others[0]]) == body else (kind, (op, others[0]))


def _complex_sums(new: ir.Value, body: ir.Block) -> tuple[_Operand, ...]:
    """Return the values that ``body`` adds to the parts of a complex number, whose bits it takes and yields."""
    bits = defining_op(new)
    vector = defining_op(bits.operands[0]) if bits is not None and bits.name == "llvm.bitcast" else None
    if vector is None or vector.name != "vector.from_elements" or len(vector.operands) != 2:
        return ()
    re, im = (
        _operand(part, body, partial(_is_part, number, body.arguments[0]))
        for number, part in enumerate(vector.operands)
    )
    if re is None or im is None or not re[0] == im[0] == FLOAT_ADD:
        return ()
    return re[1], im[1]


def _is_part(number: int, bits: ir.Value, value: ir.Value) -> bool:
    """Tell whether ``value`` is element ``number`` of the vector that ``bits`` are."""
    op = defining_op(value)
    if op is None or op.name != "vector.extract":
        return False
    source = defining_op(op.operands[0])
    is_number = list(ir.DenseI64ArrayAttr(op.attributes["static_position"])) == [number]
    return is_number and source is not None and source.name == "llvm.bitcast" and source.operands[0] == bits


def _hoist(op: ir.Operation, body: ir.Block, old: ir.Value) -> None:
    """Move what does not depend on ``old`` before ``op``: a body has no side effects and is evaluated at least once."""
    depending = {old}
    for view in list(body.operations)[:-1]:
        each = view.operation
        if depending.isdisjoint(operand for inner in walk(each) for operand in inner.operands):
            each.move_before(op)
        else:
            depending.update(each.results)


@dataclass(frozen=True)
class ElementAddress:
    """The location of an element: the address of its first byte, its width in bits, and its first bit in that byte.

    ``shift`` is an i8, and None for an element of whole bytes.
    """

    pointer: ir.Value
    element: ir.Type
    bits: int
    shift: ir.Value | None = None


def write_update(op: ir.Operation, update: Update, place: ElementAddress, is_only_kind: bool) -> None:
    """Write ``update``, which `find_update` found of ``op``, at the insertion point; what is in the region moves there.

    ``is_only_kind``: whether every update of the tensor in the kernel is of this kind.
    """
    kind, values = update.kind, update.values()
    if kind == OVERWRITE and place.shift is None:
        atomic_store(to_memory(values[0], place.bits), place.pointer)
    elif kind in _INTEGER_UPDATES and place.bits in (32, 64):
        atomic_update(_INTEGER_UPDATES[kind], place.pointer, values[0])
    elif kind in _BITWISE and place.bits < WORD_BITS:
        _update_bits(_INTEGER_UPDATES[kind], values[0], place)
    elif kind == FLOAT_ADD and str(place.element) in _FADD_TYPES:
        atomic_update("fadd", place.pointer, values[0])
    elif kind == COMPLEX_ADD and is_only_kind:
        # Each part on its own: in the end it makes no difference, if there are sums only.
        pair = ir.VectorType.get([2], values[0].type)
        parts = ir.Operation.create("vector.from_elements", results=[pair], operands=values).results[0]
        atomic_update("fadd", place.pointer, parts)
    elif kind in _FLOAT_EXTREMES and is_only_kind and place.bits in (32, 64):
        _update_extreme(kind == "arith.maximumf", values[0], place)
    else:
        _swap(op, place)


def _update_bits(operation: str, value: ir.Value, place: ElementAddress) -> None:
    """Update the word around an element, with a neutral operand in place of its neighbours."""
    part = PartOfWord(place.pointer, place.bits, place.shift)
    operand = part.place(to_memory(value, place.bits))
    if operation == "and":
        operand = b.or_(operand, b.xor(part.mask(), -1))
    atomic_update(operation, part.pointer, operand)


def _update_extreme(is_maximum: bool, value: ir.Value, place: ElementAddress) -> None:
    """Update a float as the integer of its bits.

    Floats without a sign are ordered as the integers of their bits, signed or not, those with one in reverse as
    unsigned integers. So if ``value`` has no sign, the signed maximum with the old bits is that of the floats; if it
    has one, the unsigned minimum. Zeros are ordered too, and a NaN without a sign is the largest of all: it is what
    ``value`` becomes if it is NaN, so that it stays. A NaN with a sign can be only what memory held at first, since
    every update is one of these; it is left as it is. Of the minimum the mirror image holds.
    """
    bits = b.integer_type(place.bits)
    old_code = atomic_load(place.pointer, bits)
    old = b.bitcast(old_code, place.element)
    quiet = {32: 0x7FC00000, 64: 0x7FF8 << 48}[place.bits] | (0 if is_maximum else 1 << (place.bits - 1))
    is_nan = b.compare_floats("uno", value, value)
    code = b.select(is_nan, b.constant(quiet, bits), b.bitcast(value, bits))
    # What changes nothing needs no update: most of many for one element.
    may_change = b.compare_floats("ule" if is_maximum else "uge", old, value)
    is_number = b.compare_floats("ord", old, old)
    _, then, otherwise = create_if(b.and_(may_change, is_number), [])
    with ir.InsertionPoint(otherwise):
        create_yield([])
    with ir.InsertionPoint(then):
        _, negative, positive = create_if(b.compare("slt", code, 0), [])
        create_yield([])
    for block, operation in ((negative, "umin" if is_maximum else "umax"), (positive, "max" if is_maximum else "min")):
        with ir.InsertionPoint(block):
            atomic_update(operation, place.pointer, code)
            create_yield([])


def _swap(op: ir.Operation, place: ElementAddress) -> None:
    """Compute the new element from the old one, in a loop; nothing is written where it is the old one."""
    code_type = b.integer_type(place.bits)
    body = body_of(op)
    *_, last = body.operations
    if last.operation.operands[0] == body.arguments[0]:
        return

    def compute(code: ir.Value) -> ir.Value:
        old = body.arguments[0]
        old.replace_all_uses_with(from_memory(code, place.element))
        *operations, terminator = [each.operation for each in body.operations]
        here = ir.InsertionPoint.current.block
        for each in operations:
            here.append(each)
        return to_memory(terminator.operands[0], place.bits)

    if place.bits >= WORD_BITS:
        swap_in_loop(place.pointer, code_type, compute)
        return
    part = PartOfWord(place.pointer, place.bits, place.shift)
    swap_in_loop(part.pointer, part.word, lambda word: part.put(word, compute(part.take(word))))

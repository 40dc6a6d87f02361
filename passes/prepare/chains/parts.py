"""The contents of a chain that find-chains makes: the operations up to its results, and the arrays that they read."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from enum import Enum

from xgpu import ir
from xgpu.analysis.attention.chained_sums import MOVED
from xgpu.analysis.attention.gradient import Gradient
from xgpu.analysis.attention.places import is_tiled, keeps_numbers
from xgpu.dialects.attributes import WEIGHT
from xgpu.dialects.chain import ChainOp
from xgpu.emit.families.attention.sources import LOOKUPS
from xgpu.emit.families.attention.writing import MOVES
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import shape_of
from xgpu.passes.prepare.chains.lengths import Lengths
from xgpu.records import dataclass
from xgpu.structure import (
    as_needed,
    backward_slice,
    block_of,
    captured,
    copy_operation,
    defining_op,
    dtype_of,
    in_order,
    is_constant,
    producer,
    users_of,
)

_DIVIDE = "stablehlo.divide"
_CHEAP = 4
"""Instructions of an operation that each block may compute for itself, instead of reading its result."""
_MOST_OPERATIONS = 64
"""Operations of a chain beside those that products and what lies between them are made of."""


class _Way(Enum):
    """The way from an array to where a chain reads it: what operations on it may do."""

    COMPUTED = "any that are cheap"
    MOVED = "move elements"
    GATHERED = "move elements, and gather them once"


@dataclass(frozen=True)
class Taken:
    """The choice of a chain's operations: those that are ``inner``, and of others those that are cheap.

    Operands of products that are ``moved`` are moved in the chain, by operations named in ``moves`` and by what widens
    floats; those that are ``gathered`` also by what looks up their elements, by numbers that are cheap. What
    ``is_read`` is an array, however cheap it is.
    """

    inner: frozenset[ir.Operation]
    moved: Mapping[ir.Operation, Sequence[ir.Value]]
    moves: frozenset[str]
    is_read: Callable[[ir.Value], bool]
    gathered: Collection[ir.Value] = ()

    def takes(self, op: ir.Operation, way: "_Way") -> bool:
        """Whether an operation is of the chain, which makes an operand of a product on a way that moves it, or not."""
        if op in self.inner:
            return True
        if way is _Way.COMPUTED:
            return _is_cheap(op)
        return op.name in self.moves or _widens(op) or (way is _Way.GATHERED and op.name in LOOKUPS)

    def way(self, op: ir.Operation, number: int, way: "_Way") -> "_Way":
        """Return the way of an operand of an operation that is on a way itself."""
        operand = op.operands[number]
        if operand in self.moved.get(op, ()):
            return _Way.GATHERED if operand in self.gathered else _Way.MOVED
        if way is _Way.GATHERED and op.name in LOOKUPS:
            return _Way.COMPUTED if number else _Way.MOVED
        return way


@dataclass(frozen=True)
class ChainParts:
    """The ``operations`` of a chain, in order, and the ``inputs`` that they read."""

    operations: tuple[ir.Operation, ...]
    inputs: tuple[ir.Value, ...]

    @classmethod
    def of(cls, results: Sequence[ir.Value], taken: Taken) -> "ChainParts":
        """Return the parts of a chain that returns some values, the arrays in the order in which they are read.

        What is read as an array in one place is so in all others.
        """
        arrays, lengths = set[ir.Value](), Lengths(_is_cheap)
        operations, inputs = _reached(results, taken, arrays, lengths)
        while both := {value for op in operations for value in op.results if value in inputs}:
            arrays |= both
            operations, inputs = _reached(results, taken, arrays, lengths)
        return cls(tuple(as_needed(results, lambda value: defining_op(value) not in operations)), tuple(inputs))

    def divisors(self, value: ir.Value) -> list[ir.Operation]:
        """Return the operations that divide by one of the inputs, an array of f32; none if others read it, too."""
        own, found, pending = set(self.operations), [], [value]
        while pending:
            each = pending.pop()
            for user in users_of(each):
                if user not in own:
                    continue
                if user.name in MOVES:
                    pending += user.results
                elif user.name == _DIVIDE and each == user.operands[1] and each != user.operands[0]:
                    found.append(user)
                else:
                    return []
        return found if dtype_of(value).hlo == "f32" else []

    def write(
        self,
        results: Sequence[ir.Value],
        given: Mapping[ir.Value, ir.Value],
        weights: Container[ir.Operation] = (),
        factors: Container[ir.Operation] = (),
    ) -> ir.Operation:
        """Write the chain that returns some values, of ``given`` arrays instead of others; return it.

        The copies of ``weights`` are marked as such. Those that are ``factors`` multiply where they have divided.
        """
        operands = [given.get(value, value) for value in self.inputs]
        chain = ChainOp.create(operands, [value.type for value in results]).operation
        block = chain.regions[0].blocks.append(*(value.type for value in operands))
        values: dict[ir.Value, ir.Value] = dict(zip(self.inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in self.operations:
                if op in factors:
                    left, right = (values[value] for value in op.operands)
                    with op.location:
                        values[op.results[0]] = ir.stablehlo.multiply(left, right)
                    continue
                copy = copy_operation(op, values)
                if op in weights:
                    copy.attributes[WEIGHT] = ir.UnitAttr.get()
            ir.stablehlo.return_([values[value] for value in results])
        return chain


def _reached(
    results: Sequence[ir.Value], taken: Taken, arrays: set[ir.Value], lengths: Lengths
) -> tuple[dict[ir.Operation, None], dict[ir.Value, None]]:
    """Return the operations that are taken, and the values that they read; ``arrays`` are read, however they are made.

    A value may be among both: taken where it is computed with, and read where a product moves it. Where computing one
    takes many operations, it is read at the narrowest place on the way, which is added to the arrays.
    """
    found: dict[ir.Operation, None] = {}
    inputs: dict[ir.Value, None] = {}
    others = 0
    block = block_of(results[0])
    pending = [(result, _Way.COMPUTED) for result in reversed(results)]
    seen = set[tuple[ir.Value, _Way]]()
    while pending:
        value, way = pending.pop()
        if (value, way) in seen:
            continue
        seen.add((value, way))
        op = defining_op(value) if block_of(value) == block else None
        if op is not None and op not in taken.inner and way is _Way.COMPUTED and lengths.is_long(value):
            arrays.add(lengths.narrowest(value))
        is_known = op is not None and (op in taken.inner or op in found or is_constant(value))
        is_full = others > _MOST_OPERATIONS and not is_known
        if op is None or is_full or value in arrays or taken.is_read(value) or not taken.takes(op, way):
            inputs[value] = None
            continue
        others += not is_known
        found[op] = None
        numbers = reversed(range(len(op.operands)))
        pending += [(op.operands[number], taken.way(op, number, way)) for number in numbers]
    return found, inputs


def last_moved(value: ir.Value, element_bytes: int, moves: Container[str] = MOVED) -> ir.Value:
    """Return the last that a value is moved to, as long as nothing else reads it, of elements of so many bytes.

    Itself if there is none. A chain may return each of these.
    """
    last = value
    block = block_of(value)
    while len(users := users_of(value)) == 1 and users[0].name in moves and keeps_numbers(users[0]):
        if users[0].block != block:
            break
        value = users[0].results[0]
        last = value if dtype_of(value).bits == 8 * element_bytes else last
    return last


def end_moved(gradient: Gradient, end: ir.Operation) -> ir.Value:
    """Return what `last_moved` finds of one of the products with which a gradient ends."""
    return last_moved(end.results[0], gradient.attention.element_bytes)


def results_of(gradient: Gradient) -> list[ir.Value]:
    """Return what the chains of a gradient are made instead of."""
    return [*(end_moved(gradient, end) for end in gradient.ends), *gradient.elements, *gradient.rows]


def with_operands_before(chain: ir.Operation, results: Container[ir.Value]) -> bool:
    """Have the operands of a chain computed before it, as far as none of ``results`` is needed for them.

    Returns whether they then are; else nothing is moved.
    """

    def is_before(value: ir.Value) -> bool:
        op = producer(value)
        return op.block != chain.block or op.is_before_in_block(chain)

    later = list(backward_slice(chain.operands, is_before))
    if any(op.name not in OPERATIONS or captured(op) for op in later):
        return False
    if any(value in results for op in later for value in op.operands):
        return False
    for op in in_order(later):
        op.move_before(chain)
    return True


def moved_stages(last: ir.Value) -> list[ir.Value]:
    """Return what `last_moved` has gone along: the last value first, the result of the product at the end."""
    found = [last]
    while (op := producer(found[-1])).name in MOVED:
        found.append(op.operands[0])
    return found


def depending(operations: Iterable[ir.Operation], values: Iterable[ir.Value]) -> list[ir.Operation]:
    """Return those of some operations, which are in order, that need one of ``values``, and those that make them."""
    made = set(values)
    found = []
    for op in operations:
        if any(value in made for value in (*op.results, *op.operands)):
            made.update(op.results)
            found.append(op)
    return found


def _is_cheap(op: ir.Operation) -> bool:
    """Whether a block may compute an operation's tiles for itself."""
    if not is_tiled(op):
        return False
    known = OPERATIONS.get(op.name)
    return known is None or known.instructions <= _CHEAP or not shape_of(op.results[0])


def _widens(op: ir.Operation) -> bool:
    if op.name != "stablehlo.convert":
        return False
    before, after = dtype_of(op.operands[0]), dtype_of(op.results[0])
    return before.is_float and after.is_float and before.bits == 16 and after.bits == 32

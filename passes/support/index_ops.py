"""Creating index operations and knowing where they may go: what the indexing passes share."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.traits import traits_of
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.affine import VARIABLES, AffineExpr, Dim, Division, Mod
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import block_of, is_used


def create_apply(map_: ir.Attribute, operands: Sequence[ir.Value]) -> ir.Value:
    """Create an `xgpu.apply_indexing` of one result at the current insertion point and location."""
    op = ir.Operation.create(
        ApplyIndexingOp.OPERATION_NAME, results=[ir.IndexType.get()], operands=list(operands), attributes={"map": map_}
    )
    return op.results[0]


def create_in_domain(map_: ir.Attribute, operands: Sequence[ir.Value]) -> ir.Value:
    """Create an `xgpu.in_domain` at the current insertion point and location."""
    boolean = ir.IntegerType.get_signless(1)
    op = ir.Operation.create(
        InDomainOp.OPERATION_NAME, results=[boolean], operands=list(operands), attributes={"map": map_}
    )
    return op.results[0]


def create_index(value: int) -> ir.Value:
    """Create a constant index at the current insertion point and location."""
    index = ir.IndexType.get()
    op = ir.Operation.create("arith.constant", results=[index], attributes={"value": ir.IntegerAttr.get(index, value)})
    return op.results[0]


def has_uses(op: ir.Operation) -> bool:
    """Tell whether any result of ``op`` is used."""
    return any(is_used(result) for result in op.results)


def erase_unused(ops: Sequence[ir.Operation]) -> None:
    """Erase those of ``ops`` without users; each comes after the ops that make its operands."""
    for op in reversed(ops):
        if not has_uses(op):
            op.erase()


def peak(expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval] = ()) -> int:
    """Return a bound of the absolute values that evaluating ``expr`` meets, intermediate ones included."""
    return _bounds(expr, dims, symbols)[1]


def _bounds(expr: AffineExpr, dims: Sequence[Interval], symbols: Sequence[Interval]) -> tuple[int, int]:
    """Bounds of the absolute value of ``expr``, and of all that is met on the way there."""
    total = highest = abs(expr.constant)
    for atom, coefficient in expr.terms:
        if isinstance(atom, VARIABLES):
            interval = dims[atom.index] if isinstance(atom, Dim) else symbols[atom.index]
            bound = max(abs(interval.lower), abs(interval.upper))
        else:
            assert isinstance(atom, Division)
            inner, inner_highest = _bounds(atom.expr, dims, symbols)
            bound = atom.divisor if isinstance(atom, Mod) else inner // atom.divisor + 1
            highest = max(highest, inner_highest)
        total += bound * abs(coefficient)
    return total, max(highest, total)


class IndexConstants:
    """Integer constants of one function, each made once at its start, so that it dominates every use."""

    def __init__(self, function: ir.Operation):
        self._entry = function.regions[0].blocks[0]
        self._made: dict[tuple[ir.Type, int], ir.Value] = {}

    def get(self, value: int, type_: ir.Type) -> ir.Value:
        """Return ``value`` as a constant of an integer type or index."""
        key = (type_, value)
        if key not in self._made:
            with ir.InsertionPoint.at_block_begin(self._entry):
                op = ir.Operation.create(
                    "arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, value)}
                )
            self._made[key] = op.results[0]
        return self._made[key]

    def index(self, value: int) -> ir.Value:
        """Return ``value`` as an index."""
        return self.get(value, ir.IndexType.get())

    def boolean(self, value: bool) -> ir.Value:
        """Return ``value`` as an i1."""
        return self.get(int(value), ir.IntegerType.get_signless(1))


@dataclass(eq=False, slots=True)
class IndexScope:
    """A block: the op that holds it, whether it is the body of a loop, and whether the walk is in it."""

    block: ir.Block
    parent: ir.Operation
    loop: bool
    open: bool = True


class Scopes:
    """The blocks around the operation that a walk in program order has reached, outermost first.

    Of a region of several blocks only the one that the walk is in counts as around it: others may dominate it or not.
    """

    def __init__(self, function: ir.Operation):
        entry = function.regions[0].blocks[0]
        self._function = function
        self._stack = [IndexScope(entry, function, loop=False)]
        self._depths = {entry: 0}

    @property
    def current(self) -> IndexScope:
        """The innermost block."""
        return self._stack[-1]

    def move_to(self, op: ir.Operation) -> None:
        """Open and close blocks so that those around ``op`` are open."""
        block = op.block
        if block == self._stack[-1].block:
            return
        entered = []
        while block not in self._depths:
            entered.append(block)
            if block.owner.operation == self._function:
                break
            block = block.owner.operation.block
        while self._stack and self._stack[-1].block != block:
            closed = self._stack.pop()
            closed.open = False
            del self._depths[closed.block]
        for block in reversed(entered):
            parent = block.owner.operation
            self._depths[block] = len(self._stack)
            self._stack.append(IndexScope(block, parent, traits_of(parent.name).loop))

    def depth_of(self, value: ir.Value) -> int:
        """Return how deep the block that defines ``value`` is nested; ``value`` is usable where the walk is."""
        block = block_of(value)
        if block in self._depths:
            return self._depths[block]
        # Another block of a region that the walk is in, which dominates the one that it is in.
        parent = block.owner.operation
        return 0 if parent == self._function else self._depths[parent.block] + 1

    def outside_loops(self, op: ir.Operation, depth: int) -> "InsertBefore":
        """Return where a pure computation at ``op`` goes whose operands are defined in blocks down to ``depth``.

        That is before the outermost loop in which all operands are invariant, else at ``op``: leaving only
        conditionals would compute more than before.
        """
        for inner in range(depth + 1, len(self._stack)):
            if self._stack[inner].loop:
                return InsertBefore(self._stack[inner - 1], inner - 1, self._stack[inner].parent)
        return InsertBefore(self._stack[-1], len(self._stack) - 1, op)


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """An insertion point: before the operation ``anchor``, in the block of ``scope``, at nesting ``depth``."""

    scope: IndexScope
    depth: int
    anchor: ir.Operation

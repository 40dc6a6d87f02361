"""The pass `split-interiors`."""

from collections.abc import Container, Sequence
from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.dialects.attributes import EMITTER, map_of
from xgpu.dialects.xgpu import InDomainOp
from xgpu.indexing.affine import AffineExpr, Dim, constant, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.branches.instructions import LOAD, SAVED, Called, numbers_loaded
from xgpu.passes.support.branches.warps import is_place, shares_of_warps
from xgpu.passes.support.ranges import KnownRanges, constant_of
from xgpu.passes.support.regions import resolve_conditional, waits_for_threads
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import body_of, count_ops, defining_op, is_argument, owning_op, walk

_IF, _FOR, _EXTRACT = "scf.if", "scf.for", "tensor.extract"
_FAMILIES = ("loop", "reduce_row", "reduce_column")
"""The kernels whose threads compute elements from neighbours each for itself, which are stencils in most programs."""
_LEAST_SHARE = 0.5
"""Share of the elements for which a condition comes out as in the interior, at least."""
_MOST_STEPS = 16
"""Steps of a loop for each of which a condition is looked at, where it does not change evenly."""


@dataclass(frozen=True)
class SplitInteriors(Pass):
    """Gives threads all of whose elements lie inside, where no condition has to be asked, a version without any.

    What a stencil reads beyond the border of an array is something else, so that each of its loads is in a conditional.
    Of most threads all conditions come out the same. They are asked once, all together, and loads follow one another
    without branches: those of neighbours become accesses to vectors, and what several elements read is read once.
    Only in kernels of a few families, if loads take longer than all else, and what that saves longer than what warps
    take again that are not inside as a whole: these run both versions. Where threads of a kernel wait for each other,
    loops in which they do not have two versions. Conditions may be those of threads, blocks and loops. Needs:
    conditions simplified (simplify-indexing); run it before unswitch-loops.

    ```mlir
    %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%t = %init) -> (tensor<4096xf32>) {
      %inside = "xgpu.in_domain"(%thread, %s) {map = #xgpu.map<(d0, d1) -> (), ..., d0 * 4 + d1 in [1, 4094]>}
      %x = scf.if %inside -> (f32) {...} else {...}
    ```
    becomes
    ```mlir
    %all = "xgpu.in_domain"(%thread) {map = #xgpu.map<(d0) -> (), ..., d0 in [1, 1022]>}
    %r = scf.if %all -> (tensor<4096xf32>) {
      %0 = scf.for %s = ...  // with the first branch only
    } else {
      %1 = scf.for %s = ...  // as it was
    }
    ```
    """

    NAME: ClassVar[str] = "split-interiors"
    max_ops: int = 1024
    """Operations of a kernel that are written twice at most."""

    def apply(self, module: ir.Module) -> None:
        """Split the kernels of ``module``."""
        called = Called(module)
        for function in functions(module):
            op = function.operation
            family = ir.StringAttr(op.attributes[EMITTER]).value if EMITTER in op.attributes else ""
            if family not in _FAMILIES or count_ops(op, self.max_ops) >= self.max_ops:
                continue
            if not waits_for_threads(op):
                _split(_after_indices(body_of(op)), called)
                continue
            for loop in walk(op, _FOR):
                if not waits_for_threads(loop) and not _is_in_loop(loop):
                    _split([loop], called)


def _after_indices(body: ir.Block) -> list[ir.Operation]:
    """Return the operations of a kernel from the first conditional or loop on, but for the return."""
    operations = [view.operation for view in body.operations]
    first = next((number for number, op in enumerate(operations) if op.name in (_IF, _FOR)), len(operations))
    return operations[first:-1]


def _is_in_loop(loop: ir.Operation) -> bool:
    """Whether a loop is the body, or a part of it, of another one that no thread waits in."""
    around = loop.parent
    while around is not None and around.operation.name in (_IF, _FOR):
        if around.operation.name == _FOR and not waits_for_threads(around.operation):
            return True
        around = around.operation.parent
    return False


def _split(operations: Sequence[ir.Operation], called: "Called") -> None:
    """Put operations that follow one another into two versions, if that pays."""
    interior = _Interior()
    interior.collect(operations)
    loads = sum(numbers_loaded(op) for op, _ in interior.outcomes)
    if not loads or (asked := interior.condition()) is None:
        return
    executed = sum(map(called.instructions, operations))
    reads = sum(1 for op in operations for _ in walk(op, _EXTRACT))
    repeated = (1 - interior.warps_inside(asked)) * executed
    # What takes longer than the cache serves loads hides them.
    if LOAD * loads <= executed - LOAD * reads or repeated >= SAVED * LOAD * loads:
        return
    moved = set(operations)
    made = [value for op in operations for value in op.results]
    outer = {value: [use for use in value.uses if not _is_within(use.owner.operation, moved)] for value in made}
    results = [value for value in made if outer[value]]
    with ir.InsertionPoint(operations[0]), operations[0].location:
        conditional, inside, outside = create_if(
            InDomainOp.build(asked, interior.operands), [value.type for value in results]
        )
    for value, new in zip(results, list(conditional.results), strict=True):
        for use in outer[value]:
            use.owner.operation.operands[use.operand_number] = new
    for op in operations:
        inside.append(op)
    with ir.InsertionPoint(inside), conditional.location:
        create_yield(results)
    copy = conditional.clone(ip=False)
    for view in list(copy.regions[0].blocks[0].operations):
        outside.append(view.operation)
    for op, outcome in reversed(interior.outcomes):
        resolve_conditional(op, outcome)


def _is_within(op: ir.Operation, operations: Container[ir.Operation]) -> bool:
    """Whether an operation is one of ``operations``, or in a region of one."""
    around: ir.Operation | None = op
    while around is not None and around not in operations:
        around = None if around.parent is None else around.parent.operation
    return around is not None


class _Interior:
    """The conditionals that come out the same for most threads, each with its ``outcome``, the outer ones first.

    ``operands`` are the threads and blocks that ``constraints`` are about, by the number of their dimension.
    """

    def __init__(self) -> None:
        self.outcomes: list[tuple[ir.Operation, bool]] = []
        self.operands: list[ir.Value] = []
        self._ranges = KnownRanges()
        self._constraints: list[Constraint] = []

    def collect(self, operations: Sequence[ir.Operation]) -> None:
        """Decide on all conditionals in ``operations``, but for those in branches that are not taken."""
        for op in operations:
            regions = list(op.regions)
            if op.name == _IF and (outcome := self._decide(op)) is not None:
                self.outcomes.append((op, outcome))
                regions = regions[0 if outcome else 1 :][:1]
            for region in regions:
                for block in region.blocks:
                    self.collect([view.operation for view in block.operations])

    def condition(self) -> IndexingMap | None:
        """Return the map whose constraints hold inside; None if there is no such place, or no condition."""
        dims = tuple(self._ranges.index_range(each) for each in self.operands)
        simple = IndexingMap(dims, (), (), tuple(dict.fromkeys(self._constraints))).simplify()
        checks = () if simple.is_empty() else simple.domain_checks(dims, ())
        return IndexingMap(dims, (), (), checks) if checks else None

    def _decide(self, op: ir.Operation) -> bool | None:
        """Return how a condition comes out for most elements, and note what that asks for; None if that is unknown."""
        asked = defining_op(op.operands[0])
        if asked is None or asked.name != InDomainOp.OPERATION_NAME:
            return None
        map_, operands = map_of(asked.attributes["map"]), list(asked.operands)
        steps = {number: found for number, each in enumerate(operands) if (found := _steps_of(each))}
        if not all(number in steps or is_place(each) for number, each in enumerate(operands)):
            return None
        long = [number for number, each in steps.items() if len(each) > _MOST_STEPS]
        if any(_is_uneven(expr, number) for expr, _ in map_.constraints for number in long):
            return None
        pairs = zip(operands, map_.dims, strict=True)
        dims = [self._ranges.index_range(each) if is_place(each) else own for each, own in pairs]
        natural = [expr.interval(dims) for expr, _ in map_.constraints]
        share = np.prod([_share(each, whole) for (_, each), whole in zip(map_.constraints, natural, strict=True)])
        if share >= _LEAST_SHARE:
            return self._note(list(map_.constraints), operands, True)
        outside = _outside(map_.constraints, natural)
        return None if outside is None else self._note([outside], operands, False)

    def _note(self, constraints: list[Constraint], operands: Sequence[ir.Value], outcome: bool) -> bool:
        """Let constraints hold in the interior, in all steps of loops; return the outcome."""
        for number, operand in enumerate(operands):
            if steps := _steps_of(operand):
                constraints = [each for one in constraints for each in _in_all_steps(one, number, steps)]
            elif operand not in self.operands:
                self.operands.append(operand)
        places = [dim(self.operands.index(each)) if each in self.operands else constant(0) for each in operands]
        self._constraints += [(expr.substitute(places), interval) for expr, interval in constraints]
        return outcome

    def warps_inside(self, asked: IndexingMap) -> float:
        """Return the share of warps, of some blocks, all of whose threads are inside; 0 if that is not known."""
        found = shares_of_warps(asked, self.operands)
        return 0.0 if found is None else found[0]


def _steps_of(value: ir.Value) -> range | None:
    """Return the values of the variable of a loop between constants; None if ``value`` is none."""
    if not is_argument(value) or ir.BlockArgument(value).arg_number or owning_op(value).name != _FOR:
        return None
    lower, upper, step = (constant_of(each) for each in list(owning_op(value).operands)[:3])
    if lower is None or upper is None or step is None or step < 1 or upper <= lower:
        return None
    return range(lower, upper, step)


def _is_uneven(expr: AffineExpr, number: int) -> bool:
    """Whether an expression depends on a dimension otherwise than by a multiple of it."""
    return number in (expr - dim(number) * dict(expr.terms).get(Dim(number), 0)).variables()[0]


def _in_all_steps(constraint: Constraint, number: int, steps: range) -> list[Constraint]:
    """Return the constraints without dimension ``number`` that hold if one holds for all ``steps`` of it."""
    expr, interval = constraint
    if number not in expr.variables()[0]:
        return [constraint]
    if _is_uneven(expr, number):
        return [(_at(expr, number, step), interval) for step in steps]
    factor = dict(expr.terms)[Dim(number)]
    ends = factor * steps[0], factor * steps[-1]
    return [(expr - dim(number) * factor, Interval(interval.lower - min(ends), interval.upper - max(ends)))]


def _at(expr: AffineExpr, number: int, value: int) -> AffineExpr:
    last = max(expr.variables()[0])
    return expr.substitute([constant(value) if each == number else dim(each) for each in range(last + 1)])


def _outside(constraints: Sequence[Constraint], natural: Sequence[Interval]) -> Constraint | None:
    """Return the constraint by which most points are outside those that ``constraints`` hold for; None if too few are.

    Expressions have ``natural`` intervals. Those that are at an end of theirs are added up, so that the sum of how far
    each is from its end is nothing only where all of them are at it.
    """
    found = [
        (_share(rest, whole), expr, rest)
        for (expr, inside), whole in zip(constraints, natural, strict=True)
        if (rest := _complement(inside, whole)) is not None
    ]
    apart, most, share = constant(0), 0, 1.0
    for (expr, inside), whole in zip(constraints, natural, strict=True):
        if inside.is_point and inside.lower in (whole.lower, whole.upper):
            apart = apart + (expr - whole.lower if inside.lower == whole.lower else whole.upper - expr)
            most += whole.size - 1
            share *= _share(inside, whole)
    found.append((1 - share, apart, Interval(1, most)))
    share, expr, rest = max(found, key=lambda each: each[0])
    return (expr, rest) if share >= _LEAST_SHARE else None


def _share(interval: Interval, whole: Interval) -> float:
    """Return how much of an interval another one is."""
    return max(0, interval.intersect(whole).size) / whole.size


def _complement(inside: Interval, whole: Interval) -> Interval | None:
    """Return what an interval leaves of another one, if that is one interval."""
    if inside.lower <= whole.lower:
        return Interval(inside.upper + 1, whole.upper)
    return Interval(whole.lower, inside.lower - 1) if inside.upper >= whole.upper else None

"""The pass `lower-loops`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.attributes import EARLY, UNROLL
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp, LoopOp
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.ranges import KnownRanges
from xgpu.passes.support.regions import move_body
from xgpu.passes.support.scf_ops import create_for, create_if, create_index, create_yield
from xgpu.records import dataclass
from xgpu.structure import replace_op, walk

Constraints = tuple[tuple[AffineExpr, Interval], ...]


@dataclass(frozen=True)
class LowerLoops(Pass):
    """Turns each `xgpu.loop` into `scf.for` and `scf.if`.

    There is one `scf.for` for each range variable with more than one value. Each constraint of the map is tested by an
    `scf.if` as far outside as the variables in it allow; so are the ranges of the map's dimensions, where it does not
    follow from how the operands are made that they hold. The innermost loop keeps the attribute ``xgpu.unroll``,
    all of them if it is ``"early"``.
    Needs: nothing. Run peel-loops before, so that fewer tests are inside loops.

    ```mlir
    %sum = "xgpu.loop"(%thread, %zero) ({
    ^bb0(%s0: index, %i: index, %partial: f32):
      ...
      "xgpu.yield"(%next) : (f32) -> ()
    }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 509]>}
        : (index, f32) -> f32
    ```
    becomes
    ```mlir
    %sum = scf.for %s0 = %c0 to %c4 step %c1 iter_args(%partial = %zero) -> (f32) {
      %inside = "xgpu.in_domain"(%thread, %s0) {map = ...} : (index, index) -> i1
      %point = scf.if %inside -> (f32) {
        %i = "xgpu.apply_indexing"(%thread, %s0) {map = ...} : (index, index) -> index
        ...
        scf.yield %next : f32
      } else {
        scf.yield %partial : f32
      }
      scf.yield %point : f32
    }
    ```
    """

    NAME: ClassVar[str] = "lower-loops"

    def apply(self, module: ir.Module) -> None:
        """Lower every loop of ``module``."""
        ranges = KnownRanges()
        loops = [cast(LoopOp, op.opview) for op in walk(module.operation, LoopOp.OPERATION_NAME)]
        # All before the first is lowered: ranges are those of the IR as it is now.
        known = [tuple(ranges.index_range(value) for value in loop.dims) for loop in loops]
        for loop, dims in zip(loops, known, strict=True):
            with ir.InsertionPoint(loop.operation), loop.operation.location:
                _lower(loop, dims)


def _lower(loop: LoopOp, known: tuple[Interval, ...]) -> None:
    """Replace ``loop`` by a nest; ``known`` are the ranges of its operands."""
    map_ = loop.map
    dims = tuple(declared.intersect(range_) for declared, range_ in zip(map_.dims, known, strict=True))
    map_ = replace(map_, dims=dims).simplify()
    if map_.is_empty():
        replace_op(loop.operation, loop.inits)
        return
    nest = _Nest(loop)
    outside = [(dim(i), map_.dims[i]) for i in range(len(known)) if not map_.dims[i].contains_interval(known[i])]
    tests = _tests_by_depth(map_)
    nest.test(IndexingMap(known, map_.symbols, (), (*outside, *tests[0])))
    for depth, interval in enumerate(map_.symbols, 1):
        nest.open_loop(interval)
        nest.test(IndexingMap(map_.dims, map_.symbols, (), tests[depth]))
    nest.fill(map_)


def _tests_by_depth(map_: IndexingMap) -> list[Constraints]:
    """Return the constraints of ``map_`` by how many of its range variables must be fixed before they can be tested."""
    tests: list[Constraints] = [()] * (len(map_.symbols) + 1)
    for expr, interval in map_.constraints:
        depth = max(expr.variables()[1], default=-1) + 1
        tests[depth] += ((expr, interval),)
    return tests


class _Nest:
    """A nest of `scf.for` and `scf.if` that grows inwards, in place of a loop."""

    def __init__(self, loop: LoopOp):
        self._loop = loop
        self._variables = loop.dims
        self._carried: Sequence[ir.Value] = loop.inits
        self._outermost: ir.Operation | None = None
        self._loops: list[ir.Operation] = []
        self._block: ir.Block | None = None
        self._constants: dict[int, ir.Value] = {}

    def open_loop(self, interval: Interval) -> None:
        """Continue inside a loop over ``interval``, or with its value if it has only one."""
        lower = self._constant(interval.lower)
        if interval.is_point:
            self._variables.append(lower)
            return
        bounds = (lower, self._constant(interval.upper + 1), self._constant(1))
        with self._insertion_point():
            loop, body = create_for(*bounds, self._carried)
        self._loops.append(loop)
        self._enter(loop, body)
        induction, *carried = body.arguments
        self._variables.append(induction)
        self._carried = carried

    def test(self, map_: IndexingMap) -> None:
        """Continue where the constraints of ``map_`` hold."""
        if not map_.constraints:
            return
        with self._insertion_point():
            condition = InDomainOp.build(*self._used(map_))
            conditional, inside, outside = create_if(condition, [value.type for value in self._carried])
        with ir.InsertionPoint(outside):
            create_yield(self._carried)
        self._enter(conditional, inside)

    def fill(self, map_: IndexingMap) -> None:
        """Put the body of the loop at the innermost place and the nest in place of the loop."""
        count = len(map_.symbols)
        with self._insertion_point():
            results = ApplyIndexingOp.build(*self._used(map_)) if map_.results else []
            end = create_yield(self._carried) if self._block else self._loop.operation
        symbols = self._variables[len(self._variables) - count :]
        values = move_body(self._loop.body, [*symbols, *results, *self._carried], end)
        if self._outermost is None:
            replace_op(self._loop.operation, values)
            return
        for number, value in enumerate(values):
            end.operands[number] = value
        if self._loops and UNROLL in self._loop.operation.attributes:
            mark = self._loop.operation.attributes[UNROLL]
            for loop in self._loops if ir.StringAttr(mark).value == EARLY else self._loops[-1:]:
                loop.attributes[UNROLL] = mark
        replace_op(self._loop.operation, list(self._outermost.results))

    def _enter(self, op: ir.Operation, block: ir.Block) -> None:
        """Continue inside ``block`` of ``op``, whose results are those of the block around it."""
        if self._block is None:
            self._outermost = op
        else:
            with ir.InsertionPoint(self._block):
                create_yield(list(op.results))
        self._block = block

    def _insertion_point(self) -> ir.InsertionPoint:
        return ir.InsertionPoint(self._block) if self._block else ir.InsertionPoint(self._loop.operation)

    def _constant(self, value: int) -> ir.Value:
        if value not in self._constants:
            with ir.InsertionPoint(self._outermost or self._loop.operation):
                self._constants[value] = create_index(value)
        return self._constants[value]

    def _used(self, map_: IndexingMap) -> tuple[IndexingMap, list[ir.Value]]:
        """Return ``map_`` with the variables that occur in it, and their values."""
        dims = self._variables[: len(map_.dims)]
        symbols = self._variables[len(map_.dims) :]
        map_, kept_symbols = map_.remove_unused_symbols()
        map_, kept_dims = map_.remove_unused_dims()
        return map_, [*(dims[i] for i in kept_dims), *(symbols[i] for i in kept_symbols)]

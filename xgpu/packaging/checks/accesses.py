"""The accesses of a kernel at level ``emitted``, each with its indices as functions of thread, block and loops.

A walk over the kernel and the functions that it calls, once for every call. An index is an affine expression over
variables: those of thread and block, of the loops around it, and unknown ones for values that are known at run time
only, of which only an interval is known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.threads import SyncThreadsOp, SyncWarpOp
from xgpu.dialects.traits import traits_of
from xgpu.dialects.xgpu import LoopOp
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.packaging.checks.intervals import interval_of, result_intervals
from xgpu.packaging.checks.phases import Now, Phases
from xgpu.records import dataclass
from xgpu.structure import defining_op, made, nested

_ANY_INDEX = Interval(-(1 << 62), 1 << 62)
_AXES = ("x", "y", "z")
_EQUAL, _LESS, _LESS_UNSIGNED = 0, 2, 6
"""Predicates of ``arith.cmpi``: ``eq``, ``slt`` and ``ult``."""
_PLAIN = ("arith.", "math.", "complex.", "gpu.", "ub.")
"""Dialects of operations that access no memory."""
_HARMLESS = frozenset(
    """xgpu.shuffle xgpu.shuffle_reduce xgpu.allocate_shared xgpu.in_domain xgpu.yield scf.yield func.return
    tensor.empty tensor.from_elements xgpu.erf_inv xgpu.lgamma xgpu.digamma xgpu.bessel_i0e xgpu.bessel_i1e
    xgpu.logistic xgpu.mma xgpu.ptx vector.from_elements vector.to_elements""".split()
)
"""Others that access none: instructions of warps on registers, and texts of PTX, in which no address is allowed."""


type Branches = tuple[tuple[ir.Operation, int], ...]


@dataclass(frozen=True)
class Point:
    """An index or several, as functions of variables: those in scope, by their ranges, under constraints.

    ``unknown`` are the variables of which only the range is known, ``threads`` and ``blocks`` those whose values are
    different in the threads of a block, and in blocks. A variable has the same one of ``numbers`` in all points.
    """

    map: IndexingMap
    unknown: frozenset[int]
    threads: frozenset[int] = frozenset()
    blocks: frozenset[int] = frozenset()
    numbers: tuple[int, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the results follow from thread, block and loops."""
        used = {number for each in self.map.results for number in each.variables()[0]}
        return not used & self.unknown


@dataclass(frozen=True)
class ElementAccess:
    """A read or an update of an element of an array: a parameter of the kernel, or what it allocates or makes.

    ``is_certain`` says whether every point of the domain makes it, and not only some, under a condition. Between two
    accesses that have one of their ``phases`` in common there may be no barrier of the block, and with one of their
    ``turns`` none of warps either. ``branches`` are those around it that whole blocks take, each with its branch's
    number: what blocks in another one do is not done by the same block.
    """

    op: ir.Operation
    array: ir.Value
    shape: tuple[int, ...]
    point: Point
    updates: bool
    is_plain: bool
    is_certain: bool
    phases: frozenset[int]
    turns: frozenset[int]
    branches: Branches = ()


@dataclass(frozen=True)
class Claim:
    """An operation's assumption that its operands are in the domain of its map."""

    op: ir.Operation
    point: Point
    needed: tuple[Interval, ...]


@dataclass
class Found:
    """A kernel's accesses and claims, the names of operations that are not understood, and whether all threads of a
    block are known to reach each barrier."""

    accesses: list[ElementAccess] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    barriers_are_met: bool = True


def accesses_of(entry: ir.Operation, functions: Mapping[str, ir.Operation]) -> Found:
    """Return what a kernel of level ``emitted`` accesses; ``functions`` are those that it may call, by name."""
    walk = _Walk(functions)
    walk.enter(entry)
    found = walk.found
    return replace(found, accesses=[_with_phases(each, walk.phases) for each in found.accesses])


def _with_phases(access: ElementAccess, phases: Phases) -> ElementAccess:
    """Return an access with its phases, each the one that it stands for."""
    between, turns = phases.found(access.phases, access.turns)
    return replace(access, phases=between, turns=turns)


class _Walk:
    def __init__(self, functions: Mapping[str, ir.Operation]):
        self.found = Found()
        self._functions = functions
        self._ranges: list[Interval] = []
        self._scope: list[int] = []
        self._unknown: set[int] = set()
        self._constraints: list[Constraint] = []
        self._indices: dict[ir.Value, AffineExpr] = {}
        self._arrays: dict[ir.Value, ir.Value] = {}
        self._identities: dict[tuple[str, str], AffineExpr] = {}
        self._intervals: dict[ir.Value, Interval | None] = {}
        self._conditions = 0
        self.phases = Phases()
        self._threads: set[int] = set()
        self._blocks: set[int] = set()
        self._divergent = 0
        self._branches: Branches = ()
        self._calls = 0
        self._same: dict[ir.Value, int] = {}
        self._numbers: dict[object, int] = {}
        self._values: dict[int, AffineExpr] = {}

    def enter(self, entry: ir.Operation) -> None:
        for kind, name in (("gpu.thread_id", attributes.BLOCK), ("gpu.block_id", attributes.GRID)):
            for axis, size in zip(_AXES, attributes.int_array_of(entry.attributes[name]), strict=True):
                self._identities[kind, axis] = self._identity(kind, size) if size > 1 else constant(0)
        block = entry.regions[0].blocks[0]
        self._arrays |= {argument: argument for argument in block.arguments if _is_array(argument)}
        self._block(block)

    def _identity(self, kind: str, size: int) -> AffineExpr:
        (self._threads if kind == "gpu.thread_id" else self._blocks).add(len(self._ranges))
        return self._variable(Interval(0, size - 1))

    def _variable(self, interval: Interval, is_known: bool = True) -> AffineExpr:
        number = len(self._ranges)
        self._ranges.append(interval)
        self._scope.append(number)
        if not is_known:
            self._unknown.add(number)
        return dim(number)

    def _block(self, block: ir.Block) -> None:
        for view in block.operations:
            self._operation(view.operation)

    def _operation(self, op: ir.Operation) -> None:
        handler = _HANDLERS.get(op.name)
        traits = traits_of(op.name)
        if handler is not None:
            getattr(self, handler)(op)
        elif traits.tensor is not None and traits.at_element:
            self._access(op, traits.tensor, traits.updates is not None)
        elif op.name in _HARMLESS or op.name.startswith(_PLAIN):
            self._arrays |= {result: result for result in op.results if _is_array(result)}
        else:
            self.found.strange.append(op.name)

    def _bind(self, values: Sequence[ir.Value], given: Sequence[ir.Value]) -> None:
        """Let values stand for others: arrays for arrays, indices for indices."""
        for value, other in zip(values, given, strict=True):
            if _is_array(value) and other in self._arrays:
                self._arrays[value] = self._arrays[other]
            elif isinstance(value.type, ir.IndexType):
                self._indices[value] = self._index(other)

    def _sync(self, op: ir.Operation) -> None:
        self._bind(op.results, op.operands)
        self.phases.barrier(op.name == SyncThreadsOp.OPERATION_NAME)
        self.found.barriers_are_met &= not self._divergent

    def _diverges(self, constraints: Sequence[Constraint]) -> bool:
        """Whether constraints may hold for some threads of a block and not for others."""
        varying = self._threads | self._unknown
        return any(not varying.isdisjoint(expr.variables()[0]) for expr, _ in constraints)

    def _is_of_blocks(self, constraints: Sequence[Constraint]) -> bool:
        """Whether constraints hold for a block all the time, or never."""
        return all(expr.variables()[0] <= self._blocks for expr, _ in constraints)

    def _index(self, value: ir.Value) -> AffineExpr:
        if value not in self._indices:
            key = self._same_value(value)
            if key not in self._values:
                interval = interval_of(value, self._intervals) or _ANY_INDEX
                self._values[key] = self._variable(interval, is_known=False)
            self._indices[value] = self._values[key]
        return self._indices[value]

    def _same_value(self, value: ir.Value) -> int:
        """Return a number that values have which are computed in the same way from the same ones, in one call."""
        return made(value, self._same, _same_needs, self._numbered)

    def _numbered(self, value: ir.Value, operands: Sequence[int]) -> int:
        op = defining_op(value)
        key: object = self._calls, value
        if op is not None and _is_computed(op):
            given = tuple((name, str(op.attributes[name])) for name in op.attributes)
            key = op.name, given, str(value.type), *operands
        return self._numbers.setdefault(key, len(self._numbers))

    def _thread(self, op: ir.Operation) -> None:
        axis = str(op.attributes["dimension"]).rstrip(">")[-1]
        self._indices[op.results[0]] = self._identities[op.name, axis]

    def _constant(self, op: ir.Operation) -> None:
        if isinstance(op.results[0].type, ir.IndexType):
            self._indices[op.results[0]] = constant(ir.IntegerAttr(op.attributes["value"]).value)
        elif _is_array(op.results[0]):
            self._arrays[op.results[0]] = op.results[0]

    def _apply(self, op: ir.Operation) -> None:
        map_ = attributes.map_of(op.attributes["map"])
        given = [self._index(each) for each in op.operands]
        dims, symbols = given[: len(map_.dims)], given[len(map_.dims) :]
        self._claim(op, given, (*map_.dims, *map_.symbols))
        checks = [(expr.substitute(dims, symbols), interval) for expr, interval in map_.constraints]
        self._claim(op, [expr for expr, _ in checks], tuple(interval for _, interval in checks))
        for result, expr in zip(op.results, map_.results, strict=True):
            self._indices[result] = expr.substitute(dims, symbols)

    def _loop(self, op: ir.Operation) -> None:
        loop = LoopOp(op)
        map_, dims = loop.map, [self._index(each) for each in loop.dims]
        scope, constraints = len(self._scope), len(self._constraints)
        symbols = [self._variable(interval) for interval in map_.symbols]
        # The loop skips what is outside of the map's domain, also by its dimensions.
        self._constraints += zip(dims, map_.dims, strict=True)
        self._constraints += [(expr.substitute(dims, symbols), interval) for expr, interval in map_.constraints]
        self._indices |= zip(loop.symbol_arguments, symbols, strict=True)
        results = [expr.substitute(dims, symbols) for expr in map_.results]
        self._indices |= zip(loop.result_arguments, results, strict=True)
        diverges = self._diverges(self._constraints[constraints:])
        self._divergent += diverges
        repeats = any(interval.size > 1 for interval in map_.symbols)
        is_certain = not map_.dims and not map_.constraints
        self._carry(op, loop.body, loop.carried_arguments, loop.inits, repeats, is_certain)
        self._divergent -= diverges
        self._leave(scope, constraints)

    def _for(self, op: ir.Operation) -> None:
        low, high, step = (interval_of(each, self._intervals) for each in op.operands[:3])
        is_known = all(each is not None and each.is_point for each in (low, high, step))
        scope, constraints = len(self._scope), len(self._constraints)
        body, is_certain = op.regions[0].blocks[0], False
        if is_known and low is not None and high is not None and step is not None:
            trips = max(-(-(high.lower - low.lower) // step.lower), 0)
            is_certain = trips > 0
            self._indices[body.arguments[0]] = self._variable(Interval(0, trips - 1)) * step.lower + low.lower
        else:
            self._indices[body.arguments[0]] = self._variable(_ANY_INDEX, is_known=False)
        self._conditions += not is_known
        self._divergent += not is_known
        self._carry(op, body, list(body.arguments)[1:], list(op.operands)[3:], is_certain=is_certain)
        self._leave(scope, constraints)
        self._conditions -= not is_known
        self._divergent -= not is_known

    def _carry(
        self,
        op: ir.Operation,
        body: ir.Block,
        carried: Sequence[ir.Value],
        inits: Sequence[ir.Value],
        repeats: bool = True,
        is_certain: bool = False,
    ) -> None:
        """Walk over a loop's body; each array that it carries must be the same in every iteration.

        ``repeats``: there may be several; ``is_certain``: there is one.
        """
        self._bind_arrays(carried, inits)
        before = self.phases.enter_loop()
        begin = self.phases.now
        self._block(body)
        self.phases.leave_loop(before, begin, repeats, is_certain)
        *_, end = body.operations
        for value, yielded in zip(carried, end.operation.operands, strict=True):
            if _is_array(value) and not _are_same([self._arrays.get(value)], [self._arrays.get(yielded)]):
                self.found.strange.append(f"{op.name} that exchanges arrays")
        self._bind_arrays(op.results, inits)

    def _if(self, op: ir.Operation) -> None:
        scope, constraints = len(self._scope), len(self._constraints)
        given: list[list[ir.Value | None]] = []
        before = self.phases.now
        ends = Now() if len(op.regions[1].blocks) else before
        for region, known in zip(op.regions, self._conditions_of(op.operands[0]), strict=True):
            self._conditions += known is None
            diverges = known is None or self._diverges(known)
            self._divergent += diverges
            branches = self._branches
            if known is not None and self._is_of_blocks(known):
                self._branches = (*branches, (op, len(given)))
            self.phases.now = before
            for block in region.blocks:
                self._constraints += known or []
                self._block(block)
                *_, end = block.operations
                self._bind_arrays(op.results, end.operation.operands)
                given.append(self._arrays_of(op.results))
                self._leave(scope, constraints)
                ends |= self.phases.now
            self._conditions -= known is None
            self._divergent -= diverges
            self._branches = branches
        self.phases.now = ends
        if any(not _are_same(each, given[-1]) for each in given):
            self.found.strange.append(f"{op.name} that exchanges arrays")

    def _conditions_of(self, condition: ir.Value) -> tuple[list[Constraint] | None, list[Constraint] | None]:
        """Return what holds exactly where a condition does, and where it does not; None for what is not known."""
        test = defining_op(condition)
        if test is not None and test.name == "arith.cmpi" and isinstance(test.operands[0].type, ir.IndexType):
            return self._compared(test)
        if test is None or test.name != "xgpu.in_domain":
            return None, None
        map_, given = attributes.map_of(test.attributes["map"]), [self._index(each) for each in test.operands]
        dims, symbols = given[: len(map_.dims)], given[len(map_.dims) :]
        # What it asks of its operands beyond their own ranges are the constraints.
        self._claim(test, given, (*map_.dims, *map_.symbols))
        tested = [(expr.substitute(dims, symbols), interval) for expr, interval in map_.constraints]
        return tested, self._opposite(*tested[0]) if len(tested) == 1 else None

    def _compared(self, test: ir.Operation) -> tuple[list[Constraint] | None, list[Constraint] | None]:
        """Return what holds where an index is less than another, or is the other one, and where it is not.

        Numbers of blocks that share a launch are less than others; a block's first thread is number 0.
        """
        left, right = (self._index(each) for each in test.operands)
        first, second, difference = result_intervals(self._point([left, right, left - right]).map)
        predicate = ir.IntegerAttr(test.attributes["predicate"]).value
        if predicate == _EQUAL and difference.lower <= 0 <= difference.upper:
            equal = left - right, Interval(0, 0)
            return [equal], self._opposite(*equal)
        is_less = predicate == _LESS or (predicate == _LESS_UNSIGNED and min(first.lower, second.lower) >= 0)
        if not is_less or not difference.lower < 0 <= difference.upper:
            return None, None
        sides = Interval(difference.lower, -1), Interval(0, difference.upper)
        below, above = ([(left - right, side)] for side in sides)
        return below, above

    def _opposite(self, expr: AffineExpr, interval: Interval) -> list[Constraint] | None:
        """Return where an expression is outside an interval, if that is on one side of it."""
        (whole,) = result_intervals(self._point([expr]).map)
        if whole.lower >= interval.lower:
            return [(expr, Interval(interval.upper + 1, whole.upper))]
        return [(expr, Interval(whole.lower, interval.lower - 1))] if whole.upper <= interval.upper else None

    def _call(self, op: ir.Operation) -> None:
        callee = self._functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        block = callee.regions[0].blocks[0]
        for inner in nested(callee):
            # Values of an earlier call.
            for result in inner.results:
                self._indices.pop(result, None)
        self._bind(block.arguments, op.operands)
        self._calls, self._same = self._calls + 1, {}
        self._block(block)
        self._calls, self._same = self._calls + 1, {}
        *_, end = block.operations
        self._bind(op.results, end.operation.operands)

    def _arrays_of(self, values: Sequence[ir.Value]) -> list[ir.Value | None]:
        return [self._arrays.get(value) for value in values if _is_array(value)]

    def _bind_arrays(self, values: Sequence[ir.Value], given: Sequence[ir.Value]) -> None:
        for value, other in zip(values, given, strict=True):
            if _is_array(value) and other in self._arrays:
                self._arrays[value] = self._arrays[other]

    def _leave(self, scope: int, constraints: int) -> None:
        del self._scope[scope:]
        del self._constraints[constraints:]

    def _access(self, op: ir.Operation, tensor: int, updates: bool) -> None:
        array = op.operands[tensor]
        if array not in self._arrays:
            self.found.strange.append(f"{op.name} of an array that is not known")
            return
        shape = tuple(ir.RankedTensorType(array.type).shape)
        indices = [self._index(each) for each in list(op.operands)[tensor + 1 : tensor + 1 + len(shape)]]
        is_predicated = op.name.startswith("xgpu.predicated")
        self.found.accesses.append(
            ElementAccess(
                op,
                self._arrays[array],
                shape,
                self._point(indices),
                updates,
                op.name in ("tensor.insert", "tensor.extract") or is_predicated,
                not (self._conditions or is_predicated or self._is_decided_at_run_time()),
                self.phases.now.phases,
                self.phases.now.turns,
                self._branches,
            )
        )
        if updates:
            self._bind_arrays([op.results[0]], [array])

    def _is_decided_at_run_time(self) -> bool:
        """Whether values known at run time only decide if an operation is reached."""
        for expr, interval in self._constraints:
            is_unknown = not self._unknown.isdisjoint(expr.variables()[0])
            if is_unknown and not interval.contains_interval(expr.interval(self._ranges)):
                return True
        return False

    def _claim(self, op: ir.Operation, exprs: Sequence[AffineExpr], needed: tuple[Interval, ...]) -> None:
        if exprs:
            self.found.claims.append(Claim(op, self._point(exprs), needed))

    def _point(self, exprs: Sequence[AffineExpr]) -> Point:
        """Return expressions as a map of the variables in scope; of unknown ones, only of those that are used."""
        used = {number for each in (*exprs, *(c for c, _ in self._constraints)) for number in each.variables()[0]}
        kept = sorted({number for number in self._scope if number not in self._unknown} | used)
        places = {number: dim(place) for place, number in enumerate(kept)}
        map_ = IndexingMap(
            tuple(self._ranges[number] for number in kept),
            (),
            tuple(each.substitute(places) for each in exprs),
            tuple((each.substitute(places), interval) for each, interval in self._constraints),
        )
        kinds = self._unknown, self._threads, self._blocks
        unknown, threads, blocks = (frozenset(p for p, number in enumerate(kept) if number in kind) for kind in kinds)
        return Point(map_, unknown, threads, blocks, tuple(kept))


_HANDLERS = {
    "gpu.thread_id": "_thread",
    "gpu.block_id": "_thread",
    "arith.constant": "_constant",
    "xgpu.apply_indexing": "_apply",
    "xgpu.loop": "_loop",
    "xgpu.pure_call": "_call",
    "scf.for": "_for",
    "scf.if": "_if",
    SyncThreadsOp.OPERATION_NAME: "_sync",
    SyncWarpOp.OPERATION_NAME: "_sync",
}


def _is_computed(op: ir.Operation) -> bool:
    """Whether an operation's result follows from its operands. So does an element of an array, which is a value."""
    return (op.name.startswith("arith.") or op.name == "tensor.extract") and len(op.results) == 1


def _same_needs(value: ir.Value) -> Sequence[ir.Value]:
    op = defining_op(value)
    return list(op.operands) if op is not None and _is_computed(op) else []


def _are_same(values: Sequence[ir.Value | None], others: Sequence[ir.Value | None]) -> bool:
    """Whether values are known and those of others."""
    pairs = zip(values, others, strict=True)
    return all(value is not None and other is not None and value == other for value, other in pairs)


def _is_array(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def functions_of(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """Yield the functions of a module with their names."""
    for view in module.body.operations:
        yield ir.StringAttr(view.operation.attributes["sym_name"]).value, view.operation

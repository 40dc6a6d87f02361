"""The pass `lower-indexing`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import INDEX_BITS, int_attribute, map_of
from xgpu.dialects.xgpu import ApplyIndexingOp, InDomainOp
from xgpu.indexing.affine import AffineExpr, Atom, Dim, FloorDiv, Mod, Symbol
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.index_ops import IndexConstants, IndexScope, Scopes
from xgpu.passes.support.ranges import BOOL_RANGE, INDEX_RANGE, KnownRanges
from xgpu.records import dataclass
from xgpu.structure import arguments_of, walk

_INT32 = Interval(-(1 << 31), (1 << 31) - 1)
_PREDICATES = {"eq": 0, "slt": 2, "sle": 3, "sge": 5, "ule": 7}
_MAY_OVERFLOW = ("arith.addi", "arith.subi", "arith.muli")
_INTERVALS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a.floordiv(b.lower),
    "arith.remui": lambda a, b: a.mod(b.lower),
    "arith.shrsi": lambda a, b: a.floordiv(1 << b.lower),
    "arith.andi": lambda a, b: a.mod(b.lower + 1),
}
"""The results of the operations on indices: divisors, shifts and masks are constants."""


@dataclass(frozen=True)
class LowerIndexing(Pass):
    """Lowers index computations to arithmetic on `index`, and chooses its width.

    Sums are emitted outermost variable first and constant last, and equal operations are shared where one dominates, so
    `e` and `e + 3` share `e`; loop invariants are computed before the loop. Divisions are unsigned where the dividend
    is never negative. `xgpu.in_domain` becomes comparisons: only of the sides that can fail, one for both sides.
    Overflow flags are set where ranges prove them, inside and outside of the domain. Every function gets
    `xgpu.index_bits`: 32 if all indices, sizes and intermediate values fit, else 64. Needs: simplify-indexing, without
    which the maps' own ranges are all that is known.

    ```mlir
    %k = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> ((d0 floordiv 3) * 4 + 1), d0 in [0, 99]>}
    ```
    becomes
    ```mlir
    %0 = arith.divui %i, %c3 : index
    %1 = arith.muli %0, %c4 overflow<nsw, nuw> : index
    %k = arith.addi %1, %c1 overflow<nsw, nuw> : index
    ```
    """

    NAME: ClassVar[str] = "lower-indexing"

    def apply(self, module: ir.Module) -> None:
        """Lower the index operations of every function and set `xgpu.index_bits`."""
        fits = True
        for function in functions(module):
            lowering = _Lowering(function.operation)
            lowering.run()
            fits &= lowering.fits
        for function in functions(module):
            function.operation.attributes[INDEX_BITS] = int_attribute(32 if fits else 64)


@dataclass(eq=False, slots=True)
class _Term:
    """A value, how deep it is nested, the interval that it lies in within the map's domain, and the one anywhere.

    What is emitted may be computed outside of the domain, where its value is not used. It must not be poison there,
    which would spread from a condition to those that it is combined with: so overflow flags must be right anywhere.
    """

    value: ir.Value
    interval: Interval
    anywhere: Interval
    depth: int


@dataclass(eq=False, slots=True)
class _Emitted:
    """An operation that was emitted into the block of ``scope``, to be shared."""

    term: _Term
    scope: IndexScope


class _Lowering:
    """Lowers the index operations of one function in one walk."""

    def __init__(self, function: ir.Operation):
        self.fits = True
        self._function = function
        self._ranges = KnownRanges()
        self._scopes = Scopes(function)
        self._constants = IndexConstants(function)
        self._emitted: dict[tuple[object, ...], _Emitted] = {}
        self._boolean = ir.IntegerType.get_signless(1)
        self._int64 = ir.IntegerType.get_signless(64)
        # The operation being lowered, the variables of its map, and how many of them are dimensions.
        self._op = function
        self._variables: list[_Term] = []
        self._rank = 0

    def run(self) -> None:
        """Lower every index operation of the function; ``fits`` tells whether 32 bits are enough."""
        ops = walk(self._function, post_order=False)
        self._note_values(ops)
        lowered = []
        for op in ops:
            if op.name in (ApplyIndexingOp.OPERATION_NAME, InDomainOp.OPERATION_NAME):
                self._scopes.move_to(op)
                with op.location:
                    self._lower(op)
                lowered.append(op)
        # Nothing is erased before this: values are known by the addresses of their operations.
        for op in reversed(lowered):
            op.erase()

    def _lower(self, op: ir.Operation) -> None:
        self._op = op
        map_ = map_of(op.attributes["map"])
        self._variables = []
        for value, interval in zip(op.operands, map_.dims + map_.symbols, strict=True):
            anywhere = self._ranges.index_range(value)
            self._variables.append(_Term(value, interval.intersect(anywhere), anywhere, self._scopes.depth_of(value)))
        self._rank = len(map_.dims)
        if op.name == InDomainOp.OPERATION_NAME:
            op.results[0].replace_all_uses_with(self._conjunction(map_.constraints))
            return
        for result, expr in zip(op.results, map_.results, strict=True):
            result.replace_all_uses_with(self._sum(expr).value)

    def _note_values(self, ops: Sequence[ir.Operation]) -> None:
        """Check that every index and every tensor of the function is within 32 bits."""
        for op in ops:
            for value in (*op.results, *arguments_of(op)):
                type_ = value.type
                if isinstance(type_, ir.IndexType):
                    self._note(self._ranges.index_range(value))
                elif isinstance(type_, ir.RankedTensorType) and type_.has_static_shape:
                    self._note(Interval(0, prod(type_.shape)))

    def _note(self, interval: Interval) -> Interval:
        self.fits = self.fits and _INT32.contains_interval(interval)
        return interval

    def _sum(self, expr: AffineExpr) -> _Term:
        """Emit a linear form: outermost terms first, then those to subtract, the constant last."""
        terms = [(self._atom(atom), coefficient) for atom, coefficient in expr.terms]
        terms.sort(key=lambda term: (term[0].depth, term[1] < 0))
        # With nothing to subtract from, the constant comes first instead.
        begins_negative = bool(terms) and terms[0][1] < 0
        total = self._constant(expr.constant) if begins_negative or not terms else None
        for term, coefficient in terms:
            magnitude = abs(coefficient)
            scaled = term if magnitude == 1 else self._binary("arith.muli", term, self._constant(magnitude))
            if total is None:
                total = scaled
            else:
                total = self._binary("arith.addi" if coefficient > 0 else "arith.subi", total, scaled)
        assert total is not None
        if not expr.constant or begins_negative or not terms:
            return total
        name = "arith.addi" if expr.constant > 0 else "arith.subi"
        return self._binary(name, total, self._constant(abs(expr.constant)))

    def _atom(self, atom: Atom) -> _Term:
        if isinstance(atom, Dim):
            return self._variables[atom.index]
        if isinstance(atom, Symbol):
            return self._variables[self._rank + atom.index]
        assert isinstance(atom, FloorDiv | Mod)
        dividend = self._sum(atom.expr)
        if isinstance(atom, FloorDiv):
            return self._quotient(dividend, atom.divisor)
        return self._remainder(dividend, atom.divisor)

    def _quotient(self, dividend: _Term, divisor: int) -> _Term:
        """Emit the quotient, rounded down."""
        if dividend.interval.lower >= 0:
            return self._binary("arith.divui", dividend, self._constant(divisor))
        if divisor & (divisor - 1) == 0:
            return self._binary("arith.shrsi", dividend, self._constant(divisor.bit_length() - 1))
        if (shift := _shift(dividend.interval, divisor)) is not None:
            shifted = self._binary("arith.addi", dividend, self._constant(shift * divisor))
            quotient = self._binary("arith.divui", shifted, self._constant(divisor))
            return self._binary("arith.subi", quotient, self._constant(shift))
        # -1 - x reflects the negative numbers onto the others, and its quotient back.
        minus_one, negative = self._constant(-1), self._compare("slt", dividend, self._constant(0))
        reflected = self._binary("arith.subi", minus_one, dividend)
        magnitudes = Interval(0, max(reflected.anywhere.upper, dividend.anywhere.upper))
        positive = self._emit("arith.select", (negative, reflected, dividend), magnitudes, magnitudes)
        quotient = self._binary("arith.divui", positive, self._constant(divisor))
        back = self._binary("arith.subi", minus_one, quotient)
        rounded = dividend.interval.floordiv(divisor)
        return self._emit("arith.select", (negative, back, quotient), rounded, dividend.anywhere.floordiv(divisor))

    def _remainder(self, dividend: _Term, divisor: int) -> _Term:
        """Emit the remainder, which is never negative."""
        if dividend.interval.lower >= 0:
            return self._binary("arith.remui", dividend, self._constant(divisor))
        if divisor & (divisor - 1) == 0:
            return self._binary("arith.andi", dividend, self._constant(divisor - 1))
        if (shift := _shift(dividend.interval, divisor)) is not None:
            shifted = self._binary("arith.addi", dividend, self._constant(shift * divisor))
            return self._binary("arith.remui", shifted, self._constant(divisor))
        quotient = self._quotient(dividend, divisor)
        return self._binary("arith.subi", dividend, self._binary("arith.muli", quotient, self._constant(divisor)))

    def _conjunction(self, constraints: Sequence[tuple[AffineExpr, Interval]]) -> ir.Value:
        """Emit whether all constraints hold, outermost first."""
        conditions = [self._condition(expr, bounds) for expr, bounds in constraints]
        needed = sorted((c for c in conditions if c is not None), key=lambda condition: condition.depth)
        if not needed:
            return self._constants.boolean(True)
        total = needed[0]
        for condition in needed[1:]:
            total = self._emit("arith.andi", (total, condition), BOOL_RANGE, BOOL_RANGE)
        return total.value

    def _condition(self, expr: AffineExpr, bounds: Interval) -> _Term | None:
        """Emit whether ``expr`` is in ``bounds``; None if it always is."""
        dims = [variable.interval for variable in self._variables]
        whole = expr.interval(dims[: self._rank], dims[self._rank :])
        if bounds.contains_interval(whole):
            return None
        if whole.intersect(bounds).is_empty:
            return _Term(self._constants.boolean(False), BOOL_RANGE, BOOL_RANGE, 0)
        # The constant goes to the other side, where it costs nothing.
        plain, lower, upper = expr - expr.constant, bounds.lower - expr.constant, bounds.upper - expr.constant
        if lower == upper:
            return self._compare("eq", self._sum(plain), self._constant(lower))
        if bounds.upper >= whole.upper:
            return self._compare("sge", self._sum(plain), self._constant(lower))
        if bounds.lower <= whole.lower:
            return self._compare("sle", self._sum(plain), self._constant(upper))
        # What is below the lower bound is a large number without sign.
        return self._compare("ule", self._sum(plain - lower), self._constant(upper - lower))

    def _constant(self, value: int) -> _Term:
        interval = self._note(Interval(value, value))
        return _Term(self._constants.index(value), interval, interval, 0)

    def _binary(self, name: str, a: _Term, b: _Term) -> _Term:
        """Emit an operation on indices, with the overflow flags that the intervals prove."""
        rule = _INTERVALS[name]
        interval = self._note(rule(a.interval, b.interval))
        anywhere = rule(a.anywhere, b.anywhere)
        if name in ("arith.divui", "arith.remui") and a.anywhere.lower < 0:
            # Read without sign, a negative number is a large one, of which the rules know nothing.
            anywhere = Interval(0, b.interval.upper - 1) if name == "arith.remui" else INDEX_RANGE
        flags = []
        if not _INT32.contains_interval(anywhere):
            anywhere = INDEX_RANGE
        elif name in _MAY_OVERFLOW:
            flags.append("nsw")
            if min(a.anywhere.lower, b.anywhere.lower, anywhere.lower) >= 0:
                flags.append("nuw")
        return self._emit(name, (a, b), interval, anywhere, flags=tuple(flags))

    def _compare(self, predicate: str, a: _Term, b: _Term) -> _Term:
        return self._emit("arith.cmpi", (a, b), BOOL_RANGE, BOOL_RANGE, predicate)

    def _emit(
        self,
        name: str,
        operands: tuple[_Term, ...],
        interval: Interval,
        anywhere: Interval,
        predicate: str | None = None,
        flags: tuple[str, ...] = (),
    ) -> _Term:
        """Emit an operation where the loops around allow, or share an equal one that dominates."""
        values = tuple(operand.value for operand in operands)
        key = (name, predicate, values)
        found = self._emitted.get(key)
        if found is None or not found.scope.open:
            place = self._scopes.outside_loops(self._op, max(operand.depth for operand in operands))
            attributes = {"overflowFlags": ir.Attribute.parse(f"#arith.overflow<{', '.join(flags)}>")} if flags else {}
            if predicate:
                attributes["predicate"] = ir.IntegerAttr.get(self._int64, _PREDICATES[predicate])
            with ir.InsertionPoint(place.anchor):
                result = self._boolean if predicate else values[-1].type
                op = ir.Operation.create(name, results=[result], operands=values, attributes=attributes)
            term = _Term(op.results[0], interval, anywhere, place.depth)
            self._emitted[key] = _Emitted(term, place.scope)
            return term
        return replace(found.term, interval=interval)


def _shift(interval: Interval, divisor: int) -> int | None:
    """Return how many divisors to add so that the interval is not negative; None if that could overflow."""
    count = -(interval.lower // divisor)
    shifted = interval + count * divisor
    whole = _INT32 if _INT32.contains_interval(interval) else INDEX_RANGE
    return count if whole.contains_interval(shifted) else None

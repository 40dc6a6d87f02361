"""The chains of a gradient of attention, for rows and for keys, from what attention then stores of each row."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.chained_sums import ChainedSums, chained_sums
from xgpu.analysis.attention.gradient import Gradient
from xgpu.analysis.attention.places import DOT
from xgpu.dialects.chain import returned
from xgpu.emit.families.attention.sums_schedule import sums_problem
from xgpu.emit.families.attention.writing import MOVES
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import dim
from xgpu.passes.prepare.chains.arranging import Arrangement
from xgpu.passes.prepare.chains.caps import caps, divided
from xgpu.passes.prepare.chains.parts import (
    ChainParts,
    Taken,
    end_moved,
    moved_stages,
    results_of,
    with_operands_before,
)
from xgpu.passes.prepare.chains.row_sums import reciprocal, row_sum
from xgpu.records import dataclass
from xgpu.structure import copy_operation, dtype_of, in_order, producer, users_of

_LATE = "expected operands of a gradient before what reads it"


@dataclass(frozen=True)
class GradientChains:
    """Writes the chains of a ``gradient``. ``rows`` has what attention's chain stores of its values of rows.
    Operands may be ``arranged`` in another order.

    All is written at the insertion point, before ``end``, which is the first operation that reads a result.
    """

    gradient: Gradient
    end: ir.Operation
    rows: Mapping[ir.Value, ir.Value]
    stage: ir.Value
    arranged: Arrangement
    _made: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _reciprocals: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def write(self) -> Mapping[ir.Value, ir.Value] | str:
        """Write them; return their results by what they are instead of, or why there are no such chains."""
        self._made.update(self.rows)
        for each in self.gradient.sums:
            self._made[each.op.results[0]] = row_sum(each, self.stage, self._row)
        found: dict[ir.Value, ir.Value] = {}
        for results, elements in self._together():
            made = self._write_all(results, elements)
            if isinstance(made, str):
                return made
            found |= made
        return {**found, **{value: self._row(value) for value in self.gradient.rows}}

    def _write_all(
        self, results: Sequence[ir.Value], elements: Sequence[ir.Value]
    ) -> Mapping[ir.Value, ir.Value] | str:
        """Write one chain that returns all results, or what they are moved from, or else one for each.

        The first one returns ``elements``, too.
        """
        made = self._write_chain([*results, *elements])
        if not isinstance(made, str):
            return dict(zip([*results, *elements], made.results, strict=True))
        if (earlier := self._write_earlier(results, elements)) is not None:
            return earlier
        if len(results) == 1:
            return made
        found: dict[ir.Value, ir.Value] = {}
        for number, result in enumerate(results):
            alone = self._write_all([result], [] if number else elements)
            if isinstance(alone, str):
                return alone
            found |= alone
        return found

    def _write_earlier(
        self, results: Sequence[ir.Value], elements: Sequence[ir.Value]
    ) -> Mapping[ir.Value, ir.Value] | None:
        """Write one chain for what results are moved from, and move that; return the results, None if there is none.

        A kernel stores rows, where the next product may ask for columns.
        """
        stages = [moved_stages(each) for each in results]
        for steps in range(1, max(map(len, stages))):
            numbers = [min(steps, len(each) - 1) for each in stages]
            stored = [*(each[number] for each, number in zip(stages, numbers, strict=True)), *elements]
            made = self._write_chain(stored)
            if isinstance(made, str):
                continue
            copies: dict[ir.Value, ir.Value] = dict(zip(stored, made.results, strict=True))
            for each, number in zip(stages, numbers, strict=True):
                for later in reversed(each[:number]):
                    copy_operation(producer(later), copies)
            return {each: copies[each] for each in (*results, *elements)}
        return None

    def _together(self) -> list[tuple[list[ir.Value], list[ir.Value]]]:
        """Return the results of the ends, those that are added up along the same dimensions together, and elements.

        Elements are of a chain whose steps go along neighbours in memory, if there is one.
        """
        groups: dict[object, list[ir.Value]] = {}
        for end in self.gradient.ends:
            result = end_moved(self.gradient, end)
            chain = chained_sums([result], self.gradient.products)
            along = (chain.space.stepped, chain.space.loops) if isinstance(chain, ChainedSums) else result
            groups.setdefault(along, []).append(result)
        found = [(results, list[ir.Value]()) for results in groups.values()]
        for value in self.gradient.elements:
            fitting = [each for each in found if self._goes_along(value, each[0])] or found
            fitting[0][1].append(value)
        return found

    def _goes_along(self, elements: ir.Value, results: Sequence[ir.Value]) -> bool:
        """Whether neighbours of ``elements`` in memory are computed in one step of the chain of some results."""
        chain = chained_sums([results[0], elements], self.gradient.products)
        if isinstance(chain, str):
            return False
        indices = chain.elements[0].indices
        shape = shape_of(elements)
        last = max((number for number, size in enumerate(shape) if size > 1), default=0)
        return indices[last] == dim(chain.space.stepped)

    def _write_chain(self, results: Sequence[ir.Value]) -> ir.Operation | str:
        """Write a chain that returns some results; return it, or why there is none."""
        chain = chained_sums(results, self.gradient.products)
        if isinstance(chain, str):
            return chain
        problems = []
        for moves in (MOVES, frozenset[str]()):
            op = self._write_parts(chain, results, moves)
            inside = chained_sums(returned(op))
            arrays: dict[ir.Value, ir.Value] = {each: each for each in op.regions[0].blocks[0].arguments}
            problem = inside if isinstance(inside, str) else sums_problem(inside, arrays)
            if problem is None and with_operands_before(op, results_of(self.gradient)):
                return op
            op.erase()
            problems.append(problem or _LATE)
        return problems[0]

    def _write_parts(self, chain: ChainedSums, results: Sequence[ir.Value], moves: frozenset[str]) -> ir.Operation:
        """Write a chain with some moves of arrays in it."""
        products = {each.op: list(each.op.operands) for each in chain.products}
        moved = {**products, **{each.sums.product: [each.sums.values] for each in chain.sums}}
        inner = self._inner(chain)
        parts = ChainParts.of(results, Taken(inner, moved, moves, self._is_read))
        given, factors = {}, set()
        for value in parts.inputs:
            if value in self._depending:
                divisions = parts.divisors(value)
                factors.update(divisions)
                given[value] = self._reciprocal(value) if divisions else self._row(value)
        powers = self.gradient.attention.softmax.powers[0]
        weights = {producer(powers)} if dtype_of(powers).hlo == "f32" else set()
        attention = self.gradient.attention
        weights |= caps(parts.operations, attention.softmax.logits)
        others = [each.result for each in chain.products if each.op != attention.first]
        weights |= divided(parts.operations, [attention.softmax.quotients[0], *others])
        return parts.write(results, given, weights, factors)

    def _inner(self, chain: ChainedSums) -> frozenset[ir.Operation]:
        """Return the operations from the products of arrays to the results, without those on rows."""
        ends = {each.sums.product for each in chain.sums}
        begin = {each.op for each in chain.products}

        def is_inner(op: ir.Operation) -> bool:
            return op not in self._reductions and (op.name != DOT or op in ends)

        computed = self._computed_from([each.result for each in chain.products], is_inner)
        return frozenset(begin | computed | self.arranged.slices)

    @cached_property
    def _reductions(self) -> set[ir.Operation]:
        """The reductions that make values of rows."""
        return {producer(value) for value in self._made}

    def _is_read(self, value: ir.Value) -> bool:
        return value in self.arranged.copies or self._is_row(value)

    def _is_row(self, value: ir.Value) -> bool:
        """Whether a value is one that there is of each row."""
        attention = self.gradient.attention
        size = math.prod(attention.shape) // attention.keys
        return value in self._depending and math.prod(shape_of(value)) <= size

    @cached_property
    def _depending(self) -> set[ir.Value]:
        """The values computed from values of rows, but not from attention's result, which its chain returns."""
        second = self.gradient.attention.second
        values = [value for each in self._made for value in producer(each).results]
        found = self._computed_from(values, lambda op: op != second)
        return {*values, *(value for op in found for value in op.results)}

    def _computed_from(self, values: Sequence[ir.Value], takes: Callable[[ir.Operation], bool]) -> set[ir.Operation]:
        """Return the operations of the block that compute from values, through others of these that it ``takes``.

        Those after the gradient are left out: a training step has all of its layers in one block.
        """
        found, pending = set[ir.Operation](), list(values)
        while pending:
            for user in users_of(pending.pop()):
                is_inside = user.block == self.end.block and not self._last.is_before_in_block(user)
                if is_inside and user not in found and takes(user):
                    found.add(user)
                    pending += user.results
        return found

    @cached_property
    def _last(self) -> ir.Operation:
        """The last operation of the block that makes a result of the gradient."""
        results = results_of(self.gradient)
        return in_order([in_block(producer(result), self.end.block) or self.end for result in results])[-1]

    def _reciprocal(self, value: ir.Value) -> ir.Value:
        if value not in self._reciprocals:
            self._reciprocals[value] = reciprocal(self._row(value))
        return self._reciprocals[value]

    def _row(self, value: ir.Value) -> ir.Value:
        """Return a value of rows, computed again of what attention's chain stores."""
        if value not in self._depending:
            return value
        if value not in self._made:
            op = producer(value)
            copies = {operand: self._row(operand) for operand in op.operands}
            copy_operation(op, copies)
            self._made.update((each, copies[each]) for each in op.results)
        return self._made[value]


def first_user(gradient: Gradient) -> ir.Operation | None:
    """Return the first operation of attention's block that reads, or has in it what reads, a gradient's result."""
    block = gradient.attention.second.block
    users = [user for value in results_of(gradient) if value not in gradient.rows for user in users_of(value)]
    users += gradient.readers
    found = [in_block(user, block) for user in users]
    known = [op for op in found if op is not None]
    return in_order(known)[0] if known and len(known) == len(found) else None


def in_block(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """Return the operation of a block that an operation is, or is inside of; None if it is in another function."""
    while op.block != block:
        parent = op.parent
        if parent is None or parent.parent is None:
            return None
        op = parent.operation
    return op

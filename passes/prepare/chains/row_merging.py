"""Attention whose rows are several dimensions of the weights: those along which keys and values do not change."""

import math
from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.dialects.chain import ChainOp
from xgpu.emit.families.attention.sources import in_memory
from xgpu.hlo.stablehlo_builder import broadcast, convert, hlo, reshape, shape_of, tensor, transpose
from xgpu.indexing.access import ranges
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import Simplifier
from xgpu.passes.prepare.chains.lifting import Lifted, RowCode
from xgpu.passes.prepare.chains.rewriting import (
    described_product,
    moved_after,
)
from xgpu.passes.prepare.chains.weights import factored, has_logits_of_weights, logits_of_weights, softmax_of
from xgpu.records import dataclass
from xgpu.structure import backward_slice, body_of, copy_operation, element_of, in_order, is_argument


@dataclass(frozen=True)
class MergedRows:
    """The ``chain`` of ``attention`` with one dimension of all rows that share keys.

    Along each dimension of the weights there are groups of so many ``members``, which share keys.
    """

    chain: ir.Operation
    attention: Attention
    members: tuple[int, ...]

    @classmethod
    def of(cls, chain: ir.Operation, attention: Attention) -> "MergedRows | None":
        """Return the rows that share keys, if there are more of them than attention has rows."""
        maps = _array_maps(chain, attention)
        if maps is None:
            return None
        members = [1] * len(attention.shape)
        for number, size in enumerate(attention.shape):
            divisors = (each for each in range(size, 1, -1) if size % each == 0)
            if number != attention.key:
                members[number] = next((each for each in divisors if _share(maps, number, each)), 1)
        return cls(chain, attention, tuple(members)) if math.prod(members) > attention.rows else None

    @property
    def rows(self) -> int:
        """The number of rows that share keys."""
        return math.prod(self.members)

    @property
    def batch(self) -> int:
        """The number of groups of rows."""
        return math.prod(self._groups) // self.attention.keys

    def write(self, gathers: bool, moves: bool) -> ir.Operation | None:
        """Write the chain; return it. If it ``gathers`` queries, those of a group are made neighbours before.

        None where these have not all rows. If it ``moves`` them, results are in the order of the program.
        """
        attention, inside = self.attention, body_of(self.chain)
        gathered = self._gathered() if gathers else None
        if gathers and gathered is None:
            return None
        needed = [attention.softmax.logits, attention.values, *attention.softmax.others]
        own = {attention.queries} if gathers else set()
        slice_ = in_order(backward_slice(needed, lambda value: is_argument(value) or value in own))
        read = {value for op in slice_ for value in op.operands} | set(needed)
        arguments = [each for each in inside.arguments if each in read and each not in own]
        given = dict(zip(inside.arguments, self.chain.operands, strict=True))
        operands = [*(given[each] for each in arguments), *([gathered] if gathered is not None else [])]
        result = tensor([*self._sizes, self.rows, attention.columns], element_of(attention.second.results[0]))
        stored = self.chain.results[0].type if moves else result
        chain: ir.Operation = ChainOp.create(operands, [stored]).operation
        block = chain.regions[0].blocks.append(*(each.type for each in operands))
        copies: dict[ir.Value, ir.Value] = dict(zip(arguments, block.arguments, strict=False))
        with ir.InsertionPoint(block):
            if gathers:
                copies[attention.queries] = self._scattered(block.arguments[len(arguments)])
            for op in slice_:
                copy_operation(op, copies)
            with attention.second.location:
                sums = self._sums(copies, result)
                hlo.return_([self.moved(sums) if moves else sums])
        return chain

    def moved(self, value: ir.Value) -> ir.Value:
        """Write what the chain had as its result, of that of all rows together."""
        attention = self.attention
        indices = attention.sums.result_indices([dim(number) for number in range(len(attention.shape))], symbol(0))
        product = self._arrangement(indices).apart(value, shape_of(attention.second.results[0]))
        return moved_after(self.chain, attention, product)

    @cached_property
    def _groups(self) -> tuple[int, ...]:
        """The number of groups that each dimension of the weights has."""
        return tuple(size // each for size, each in zip(self.attention.shape, self.members, strict=True))

    @property
    def _others(self) -> list[int]:
        """The dimensions of the weights that have several groups."""
        return [number for number, each in enumerate(self._groups) if each > 1 and number != self.attention.key]

    @property
    def _sizes(self) -> list[int]:
        """The number of groups along each of these dimensions."""
        return [self._groups[number] for number in self._others]

    def _sums(self, copies: dict[ir.Value, ir.Value], result: ir.RankedTensorType) -> ir.Value:
        """Write the softmax of all rows, and what it weights, of copies of what the chain had."""
        attention, softmax, count = self.attention, self.attention.softmax, len(self._others)
        logits = logits_of_weights(attention, copies[softmax.logits])
        arrangement = self._arrangement([dim(number) for number in range(len(attention.shape))])
        together = arrangement.together(logits, [*self._sizes, self.rows, attention.keys])
        weights, *_ = softmax_of(together, count + 1, None if softmax.is_plain else self._row_code(copies))
        weights = factored(weights, softmax.factors, softmax.conditions, self._lifted(copies).at)
        batch = list(range(count))
        described = described_product(attention, (batch, batch), (count + 1, count))
        operands = [convert(weights, element_of(attention.weights)), self._of_groups(copies[attention.values])]
        return ir.Operation.create("stablehlo.dot_general", [result], operands, described).results[0]

    @property
    def is_possible(self) -> bool:
        """Whether what weights of rows are multiplied by, and divided by, can be written for all rows together."""
        copies: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(self.chain).arguments}
        softmax = self.attention.softmax
        places = [*softmax.factors.places, *(each.place for each in softmax.dropped)]
        is_lifted = self._lifted(copies).is_possible(places) and self._row_code(copies).is_possible
        return is_lifted and has_logits_of_weights(self.attention)

    def _row_code(self, copies: dict[ir.Value, ir.Value]) -> RowCode:
        """Return the code that writes values of each row."""
        return RowCode(self.attention.softmax, Lifted([*self._sizes, self.rows], self._to_weights(False), copies))

    def _lifted(self, copies: dict[ir.Value, ir.Value]) -> Lifted:
        """Return the code that writes values of each weight."""
        return Lifted([*self._sizes, self.rows, self.attention.keys], self._to_weights(True), copies)

    def _to_weights(self, has_keys: bool) -> IndexingMap:
        """Return the map from the indices of a group, a row of it and perhaps a key to those of the weights."""
        sizes, key = (*self._sizes, self.rows, self.attention.keys), self.attention.key
        inside = delinearize(dim(len(sizes) - 2), self.members)
        results = []
        for number, (count, member) in enumerate(zip(self.members, inside, strict=True)):
            group = dim(self._others.index(number)) if number in self._others else constant(0)
            results.append(group * count + member if number != key else dim(len(sizes) - 1) * has_keys)
        return IndexingMap(ranges(sizes[: None if has_keys else -1]), (), tuple(results)).with_simple_results()

    def _of_groups(self, values: ir.Value) -> ir.Value:
        """Return the values of each group, those of its first member: groups x keys x columns."""
        attention = self.attention
        indices = attention.sums.value_indices([dim(number) for number in range(len(attention.shape))], symbol(0))
        arrangement = self._arrangement(indices)
        own = [number for number, each in enumerate(self._others) if each in arrangement.numbers]
        sizes = self._sizes
        tail = [attention.keys, attention.columns]
        first = arrangement.first_members(values, [*(sizes[number] for number in own), *tail])
        if len(own) == len(sizes):
            return first
        return broadcast(first, [*sizes, *tail], [*own, len(sizes), len(sizes) + 1])

    def _gathered(self) -> ir.Value | None:
        """Write the queries with all rows of a group beside each other; return them, None if they have not all rows."""
        attention = self.attention
        arrangement = self._query_arrangement
        if arrangement is None:
            return None
        given: dict[ir.Value, ir.Value] = dict(zip(body_of(self.chain).arguments, self.chain.operands, strict=True))
        for op in in_order(backward_slice([attention.queries], is_argument)):
            copy_operation(op, given)
        sizes = [self._groups[number] for number in self._others if number in arrangement.numbers]
        return arrangement.together(given[attention.queries], [*sizes, self.rows, attention.width])

    def _scattered(self, value: ir.Value) -> ir.Value:
        """Write the queries as the program has them, of those that are gathered."""
        assert self._query_arrangement is not None
        return self._query_arrangement.apart(value, shape_of(self.attention.queries))

    @cached_property
    def _query_arrangement(self) -> "_Arrangement | None":
        """The dimensions of the queries; None if these are not those of all rows."""
        results = self.attention.operand_map(self.attention.query).results
        arrangement = self._arrangement(results)
        is_plain = all(each.variables()[1] or _is_plain(each) for each in results)
        has_all = all(count == 1 or number in arrangement.numbers for number, count in enumerate(self.members))
        return arrangement if is_plain and has_all else None

    def _arrangement(self, indices: Sequence[AffineExpr]) -> "_Arrangement":
        """Return how an array lies whose indices are these, of those of the weights."""
        numbers = [next(iter(each.variables()[0]), None) for each in indices]
        kept = [None if number == self.attention.key else number for number in numbers]
        # What is of no group comes in the order of products: keys before columns.
        last = sorted(
            (number for number, each in enumerate(kept) if each is None), key=lambda each: numbers[each] is None
        )
        return _Arrangement(tuple(kept), tuple(last), self._groups, self.members)


@dataclass(frozen=True)
class _Arrangement:
    """The dimensions of an array, by the ``numbers`` of those of the weights; None for the ``last``, which have none.

    Of each dimension of the weights there are the ``groups`` and ``members``.
    """

    numbers: tuple[int | None, ...]
    last: tuple[int, ...]
    groups: tuple[int, ...]
    members: tuple[int, ...]

    def together(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Return an array with groups first, then the members of all dimensions, then the last, in a shape."""
        sizes, order = self._ordered(self._pairs(shape_of(value)))
        return reshape(transpose(reshape(value, sizes), order), shape)

    def apart(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Return the array of a shape that is so together."""
        sizes, order = self._ordered(self._pairs(shape))
        inverse = [order.index(position) for position in range(len(order))]
        return reshape(transpose(reshape(value, [sizes[each] for each in order]), inverse), shape)

    def first_members(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Return what the first member of each group has, together in a shape."""
        pairs = self._pairs(shape_of(value))
        ends = [1 if self._is_member(number) else size for number, size in enumerate(pairs)]
        if ends != pairs:
            value = hlo.slice(reshape(value, pairs), [0] * len(pairs), ends, [1] * len(pairs))
        sizes, order = self._ordered(ends)
        return reshape(transpose(reshape(value, sizes), order), shape)

    def _ordered(self, pairs: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return the sizes of pairs that are not 1, and the order that these have together."""
        kept = [position for position, size in enumerate(pairs) if size > 1]
        return [pairs[each] for each in kept], [kept.index(each) for each in self._order if each in kept]

    def _pairs(self, shape: Sequence[int]) -> list[int]:
        """Return the shape with two dimensions for each that is of the weights."""
        sizes = zip(self.numbers, shape, strict=True)
        pairs = ([size] if number is None else [self.groups[number], self.members[number]] for number, size in sizes)
        return [size for each in pairs for size in each]

    @property
    def _starts(self) -> list[int]:
        """The position of each dimension among those of pairs."""
        counts = [1 if number is None else 2 for number in self.numbers]
        return [sum(counts[:position]) for position in range(len(counts))]

    def _is_member(self, position: int) -> bool:
        starts = zip(self._starts, self.numbers, strict=True)
        return any(position == start + 1 for start, number in starts if number is not None)

    @property
    def _order(self) -> list[int]:
        """The dimensions of pairs: groups and then members, both in the order of the weights, then the last."""
        starts = self._starts
        own = sorted((number, start) for number, start in zip(self.numbers, starts, strict=True) if number is not None)
        members = [start + 1 for _, start in own]
        return [*(start for _, start in own), *members, *(starts[number] for number in self.last)]


def _is_plain(index: AffineExpr) -> bool:
    """Whether an index is one of the weights, or zero."""
    return (not index.terms and not index.constant) or index in [dim(number) for number in index.variables()[0]]


def _array_maps(chain: ir.Operation, attention: Attention) -> list[IndexingMap] | None:
    """Return the maps from the weights' indices to those of the arrays of keys and values, None if one is computed."""
    arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(chain).arguments}
    own = ranges(attention.shape)
    indices = attention.sums.value_indices([dim(number) for number in range(len(own))], symbol(0))
    values = IndexingMap(own, (Interval(0, attention.columns - 1),), tuple(indices))
    places = [(attention.key_rows, attention.operand_map(1 - attention.query)), (attention.values, values)]
    found = [in_memory(value, map_, arrays) for value, map_ in places]
    return None if None in found else [each[1] for each in found if each is not None]


def _share(maps: Sequence[IndexingMap], number: int, count: int) -> bool:
    """Whether so many neighbours along a dimension are all at the same indices of arrays, given maps to these."""
    for map_ in maps:
        symbols = (*map_.symbols, Interval(0, count - 1))
        groups = list(map_.dims)
        groups[number] = Interval(0, map_.dims[number].size // count - 1)
        simplifier = Simplifier(tuple(groups), symbols)
        moved = {number: dim(number) * count + symbol(len(map_.symbols))}
        found = (simplifier.simplify(each.substitute(moved)) for each in map_.results)
        if any(len(map_.symbols) in each.variables()[1] for each in found):
            return False
    return True

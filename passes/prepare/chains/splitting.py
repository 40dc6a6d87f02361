"""Attention whose keys are in parts: a chain with a result for each part, and the combination of these."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.analysis.attention.attention import Attention
from xgpu.dialects.chain import ChainOp
from xgpu.emit.families.attention.tiles import FULL
from xgpu.hlo.stablehlo_builder import (
    broadcast,
    convert,
    hlo,
    reshape,
    shape_of,
    splat,
    splat_like,
    tensor,
    transpose,
)
from xgpu.indexing.access import identity_map, ranges
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.prepare.chains.lifting import Lifted, RowCode, reading_of
from xgpu.passes.prepare.chains.rewriting import (
    described_product,
    reduced,
    result_order,
)
from xgpu.passes.prepare.chains.weights import dropped, factored, has_logits_of_weights, logits_of_weights, softmax_of
from xgpu.records import dataclass
from xgpu.structure import backward_slice, body_of, copy_operation, element_of, in_order, is_argument


@dataclass(frozen=True)
class PartChain:
    """Writes a ``chain`` of ``attention`` with the keys in parts of some ``length``."""

    chain: ir.Operation
    attention: Attention
    length: int

    @property
    def count(self) -> int:
        """The number of parts."""
        return -(-self.attention.keys // self.length)

    @property
    def _sizes(self) -> list[int]:
        """The shape of a part's result, in place of that of the second product."""
        shape = shape_of(self.attention.second.results[0])
        return [shape[number] for number in result_order(self.attention)]

    @property
    def is_possible(self) -> bool:
        """Whether what weights are multiplied by, and rows are divided by, can be written of parts."""
        copies: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(self.chain).arguments}
        places = self.attention.softmax.factors.places
        code = self._row_code(copies)
        of_rows = self.attention.softmax.factors.conditions_along(self.attention.key, is_along=False)
        is_lifted = self._lifted(copies).is_possible(places) and code.is_possible
        is_lifted = is_lifted and self._has_plain_rows and code.lifted.is_possible([each.place for each in of_rows])
        return is_lifted and has_logits_of_weights(self.attention)

    @property
    def _has_plain_rows(self) -> bool:
        """Whether values of rows that are asked for have dimensions of the weights."""
        maps = self.attention.row_values.values() if len(self.chain.results) > 1 else ()
        indices = (each for map_ in maps for each in map_.results)
        return all(not any(each.variables()) or each == dim(min(each.variables()[0])) for each in indices)

    def _lifted(self, copies: dict[ir.Value, ir.Value]) -> Lifted:
        """Return the code that writes values of each weight, of the copies of a chain's arguments."""
        shape = self.attention.shape
        return Lifted(shape, identity_map(shape), copies)

    def _row_code(self, copies: dict[ir.Value, ir.Value]) -> RowCode:
        """Return the code that writes values of each row for each column of a result, in the order of the result."""
        attention, shape = self.attention, tuple(self._sizes)
        at = {number: dim(position) for position, number in enumerate(_row_order(attention))}
        to_weights = tuple(at.get(number, constant(0)) for number in range(len(attention.shape)))
        return RowCode(attention.softmax, Lifted(shape, IndexingMap(ranges(shape), (), to_weights), copies))

    def write(self) -> ir.Operation:
        """Write the chain; return it."""
        attention, inside = self.attention, body_of(self.chain)
        sums = tensor([self.count, *self._sizes], FULL)
        shape = shape_of(attention.weights)
        shape[attention.key] = self.count
        rows = tensor(shape, FULL)
        chain: ir.Operation = ChainOp.create(list(self.chain.operands), [sums, rows, rows]).operation
        block = chain.regions[0].blocks.append(*(each.type for each in inside.arguments))
        copies: dict[ir.Value, ir.Value] = dict(zip(inside.arguments, block.arguments, strict=True))
        logits = attention.softmax.logits
        with ir.InsertionPoint(block):
            for op in in_order(backward_slice([logits, attention.values], is_argument)):
                copy_operation(op, copies)
            with attention.second.location:
                hlo.return_(self._sums(copies))
        return chain

    def _weights(self, copies: dict[ir.Value, ir.Value]) -> tuple[ir.Value, ...]:
        """Write the weights of each part, and what there is of each row of it."""
        attention = self.attention
        logits = logits_of_weights(attention, copies[attention.softmax.logits])
        parts = self._in_parts(logits, attention.key, -math.inf)
        weights, *rows = softmax_of(parts, attention.key + 1)
        lifted = self._lifted(copies)
        # What is not a number in one part is none of all parts.
        factors = replace(attention.softmax.factors, nan_as_zero=False)
        conditions = factors.conditions_along(attention.key, is_along=True)
        weights = factored(
            weights, factors, conditions, lambda place: self._in_parts(lifted.at(place), attention.key, 1)
        )
        return convert(weights, element_of(attention.weights)), *rows

    def _sums(self, copies: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        """Write the softmax of each part, and what it weights; return that, and what there is of each row."""
        attention, second = self.attention, self.attention.second
        weights, *rows = self._weights(copies)
        numbers = ir.stablehlo.DotDimensionNumbers(second.attributes["dot_dimension_numbers"])
        keys = [
            each[0] for each in (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
        ]
        batches = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
        if attention.weight:
            keys, batches = keys[::-1], batches[::-1]
        operands = [weights, self._in_parts(copies[attention.values], keys[1], 0.0)]
        # The number of the part is a dimension before that of its keys.
        batch = [[key, *(each + (each > key) for each in own)] for key, own in zip(keys, batches, strict=True)]
        described = described_product(attention, (batch[0], batch[1]), (keys[0] + 1, keys[1] + 1))
        type_ = tensor([self.count, *self._sizes], FULL)
        sums = ir.Operation.create("stablehlo.dot_general", [type_], operands, described).results[0]
        return [sums, *rows]

    def _in_parts(self, value: ir.Value, position: int, filling: float) -> ir.Value:
        """Return an array with the keys, which are its dimension of this position, in parts."""
        shape = shape_of(value)
        missing = self.count * self.length - self.attention.keys
        if missing:
            none = [0] * len(shape)
            high = [missing if number == position else 0 for number in range(len(shape))]
            value = hlo.pad(value, splat(filling, tensor([], element_of(value))), none, high, none)
        return reshape(value, self._split(shape, position))

    def _split(self, shape: Sequence[int], position: int) -> list[int]:
        """Return the shape of an array whose keys are in parts."""
        return [*shape[:position], self.count, self.length, *shape[position + 1 :]]

    def combined(self, parts: ir.Operation) -> ir.Value:
        """Write what combines parts; return the second product of attention.

        Sums of two parts are added as if both were relative to the larger one of their largest logits. A part whose
        logits are all -inf has no result, and does not count; so rows without any other logit are 0 / 0. What rows are
        relative to and divided by instead, as with a sink, is computed of all parts together.
        """
        attention = self.attention
        sums, *of_rows = parts.results
        shape = shape_of(sums)
        rows = list(range(len(shape) - 1))
        largest, total = (broadcast(_of_result(attention, each), shape, rows) for each in of_rows)
        is_low = _is_low(largest)
        total, sums = (hlo.select(is_low, splat_like(0, each), each) for each in (total, hlo.multiply(sums, total)))
        largest, divisor, dividend = reduced([largest, total, sums], 0, [-math.inf, 0, 0], _together)
        operands = zip(body_of(self.chain).arguments, self.chain.operands, strict=True)
        code = self._row_code(dict(operands))
        if not attention.softmax.is_plain:
            scale = hlo.exponential(hlo.subtract(largest, code.reference(largest)))
            divisor, dividend = code.divisor(hlo.multiply(divisor, scale)), hlo.multiply(dividend, scale)
        result = self._kept(hlo.divide(dividend, divisor), largest, divisor, code)
        order = result_order(attention)
        narrow = convert(result, element_of(attention.second.results[0]))
        return transpose(narrow, [order.index(number) for number in range(len(order))])

    def combined_rows(self, parts: ir.Operation, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Write what combines the largest logits and the sums of parts; return those of some ``values`` of rows."""
        attention = self.attention
        largest, total = list(parts.results)[1:]
        total = hlo.select(_is_low(largest), splat_like(0, total), total)
        of_all, summed = reduced([largest, total], attention.key, [-math.inf, 0], _together)
        # Rows of nothing but -inf have no sum of the softmax.
        summed = hlo.select(_is_low(of_all), splat_like(math.nan, summed), summed)
        found = {attention.softmax.largest[0]: of_all, attention.softmax.total[0]: summed}
        return [self._as_stored(value, found[value]) for value in values]

    def _as_stored(self, value: ir.Value, rows: ir.Value) -> ir.Value:
        """Write rows in the order of the weights' dimensions as the program has a ``value``."""
        attention, shape = self.attention, shape_of(value)
        at: dict[int, AffineExpr] = {}
        for position, each in enumerate(attention.row_values[value].results):
            at |= dict.fromkeys(each.variables()[0], dim(position))
        own = [at.get(number, constant(0)) for number in range(len(attention.shape)) if number != attention.key]
        reading = reading_of(IndexingMap(ranges(tuple(shape)), (), tuple(own)), shape, shape_of(rows))
        assert reading is not None
        return convert(reading.write(rows, shape), element_of(value))

    def _kept(self, result: ir.Value, largest: ir.Value, divisor: ir.Value, code: RowCode) -> ir.Value:
        """Write zero in place of the result in rows that are to be zero."""
        softmax = self.attention.softmax
        if softmax.empty_as_zero:
            result = hlo.select(_is_low(largest), splat_like(0, result), result)
        if softmax.factors.nan_as_zero:
            is_number = hlo.compare(divisor, splat_like(0, divisor), hlo.ComparisonDirectionAttr.get("GT"))
            result = hlo.select(is_number, result, splat_like(0, result))
        conditions = softmax.factors.conditions_along(self.attention.key, is_along=False)
        return dropped(result, conditions, code.lifted.at)


def _together(parts: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the largest logit of two parts, and their sums relative to it."""
    count = len(parts) // 2
    largest = hlo.maximum(parts[0], parts[count])
    shares = []
    for own in (parts[0], parts[count]):
        power = hlo.exponential(hlo.subtract(own, largest))
        shares.append(hlo.select(_is_low(own), splat_like(0, own), power))
    added = (
        hlo.add(*(hlo.multiply(parts[first + i], share) for i, share in zip((0, count), shares, strict=True)))
        for first in range(1, count)
    )
    return [largest, *added]


def _is_low(largest: ir.Value) -> ir.Value:
    """Return where the largest logit is -inf."""
    result: ir.Value = hlo.compare(largest, splat_like(-math.inf, largest), hlo.ComparisonDirectionAttr.get("EQ"))
    return result


def _of_result(attention: Attention, value: ir.Value) -> ir.Value:
    """Return what there is of each part and row in the order of the second product: parts come first."""
    return transpose(value, [attention.key, *_row_order(attention)])


def _row_order(attention: Attention) -> list[int]:
    """Return the dimensions of the weights, but for the keys, in the order of the second product."""
    indices = attention.sums.result_indices([dim(number) for number in range(len(attention.shape))], dim(0))
    return [next(iter(indices[position].variables()[0])) for position in result_order(attention)[:-1]]

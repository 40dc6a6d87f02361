"""The attention emitter: blocks compute tiles of rows, step by step along the keys, and hold what they sum up.

The hero is a chain, whose region is the program as it was written. A block carries, for each of its rows, the largest
logit so far, the sum of the weights relative to that, and the values that they weight: when a larger one comes, both
sums are scaled (Milakov and Gimelshein, Online normalizer calculation for softmax). The kernel is one of level
``tiles``.
"""

import math
from collections.abc import Callable, Hashable

from xgpu import ir
from xgpu.analysis.attention.factors import Factored
from xgpu.analysis.attention.visible_keys import FAR_ABOVE
from xgpu.analysis.heroes import Form
from xgpu.dialects.attributes import (
    GRADE,
    HIDDEN,
    SCHEDULE,
    VISIBLE,
    WEIGHT,
    int_attribute,
    map_attribute,
    schedule_attribute,
)
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp
from xgpu.dialects.chain import CHAIN
from xgpu.dialects.xgpu import YieldOp
from xgpu.emit import requirements
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.families.attention.facts import AttentionFacts, chain_problem
from xgpu.emit.families.attention.folding import Folding, exponents_of, rarely
from xgpu.emit.families.attention.rows import RowValues
from xgpu.emit.families.attention.schedule import AttentionSchedule
from xgpu.emit.families.attention.sources import read_tile
from xgpu.emit.families.attention.tiles import FULL
from xgpu.emit.families.attention.writing import (
    as_rounded,
    chain_arrays,
    compare,
    stored_values,
    tile_product,
    written_by_threads,
)
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, assign, entry_function
from xgpu.emit.tile_program import TileProgram
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.stablehlo_builder import broadcast, convert, fill_region, hlo, shape_of, splat, splat_like, tensor
from xgpu.hlo.tensor_cores import as_tf32
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.tiles.element_tiles import then
from xgpu.reasons import Reason
from xgpu.structure import element_of, producer

_FAR = 8
"""By how many powers of two a weight may be above others before sums are relative to a larger logit."""


class AttentionEmitter:
    """Emits a fusion of one chain that is attention."""

    NAME = "attention"

    def __init__(self, facts: AttentionFacts, schedule: AttentionSchedule):
        self.facts, self.schedule, self.fusion = facts, schedule, facts.fusion
        self.attention = facts.attention
        self.tiles, self.stored = facts.tiles(schedule.tile_m, schedule.tile_n), stored_values(facts.fusion)

    def launch_dimensions(self) -> LaunchDimensions:
        """The threads that the schedule says."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, and the thread's elements of it] -> indices."""
        map_ = self.tiles.stored(self.stored[output])
        return written_by_threads(self.schedule, map_, self.tiles.grid, self.facts.skips)

    def emit(self) -> None:
        """Write the entry function."""
        with entry_function(self.fusion, self, []) as kernel:
            kernel.attributes[SCHEDULE] = schedule_attribute(self.schedule.values)
            blocks = BlocksOp.build(self.tiles.grid, [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body), self.facts.chain.location:
                YieldOp.build(self._write_block(kernel, list(blocks.body.arguments)))
            assign(kernel.outputs, blocks.operation.results)

    def _write_block(self, kernel: KernelBuilder, arguments: list[ir.Value]) -> list[ir.Value]:
        """Write what follows the steps of a block: sums are divided by those of the weights."""
        at, outputs = arguments[:3], arguments[3:]
        arrays = chain_arrays(self.fusion, self.facts.chain, kernel)
        queries = TileProgram(at, arrays).tile(self.attention.queries, self.tiles.queries)
        sums, base, total, *others = self._write_steps(arrays, at, queries)
        largest = others[-1] if self._has_largest else base
        rounded = hlo.add(total, others[0]) if self.schedule.steady else total
        softmax, written = self.attention.softmax, list[ir.Value]()
        of_rows = RowValues(softmax, self._factored, largest, TileProgram(at, arrays), self.tiles)
        reference = of_rows.reference()
        if self._has_largest or not softmax.is_plain:
            # What is stored is relative to the largest logits. Who reads it computes weights again, and rounds others.
            scale = self._scale(base, reference)
            total = hlo.multiply(total, scale)
        if not softmax.is_plain:
            divisor = of_rows.divisor(_where_any(reference, hlo.multiply(rounded, scale)))
            rounded = hlo.divide(divisor, scale)
        quotient = self._divided(sums, of_rows.multiplied(rounded))
        is_kept = of_rows.is_kept(largest, rounded)
        if is_kept is not None:
            shape = [self.tiles.rows, self.tiles.columns]
            quotient = hlo.select(broadcast(is_kept, shape, [0]), quotient, splat_like(0, quotient))
        for value, output in zip(self.stored, outputs, strict=True):
            tile = quotient
            if value in self.attention.row_values:
                tile = of_rows.unfolded() if value == softmax.largest[0] else _where_any(reference, total)
            stored = convert(tile, element_of(value))
            written.append(InsertTileOp.build(stored, output, at, self.tiles.stored(value)))
        return written

    def _divided(self, sums: ir.Value, divisor: ir.Value) -> ir.Value:
        """Return the result, of sums of values and of what divides these, of each row."""
        quotient: ir.Value = hlo.divide(sums, broadcast(divisor, [self.tiles.rows, self.tiles.columns], [0]))
        producer(quotient).attributes[GRADE] = int_attribute(16)
        return quotient

    def _write_steps(self, arrays: dict[ir.Value, ir.Value], at: list[ir.Value], queries: ir.Value) -> list[ir.Value]:
        """Write the loop over the keys; return the sums, the logits that they are relative to, and sums of weights.

        If sums are steady, also what is to be added to those of weights; and the largest logits if these are stored.
        """
        rows, columns = self.tiles.rows, self.tiles.columns
        of_rows = [-math.inf, 0.0, *[0.0] * self.schedule.steady, *[-math.inf] * self._has_largest]
        begin = [splat(0, tensor([rows, columns], FULL)), *(splat(each, tensor([rows], FULL)) for each in of_rows)]
        limits = TileProgram(at, arrays)
        steps = StepsOp.build(
            self.tiles.steps, begin, [limits.tile(each.value, self.tiles.limit(each)) for each in self.facts.ends]
        )
        self._describe(steps.operation)
        step, sums, before, total, *others = steps.body.arguments
        with ir.InsertionPoint(steps.body):
            program = TileProgram([*at, step], arrays)
            keys = read_tile(self.attention.key_rows, self.tiles.key_rows, arrays, [*at, step])
            logits = self._write_logits(program, queries, keys, [*at, step])
            highest = _reduced(logits, hlo.maximum, -math.inf)
            is_above, base = self._base(before, highest)
            weights, scale, rounding = self._powers(logits, before, _finite(base), highest)
            total = hlo.add(hlo.multiply(total, scale), _reduced(weights, hlo.add, 0.0))
            product = self._weighted(self._factored_weights(weights, program, [*at, step]), arrays, [*at, step])
            kept = hlo.multiply(sums, broadcast(scale, [rows, columns], [0]))
            if is_above is not None:
                kept = rarely(broadcast(is_above, [rows, columns], [0]), kept, sums)
            yielded = [hlo.add(kept, product), base, total]
            if rounding is not None:
                yielded.append(hlo.add(hlo.multiply(others[0], scale), rounding))
            if self._has_largest:
                yielded.append(hlo.maximum(others[-1], highest))
            YieldOp.build(yielded)
        return list(steps.operation.results)

    def _base(self, before: ir.Value, highest: ir.Value) -> tuple[ir.Value | None, ir.Value]:
        """Return what sums are relative to after a step whose ``highest`` logits are given, and where that is another.

        None where it may be another in any row.
        """
        if not self.schedule.steady:
            return None, hlo.maximum(before, highest)
        is_above = compare("GT", highest, _plus(before, self._far - self._lift))
        chosen: ir.Value = hlo.select(is_above, _plus(highest, self._lift), before)
        return is_above, chosen

    def _factored_weights(self, weights: ir.Value, program: TileProgram, at: list[ir.Value]) -> ir.Value:
        """Return the weights of a step times their factors, but for those by which sums of a row are multiplied."""
        factors = self.attention.softmax.factors
        for (value, map_), divides in factors.others_along(self.attention.key, is_along=True):
            factor = convert(program.tile(value, then(self.tiles.weights, map_)), FULL)
            # What is read beyond the last key is zero, as weights are.
            divisor = self._where_keys(factor, 1, at) if divides else None
            weights = hlo.multiply(weights, factor) if divisor is None else hlo.divide(weights, divisor)
        for (value, map_), keeps in factors.conditions_along(self.attention.key, is_along=True):
            condition, zero = program.tile(value, then(self.tiles.weights, map_)), splat_like(0, weights)
            weights = hlo.select(condition, *((weights, zero) if keeps else (zero, weights)))
        return weights

    def _weighted(self, weights: ir.Value, arrays: dict[ir.Value, ir.Value], at: list[ir.Value]) -> ir.Value:
        """Return the sums of a step's values, weighted."""
        values = read_tile(self.attention.values, self.tiles.values, arrays, at)
        # Those of f32 are rounded as they become operands of tensor cores.
        weights = weights if self.facts.dtype.hlo == FULL else self._rounded(weights)
        return tile_product(weights, values, self.attention.second)

    def _rounded(self, weights: ir.Value) -> ir.Value:
        """Return weights as they are multiplied: those of f32 in the bits of tf32."""
        if self.facts.dtype.hlo == FULL:
            return as_tf32(weights)
        return convert(weights, element_of(self.attention.weights))

    def _describe(self, steps: ir.Operation) -> None:
        """Say which steps a mask leaves to each tile of rows."""
        if not self.facts.skips:
            return
        keys, hidden = self.facts.visible, self.facts.hidden
        visible = None if keys is None else self.tiles.visible(keys)
        steps.attributes[VISIBLE] = map_attribute(self.tiles.with_ends(visible, self.facts.ends))
        if (found := self._factored) is not None and found.condition is not None:
            # Logits that are far above the hidden ones are farther above before a factor below 1.
            hidden = found.hidden + max(FAR_ABOVE / found.factor - FAR_ABOVE, 0.0)
        if self.schedule.steady:
            # Rows are asked for what their sums are relative to, which may be so much above their largest logit.
            hidden += self._lift
        if hidden != -math.inf:
            steps.attributes[HIDDEN] = ir.FloatAttr.get(ir.F32Type.get(), hidden)

    def _write_logits(self, program: TileProgram, queries: ir.Value, keys: ir.Value, at: list[ir.Value]) -> ir.Value:
        """Write the logits of a step, -inf for keys beyond the last."""
        attention = self.attention
        made = attention.first.results[0]
        scores = as_rounded(tile_product(queries, keys, attention.first), made)
        program.make(made, lambda map_: scores)
        logits = self._write_values(program)
        return self._where_keys(logits, -math.inf, at)

    def _where_keys(self, value: ir.Value, beyond: float, at: list[ir.Value]) -> ir.Value:
        """Return a tile of a step, with a number in place of what is beyond the last key."""
        if not self.tiles.has_beyond:
            return value
        numbers = IndexTileOp.build(at, self.tiles.key_numbers, ir.IntegerType.get_signless(32))
        is_key = compare("LT", numbers, splat(self.attention.key_bound[1], ir.RankedTensorType(numbers.type)))
        chosen: ir.Value = hlo.select(is_key, value, splat_like(beyond, value))
        return chosen

    @property
    def _factored(self) -> Factored | None:
        """The factor of logits that is left to the exponential."""
        return self.facts.factored if self.schedule.folded else None

    def _write_values(self, program: TileProgram) -> ir.Value:
        """Write the logits of a step, without the factor that is left to the exponential."""
        if (found := self._factored) is None:
            softmax = self.attention.softmax
            return convert(program.tile(softmax.logits, then(self.tiles.weights, softmax.map)), FULL)
        value = convert(program.tile(found.value, then(self.tiles.weights, found.map)), FULL)
        if found.condition is None:
            return value
        condition, map_ = found.condition
        low = splat(found.hidden, ir.RankedTensorType(value.type))
        chosen: ir.Value = hlo.select(program.tile(condition, then(self.tiles.weights, map_)), value, low)
        return chosen

    @property
    def _has_largest(self) -> bool:
        """Whether steps carry largest logits beside what sums are relative to: where they are others and asked for."""
        is_stored = any(each in self.attention.row_values for each in self.stored)
        return self.schedule.steady and (is_stored or not self.attention.softmax.is_plain)

    @property
    def _far(self) -> float:
        """By how much a logit, without the factor that is left, may be above what sums were relative to last."""
        factor = math.log2(math.e) if self._factored is None else exponents_of(self._factored)
        return _FAR / factor

    @property
    def _lift(self) -> float:
        """By how much what sums are relative to is above the largest logit when it is chosen: so no weight is above 1.

        Sums of large values are then as finite as with weights of which the largest is 1. Weights of f16 have no room
        for smaller ones, and values of f16 are never so large: the largest weights of these may be above 1.
        """
        return 0.0 if isinstance(element_of(self.attention.weights), ir.F16Type) else self._far

    def _scale(self, before: ir.Value, largest: ir.Value) -> ir.Value:
        """Return what multiplies sums of weights that are to be relative to other logits of rows."""
        base = _finite(largest)
        if self._factored is not None:
            return Folding(self._factored, before, base).scale()
        return _weight(hlo.subtract(before, base))

    def _powers(
        self, logits: ir.Value, before: ir.Value, base: ir.Value, highest: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value | None]:
        """Return the weights of logits, relative to ``base``, and what multiplies sums that are relative to another.

        If sums are steady, also what the weights of the ``highest`` logits of rows gain as they are rounded.
        """
        shape, is_steady = shape_of(logits), self.schedule.steady
        if self._factored is not None:
            folding = Folding(self._factored, before, base)
            weights, scale, largest = folding.powers(logits, highest if is_steady else None)
        else:
            relative = broadcast(base, shape, [0])
            weights, scale = _weight(hlo.subtract(logits, relative)), _weight(hlo.subtract(before, base))
            largest = _weight(hlo.subtract(broadcast(highest, shape, [0]), relative)) if is_steady else None
        if largest is None:
            return weights, scale, None
        gained = hlo.subtract(convert(self._rounded(largest), FULL), largest)
        return weights, scale, _reduced(gained, hlo.maximum, -math.inf)


def _plus(value: ir.Value, number: float) -> ir.Value:
    moved: ir.Value = hlo.add(value, splat_like(number, value)) if number else value
    return moved


def _finite(largest: ir.Value) -> ir.Value:
    """Return largest logits, and 0 of rows without any above -inf: these have weights of zero, and keep none."""
    is_low = compare("EQ", largest, splat_like(-math.inf, largest))
    chosen: ir.Value = hlo.select(is_low, splat_like(0, largest), largest)
    return chosen


def _weight(exponent: ir.Value) -> ir.Value:
    """Return the exponential of differences of logits, as exact as weights need be that are rounded to 16 bits."""
    power: ir.Value = hlo.exponential(exponent)
    producer(power).attributes[WEIGHT] = ir.UnitAttr.get()
    return power


def _where_any(largest: ir.Value, total: ir.Value) -> ir.Value:
    """Return the sums of weights of rows as the program has them: of rows without any logit they are not numbers."""
    is_low = compare("EQ", largest, splat_like(-math.inf, largest))
    chosen: ir.Value = hlo.select(is_low, splat_like(math.nan, total), total)
    return chosen


def _reduced(value: ir.Value, combine: Callable[..., ir.Value], start: float) -> ir.Value:
    """Return the combination of each row."""
    (rows, _), scalar = ir.RankedTensorType(value.type).shape, tensor([], FULL)
    described: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([1])}
    operands = [value, splat(start, scalar)]
    op = ir.Operation.create("stablehlo.reduce", [tensor([rows], FULL)], operands, described, regions=1)
    fill_region(op, [scalar, scalar], lambda arguments: [combine(*arguments)])
    return op.results[0]


def _key(op: ir.Operation) -> Hashable | None:
    """Return the chain itself: a kernel computes one."""
    return op if chain_problem(op) is None else None


def _never(op: ir.Operation, form: Form) -> bool:
    return False


ATTENTION = Family(
    heroes=Heroes(
        "one chain that is attention, of bf16, f16 or f32, with operands that can be copied as boxes",
        _key,
        operations=(CHAIN,),
        pays=lambda op: True,
    ),
    follows=_never,
    reads_memory=True,
    why=Reason("attention: logits and weights stay in a block"),
    emitter=AttentionEmitter,
    facts=AttentionFacts,
    schedule=AttentionSchedule,
    results=requirements.of_heroes,
    level="tiles",
)

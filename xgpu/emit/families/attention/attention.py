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
from xgpu.emit.families.attention.facts import AttentionFacts, attention_problem, chained_attention
from xgpu.emit.families.attention.schedule import AttentionSchedule
from xgpu.emit.family import Family
from xgpu.emit.kernel_builder import KernelBuilder, assign, entry_function
from xgpu.emit.tile_program import TileProgram, then
from xgpu.fusion.grouping.families import Heroes
from xgpu.hlo.stablehlo_builder import broadcast, convert, fill_region, hlo, splat, splat_like, tensor
from xgpu.hlo.tensor_cores import ALGORITHM, PRECISION
from xgpu.indexing.affine import constant, dim, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.reasons import Reason
from xgpu.structure import body_of, element_of, producer, users_of

_FULL = "f32"
"""The type of what is computed between the products, whatever types the program has there."""


class AttentionEmitter:
    """Emits a fusion of one chain that is attention."""

    NAME = "attention"

    def __init__(self, facts: AttentionFacts, schedule: AttentionSchedule):
        self.facts, self.schedule, self.fusion = facts, schedule, facts.fusion
        self.attention = facts.attention
        self.tiles = facts.tiles(schedule.tile_m, schedule.tile_n)

    def launch_dimensions(self) -> LaunchDimensions:
        """The threads that the schedule says."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, and the thread's elements of it] -> indices."""
        schedule, (threads, blocks) = self.schedule, self.launch_dimensions().ranges
        holders = schedule.holders(self.tiles.columns)
        own = holders.accumulators
        order = self._paired() if self.facts.visible else self._in_turn()
        first = len(order.symbols)
        row, column, _ = (each.substitute(None, [symbol(first + i) for i in range(3)]) for each in own.results)
        row = row + holders.first_row(0)
        block = [each.substitute([dim(1)]) for each in order.results]
        result = self.tiles.result(_returned(self.facts.chain))
        bounds = [(each.substitute(block, [row, column]), bound) for each, bound in result.constraints]
        bounds += [(each.substitute([dim(1)]), bound) for each, bound in order.constraints]
        bounds.append((dim(0), Interval(0, holders.threads - 1)))
        results = tuple(each.substitute(block, [row, column]) for each in result.results)
        return IndexingMap((threads, blocks), (*order.symbols, *own.symbols), results, tuple(bounds)).simplify()

    def _in_turn(self) -> IndexingMap:
        """Return (block)[tile of the block] -> (matrix, row of tiles, 0)."""
        batch, rows, _ = self.tiles.grid
        number, count = dim(0) + symbol(0) * self.schedule.blocks, batch * rows
        symbols = (Interval(0, -(-count // self.schedule.blocks) - 1),)
        results = (number // rows, number % rows, constant(0))
        (_, blocks) = self.launch_dimensions().ranges
        return IndexingMap((blocks,), symbols, results, ((number, Interval(0, count - 1)),))

    def _paired(self) -> IndexingMap:
        """Return (block)[pair of the block, which of the pair, row of tiles] -> (matrix, row of tiles, 0).

        The first of a pair is as far from the end as the second is from the begin, which constraints say.
        """
        batch, rows, _ = self.tiles.grid
        pairs = -(-rows // 2)
        number, half, row = dim(0) + symbol(0) * self.schedule.blocks, symbol(1), symbol(2)
        near, far = row - number % pairs, row + number % pairs - (rows - 1)
        count = Interval(0, batch * pairs - 1)
        symbols = (Interval(0, -(-count.size // self.schedule.blocks) - 1), Interval(0, 1), Interval(0, rows - 1))
        # Whichever half it is, one of the differences is zero; the other one is anything between -rows and rows.
        bounds = (
            (number, count),
            (far - half * rows, Interval(-2 * rows, 0)),
            (far + half * rows, Interval(0, 2 * rows)),
            (near + half * rows, Interval(-rows, rows)),
            (near - half * rows, Interval(-rows, rows)),
            (number % pairs * 2 + half, Interval(0, rows - 1)),
        )
        (_, blocks) = self.launch_dimensions().ranges
        return IndexingMap((blocks,), symbols, (number // pairs, row, constant(0)), bounds)

    def emit(self) -> None:
        """Write the entry function."""
        with entry_function(self.fusion, self, []) as kernel:
            kernel.attributes[SCHEDULE] = schedule_attribute(self.schedule.values)
            blocks = BlocksOp.build(self.tiles.grid, [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body), self.facts.chain.location:
                YieldOp.build([self._write_block(kernel, list(blocks.body.arguments))])
            assign(kernel.outputs, blocks.operation.results)

    def _write_block(self, kernel: KernelBuilder, arguments: list[ir.Value]) -> ir.Value:
        """Write what follows the steps of a block: sums are divided by those of the weights."""
        *at, output = arguments
        inputs: dict[ir.Value, ir.Value] = dict(zip(self.fusion.body.arguments, kernel.inputs, strict=True))
        given = zip(body_of(self.facts.chain).arguments, self.facts.chain.operands, strict=True)
        arrays: dict[ir.Value, ir.Value] = {argument: inputs[operand] for argument, operand in given}
        queries = TileProgram(at, arrays).tile(self.attention.queries, self.tiles.queries)
        sums, _, total = self._write_steps(arrays, at, queries)
        shape = [self.tiles.rows, self.tiles.columns]
        quotient: ir.Value = hlo.divide(sums, broadcast(total, shape, [0]))
        producer(quotient).attributes[GRADE] = int_attribute(16)
        returned = _returned(self.facts.chain)
        rounded = convert(quotient, element_of(returned))
        return InsertTileOp.build(rounded, output, at, self.tiles.result(returned))

    def _write_steps(self, arrays: dict[ir.Value, ir.Value], at: list[ir.Value], queries: ir.Value) -> list[ir.Value]:
        """Write the loop over the keys; return the sums, the largest logits, and the sums of weights."""
        rows, columns = self.tiles.rows, self.tiles.columns
        begin = [
            splat(0, tensor([rows, columns], _FULL)),
            splat(-math.inf, tensor([rows], _FULL)),
            splat(0, tensor([rows], _FULL)),
        ]
        steps = StepsOp.build(self.tiles.steps, begin)
        self._describe(steps.operation)
        step, sums, largest, total = steps.body.arguments
        with ir.InsertionPoint(steps.body):
            program = TileProgram([*at, step], arrays)
            logits = self._write_logits(program, queries, [*at, step])
            above = hlo.maximum(largest, _reduced(logits, hlo.maximum, -math.inf))
            # Rows without any logit above -inf so far have weights of zero, and keep none.
            is_low = _compare("EQ", above, splat(-math.inf, tensor([rows], _FULL)))
            base = hlo.select(is_low, splat(0, tensor([rows], _FULL)), above)
            weights = self._power(hlo.subtract(logits, broadcast(base, [rows, self.tiles.keys], [0])))
            scale = self._power(hlo.subtract(largest, base))
            total = hlo.add(hlo.multiply(total, scale), _reduced(weights, hlo.add, 0.0))
            values = program.tile(self.attention.values, self.tiles.values)
            rounded = convert(weights, element_of(self.attention.weights))
            product = _dot(rounded, values, self.attention.second)
            sums = hlo.add(hlo.multiply(sums, broadcast(scale, [rows, columns], [0])), product)
            YieldOp.build([sums, above, total])
        return list(steps.operation.results)

    def _describe(self, steps: ir.Operation) -> None:
        """Say which steps a mask leaves to each tile of rows."""
        if (keys := self.facts.visible) is None:
            return
        steps.attributes[VISIBLE] = map_attribute(self.tiles.visible(keys))
        hidden = keys.hidden if self._factored is None else self._factored.hidden
        if hidden != -math.inf:
            steps.attributes[HIDDEN] = ir.FloatAttr.get(ir.F32Type.get(), hidden)

    def _write_logits(self, program: TileProgram, queries: ir.Value, at: list[ir.Value]) -> ir.Value:
        """Write the logits of a step, -inf for keys beyond the last."""
        attention = self.attention
        keys = program.tile(attention.key_rows, self.tiles.key_rows)
        rounded, scores = attention.first.results[0], _dot(queries, keys, attention.first)
        if not all(_widens(user) for user in users_of(rounded)):
            scores = convert(scores, element_of(rounded))
        program.make(rounded, lambda map_: scores)
        logits = self._write_values(program)
        if not attention.keys % self.tiles.keys:
            return logits
        numbers = IndexTileOp.build(at, self.tiles.key_numbers, ir.IntegerType.get_signless(32))
        is_key = _compare("LT", numbers, splat(attention.keys, ir.RankedTensorType(numbers.type)))
        return hlo.select(is_key, logits, splat(-math.inf, ir.RankedTensorType(logits.type)))

    @property
    def _factored(self) -> Factored | None:
        """The factor of logits that is left to the exponential."""
        return self.facts.factored if self.schedule.folded else None

    def _write_values(self, program: TileProgram) -> ir.Value:
        """Write the logits of a step, without the factor that is left to the exponential."""
        if (found := self._factored) is None:
            softmax = self.attention.softmax
            return convert(program.tile(softmax.logits, then(self.tiles.weights, softmax.map)), _FULL)
        value = program.tile(found.value, then(self.tiles.weights, found.map))
        if found.condition is None:
            return value
        condition, map_ = found.condition
        low = splat(found.hidden, ir.RankedTensorType(value.type))
        chosen: ir.Value = hlo.select(program.tile(condition, then(self.tiles.weights, map_)), value, low)
        return chosen

    def _power(self, exponent: ir.Value) -> ir.Value:
        """Return the exponential of differences of logits, as exact as weights need be that are rounded to 16 bits."""
        if self._factored is not None:
            exponent = hlo.multiply(exponent, splat_like(self._factored.factor, exponent))
        power: ir.Value = hlo.exponential(exponent)
        producer(power).attributes[WEIGHT] = ir.UnitAttr.get()
        return power


def _widens(op: ir.Operation) -> bool:
    """Whether ``op`` makes f32 of what was rounded only for that: XLA takes such numbers as they were before."""
    return op.name == "stablehlo.convert" and isinstance(element_of(op.results[0]), ir.F32Type)


def _returned(chain: ir.Operation) -> ir.Value:
    *_, end = body_of(chain).operations
    return end.operation.operands[0]


def _dot(left: ir.Value, right: ir.Value, product: ir.Operation) -> ir.Value:
    """Return the product of two tiles, as precise as ``product``, in f32."""
    rows, columns = (ir.RankedTensorType(each.type).shape[number] for number, each in enumerate((left, right)))
    described = {name: product.attributes[name] for name in (PRECISION, ALGORITHM) if name in product.attributes}
    described["dot_dimension_numbers"] = ir.stablehlo.DotDimensionNumbers.get([], [], [1], [0])
    type_ = tensor([rows, columns], _FULL)
    return ir.Operation.create("stablehlo.dot_general", [type_], [left, right], described).results[0]


def _compare(direction: str, left: ir.Value, right: ir.Value) -> ir.Value:
    result: ir.Value = hlo.compare(left, right, hlo.ComparisonDirectionAttr.get(direction))
    return result


def _reduced(value: ir.Value, combine: Callable[..., ir.Value], start: float) -> ir.Value:
    """Return the combination of each row."""
    (rows, _), scalar = ir.RankedTensorType(value.type).shape, tensor([], _FULL)
    described: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([1])}
    operands = [value, splat(start, scalar)]
    op = ir.Operation.create("stablehlo.reduce", [tensor([rows], _FULL)], operands, described, regions=1)
    fill_region(op, [scalar, scalar], lambda arguments: [combine(*arguments)])
    return op.results[0]


def _key(op: ir.Operation) -> Hashable | None:
    """Return the chain itself: a kernel computes one."""
    attention = chained_attention(op)
    if attention is None:
        return None
    arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(op).arguments}
    return op if attention_problem(attention, _returned(op), arrays) is None else None


def _never(op: ir.Operation, form: Form) -> bool:
    return False


ATTENTION = Family(
    heroes=Heroes(
        "one chain that is attention, of bf16 or f16, with operands that can be copied as boxes",
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
    results=requirements.results_of_one_shape,
    level="tiles",
)

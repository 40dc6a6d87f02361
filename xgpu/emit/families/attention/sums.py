"""The emitter of chains of sums: blocks add up rows of arrays, each times what is computed from other products.

The hero is a chain, whose region is the program as it was written: a gradient of attention, whose weights are computed
again from what the forward pass stored of each row. In each step a block multiplies its rows by those of the step,
computes weights from these products element by element, and adds the rows of the step times the weights. What else of
these elements the program needs, as for the gradient of a bias, each step writes. The kernel is one of level ``tiles``.
"""

from collections.abc import Hashable, Sequence
from functools import partial

from xgpu import ir
from xgpu.analysis.attention.chained_sums import ComputedElements, ComputedSum, chained_sums
from xgpu.analysis.heroes import Form
from xgpu.dialects.attributes import SCHEDULE, VISIBLE, map_attribute, schedule_attribute
from xgpu.dialects.block.tiles import BlocksOp, IndexTileOp, InsertTileOp, StepsOp, TileOp
from xgpu.dialects.chain import CHAIN, returned
from xgpu.dialects.xgpu import YieldOp
from xgpu.emit import requirements
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.families.attention.sources import in_memory
from xgpu.emit.families.attention.sums_facts import SumsFacts, SumsTiles
from xgpu.emit.families.attention.sums_schedule import SumsSchedule, sums_problem
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
from xgpu.hlo.stablehlo_builder import convert, hlo, splat, tensor
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.reasons import Reason
from xgpu.structure import body_of, element_of


class SumsEmitter:
    """Emits a fusion of one chain of sums."""

    NAME = "sums"

    def __init__(self, facts: SumsFacts, schedule: SumsSchedule):
        self.facts, self.schedule, self.fusion = facts, schedule, facts.fusion
        self.chain = facts.chain
        self.tiles = SumsTiles(facts.chain, schedule.tile_m, schedule.tile_n)
        results: list[ComputedSum | ComputedElements] = [*facts.chain.sums, *facts.chain.elements]
        of = {each.result: each for each in results}
        self.stored = [of[value] for value in stored_values(facts.fusion)]

    def launch_dimensions(self) -> LaunchDimensions:
        """The threads that the schedule says."""
        return LaunchDimensions.along_x(self.schedule.blocks, self.schedule.threads)

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return (thread, block)[tile, and the thread's elements of it] -> indices."""
        stored = self.stored[output]
        map_ = self.tiles.stored(stored) if isinstance(stored, ComputedSum) else self.tiles.elements(stored)
        return written_by_threads(self.schedule, map_, self.tiles.grid, self.facts.visible is not None)

    def emit(self) -> None:
        """Write the entry function."""
        with entry_function(self.fusion, self, []) as kernel:
            kernel.attributes[SCHEDULE] = schedule_attribute(self.schedule.values)
            blocks = BlocksOp.build(self.tiles.grid, [each.value for each in kernel.outputs])
            with ir.InsertionPoint(blocks.body), self.facts.op.location:
                YieldOp.build(self._write_block(kernel, list(blocks.body.arguments)))
            assign(kernel.outputs, blocks.operation.results)

    def _write_block(self, kernel: KernelBuilder, arguments: list[ir.Value]) -> list[ir.Value]:
        """Write the steps of a block, and what follows them: sums are rounded and stored."""
        at, outputs = arguments[:3], arguments[3:]
        arrays = chain_arrays(self.fusion, self.facts.op, kernel)
        program = TileProgram(at, arrays)
        lefts = [program.tile(each.operand(0), self.tiles.left(each)) for each in self.chain.products]
        begin = [
            splat(0, self._tile_type(each)) if isinstance(each, ComputedSum) else output
            for each, output in zip(self.stored, outputs, strict=True)
        ]
        steps = StepsOp.build(self.tiles.steps, begin)
        if (keys := self.facts.visible) is not None:
            steps.operation.attributes[VISIBLE] = map_attribute(self.tiles.visible(keys))
        step, *carried = steps.body.arguments
        with ir.InsertionPoint(steps.body):
            YieldOp.build(self._write_step(arrays, lefts, [*at, step], carried))
        written: list[ir.Value] = []
        for each, sums, output in zip(self.stored, steps.operation.results, outputs, strict=True):
            if isinstance(each, ComputedElements):
                written.append(sums)
                continue
            rounded = convert(convert(sums, element_of(each.sums.product.results[0])), element_of(each.result))
            written.append(InsertTileOp.build(rounded, output, at, self.tiles.stored(each)))
        return written

    def _write_step(
        self, arrays: dict[ir.Value, ir.Value], lefts: list[ir.Value], at: list[ir.Value], carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Write a step; return what is carried after it: sums, and the arrays of elements."""
        program = TileProgram(at, arrays, own=True)
        fed: dict[tuple[ir.Value, IndexingMap], ir.Value] = {}
        for product, left in zip(self.chain.products, lefts, strict=True):
            right = self._fed(arrays, fed, at, product.operand(1), self.tiles.right(product))
            made = as_rounded(tile_product(left, right, product.op), product.result)
            program.make(product.result, partial(_same, made))
        after: dict[ir.Value, ir.Value] = {}
        given = list(zip(self.stored, carried, strict=True))
        sums = [(each, before) for each, before in given if isinstance(each, ComputedSum)]
        # What needs fewer products comes first: others are under way meanwhile.
        for computed, before in sorted(sums, key=lambda each: each[0].products):
            weights = self._write_weights(program, computed, at)
            tile = self._fed(arrays, fed, at, computed.sums.values, self.tiles.values(computed))
            rows = hlo.transpose(tile, [1, 0])
            after[before] = hlo.add(before, tile_product(weights, rows, computed.sums.product))
        for elements, array in given:
            if isinstance(elements, ComputedElements):
                map_ = self.tiles.elements(elements)
                after[array] = InsertTileOp.build(program.tile(elements.result, map_), array, at, map_)
        return [after[before] for before in carried]

    @staticmethod
    def _fed(
        arrays: dict[ir.Value, ir.Value],
        fed: dict[tuple[ir.Value, IndexingMap], ir.Value],
        at: list[ir.Value],
        value: ir.Value,
        map_: IndexingMap,
    ) -> ir.Value:
        """Return a tile of an array of a step, the same for all that read it."""
        found = in_memory(value, map_, arrays, converts=True)
        assert found is not None
        if found not in fed:
            array, read = found
            fed[found] = TileOp.build(arrays[array], at, read, element_of(array))
        return fed[found]

    def _write_weights(self, program: TileProgram, computed: ComputedSum, at: list[ir.Value]) -> ir.Value:
        """Write the weights of a sum, rounded, zero for keys beyond the last."""
        weights, space = program.tile(computed.sums.weights, self.tiles.weights(computed)), self.chain.space
        count = space.shape[space.stepped]
        if count % self.tiles.keys:
            numbers = IndexTileOp.build(at, self.tiles.key_numbers, ir.IntegerType.get_signless(32))
            is_key = compare("LT", numbers, splat(count, ir.RankedTensorType(numbers.type)))
            weights = hlo.select(is_key, weights, splat(0, ir.RankedTensorType(weights.type)))
        return convert(weights, element_of(self.chain.products[0].operand(0)))

    def _tile_type(self, computed: ComputedSum) -> ir.RankedTensorType:
        return tensor([each.size for each in self.tiles.stored(computed).symbols], FULL)


def _same(tile: ir.Value, map_: IndexingMap) -> ir.Value:
    """Return a tile that is the only one there is of a value, for every map to it."""
    return tile


def _key(op: ir.Operation) -> Hashable | None:
    """Return the chain itself: a kernel computes one."""
    chain = chained_sums(returned(op)) if op.name == CHAIN else "expected a chain"
    if isinstance(chain, str):
        return None
    arrays: dict[ir.Value, ir.Value] = {argument: argument for argument in body_of(op).arguments}
    return op if sums_problem(chain, arrays) is None else None


def _never(op: ir.Operation, form: Form) -> bool:
    return False


SUMS = Family(
    heroes=Heroes(
        "one chain of sums of rows times what is computed from products, of bf16, f16 or f32, copied as boxes",
        _key,
        operations=(CHAIN,),
        pays=lambda op: True,
    ),
    follows=_never,
    reads_memory=True,
    why=Reason("a gradient of attention: weights are computed again, and stay in a block"),
    emitter=SumsEmitter,
    facts=SumsFacts,
    schedule=SumsSchedule,
    results=requirements.of_heroes,
    level="tiles",
)

"""The threads of a product's blocks where all of them copy tiles, and each warp multiplies its part (``mma.sync``).

Copies that nobody waits for run some steps ahead. What goes through registers is loaded during the step before.
"""

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.block import copies
from xgpu.dialects.block.memory import SharedMemoryOp
from xgpu.dialects.threads import SyncThreadsOp
from xgpu.emit.families.products.warp_schedule import WarpProductSchedule
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.block_program import ProductProgram
from xgpu.passes.tiles.results import Room, TileResults
from xgpu.passes.tiles.ring import i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, TileOrder, below
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.warp_copies import RowCopies, operand_rows
from xgpu.passes.tiles.warp_multiplying import WarpProductWriter
from xgpu.records import dataclass


class WarpProductKernel:
    """Writes the threads of one kernel in place of its blocks."""

    def __init__(self, program: ProductProgram[WarpProductSchedule]):
        self._program, self._schedule = program, program.schedule

    def write(self) -> None:
        """Replace the blocks by the code of their threads."""
        blocks, function = self._program.blocks.operation, self._program.function
        function.attributes[attributes.RESIDENT] = attributes.int_attribute(self._schedule.resident)
        with ir.InsertionPoint(blocks), blocks.location:
            outputs = self._write_threads(list(blocks.operands))
        for old, new in zip(blocks.results, outputs, strict=True):
            old.replace_all_uses_with(new)
        blocks.erase()

    def _write_threads(self, outputs: Values) -> Values:
        schedule, program = self._schedule, self._program
        place = ThreadNumbers.compute(program.function, schedule.cluster)
        order = TileOrder(program, place, schedule.cluster)
        memory = SharedMemoryOp.build(schedule.shared_bytes)
        operands = self._operands(memory)
        products = WarpProductWriter(operands, schedule.holders, place.thread)
        pipeline = WarpPipeline(order, operands, products, schedule.stages, schedule.ahead)
        # The ring's memory is free once the last step is over.
        room = Room(memory, schedule.panels.bytes)
        results = TileResults(program, place, schedule.panels, (), room, is_met=True)
        with order.tiles(outputs) as tiles:
            at = order.numbers(tiles.counter)
            sums = pipeline.write(at)
            SyncThreadsOp.build([])
            tiles.carried = results.write(tiles.carried, at, sums)
            SyncThreadsOp.build([])
        return tiles.results

    def _operands(self, memory: ir.Value) -> tuple[RowCopies, RowCopies]:
        schedule, program = self._schedule, self._program
        (right,) = program.rights
        rows = [operand_rows(tile) for tile in (program.left, right)]
        after = offset(memory, schedule.stages * rows[0].shared.bytes)
        return (
            RowCopies(rows[0], program.left.array, schedule.left_bytes, schedule.threads, memory),
            RowCopies(rows[1], right.array, schedule.right_bytes, schedule.threads, after),
        )


@dataclass(frozen=True, eq=False)
class WarpPipeline:
    """The steps of a tile, whose copies run ahead of its products.

    If ``is_ahead``, all copies are asynchronous, and threads meet for a step, and read its first fragments, before they
    multiply the last ones of the step before.
    """

    order: TileOrder
    operands: tuple[RowCopies, RowCopies]
    products: WarpProductWriter
    stages: int
    is_ahead: bool

    def write(self, at: Values) -> Values:
        """Write the steps of the tile at some numbers of the grid; return its sums."""
        for step in range(self.stages - 1):
            if step < self._count:
                self._start([*at, create_index(step)], i32(step))
            self._commit()
        sums = self._write_ahead(at) if self.is_ahead else self._write_in_turn(at)
        return self.products.joined(sums)

    def _write_in_turn(self, at: Values) -> Values:
        products = self.products
        self._store(self._load([*at, create_index(0)]), i32(0))
        with self.order.steps([*products.zeros(), i32(0)]) as steps:
            *sums, slot = steps.carried
            self._wait()
            self._start_ahead(at, steps.counter, slot)
            # The last step loads its own elements again, which nobody reads.
            loaded = self._load([*at, self._later(steps.counter)])
            for number in range(products.parts):
                sums = products.add(sums, products.fragments(slot, number))
            following = self._next(slot)
            self._store(loaded, following)
            steps.carried = [*sums, following]
        return steps.results[:-1]

    def _write_ahead(self, at: Values) -> Values:
        products, zeros = self.products, self.products.zeros()
        self._wait()
        with self.order.steps([*zeros, *products.fragments(i32(0), 0), i32(0)]) as steps:
            *values, slot = steps.carried
            sums, fragments = values[: len(zeros)], values[len(zeros) :]
            self._start_ahead(at, steps.counter, slot)
            for number in range(1, products.parts):
                later = products.fragments(slot, number)
                sums, fragments = products.add(sums, fragments), later
            self._wait()
            # The last step reads its own fragments again, as there are no others.
            following = self._next(slot)
            is_later = below(steps.counter, self._count - 1)
            later = products.fragments(ir.arith.select(is_later, following, slot), 0)
            steps.carried = [*products.add(sums, fragments), *later, following]
        return steps.results[: len(zeros)]

    @property
    def _count(self) -> int:
        return self.order.program.steps.count

    @property
    def _is_async(self) -> bool:
        return any(each.is_async for each in self.operands)

    def _start(self, at: Values, slot: ir.Value) -> None:
        for each in self.operands:
            if each.is_async:
                each.start(self.order.place.thread, at, slot)

    def _commit(self) -> None:
        if self._is_async:
            copies.AsyncCommitOp.create()

    def _wait(self) -> None:
        """Wait for a step's tiles; then also all have read those of the step before."""
        if self._is_async:
            copies.AsyncWaitOp.create(attributes={"pending": self.stages - 2})
        SyncThreadsOp.build([])

    def _start_ahead(self, at: Values, step: ir.Value, slot: ir.Value) -> None:
        """Start the copies of a later step, into the slot of the step before. A group may be empty."""
        ahead, count = self.stages - 1, self._count
        if self._is_async and count > ahead:
            is_first = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, slot, i32(0))
            free = ir.arith.select(is_first, i32(ahead), ir.arith.subi(slot, i32(1)))
            with only_if(below(step, count - ahead)):
                self._start([*at, ir.arith.addi(step, create_index(ahead))], free)
        self._commit()

    def _load(self, at: Values) -> Values:
        return [each.load(self.order.place.thread, at) for each in self.operands if not each.is_async]

    def _store(self, loaded: Values, slot: ir.Value) -> None:
        plain = [each for each in self.operands if not each.is_async]
        for each, elements in zip(plain, loaded, strict=True):
            each.store(self.order.place.thread, elements, slot)

    def _later(self, step: ir.Value) -> ir.Value:
        """Return the number of the next step, after the last one that again."""
        return ir.arith.minui(ir.arith.addi(step, create_index(1)), create_index(self._count - 1))

    def _next(self, slot: ir.Value) -> ir.Value:
        after = ir.arith.addi(slot, i32(1))
        wraps = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, after, i32(self.stages))
        return ir.arith.select(wraps, i32(0), after)

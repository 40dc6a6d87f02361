"""The operands of a step's products: each with a ring of its own, and how they are multiplied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.block import matrices, waits
from xgpu.dialects.block.tiles import TileOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.chains.program import ChainProduct
from xgpu.passes.tiles.copying import Source, copy_tile
from xgpu.passes.tiles.multiplying import advance, rows_of_group
from xgpu.passes.tiles.ring import Ring, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.structure import element_of
from xgpu.target_machine import WARPGROUP_SIZE


@dataclass(frozen=True)
class Fed:
    """An operand whose tiles are copied into a ring of its own."""

    source: Source
    ring: Ring

    def copy(self, place: ThreadNumbers, slot: ir.Value, phase: ir.Value, at: Values) -> None:
        """Copy a tile as soon as the slot is empty."""
        self.ring.wait_empty(slot, phase)
        full = self.ring.full(slot)
        waits.MbarrierExpectOp.create([full, i32(self.source.boxes.bytes)])
        copy_tile(self.source, place.rank, slot, full, at)

    def release(self, place: ThreadNumbers, slot: ir.Value) -> None:
        """Say that this warp needs a slot's tile no more."""
        with only_if(equal(place.lane, 0)):
            waits.MbarrierArriveOp.create([self.ring.empty(slot)])


@dataclass(frozen=True)
class Operands:
    """The operands: tiles that all steps of a block share, and those of each step; each with its boxes."""

    fixed: Mapping[TileOp, Fed]
    fed: Mapping[TileOp, Fed]

    @property
    def all(self) -> list[Fed]:
        """All of them."""
        return [*self.fixed.values(), *self.fed.values()]

    def start(self, product: ChainProduct, place: ThreadNumbers, slot: ir.Value) -> ir.Value:
        """Start to multiply a warp group's rows of a tile by the tile of a slot; return the accumulators."""
        assert product.left is not None
        left, right = self.fixed[product.left].source, self.fed[product.right].source
        rows = rows_of_group(left.boxes, left.memory, place.group, 1)
        described = _described(product, left.boxes, right.boxes)
        buffer = right.buffer(slot)
        matrices.WarpgroupFenceOp.create()
        held = product.columns * WARPGROUP_ROWS // WARPGROUP_SIZE
        sums = constant(0, ir.VectorType.get([held], ir.F32Type.get()))
        for first in range(0, shape_of(product.left.tile)[1], contracted(product.op)):
            a = offset(rows, advance(left.boxes, 1, first))
            b = offset(buffer, advance(right.boxes, product.contracted, first))
            operands = [sums, a, b, _boolean(first > 0)]
            sums = matrices.WarpgroupMmaOp.create(operands, [sums.type], described).operation.results[0]
        matrices.WarpgroupCommitOp.create()
        return sums

    def start_sum(self, product: ChainProduct, left: Sequence[ir.Value], sums: ir.Value, slot: ir.Value) -> ir.Value:
        """Start to add the product of a left operand, which the threads hold, by the tile of a slot."""
        right = self.fed[product.right].source
        described = _described(product, None, right.boxes)
        buffer, step = right.buffer(slot), contracted(product.op)
        matrices.WarpgroupFenceOp.create()
        for number, part in enumerate(left):
            b = offset(buffer, advance(right.boxes, product.contracted, number * step))
            operands = [sums, part, b, _boolean(True)]
            sums = matrices.WarpgroupMmaOp.create(operands, [sums.type], described).operation.results[0]
        matrices.WarpgroupCommitOp.create()
        return sums


def finished(sums: ir.Value, pending: int) -> ir.Value:
    """Wait for all products under way but the last ``pending`` groups; return the accumulators of one."""
    return finished_after([sums], pending)[0]


def finished_after(computed: Sequence[ir.Value], pending: int) -> Values:
    """Wait so once some vectors have been computed, accumulators among them or not; return them."""
    made = matrices.WarpgroupWaitOp.create(computed, [each.type for each in computed], {"pending": pending})
    return list(made.operation.results)


def contracted(product: ir.Operation) -> int:
    """Return how many contracted elements one instruction takes."""
    return matrices.contracted(matrices.multiplied_as(str(element_of(product.operands[0]))))


def _described(product: ChainProduct, left: Boxes | None, right: Boxes) -> Mapping[str, object]:
    """Return the attributes of an instruction, whose left operand is in shared memory, or held by threads if None."""
    right_layout = right.layout(contracted=product.contracted)
    kinds = [ir.Type.parse(matrices.multiplied_as(str(element_of(each)))) for each in product.op.operands]
    return {
        "a_element": kinds[0],
        "b_element": kinds[1],
        "a_layout": right_layout if left is None else left.layout(contracted=1),
        "b_layout": right_layout,
    }


def _boolean(value: bool) -> ir.Value:
    return constant(int(value), integer_type(1))

"""The operands of a step's products, in memory with a ring each or held by threads, and how they are multiplied."""

import itertools
from collections.abc import Mapping, Sequence

from xgpu import ir
from xgpu.dialects.block import matrices, waits
from xgpu.dialects.block.tiles import ReadTile, TileOp
from xgpu.dialects.threads import ShuffleOp
from xgpu.indexing.access import shape_of
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.support import arith_builder
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.boxes import Boxes
from xgpu.passes.tiles.chains.program import ChainProduct
from xgpu.passes.tiles.chains.spreads import ROW_LANES, Spread
from xgpu.passes.tiles.copying import CopySource, copy_parts, copy_tile
from xgpu.passes.tiles.multiplying import advance, rows_of_group
from xgpu.passes.tiles.ring import Ring, i32, offset
from xgpu.passes.tiles.roles import ThreadNumbers, equal
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.passes.tiles.vectors import bitcast, from_elements
from xgpu.records import dataclass
from xgpu.structure import element_of
from xgpu.target_machine import WARPGROUP_SIZE

_HALVES = 2
_WORDS = 4
_NEAR, _FAR = (0, 2, 1, 3), (2, 0, 3, 1)
"""The lanes from which those of a row take in both exchanges."""
_SOURCE_BITS = 2
_PAIR = 2


@dataclass(frozen=True)
class Fed:
    """An operand whose tiles are copied into a ring of its own."""

    source: CopySource
    ring: Ring

    def copy(self, place: ThreadNumbers, slot: ir.Value, phase: ir.Value, at: Values) -> None:
        """Copy a tile as soon as the slot is empty."""
        self.ring.wait_empty(slot, phase)
        full = self.ring.full(slot)
        waits.MbarrierExpectOp.create([full, i32(self.source.boxes.bytes)])
        if self.source.boxes.lookup is None:
            copy_tile(self.source, place.rank, slot, full, at)
        else:
            copy_parts(self.source, slot, full, at)

    def release(self, place: ThreadNumbers, slot: ir.Value) -> None:
        """Say that this warp needs a slot's tile no more."""
        with only_if(equal(place.lane, 0)):
            waits.MbarrierArriveOp.create([self.ring.empty(slot)])


@dataclass(frozen=True)
class ChainOperands:
    """The operands: tiles that all steps of a block share, and those of each step; each with its boxes."""

    fixed: Mapping[TileOp, Fed]
    fed: Mapping[ReadTile, Fed]

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


def left_operand(spread: Spread, part: int) -> ir.Value:
    """Return the columns ``16 part`` to ``16 part + 15`` of a tile of 16 bits as a product's left operand."""
    places = itertools.product(range(_PAIR), range(_HALVES), range(_PAIR))
    first = 2 * part
    whole = from_elements([spread.at(half, (first + eighth) * _PAIR + each) for eighth, half, each in places])
    return bitcast(whole, _WORDS, integer_type(32))


def wide_left_operand(spread: Spread, part: int, lane: ir.Value) -> ir.Value:
    """Return the columns ``8 part`` to ``8 part + 7`` of a tile of f32, rounded to tf32, as a product's left operand.

    Of the columns of an eighth a lane of four holds a pair, but of the operand the column of its number and the one
    four after it. Two exchanges suffice, as in each of them no lane gives more than one number.
    """
    rows = [
        _exchanged([spread.at(half, part * _PAIR + each) for each in range(_PAIR)], lane) for half in range(_HALVES)
    ]
    words = [
        arith_builder.bitcast(rows[half][each], integer_type(32)) for each in range(_PAIR) for half in range(_HALVES)
    ]
    return from_elements([arith_builder.as_tf32(each) for each in words])


def _exchanged(pair: Sequence[ir.Value], lane: ir.Value) -> list[ir.Value]:
    """Return the columns of a lane's number and four after it, of what four lanes have in pairs of neighbours.

    In the first exchange lane 0 keeps column 0, lane 1 gets 5, lane 2 gets 2 and lane 3 keeps 7; in the second they get
    4, 1, 6 and 3. So lanes 0 and 1 give the first of their pair and then the second, the others the other way around.
    """
    own = ir.arith.andi(lane, create_index(ROW_LANES - 1))
    is_low = ir.arith.cmpi(ir.arith.CmpIPredicate.ult, own, create_index(_PAIR))
    is_odd = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, ir.arith.andi(lane, create_index(1)), create_index(1))
    first, second = pair
    (near,) = ShuffleOp.build(_source(lane, own, _NEAR), [ir.arith.select(is_low, first, second)])
    (far,) = ShuffleOp.build(_source(lane, own, _FAR), [ir.arith.select(is_low, second, first)])
    return [ir.arith.select(is_odd, far, near), ir.arith.select(is_odd, near, far)]


def _source(lane: ir.Value, own: ir.Value, sources: Sequence[int]) -> ir.Value:
    """Return the lane that one of four takes from."""
    packed = sum(source << (_SOURCE_BITS * number) for number, source in enumerate(sources))
    shift = ir.arith.muli(own, create_index(_SOURCE_BITS))
    source = ir.arith.andi(ir.arith.shrui(create_index(packed), shift), create_index(ROW_LANES - 1))
    return ir.arith.addi(ir.arith.subi(lane, own), source)

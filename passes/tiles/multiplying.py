"""The warp groups that multiply tiles: each its share of the rows, the accumulators in registers."""

from xgpu import ir
from xgpu.dialects.block import matrices, waits
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.passes.support.arith_builder import constant, integer_type
from xgpu.passes.tiles.boxes import SWIZZLE, Boxes
from xgpu.passes.tiles.copying import CopySource
from xgpu.passes.tiles.results import TileResults
from xgpu.passes.tiles.ring import Ring, as_i32, i32, offset
from xgpu.passes.tiles.roles import TileOrder, below
from xgpu.passes.tiles.structured import Values, only_if
from xgpu.records import dataclass
from xgpu.structure import element_of
from xgpu.target_machine import WARPGROUP_SIZE


@dataclass(frozen=True)
class ProductWriter:
    """The code of a warp group, which has ``share`` products of 64 rows, and then stores the results.

    The tiles of all ``rights`` are multiplied as one, whose columns lie side by side: a thread's vector has its sums of
    the first, then those of the next.
    """

    order: TileOrder
    ring: Ring
    left: CopySource
    rights: tuple[CopySource, ...]
    share: int
    results: TileResults

    def write(self, outputs: Values) -> Values:
        """Write it at the insertion point; return the arrays as it leaves them."""
        self.results.begin()
        with self.order.tiles([*outputs, i32(0), i32(0)]) as tiles:
            *arrays, slot, phase = tiles.carried
            at = self.order.numbers(tiles.counter)
            sums, slot, phase = self._write_steps(at, slot, phase)
            tiles.carried = [*self.results.write(arrays, at, sums), slot, phase]
        self.results.end()
        return tiles.results[: len(outputs)]

    def _write_steps(self, at: Values, slot: ir.Value, phase: ir.Value) -> tuple[Values, ir.Value, ir.Value]:
        """Write the loop over the steps. The products of one go on while the next one's tiles are waited for."""
        with self.order.steps([*self._zeros_of_each(), slot, phase, slot]) as steps:
            *sums, slot, phase, before = steps.carried
            self.ring.wait_full(slot, phase)
            sums = self._wait(self._multiply(sums, slot, steps.counter), pending=1)
            is_first = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, steps.counter, self.order.first_step)
            with only_if(ir.arith.xori(is_first, boolean(True))):
                self._release(before)
            steps.carried = [*sums, *self.ring.next(slot, phase), slot]
        *sums, slot, phase, last = steps.results
        sums = self._wait(sums, pending=0)
        self._release(last)
        return sums, slot, phase

    def _release(self, slot: ir.Value) -> None:
        """Tell all blocks that copy into it that this warp needs a slot's tiles no more."""
        empty, cluster = self.ring.empty(slot), self.order.cluster
        with only_if(below(self.order.place.lane, cluster)):
            if cluster == 1:
                waits.MbarrierArriveOp.create([empty])
            else:
                waits.MbarrierArriveRemoteOp.create([empty, as_i32(self.order.place.lane)])

    def _wait(self, sums: Values, pending: int) -> Values:
        types = [each.type for each in sums]
        return list(matrices.WarpgroupWaitOp.create(sums, types, {"pending": pending}).operation.results)

    def _multiply(self, sums: Values, slot: ir.Value, step: ir.Value) -> Values:
        """Start to add the products of a step's tiles."""
        sums = list(sums)
        program = self.order.program
        kinds = [matrices.multiplied_as(str(element_of(each.tile))) for each in (program.left, program.rights[0])]
        left, right = self.left.buffer(slot), self.rights[0].buffer(slot)
        described = {
            "a_element": ir.Type.parse(kinds[0]),
            "b_element": ir.Type.parse(kinds[1]),
            "a_layout": self.left.boxes.layout(contracted=1),
            "b_layout": self.rights[0].boxes.layout(contracted=0),
        }
        matrices.WarpgroupFenceOp.create()
        contracted = matrices.contracted(kinds[0])
        for part in range(self.left.boxes.view.tile[1] // contracted):
            is_later = ir.arith.cmpi(ir.arith.CmpIPredicate.ne, step, self.order.first_step)
            accumulate = boolean(True) if part else is_later
            b = offset(right, advance(self.rights[0].boxes, 0, part * contracted))
            for number in range(self.share):
                own = rows_of_group(self.left.boxes, left, self.order.place.group, self.share)
                own = offset(own, number * rows_step(self.left.boxes))
                a = offset(own, advance(self.left.boxes, 1, part * contracted))
                made = matrices.WarpgroupMmaOp.create([sums[number], a, b, accumulate], [sums[number].type], described)
                sums[number] = made.operation.results[0]
        matrices.WarpgroupCommitOp.create()
        return sums

    def _zeros_of_each(self) -> Values:
        """Return the sums before the first step."""
        columns = self.order.program.shape[1] * len(self.rights)
        count = columns * WARPGROUP_ROWS // WARPGROUP_SIZE
        type_ = ir.VectorType.get([count], self.order.program.sum_element)
        return [constant(0, type_) for _ in range(self.share)]


def rows_step(boxes: Boxes) -> int:
    """Return the bytes from the 64 rows of one product of a left operand to those of the next."""
    if boxes.view.inner == 0:
        return boxes.panel_bytes * (WARPGROUP_ROWS * boxes.element_bytes // SWIZZLE)
    return WARPGROUP_ROWS * SWIZZLE


def rows_of_group(boxes: Boxes, left: ir.Value, group: ir.Value, share: int) -> ir.Value:
    """Return where the rows of a warp group begin in a left operand, each of which has those of ``share`` products."""
    return offset(left, ir.arith.muli(as_i32(group), i32(share * rows_step(boxes))))


def advance(boxes: Boxes, contracted: int, elements: int) -> int:
    """Return how many bytes after its begin an operand goes on after so many contracted elements."""
    if boxes.view.inner != contracted:
        return elements * SWIZZLE
    panel, rest = divmod(elements, boxes.view.row)
    return panel * boxes.panel_bytes + rest * boxes.element_bytes


def boolean(value: bool) -> ir.Value:
    """Return a truth value."""
    return constant(int(value), integer_type(1))

"""The warp groups that multiply a left operand which they compute: from shared memory to fragments, in registers.

Half of a step's fragments are computed while the products of the other half are under way. Two warp groups also fill
each other's waits: one computes while the tensor cores multiply for the other.
"""

from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.dialects.block import matrices, waits
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS, warpgroup_left
from xgpu.passes.support.arith_builder import integer_type
from xgpu.passes.tiles.multiplying import ProductWriter, advance, boolean
from xgpu.passes.tiles.prologues.elements import LeftElements, Place
from xgpu.passes.tiles.prologues.reading import NarrowTile
from xgpu.passes.tiles.ring import as_i32, i32, offset
from xgpu.passes.tiles.structured import Values
from xgpu.passes.tiles.vectors import bitcast, from_elements
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of
from xgpu.target_machine import WARP_SIZE, WARPGROUP_SIZE

_CONTRACTED = 16
_TOGETHER = 2
"""Groups of products of a step: more would wait for less each, and have less to multiply meanwhile."""
_WORDS = 4
_FIRST_BARRIER = 4
"""The number of the barrier of the first warp, after those of the warp groups and of all."""


@dataclass(frozen=True)
class ComputedProducts(ProductWriter):
    """The code of a warp group, whose fragments of the left operand are computed from its tiles in shared memory."""

    def _write_steps(self, at: Values, slot: ir.Value, phase: ir.Value) -> tuple[Values, ir.Value, ir.Value]:
        """Write the loop over the steps. A step's products are waited for at its end."""
        program = self.order.program
        assert program.computed is not None
        elements = LeftElements(program.computed, program.left, at, self.order.place.thread, self._threads)
        elements.read(self._places)
        with self.order.steps([*self._zeros_of_each(), slot, phase]) as steps:
            *sums, slot, phase = steps.carried
            own = elements.in_step(steps.counter)
            own.read(self._places)
            self.ring.wait_full(slot, phase)
            sums = self._wait(self._multiply_computed(own, sums, slot, steps.counter), pending=0)
            self._release(slot)
            steps.carried = [*sums, *self.ring.next(slot, phase)]
        *sums, slot, phase = steps.results
        return sums, slot, phase

    def _release(self, slot: ir.Value) -> None:
        """Tell who copies that this warp needs a slot's tiles no more, once all of its lanes have read theirs."""
        number = ir.arith.addi(as_i32(self.order.place.warp), i32(_FIRST_BARRIER))
        waits.NamedBarrierOp.create([number], attributes={"threads": WARP_SIZE, "wait": True})
        super()._release(slot)

    def _multiply_computed(self, elements: LeftElements, sums: Values, slot: ir.Value, step: ir.Value) -> Values:
        """Compute the fragments of a step's tile, and start to add their products."""
        parts, sums = self._parts, list(sums)
        kind = dtype_of(elements.narrow.tile)
        memory = self.left.buffer(slot)
        tile = NarrowTile(self.left.boxes, kind, memory, self.order.place.thread, self._threads)
        each = -(-parts // _TOGETHER)
        for first in range(0, parts, each):
            some = range(first, min(first + each, parts))
            made = {
                (part, number): self._fragment(elements, tile, part, number)
                for part in some
                for number in range(self.share)
            }
            matrices.WarpgroupFenceOp.create()
            for (part, number), fragment in made.items():
                is_later = ir.arith.cmpi(ir.arith.CmpIPredicate.ne, step, self.order.first_step)
                accumulate = boolean(True) if part else is_later
                b = offset(self.rights[0].buffer(slot), advance(self.rights[0].boxes, 0, part * _CONTRACTED))
                operands = [sums[number], fragment, b, accumulate]
                product = matrices.WarpgroupMmaOp.create(operands, [sums[number].type], self._described)
                sums[number] = product.operation.results[0]
            matrices.WarpgroupCommitOp.create()
        return sums

    @property
    def _described(self) -> dict[str, object]:
        program = self.order.program
        kinds = [matrices.multiplied_as(str(element_of(each))) for each in program.products[0].operands]
        layout = self.rights[0].boxes.layout(contracted=0)
        elements = {"a_element": ir.Type.parse(kinds[0]), "b_element": ir.Type.parse(kinds[1])}
        return {**elements, "a_layout": layout, "b_layout": layout}

    @property
    def _threads(self) -> Interval:
        """The numbers of the threads that multiply."""
        groups = self.order.program.shape[0] // (self.share * WARPGROUP_ROWS)
        return Interval(0, groups * WARPGROUP_SIZE - 1)

    @property
    def _parts(self) -> int:
        """Return the number of products that a step has, one after the other."""
        return shape_of(self.order.program.left.tile)[1] // _CONTRACTED

    def _fragment(self, elements: LeftElements, tile: NarrowTile, part: int, number: int) -> ir.Value:
        """Return a thread's elements of some columns of the operand, of its rows of a number."""
        places = list(self._fragment_places(part, number))
        scalars = [elements.value(place, narrow) for place, narrow in zip(places, tile.read(places), strict=True)]
        return bitcast(from_elements(scalars), _WORDS, integer_type(32))

    @property
    def _places(self) -> list[Place]:
        """All places of a thread."""
        return [
            place
            for part in range(self._parts)
            for number in range(self.share)
            for place in self._fragment_places(part, number)
        ]

    def _fragment_places(self, part: int, number: int) -> Iterator[Place]:
        """Yield where the elements of a fragment are in the tile, by the thread: eighths, then halves, then pairs."""
        left = warpgroup_left(self._parts * _CONTRACTED, self.left.boxes.view.inner == 0)
        first = (dim(0) // WARPGROUP_SIZE * self.share + number) * WARPGROUP_ROWS
        for eighth in range(2):
            for half in range(2):
                for neighbour in range(2):
                    at = [constant(each) for each in (part, eighth, half, neighbour)]
                    row, column = (each.substitute([dim(0) % WARPGROUP_SIZE], at) for each in left.results)
                    yield self._simple((first + row, column))

    def _simple(self, place: Sequence[AffineExpr]) -> Place:
        row, column = IndexingMap((self._threads,), (), tuple(place)).simplify().results
        return row, column

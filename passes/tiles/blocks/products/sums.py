"""Products of tiles whose sums threads hold: by matrix instructions of warps, or element by element."""

from collections.abc import Sequence
from functools import cached_property

from xgpu import ir
from xgpu.block_plan.instructions import BY_WARPS, warp_problem
from xgpu.block_plan.kernel import instruction_of
from xgpu.dialects import attributes
from xgpu.dialects.attributes import BY_THREADS
from xgpu.dialects.block.matrices import MmaOp
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.dtypes import DType, dtype_named
from xgpu.emit.scalar.accumulation import Accumulation, accumulation_of
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.blocks.elements import ElementCode
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import scalar_type
from xgpu.passes.tiles.blocks.products.by_groups import WarpGroupProduct
from xgpu.passes.tiles.blocks.products.fragments import HALVES, NEIGHBOURS, FragmentLayout, converted
from xgpu.passes.tiles.blocks.products.operands import LEFT, RIGHT, FragmentSource, Operand
from xgpu.passes.tiles.blocks.state import State
from xgpu.passes.tiles.structured import counted
from xgpu.passes.tiles.vectors import elements, from_elements
from xgpu.records import dataclass
from xgpu.structure import dtype_of

_UNROLLED = 8
"""Fragments along the contraction up to which there is code for each."""


@dataclass(frozen=True, eq=False)
class SummedProduct:
    """The sums of a product of tiles, some rows of a thread's fragments of one matrix of a batch.

    ``matrix`` is that matrix's number; the rows are the ``count`` from ``first`` on.
    """

    state: State
    op: ir.Operation
    layout: FragmentLayout
    matrix: AffineExpr
    first: int
    count: int

    @property
    def instruction(self) -> str:
        """The instructions that multiply: those that are decided, else of warps where they can."""
        possible = BY_THREADS if warp_problem(self.op) else attributes.BY_WARPS
        return instruction_of(self.op) or possible

    @property
    def sum_type(self) -> DType:
        """The type in which products are added up, before the result is rounded to its own."""
        if self.instruction != BY_THREADS:
            return dtype_named("f32")
        return _sum_type(self._accumulation)

    @cached_property
    def _accumulation(self) -> Accumulation:
        return accumulation_of(self.op)

    @property
    def _places(self) -> list[tuple[int, int]]:
        """The fragments: which of the rows, and which of the columns."""
        across = range(self.layout.held_across)
        return [(down, each) for down in range(self.first, self.first + self.count) for each in across]

    def write(self, begin: Sequence[ir.Value] | None) -> list[ir.Value]:
        """Write the product; return the vectors of its fragments, row by row. Sums ``begin`` with these, or at zero."""
        if self.instruction == attributes.BY_WARP_GROUPS:
            assert begin is None, "products of warp groups that are added to something are started"
            sums = WarpGroupProduct(self.state, self.op, self.layout, self.first, self.count).write()
        elif self.instruction == attributes.BY_WARPS:
            sums = self._by_warps(self._zeros(self.sum_type) if begin is None else list(begin))
        else:
            sums = self._by_threads(begin)
        own = dtype_of(self.op.results[0])
        return sums if begin is not None else [converted(each, self.sum_type, own) for each in sums]

    def _zeros(self, dtype: DType) -> list[ir.Value]:
        type_ = ir.VectorType.get([HALVES * NEIGHBOURS], scalar_type(dtype))
        return [b.constant(0, type_)] * len(self._places)

    def _operand(self, number: int) -> Operand:
        return Operand(self.state, self.op, self.layout, number)

    def _by_warps(self, sums: list[ir.Value]) -> list[ir.Value]:
        """Add up products of fragments, the last of which may be beyond the end of the contraction in part."""
        sources = [FragmentSource(self._operand(number), self.matrix) for number in (LEFT, RIGHT)]
        depth, contracted = sources[0].depth, sources[0].operand.contracted
        whole, space = contracted // depth, self.state.space
        if whole > _UNROLLED:
            with counted(create_index(0), create_index(whole), create_index(1), sums) as loop:
                inner = space.extended([Interval(0, whole - 1)], [loop.counter])
                loop.carried = self._added(inner, sources, dim(len(space.ranges)) * depth, loop.carried)
            sums, done = loop.results, whole
        else:
            done = 0
        for number in range(done, -(-contracted // depth)):
            sums = self._added(space, sources, constant(number * depth), sums)
        return sums

    def _added(
        self, space: AddressSpace, sources: Sequence[FragmentSource], depth: AffineExpr, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        left, right = sources
        code = ElementCode(self.state, left.lanes_of(space))
        rows = [left.read(space, code, each, depth)[0] for each in range(self.first, self.first + self.count)]
        columns: list[ir.Value] = []
        while len(columns) < self.layout.held_across:
            columns += right.read(space, code, len(columns), depth)
        element = ir.Type.parse(BY_WARPS[left.operand.dtype.hlo])
        described = {"a_element": element, "b_element": element}
        found = []
        for (down, across), total in zip(self._places, sums, strict=True):
            made = MmaOp.create([rows[down - self.first], columns[across], total], [total.type], described)
            found.append(made.operation.results[0])
        return found

    def _by_threads(self, begin: Sequence[ir.Value] | None) -> list[ir.Value]:
        """Add up products of elements: each thread those of what it holds, one contracted element at a time."""
        state, layout = self.state, self.layout
        left, right = self._operand(LEFT), self._operand(RIGHT)
        if begin is None:
            (zero,) = self._accumulation.emit_start([])
            begin = [from_elements([zero] * (HALVES * NEIGHBOURS))] * len(self._places)
        terms = IndexingMap((), (Interval(0, left.contracted - 1),), ())
        loop = LoopOp.build(terms, [], list(begin))
        with ir.InsertionPoint(loop.body):
            space = state.space.extended(terms.symbols, loop.symbol_arguments).with_lanes(NEIGHBOURS)
            code, number = ElementCode(state, space), dim(len(state.space.ranges))
            lefts = {
                (down, half): code.lanes(left.tile, left.at(self.matrix, layout.row(down, half), number))[0]
                for down in range(self.first, self.first + self.count)
                for half in range(HALVES)
            }
            rights = []
            for across in range(layout.held_across):
                both = code.lanes(right.tile, right.at(self.matrix, layout.column(across), number))
                rights.append(both if len(both) == NEIGHBOURS else both * NEIGHBOURS)
            found = []
            for (down, across), total in zip(self._places, loop.carried_arguments, strict=True):
                sums = elements(total)
                found.append(
                    from_elements(
                        [
                            self._accumulation.emit_step(
                                [sums[half * NEIGHBOURS + each]], [lefts[down, half], rights[across][each]]
                            )[0]
                            for half in range(HALVES)
                            for each in range(NEIGHBOURS)
                        ]
                    )
                )
            YieldOp.build(found)
        return list(loop.operation.results)


def _sum_type(accumulation: Accumulation) -> DType:
    (total, *_) = accumulation.step.arguments
    return dtype_of(total)

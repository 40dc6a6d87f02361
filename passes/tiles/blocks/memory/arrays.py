"""Tiles in arrays: accesses to neighbours in global memory, without the elements that are outside."""

import math
from collections.abc import Mapping, Sequence

from xgpu import ir
from xgpu.dialects.block.tiles import InsertTileOp, TileOp
from xgpu.dtypes import DType
from xgpu.indexing.access import shape_of
from xgpu.indexing.affine import AffineExpr, constant, linearize, symbol
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.passes.llvm.memory import element_pointer, load
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.scf_ops import create_index
from xgpu.passes.tiles.blocks.memory.space import AddressSpace
from xgpu.passes.tiles.blocks.memory.stored import (
    MOST_BYTES,
    element_bytes,
    packed_type,
    store_elements,
    stored_type,
    unpacked,
)
from xgpu.passes.tiles.structured import only_if
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True, eq=False)
class ArrayElements:
    """The elements of an array that lanes access: their position, and the constraints under which there are any.

    ``pointer`` is the address of the array.
    """

    pointer: ir.Value
    dtype: DType
    position: AffineExpr
    constraints: tuple[Constraint, ...]

    @classmethod
    def of(
        cls,
        op: TileOp | InsertTileOp,
        pointer: ir.Value,
        numbers: Mapping[ir.Value, AffineExpr],
        indices: Sequence[AffineExpr],
    ) -> "ArrayElements":
        """Return what is read or written of a tile at some indices; ``numbers`` are those of block and step."""
        map_: IndexingMap = op.map
        dims = [numbers[value] for value in op.at]
        results = [each.substitute(dims, indices) for each in map_.results]
        bounds = tuple((each.substitute(dims, indices), bound) for each, bound in map_.constraints)
        return cls(pointer, dtype_of(op.tile), linearize(results, shape_of(op.array)), bounds)

    def together(self, space: AddressSpace) -> int:
        """Return how many neighbours an access may take: all of them are inside of the array, or none is."""
        most = max(1, MOST_BYTES // element_bytes(self.dtype))
        for expression, bound in space.open_constraints(self.constraints):
            if space.has_lanes(expression):
                rest = space.simple(expression - symbol(0))
                is_whole = not rest.variables()[1]
                most = math.gcd(most, rest.divisor(), bound.lower, bound.upper + 1) if is_whole else 1
        return most

    def load(self, space: AddressSpace) -> tuple[ir.Value, ...]:
        """Read the elements of all lanes, zeros where there are none; or the one element of all of them."""
        depends = space.has_lanes(self.position) or any(space.has_lanes(each) for each, _ in self._open(space))
        found: list[ir.Value] = []
        lane = 0
        for first, count in self._runs(space) if depends else [(space.at_lane(self.position, 0), 1)]:
            inside = space.holds(self._at(space, lane))
            index = space.index(first)
            if inside is not None:
                # What is not inside is read where the array begins, and dropped.
                index = ir.arith.select(inside, index, create_index(0))
            type_ = packed_type(self.dtype, count)
            read = load(self._address(index), type_, count * element_bytes(self.dtype), invariant=True)
            if inside is not None:
                read = ir.arith.select(inside, read, b.constant(0, type_))
            found += unpacked(read, self.dtype, count)
            lane += count
        return tuple(found)

    def store(self, space: AddressSpace, scalars: Sequence[ir.Value]) -> None:
        """Write the elements of all lanes where there are any."""
        lane = 0
        for first, count in self._runs(space):
            inside, part = space.holds(self._at(space, lane)), scalars[lane : lane + count]
            if inside is None:
                store_elements(part, self._address(space.index(first)), self.dtype)
            else:
                with only_if(inside):
                    store_elements(part, self._address(space.index(first)), self.dtype)
            lane += count

    def address(self, space: AddressSpace, position: AffineExpr) -> ir.Value:
        """Write the address of a position, which need not be inside."""
        return self._address(space.index(position), inbounds=False)

    def _address(self, index: ir.Value, inbounds: bool = True) -> ir.Value:
        number = ir.arith.index_cast(b.integer_type(64), index)
        return element_pointer(self.pointer, stored_type(self.dtype), number, inbounds)

    def _runs(self, space: AddressSpace) -> list[tuple[AffineExpr, int]]:
        """Return the runs of lanes that are accessed together, all lanes one after the other."""
        runs = space.runs(self.position, self.together(space))
        if len(runs) == 1 and runs[0].count < space.lanes:
            return [(runs[0].first, 1)] * space.lanes
        return [(each.first, each.count) for each in runs]

    def _open(self, space: AddressSpace) -> tuple[Constraint, ...]:
        return space.open_constraints(self.constraints)

    def _at(self, space: AddressSpace, lane: int) -> list[Constraint]:
        return [(each.substitute(None, [constant(lane)]), bound) for each, bound in self.constraints]
